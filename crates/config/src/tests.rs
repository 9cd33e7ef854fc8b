//! What `load` makes of files.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use upstream::launch::Launch;

use crate::{Config, load};

/// A folder with a `tools.toml`.
struct Project {
    folder: TempDir,
    file: PathBuf,
}

impl Project {
    fn with(contents: impl AsRef<[u8]>) -> Project {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("tools.toml");
        std::fs::write(&file, contents).unwrap();
        let project = Project { folder, file };
        project.set_mode(0o644);
        project
    }

    fn set_mode(&self, mode: u32) {
        std::fs::set_permissions(&self.file, Permissions::from_mode(mode)).unwrap();
    }

    fn load(&self) -> Config {
        load(&self.file, &|_| None).unwrap()
    }

    /// Checks the one fault that the file has, without its name.
    #[track_caller]
    fn check_fault(&self, fault: &str) {
        check_fault(&self.file, fault);
    }
}

#[track_caller]
fn check_fault(file: &Path, fault: &str) {
    let faults = load(file, &|_| None).unwrap_err();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, [format!("{}:{fault}", file.display())]);
}

const SMALLEST: &str = "[[servers]]\ncommand = 'uvx pjpd'\n";

#[test]
fn servers_run_in_the_folder_of_the_file() {
    // TA-01
    let project = Project::with(SMALLEST);
    let [server] = &project.load().servers[..] else {
        panic!("there is one server");
    };
    let Launch::Command(command) = &server.settings.launch else {
        panic!("it is a command");
    };
    assert_eq!(command.cwd.as_deref(), Some(project.folder.path()));
}

#[test]
fn byte_order_mark_is_accepted_and_takes_no_column() {
    // C01
    let project = Project::with(format!("\u{feff}{SMALLEST}"));
    assert_eq!(project.load().servers.len(), 1);
    Project::with("\u{feff}x").check_fault("1:2: key with no value; expected `=`");
}

#[test]
fn other_encoding_is_refused_with_the_place() {
    // C01
    let utf16: Vec<u8> =
        format!("\u{feff}{SMALLEST}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let project = Project::with(utf16);
    project.check_fault(" not UTF-8 at byte 0, but UTF-16; save it as UTF-8");
}

#[test]
fn large_file_is_refused_unread() {
    // C12
    let project = Project::with(SMALLEST);
    let file = File::options().write(true).open(&project.file).unwrap();
    file.set_len(64 * 1024 * 1024).unwrap();
    project.check_fault(" over 1 MiB; keep only the configuration in it");
}

#[test]
fn file_of_just_1_mib_is_read() {
    // C12
    let comment = "#".repeat(1024 * 1024 - SMALLEST.len());
    let project = Project::with(format!("{SMALLEST}{comment}"));
    assert_eq!(project.load().servers.len(), 1);
}

#[test]
fn missing_file_says_what_to_do() {
    // TA-11
    let folder = TempDir::new().unwrap();
    check_fault(
        &folder.path().join("tools.toml"),
        " no such file; write one (see the README) or pass --config FILE",
    );
}

#[test]
fn what_is_no_file_is_not_read() {
    let project = Project::with(SMALLEST);
    check_fault(project.folder.path(), " is a folder; pass the file inside it with --config FILE");
    check_fault(Path::new("/dev/null"), " is not a regular file; pass another with --config FILE");
    check_fault(
        &project.file.join("tools.toml"),
        " can't be read: not a directory; check its path and permissions",
    );
}

#[test]
fn file_that_anyone_can_change_is_refused() {
    // C16
    let project = Project::with(SMALLEST);
    project.set_mode(0o646);
    let user = rustix::process::geteuid().as_raw();
    let file = project.file.display();
    project.check_fault(&format!(
        " owned by user {user} with mode 0646, so anyone can change it; run `chmod o-w {file}`"
    ));
    project.set_mode(0o664);
    assert_eq!(project.load().servers.len(), 1);
}
