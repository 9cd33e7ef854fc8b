//! Lists the Python files of the dock, so that the binary carries them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new("python");
    let mut files = Vec::new();
    for folder in ["", "toolman_dock"] {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "py") {
                println!("cargo::rerun-if-changed={}", path.display());
                files.push(path);
            }
        }
    }
    files.sort();
    let here = env::current_dir()?;
    let mut text = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file);
        let (name, path) = (name.display(), here.join(file));
        _ = writeln!(text, "(r\"{name}\", include_str!(r\"{}\")),", path.display());
    }
    text += "]";
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("python_files.rs"), text)
}
