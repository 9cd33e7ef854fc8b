//! What is deleted and kept.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use tempfile::TempDir;

use super::Shelf;
use crate::beneath::Root;

#[test]
fn namespace_on_another_disk_is_kept_there_each_time_anew() {
    let (data, tools) = (TempDir::new().unwrap(), TempDir::new_in("/dev/shm").unwrap());
    let device = |folder: &TempDir| folder.path().metadata().unwrap().dev();
    assert_ne!(device(&data), device(&tools), "two disks are wanted");
    let roots = (Root::open(data.path()).unwrap(), Root::open(tools.path()).unwrap());
    let clock = || "2026-11-18T12:00:00Z".to_owned();
    let shelf = Shelf { data: &roots.0, tools: &roots.1, clock };
    for text in ["first", "second"] {
        fs::create_dir_all(tools.path().join("a/deep")).unwrap();
        fs::write(tools.path().join("a/deep/data.txt"), text).unwrap();
        shelf.put_away("a").unwrap();
        assert!(!tools.path().join("a").exists());
    }
    for (name, text) in [("20261118T120000Z-a", "first"), ("20261118T120000Z-a+", "second")] {
        let kept = tools.path().join(".deleted").join(name).join("deep/data.txt");
        assert_eq!(fs::read_to_string(kept).unwrap(), text);
    }
}
