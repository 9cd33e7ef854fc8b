//! Requirements: which packages a folder names. TD-09, HARDENING D01
//!
//! Options could name another index, a folder or a file, and run what is found there; so names and versions are taken, and
//! nothing else.

/// The packages that a `requirements.txt` names, or all that is wrong with it: its line, and why.
pub fn requirements(text: &str) -> Result<Vec<String>, Vec<(usize, String)>> {
    let mut packages = Vec::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let written = line.split(" #").next().unwrap_or_default().trim();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        match check_requirement(written) {
            Ok(()) => packages.push(written.to_owned()),
            Err(problem) => faults.push((index + 1, problem)),
        }
    }
    packages.sort();
    packages.dedup();
    if faults.is_empty() { Ok(packages) } else { Err(faults) }
}

/// Whether a line is a name with extras, versions and conditions, and nothing more.
pub fn check_requirement(line: &str) -> Result<(), String> {
    let shown = mcp::text::shorten(line);
    // An option may stand behind a name as well.
    let is_option = |word: &str| word.starts_with('-');
    if line.split(';').next().unwrap_or_default().split_whitespace().any(is_option) {
        return Err(format!("`{shown}`: options are not allowed; name packages only"));
    }
    let (requirement, _condition) = line.split_once(';').unwrap_or((line, ""));
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let (name, rest) = requirement.split_at(end.unwrap_or(requirement.len()));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name {
        return Err(format!("`{shown}` does not begin with the name of a package"));
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').map_or("!", |(_, rest)| rest).trim_start(),
        None => rest,
    };
    if rest.starts_with('@') {
        return Err(format!("`{shown}`: a package is taken from the index only, by its name"));
    }
    let is_version = |c: char| c.is_ascii_alphanumeric() || "<>=!~,.*+- ()".contains(c);
    let is_specified = rest.is_empty() || rest.starts_with(['<', '>', '=', '!', '~', '(']);
    if is_specified && rest.chars().all(is_version) {
        Ok(())
    } else {
        Err(format!("`{shown}` is no requirement; write it like `httpx>=0.28`"))
    }
}

#[cfg(test)]
mod tests {
    use super::requirements;

    #[test]
    fn requirements_are_names_with_versions() {
        let text = "# web\nhttpx>=0.28.0  # for calls\n\npydantic[email] ~= 2.0 ; python_version > '3.8'\nhttpx>=0.28.0\n";
        let packages = requirements(text).unwrap();
        assert_eq!(packages, ["httpx>=0.28.0", "pydantic[email] ~= 2.0 ; python_version > '3.8'"]);
    }

    #[test]
    fn options_and_other_places_are_refused_with_their_line() {
        // HARDENING D01
        for line in [
            "--index-url https://example.com",
            "-e .",
            "-r other.txt",
            "-f links",
            "--trusted-host x",
            "pkg @ https://example.com/pkg.whl",
            "./folder",
            "git+https://example.com/x.git",
            "name with spaces",
            "httpx==1.0 --pre",
            "httpx --hash=sha256:00",
            "https://example.com/x.whl",
        ] {
            let faults = requirements(&format!("httpx\n{line}")).unwrap_err();
            assert_eq!(faults.len(), 1, "{line}");
            assert_eq!(faults[0].0, 2, "{line}");
            let is_option = line.contains(" --") || line.starts_with('-');
            assert_eq!(faults[0].1.contains("options are not allowed"), is_option, "{faults:?}");
        }
    }
}
