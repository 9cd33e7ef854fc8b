//! Where an interpreter and its library are: what its worker has to read, and not the home of a person around it.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder that an interpreter and its library are in; where that is somebody's home, as `~/bin/python3` has it,
/// only what belongs to Python of it.
pub fn home_of(interpreter: &Path) -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = accounts.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    let people: Vec<_> = own.into_iter().chain(homes).collect();
    home_among(interpreter, &people)
}

fn home_among(interpreter: &Path, people: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(real) = fs::canonicalize(interpreter) else { return Vec::new() };
    let Some(home) = real.parent().and_then(Path::parent) else { return vec![real] };
    // Accounts need not be in the file.
    let is_persons = home.parent().is_none_or(|above| above.ends_with("home"))
        || people.iter().filter_map(|person| fs::canonicalize(person).ok()).any(|person| {
            // Homes may lie in there, too.
            person.starts_with(home)
        });
    if !is_persons {
        return vec![home.to_owned()];
    }
    let libraries = ["lib", "lib64"].map(|name| home.join(name));
    let entries =
        libraries.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_pythons = |path: &PathBuf| {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        ["python3", "pypy3", "libpython3", "libpypy3"].iter().any(|kind| name.starts_with(kind))
    };
    let mut parts: Vec<_> = entries.map(|entry| entry.path()).filter(is_pythons).collect();
    parts.sort();
    parts.insert(0, real);
    parts
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::home_among;

    #[test]
    fn python_in_a_home_opens_nothing_else_of_it() {
        let root = std::env::temp_dir().join(format!("toolman-home-{}", std::process::id()));
        for folder in ["people/anna/bin", "people/anna/lib/python3.14", "people/anna/lib/mail"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::create_dir_all(root.join("people/anna/versions/3.14/bin")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        let anna = root.join("people/anna");
        for python in ["bin/python3", "versions/3.14/bin/python3"] {
            fs::write(anna.join(python), "").unwrap();
        }
        let home = |python: &str, people: &[_]| {
            let parts = home_among(&anna.join(python), people);
            let shown =
                parts.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap());
            shown.collect::<Vec<_>>().join(" ")
        };
        let narrow = "people/anna/bin/python3 people/anna/lib/python3.14";
        assert_eq!(home("bin/python3", std::slice::from_ref(&anna)), narrow);
        // Nor where it is the folder around a home.
        assert_eq!(home("bin/python3", &[anna.join("lib/mail")]), narrow);
        assert_eq!(home("bin/python3", &[root.join("people/ben")]), "people/anna");
        // An installation in a home is one.
        assert_eq!(
            home("versions/3.14/bin/python3", std::slice::from_ref(&anna)),
            "people/anna/versions/3.14"
        );
        assert_eq!(home("bin/missing", &[]), "");
        fs::remove_dir_all(root).unwrap();
    }
}
