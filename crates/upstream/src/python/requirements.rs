//! Requirements: which packages a folder names. TD-09, HARDENING D01
//!
//! Options could name another index, a folder or a file, and run what is found there; so names and versions are taken, and
//! nothing else. What no installer would understand is refused here, before anybody asks one.

mod markers;

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
    let (requirement, condition) = line.split_once(';').unwrap_or((line, ""));
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let (name, rest) = requirement.split_at(end.unwrap_or(requirement.len()));
    if !is_identifier(name) {
        return Err(format!("`{shown}` does not begin with the name of a package"));
    }
    let rest = rest.trim();
    let (extras, rest) = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').unwrap_or(("!", "")),
        None => ("", rest),
    };
    let rest = rest.trim();
    if rest.starts_with('@') {
        return Err(format!("`{shown}`: a package is taken from the index only, by its name"));
    }
    if !extras.is_empty() && !extras.split(',').all(|extra| is_identifier(extra.trim())) {
        return Err(format!(
            "`{shown}`: what is in brackets are no extras; write them like `httpx[http2]`"
        ));
    }
    let bare = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
    let wrong = |part: &&str| !is_specifier(part.trim());
    if let Some(part) = bare.split(',').find(wrong).filter(|_| !rest.is_empty()) {
        let part = mcp::text::shorten(part.trim());
        let hint = "write it like `httpx>=0.28`";
        return Err(format!("`{shown}` is no requirement: `{part}` is no version; {hint}"));
    }
    if line.contains(';') && !markers::hold(condition) {
        let hint = "write it like `; python_version >= \"3.10\"`";
        return Err(format!("`{shown}`: what stands behind `;` is no condition; {hint}"));
    }
    Ok(())
}

/// Whether a text is the name of a package or of an extra.
fn is_identifier(text: &str) -> bool {
    let ends_well = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends_well)
        && text.ends_with(ends_well)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether a text is a comparison with a version, such as `>=0.28` or `==1.*`.
fn is_specifier(text: &str) -> bool {
    let operators = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];
    let Some(operator) = operators.into_iter().find(|operator| text.starts_with(operator)) else {
        return false;
    };
    let version = text[operator.len()..].trim();
    if operator == "===" {
        return !version.is_empty() && !version.contains(char::is_whitespace);
    }
    let whole = match operator {
        "==" | "!=" => version.strip_suffix(".*").unwrap_or(version),
        _ => version,
    };
    is_version(whole.strip_prefix('v').unwrap_or(whole))
}

/// Whether a text is a version: an epoch, numbers, and what comes before, after or beside a release.
fn is_version(text: &str) -> bool {
    let (public, local) =
        text.split_once('+').map_or((text, None), |(text, local)| (text, Some(local)));
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    if local.is_some_and(|local| !local.split(['.', '-', '_']).all(is_word)) {
        return false;
    }
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let public = match public.split_once('!') {
        Some((epoch, rest)) if is_number(epoch) => rest,
        Some(_) => return false,
        None => public,
    };
    let end = public.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(public.len());
    // `1.0.dev1`: the dot belongs to what follows.
    let release = public[..end].strip_suffix('.').filter(|_| end < public.len());
    let release = release.unwrap_or(&public[..end]);
    let rest = public[end..].to_ascii_lowercase();
    let labels =
        ["alpha", "a", "beta", "b", "preview", "pre", "rc", "c", "post", "rev", "r", "dev"];
    let mut parts = rest.split(|c: char| c.is_ascii_digit() || "-_.".contains(c));
    release.split('.').all(is_number)
        && rest.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && parts.all(|part| part.is_empty() || labels.contains(&part))
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
    fn what_no_installer_understands_is_refused() {
        for fine in [
            "httpx",
            "httpx[http2,brotli]>=0.28,<1",
            "numpy ( >=1.0 , != 1.5.* )",
            "a==1!2.0.post1+local.7",
            "a~=1.4.5a4.dev1",
            "a===anything-goes",
            "a>=2.0rc1 ; (python_version<'3.8' or sys_platform == \"linux\") and extra in 'a b'",
            "a; 'x' not in platform_machine",
        ] {
            assert_eq!(requirements(fine).unwrap().len(), 1, "{fine}");
        }
        for wrong in [
            "httpx>>=1",
            "httpx>=",
            "httpx=1",
            "httpx 1.0",
            "httpx>=1,,<2",
            "httpx>=one",
            "httpx==1.0.x",
            "httpx>=1.*",
            "httpx[",
            "httpx[a b]",
            "httpx;",
            "httpx; python_version",
            "httpx; python_version >> '3'",
            "httpx; (python_version > '3'",
            "httpx; colour == 'red'",
            "a-",
        ] {
            assert!(requirements(wrong).is_err(), "{wrong}");
        }
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
