//! When a set of peers counts as installed. The installing itself runs before every test run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{Runtime, Set, Site, check_owned, home, node, python};

/// A folder that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }

    fn set(&self) -> Set<'static> {
        let manifest = self.0.join("pins.txt");
        fs::write(&manifest, "mcp==1.0.0\n").unwrap();
        let directory = self.0.join("set");
        Set { name: "set", runtime: Runtime::Python, manifests: vec![manifest], directory }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder left behind in the temporary directory harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A set that was installed to its end.
fn finished(scratch: &Scratch) -> (Site, Set<'static>) {
    let site = Site::open(&scratch.0).unwrap();
    let set = scratch.set();
    set.clear().unwrap();
    put_interpreter(&set);
    let version = set.version(&site).unwrap();
    fs::write(set.stamp_file(), set.stamp(&version).unwrap()).unwrap();
    (site, set)
}

/// Any program will do that answers `--version`, and cargo is always there.
///
/// A link, not a script: a file that was just written cannot be run while another test forks.
fn put_interpreter(set: &Set) {
    fs::create_dir_all(set.directory.join("bin")).unwrap();
    symlink(env!("CARGO"), set.directory.join("bin/python")).unwrap();
}

#[test]
fn finished_set_is_whole() {
    let scratch = Scratch::new("finished");
    let (site, set) = finished(&scratch);
    assert!(set.is_whole(&site));
}

#[test]
fn changed_manifest_makes_a_set_stale() {
    let scratch = Scratch::new("manifest");
    let (site, set) = finished(&scratch);
    fs::write(&set.manifests[0], "mcp==1.0.1\n").unwrap();
    assert!(!set.is_whole(&site));
}

#[test]
fn changed_interpreter_makes_a_set_stale() {
    let scratch = Scratch::new("interpreter");
    let (site, set) = finished(&scratch);
    fs::write(set.stamp_file(), set.stamp("Python 3.2.0").unwrap()).unwrap();
    assert!(!set.is_whole(&site));
}

#[test]
fn lost_interpreter_makes_a_set_stale() {
    let scratch = Scratch::new("lost");
    let (site, set) = finished(&scratch);
    fs::remove_file(set.directory.join("bin/python")).unwrap();
    assert!(!set.is_whole(&site));
}

#[test]
fn moved_set_is_stale() {
    let scratch = Scratch::new("moved");
    let (site, mut set) = finished(&scratch);
    let moved = scratch.0.join("moved");
    fs::rename(&set.directory, &moved).unwrap();
    set.directory = moved;
    assert!(!set.is_whole(&site));
}

#[test]
fn set_that_an_install_was_killed_in_is_stale_and_cleared() {
    let scratch = Scratch::new("killed");
    let (site, set) = finished(&scratch);
    set.clear().unwrap();
    put_interpreter(&set);
    assert!(!set.is_whole(&site));
    set.clear().unwrap();
    assert!(fs::read_dir(&set.directory).unwrap().next().is_none());
}

#[test]
fn peers_behind_a_link_are_used_but_never_replaced() {
    let scratch = Scratch::new("linked");
    let (own, other) = (scratch.0.join("own"), scratch.0.join("other/target/peers"));
    fs::create_dir_all(own.join("target")).unwrap();
    fs::create_dir_all(&other).unwrap();
    std::os::unix::fs::symlink(&other, own.join("target/peers")).unwrap();
    assert_eq!(home(&own).unwrap(), other.canonicalize().unwrap());
    assert_eq!(check_owned(&own, &[]), Ok(()));
    let refused = check_owned(&own, &["sdk1", "npm"]).unwrap_err();
    assert!(refused.contains("is a link, and these peers behind it are missing"), "{refused}");
    assert_eq!(check_owned(&scratch.0.join("other"), &["sdk1"]), Ok(()));
}

#[test]
fn versions_are_read_from_what_the_runtimes_print() {
    assert_eq!(node::major("v20.20.2"), Some(20));
    assert_eq!(node::major("twenty"), None);
    assert_eq!(python::numbers("Python 3.11.7"), Some((3, 11)));
    assert_eq!(python::numbers("Python 3.14.0rc1"), Some((3, 14)));
    assert_eq!(python::numbers("Python three"), None);
}
