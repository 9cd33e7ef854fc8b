//! Whole surveys: languages, hosts, variables, and folders that mean no good. TD-135, TD-136

use std::fs;
use std::os::unix::fs::symlink;

use crate::folder::read;
use crate::report::{survey, survey_within};
use crate::tools::testing::{folder, surveyed};

#[test]
fn survey_tells_languages_hosts_and_secrets() {
    let report = surveyed(&[
        ("package.json", r#"{"dependencies": {"@modelcontextprotocol/sdk": "1"}}"#),
        (
            "src/index.ts",
            "const key = process.env.GITHUB_TOKEN; const { SLACK_BOT_TOKEN, PORT } = process.env;\n\
             fetch(`https://api.github.com/repos/${x}`); fetch('http://localhost:3000');\n\
             // fetch('https://commented.out.test');\n",
        ),
        (
            "tool.py",
            "\"\"\"See https://docs.test/.\"\"\"\nimport os\nk = os.environ['OPENAI_API_KEY']; d = os.getenv('HOME')\n\
             p = os.environ.get('DB_PASSWORD'); f = os.environ.get('KEY_FILE')\nURL = 'https://api.openai.com/v1'\n",
        ),
        (
            "main.go",
            "package main\nvar k = os.Getenv(\"GO_SECRET\")\nvar u = \"https://go.api.test/x\"\n",
        ),
        ("lib.rs", "fn a() { std::env::var(\"RUST_TOKEN\"); get(\"https://rust.api.test\"); }\n"),
        ("run", "#!/usr/bin/env python3\nprint(1)\n"),
        ("logo.png", "\u{0}PNG"),
    ]);
    assert_eq!(report.language, Some("python"));
    assert_eq!(report.framework, Some("mcp-sdk"));
    let languages: Vec<&str> = report.languages.iter().map(|share| share.language).collect();
    assert_eq!(languages, ["python", "typescript", "go", "rust"]);
    assert_eq!(
        report.apis_called,
        ["api.github.com", "api.openai.com", "go.api.test", "rust.api.test"]
    );
    assert_eq!(
        report.secrets_needed,
        [
            "DB_PASSWORD",
            "GITHUB_TOKEN",
            "GO_SECRET",
            "OPENAI_API_KEY",
            "RUST_TOKEN",
            "SLACK_BOT_TOKEN"
        ]
    );
    assert_eq!(report.files.len(), 7);
    assert_eq!(report.notes, [""; 0]);
}

#[test]
fn links_are_neither_listed_nor_followed() {
    let outside = folder(&[("secret.py", "@mcp.tool()\ndef stolen(): 'Stolen.'\n")]);
    let inside = folder(&[("a.py", "x = 1\n")]);
    symlink(outside.path(), inside.path().join("linked")).unwrap();
    symlink(outside.path().join("secret.py"), inside.path().join("b.py")).unwrap();
    symlink(".", inside.path().join("round")).unwrap();
    let report = survey(inside.path()).unwrap();
    assert_eq!(report.files, ["a.py"]);
    assert!(report.tools_found.is_empty());
    let refused = |path: &str| read(inside.path(), path, 100).unwrap_err().to_string();
    assert!(refused("b.py").contains("is a link, which is not followed"), "{}", refused("b.py"));
    refused("linked/secret.py");
    refused("round/a.py");
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let inside =
        folder(&[("src/a.py", "x = 1\n"), (".git/config", "[core]\n"), ("big.txt", "123456789")]);
    assert_eq!(read(inside.path(), "./src//a.py", 100).unwrap(), "x = 1\n");
    let wrong = [
        ("../src/a.py", "leads out of the folder by `..`"),
        ("src/../../x", "leads out of the folder by `..`"),
        ("/etc/passwd", "is absolute"),
        (".git/config", "leads into `.git`"),
        (".GIT/config", "leads into `.git`"),
        ("src/.git/config", "leads into `.git`"),
        ("a\0b", "holds a control character"),
        ("src\\a.py", "holds a backslash"),
        ("C:/x", "names a drive"),
        ("", "is empty"),
        (".", "is empty"),
        ("nothing.py", "no file is at `nothing.py`"),
        ("src", "no file is at `src`"),
        ("src/a.py/b", "no file is at `src/a.py/b`"),
    ];
    for (path, expected) in wrong {
        let error = read(inside.path(), path, 100).unwrap_err().to_string();
        assert!(error.contains(expected), "{path:?}: {error}");
    }
    let error = read(inside.path(), "big.txt", 5).unwrap_err().to_string();
    assert_eq!(error, "`big.txt` has 9 bytes; the most that is read is 5");
    let long = "a/".repeat(600) + "b";
    assert!(read(inside.path(), &long, 5).unwrap_err().to_string().contains("is too long"));
}

#[test]
fn pipe_is_not_waited_for() {
    let inside = folder(&[("a.py", "x = 1\n")]);
    let pipe = inside.path().join("pipe.py");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(survey(inside.path()).unwrap().files, ["a.py"]);
    assert!(read(inside.path(), "pipe.py", 100).unwrap_err().to_string().contains("no file"));
}

#[test]
fn large_files_are_listed_and_not_looked_into() {
    let inside = folder(&[("a.py", "x = 1\n")]);
    let file = fs::File::create(inside.path().join("huge.py")).unwrap();
    file.set_len(5 << 20).unwrap();
    let report = survey(inside.path()).unwrap();
    assert_eq!(report.files, ["a.py", "huge.py"]);
    assert_eq!(report.notes, ["`huge.py` is too large to be looked into"]);
}

#[test]
fn survey_that_has_no_time_left_says_so() {
    let inside = folder(&[("a.py", "import mcp\n@mcp.tool()\ndef a(): 'A.'\n")]);
    let report = survey_within(inside.path(), std::time::Duration::ZERO).unwrap();
    assert_eq!(report.files, ["a.py"]);
    assert_eq!(report.notes, ["there is more than can be looked into; the rest is only listed"]);
}

#[test]
fn hosts_and_variables_of_rust_are_read_from_its_tokens() {
    let lib = r##"//! See https://docs.test/.
/// And https://more.docs.test/.
// let a = "https://comment.test";
const RAW: &str = r#"https://raw.test/x"#;
fn a() {
    let text = "env::var(\"NO_TOKEN\")";
    let one = std::env::var("ONE_TOKEN"); let two = env::var_os( "TWO_TOKEN" );
    call(&["https://list.test/a", "quoted \" https://inside.test"]);
}
"##;
    let report = surveyed(&[("lib.rs", lib)]);
    assert_eq!(report.apis_called, ["list.test", "raw.test"]);
    assert_eq!(report.secrets_needed, ["ONE_TOKEN", "TWO_TOKEN"]);
}

#[test]
fn languages_are_told_by_what_files_say() {
    let report = surveyed(&[
        // By their first line, or by all of it, whatever they are called.
        ("bin/serve", "#!/usr/bin/env python3\nimport mcp\n@mcp.tool()\ndef a(): 'A.'\n"),
        (
            "plain",
            "import os\nfrom mcp import tool\n\n@tool\ndef b() -> int:\n    'B.'\n    return 1\n",
        ),
        ("LICENSE", "import of goods\nand so on, without any warranty; from here on.\n"),
        // Translations and prose under names that promise something else.
        ("de.ts", "<?xml version=\"1.0\"?>\n<TS><message>server.tool('c', run)</message></TS>\n"),
        (
            "prose.py",
            &"There is, of course, nothing! to see here; move along (please.\n".repeat(50),
        ),
        ("prose.go", &"= Chapter = Of ships, wind & sea: 3 (three) knots! -> north?\n".repeat(50)),
    ]);
    let languages: Vec<&str> = report.languages.iter().map(|share| share.language).collect();
    assert_eq!(languages, ["python"]);
    let tools: Vec<&str> = report.tools_found.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["a", "b"]);
}
