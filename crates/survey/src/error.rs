//! What can be wrong with foreign sources.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("member `{member}` {problem}; the archive is refused")]
    Member { member: String, problem: Problem },

    #[error("the archive holds over {} files; the most is that", .most)]
    TooMany { most: usize },

    #[error("the archive becomes over {} bytes; the most is that", .most)]
    TooLarge { most: u64 },

    #[error(
        "the archive grows more than {times} times when it is unpacked; it is taken for a bomb"
    )]
    Bomb { times: u64 },

    #[error("the archive can't be read: {reason}")]
    Damaged { reason: String },

    #[error(
        "`{name}` is no archive that can be unpacked; `.tgz`, `.tar.gz`, `.whl` and `.zip` can"
    )]
    Format { name: String },

    #[error("path `{path}` {problem}; give a path beneath the folder, such as `src/index.ts`")]
    Path { path: String, problem: Problem },

    #[error("no file is at `{path}`; `files` of the analysis lists them")]
    NoFile { path: String },

    #[error("`{path}` has {bytes} bytes; the most that is read is {most}")]
    FileTooLarge { path: String, bytes: u64, most: u64 },

    #[error("`{path}` is no text")]
    NoText { path: String },

    #[error("{what} can't be used: {source}")]
    Io { what: String, source: io::Error },
}

/// What is wrong with a path, or with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("is empty")]
    Empty,
    #[error("leads out of the folder by `..`")]
    Parent,
    #[error("is absolute")]
    Absolute,
    #[error("holds a backslash")]
    Backslash,
    #[error("names a drive")]
    Drive,
    #[error("holds a control character")]
    Control,
    #[error("is no UTF-8")]
    Encoding,
    #[error("is too long")]
    Long,
    #[error("leads into `.git`")]
    Git,
    #[error("is a link, which is not followed")]
    Link,
    #[error("is a link that leads out of the archive")]
    LinkOut,
    #[error("is a device or a pipe")]
    Device,
    #[error("would run with the rights of its owner")]
    Rights,
    #[error("is there twice")]
    Twice,
    #[error("is of an unknown kind")]
    Kind,
    #[error("is encrypted")]
    Encrypted,
}
