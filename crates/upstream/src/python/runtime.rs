//! Our own Python files, carried in the binary and written out where an interpreter can read them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use mcp::text::hexadecimal;

use crate::launch::{Errand, Spawner};
use crate::limits::PROBE_TIME_MAX;
use crate::python::environment::Interpreter;
use crate::python::fresh::Fresh;

/// Name and text of each file.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/python_files.rs"));
/// Digits of the hash that names a folder.
const HASH_DIGITS: usize = 16;

/// What tells this version of the files from others.
pub fn version() -> String {
    let mut context = Context::new(&SHA256);
    for (name, text) in FILES {
        for part in [name, text] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
    }
    let mut hash = hexadecimal(context.finish().as_ref());
    hash.truncate(HASH_DIGITS);
    hash
}

/// Writes the files into a folder of their own below `parent`, unless they are there; where they are.
pub fn install(parent: &Path) -> io::Result<PathBuf> {
    let target = parent.join(version());
    if target.join("worker.py").exists() {
        return Ok(target);
    }
    let fresh = Fresh::make(parent)?;
    fs::create_dir(fresh.path().join("toolman_dock"))?;
    for (name, text) in FILES {
        fs::write(fresh.path().join(name), text)?;
    }
    if let Err(error) = fresh.name(&target) {
        // Another process may have been quicker.
        if !target.join("worker.py").exists() {
            return Err(error);
        }
    }
    Ok(target)
}

/// Compiles the files for a Python, unless they are: workers start sooner then, and can't write here themselves.
pub async fn compile(spawner: &Arc<Spawner>, interpreter: &Interpreter, runtime: &Path) {
    let compiled = format!("toolman_dock/__pycache__/main.{}.pyc", interpreter.tag);
    if interpreter.tag.is_empty() || runtime.join(compiled).exists() {
        return;
    }
    let options = ["-I", "-S", "-m", "compileall", "-q"].map(OsString::from);
    let mut args = Vec::from(options);
    args.push(runtime.into());
    let errand = Errand {
        program: interpreter.path.clone(),
        args,
        env: Vec::new(),
        cwd: runtime.to_owned(),
        confinement: None,
        input: Vec::new(),
        time_max: PROBE_TIME_MAX,
        output_bytes_max: 4 * 1024,
    };
    // It saves time only.
    if let Err(error) = spawner.run(errand).await {
        tracing::info!("our Python files are not compiled: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES, install, version};

    #[test]
    fn all_files_are_carried_and_written_once() {
        let names: Vec<_> = FILES.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"worker.py") && names.contains(&"toolman_dock/desk.py"));
        let parent = std::env::temp_dir().join(format!("toolman-runtime-{}", std::process::id()));
        let folder = install(&parent).unwrap();
        assert!(folder.ends_with(version()) && folder.join("toolman_dock/desk.py").exists());
        let written = folder.join("scan.py").metadata().unwrap().modified().unwrap();
        assert_eq!(install(&parent).unwrap(), folder);
        assert_eq!(folder.join("scan.py").metadata().unwrap().modified().unwrap(), written);
        std::fs::remove_dir_all(parent).unwrap();
    }
}
