//! Toolman below Toolman: which configurations are served above this process.
//!
//! A file may list Toolman as a server. With another file that is a chain, which ends somewhere; with the same file it
//! would start itself without end. Every command that is started here inherits the list of what is served above it,
//! also through `npx`, `env` or a script.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use mcp::rpc::{self, Code};
use mcp::text::tame;
use upstream::guard;
use upstream::supervisor::ITSELF;

use crate::cli::Misuse;
use crate::host::Source;

/// The files that are served above, one a line, the outermost first.
const VARIABLE: &str = "TOOLMAN_SERVING";
/// How many Toolmans may stand one below the other.
const DEPTH_MAX: usize = 3;

/// What is served above this process, the outermost first.
pub struct Above {
    served: Vec<PathBuf>,
    /// How many there are, also when a program between us has taken the variable away.
    depth: usize,
}

/// Why this process must not serve.
pub enum Refusal {
    /// The configuration is served above already.
    Itself(PathBuf),
    TooDeep(Vec<PathBuf>),
}

impl Above {
    pub fn find() -> Above {
        let chain = std::env::var_os(VARIABLE).unwrap_or_default();
        let lines = chain.as_bytes().split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let served: Vec<_> = lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect();
        let depth = served.len().max(guard::count_above());
        Above { served, depth }
    }

    /// Whether there is room for the servers of one more.
    pub fn check_depth(&self) -> Result<(), Misuse> {
        match self.too_deep() {
            Some(refusal) => Err(Misuse(refusal.words())),
            None => Ok(()),
        }
    }

    /// Why this must not be served to whoever has started us, if so.
    pub fn refusal(&self, source: &Source) -> Option<Refusal> {
        let own = identity(source)?;
        let is_served = self.served.contains(&own);
        if is_served { Some(Refusal::Itself(own)) } else { self.too_deep() }
    }

    fn too_deep(&self) -> Option<Refusal> {
        (self.depth >= DEPTH_MAX).then(|| Refusal::TooDeep(self.served.clone()))
    }

    /// What commands are told that are started for a configuration.
    pub fn marker(&self, source: &Source) -> (&'static str, OsString) {
        let served = self.served.iter().cloned().chain(identity(source));
        let lines: Vec<_> = served.map(|path| path.into_os_string().into_vec()).collect();
        (VARIABLE, OsString::from_vec(lines.join(&b'\n')))
    }
}

/// What tells one configuration from another.
fn identity(source: &Source) -> Option<PathBuf> {
    let path: &Path = match source {
        Source::File(path) | Source::Dock(path) => path,
        Source::Demo => return None,
    };
    let path = std::fs::canonicalize(path).ok()?;
    // It would look like two.
    (!path.as_os_str().as_bytes().contains(&b'\n')).then_some(path)
}

impl Refusal {
    pub fn words(&self) -> String {
        match self {
            Refusal::Itself(path) => format!(
                "`{}` is served above this process already, which one of its servers has started; remove that server from \
                 the file",
                shown(path)
            ),
            Refusal::TooDeep(served) => {
                let served: Vec<_> =
                    served.iter().map(|path| format!("`{}`", shown(path))).collect();
                let chain = match &served[..] {
                    [] => String::new(),
                    served => format!(" ({})", served.join(" starts ")),
                };
                format!(
                    "{DEPTH_MAX} Toolmans stand above this one already, each started by another{chain}; list the servers \
                     in one of their files instead"
                )
            }
        }
    }

    /// The same for a client.
    pub fn error(&self) -> rpc::Raw {
        let data = match self {
            Refusal::Itself(_) => Some(ITSELF),
            Refusal::TooDeep(_) => None,
        };
        rpc::error_object(Code::INTERNAL, &self.words(), data)
    }
}

fn shown(path: &Path) -> String {
    tame(&path.display().to_string())
}
