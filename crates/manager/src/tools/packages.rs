//! Packages that tools import: the requirements of a namespace, and its environment. TD-128 … TD-130, TD-139

use std::sync::Arc;

use config::dock::{Approval, Folder};
use gateway::own_tools::Tool;
use serde_json::{Value, json};
use upstream::limits::ENVIRONMENT_TIME_MAX;
use upstream::python::environment::{Environment, Interpreter, Wish};
use upstream::python::requirements::{check_requirement, requirements};

use super::files::advice;
use super::{Described, Effect, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{EDITS_MAX, FILE_BYTES_MAX, PACKAGES_MAX};

const FILE: &str = "requirements.txt";
/// The environment of the manager; namespaces can't have this name.
const OWN: &str = "_manager";

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![
        install_requirements(desk),
        add_requirement(desk),
        list_requirements(desk),
        install_pip_packages(desk),
    ]
}

fn namespace_argument() -> Value {
    json!({"type": "string"})
}

fn install_requirements(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "install_requirements",
        title: "Install the packages of a namespace",
        description: "Install what requirements.txt names into the environment of the namespace. May take a \
            minute; reload_core does it too, but here you see errors at once. Returns installed and packages, or \
            error and details: then the former packages stay. If \"pending\" is true, a newer list waits for a \
            person. Next: reload_core.",
        effect: Effect::Fetches,
        input: json!({"namespace": namespace_argument()}),
        required: &["namespace"],
        output: ("installed", "boolean"),
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        let namespace = folder.name.as_str();
        let failed = |error: &str, details: String| {
            json!({"installed": false, "namespace": namespace, "error": error, "details": details})
        };
        let packages = match named(&desk, &folder)? {
            Ok(packages) => packages,
            Err(details) => return Ok(failed("requirements.txt is not allowed as it is", details)),
        };
        let mut answer = match sync(&desk, &folder, &packages).await? {
            Ok(_) => json!({"installed": true, "namespace": namespace, "packages": packages}),
            Err(details) => failed("pip install failed", details),
        };
        if let Some(waiting) = waiting(&desk, namespace)? {
            answer["pending"] = true.into();
            answer["not_installed"] = without(waiting, &packages).into();
            answer["next"] = advice(&desk, namespace, FILE).into();
        }
        Ok(answer)
    })
}

fn add_requirement(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "add_requirement",
        title: "Add a package to a namespace",
        description: "Add one package to requirements.txt and install it; another version of it is replaced. No \
            URLs, paths or options. Returns added and installed, or error and details: then nothing has changed. \
            If \"pending\" is true nothing is installed yet: tell the user the command in \"next\". Next: \
            reload_core.",
        effect: Effect::Fetches,
        input: json!({
            "namespace": namespace_argument(),
            "package": {"type": "string", "description": "Such as \"httpx>=0.28.0\""},
        }),
        required: &["namespace", "package"],
        output: ("added", "boolean"),
    }
    .does(desk, |desk, arguments| async move { add(&desk, &arguments).await })
}

async fn add(desk: &Desk, arguments: &Value) -> Result<Value, Error> {
    let folder = desk.folder(text(arguments, "namespace"))?;
    let (namespace, package) = (folder.name.as_str(), text(arguments, "package").trim());
    check_requirement(package).map_err(Error::Package)?;
    if package.contains(['\n', '\r']) {
        return Err(Error::Package("name one package; call this once for each".into()));
    }
    let answer =
        |is_added: bool| json!({"added": is_added, "package": package, "namespace": namespace});
    let failed = |error: &str, details: String| {
        let mut answer = answer(false);
        answer["error"] = error.into();
        answer["details"] = details.into();
        answer
    };
    // One after another, so that nobody installs what is outdated when it is there.
    let _turn = desk.adding.lock().await;
    for _ in 0..EDITS_MAX {
        let before = desk.shelf().newest(namespace, FILE, desk.approval)?;
        let after = with_package(&before, package);
        let packages = match requirements(&after) {
            Ok(packages) => packages,
            Err(faults) => {
                return Ok(failed("requirements.txt is not allowed as it is", lines(faults)));
            }
        };
        // Only what can be installed is written down; and nothing is installed that a person has not seen.
        if desk.approval == Approval::Auto
            && let Err(details) = sync(desk, &folder, &packages).await?
        {
            return Ok(failed("pip install failed", details));
        }
        // A person or another process may have changed it meanwhile.
        let unless_changed = |now: &str| Ok((now == before).then_some(after));
        if desk.shelf().edit(namespace, FILE, desk.approval, unless_changed)? {
            let next = advice(desk, namespace, FILE);
            let mut answer = answer(true);
            answer["pending"] = next.is_some().into();
            answer["installed"] = next.is_none().into();
            answer["next"] = next.unwrap_or_else(|| "call reload_core".to_owned()).into();
            return Ok(answer);
        }
    }
    let details = "others change requirements.txt at the same time; call this again".to_owned();
    Ok(failed("requirements.txt was changed meanwhile", details))
}

/// A file with a package, in the place of another version of it.
fn with_package(text: &str, package: &str) -> String {
    let wanted = name_of(package);
    let is_other = |line: &&str| line.trim_start().starts_with('#') || name_of(line) != wanted;
    let mut lines: Vec<_> = text.lines().filter(is_other).collect();
    lines.push(package);
    lines.join("\n") + "\n"
}

/// The name of the package in a line, as indexes compare names.
fn name_of(line: &str) -> String {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    line[..end.unwrap_or(line.len())].to_lowercase().replace(['_', '.'], "-")
}

fn list_requirements(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_requirements",
        title: "List the packages of a namespace",
        description: "Which packages the requirements.txt of a namespace names; in \"pending\" those of a newer \
            list that waits for a person.",
        effect: Effect::Reads,
        input: json!({"namespace": namespace_argument()}),
        required: &["namespace"],
        output: ("namespace", "string"),
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        let packages = named(&desk, &folder)?.map_err(Error::Package)?;
        let mut answer = json!({"namespace": folder.name.as_str(), "packages": packages});
        if let Some(waiting) = waiting(&desk, folder.name.as_str())? {
            answer["pending"] = without(waiting, &packages).into();
        }
        Ok(answer)
    })
}

fn install_pip_packages(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "install_pip_packages",
        title: "Install packages for the manager",
        description: "Install packages into the manager's own environment, for analysis only. For packages that \
            tools import use add_requirement. Returns installed, packages, or error and details.",
        effect: Effect::Fetches,
        input: json!({"packages": {
            "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": PACKAGES_MAX,
                    }}),
        required: &["packages"],
        output: ("installed", "boolean"),
    }
    .does(desk, |desk, arguments| async move {
        let asked = arguments["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let asked: Vec<&str> = asked.iter().filter_map(Value::as_str).collect();
        let packages =
            requirements(&asked.join("\n")).map_err(|faults| Error::Package(lines(faults)))?;
        // What a package does while it is built is done by whoever has written it.
        if desk.approval == Approval::Required {
            let reason = "nothing is installed that no person has seen; ask the user to start the manager with \
                `--approval auto`, or do without the packages";
            return Err(Error::Package(reason.into()));
        }
        let interpreter = desk.interpreter(None).await?;
        Ok(match environment(&desk, &interpreter, &packages, OWN).await {
            Ok(_) => json!({"installed": true, "packages": asked}),
            Err(details) => json!({
                "installed": false, "packages": asked, "error": "pip install failed", "details": details,
            }),
        })
    })
}

/// What the requirements of a namespace name, or what is wrong with them.
fn named(desk: &Desk, folder: &Folder) -> Result<Result<Vec<String>, String>, Error> {
    let path = format!("{}/{FILE}", folder.name);
    let written = desk.tools.read_text(&path, FILE_BYTES_MAX)?.unwrap_or_default();
    Ok(requirements(&written).map_err(lines))
}

/// The packages of a list that waits for a person, if there is one.
fn waiting(desk: &Desk, namespace: &str) -> Result<Option<Vec<String>>, Error> {
    let waiting = desk.shelf().waiting(namespace, FILE)?;
    // One that is not allowed as it is has none.
    Ok(waiting.map(|text| requirements(&text).unwrap_or_default()))
}

/// Packages that are not among others.
fn without(mut packages: Vec<String>, others: &[String]) -> Vec<String> {
    packages.retain(|package| !others.contains(package));
    packages
}

fn lines(faults: Vec<(usize, String)>) -> String {
    let lines = faults.into_iter().map(|(line, problem)| format!("line {line}: {problem}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Brings the environment of a namespace in line with packages.
async fn sync(
    desk: &Desk,
    folder: &Folder,
    packages: &[String],
) -> Result<Result<Environment, String>, Error> {
    let interpreter = desk.interpreter(folder.manifest.python.as_deref()).await?;
    Ok(environment(desk, &interpreter, packages, folder.name.as_str()).await)
}

async fn environment(
    desk: &Desk,
    interpreter: &Interpreter,
    packages: &[String],
    name: &str,
) -> Result<Environment, String> {
    let (parent, uv) = (desk.data.path().join("venvs").join(name), desk.data.path().join("uv"));
    let time_max = ENVIRONMENT_TIME_MAX;
    let wish = Wish { interpreter, packages, parent: &parent, uv: &uv, time_max };
    let tell = |step: &str| tracing::info!(environment = name, "{step}");
    wish.fulfil(&desk.spawner, &tell).await
}

#[cfg(test)]
mod tests {
    use super::with_package;

    #[test]
    fn another_version_of_a_package_takes_the_place_of_the_former() {
        let text = "# web\nhttpx>=0.27\nrich";
        assert_eq!(with_package(text, "httpx>=0.28"), "# web\nrich\nhttpx>=0.28\n");
        assert_eq!(with_package("Beautiful_Soup4\n", "beautiful-soup4"), "beautiful-soup4\n");
        assert_eq!(with_package("", "httpx"), "httpx\n");
    }
}
