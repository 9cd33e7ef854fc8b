//! Sources that are nested as no person nests them: they are read in bounded time, and nobody falls over them.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;

use super::{Manager, commit, git, write};

/// Enough for depths that no loop over what is around survives.
const BYTES: usize = 1 << 20;

/// Opens `open` as often as the bytes allow, and closes all of it.
fn nest(open: &str, inner: &str, close: &str) -> String {
    let times = BYTES / (open.len() + close.len());
    [open.repeat(times), inner.to_owned(), close.repeat(times)].concat()
}

/// The same to a smaller depth, for what costs more than it is long.
fn nest_times(times: usize, open: &str, inner: &str, close: &str) -> String {
    [open.repeat(times), inner.to_owned(), close.repeat(times)].concat()
}

/// `first`, then `next` with numbers.
fn many(first: &str, next: impl Fn(usize) -> String) -> String {
    let mut text = first.to_owned();
    let mut number = 0;
    while text.len() < BYTES {
        _ = write!(text, "{}", next(number));
        number += 1;
    }
    text
}

fn hostile() -> Vec<(&'static str, String)> {
    let tool = "server.tool('found', 'Found', { a: z.string() }, run);\n";
    let rust = "use rmcp::tool;\n#[tool(description = \"Found\")]\nfn found() {}\n";
    vec![
        ("lists.js", format!("{tool}{}", nest("['https://a.test/',", "1", "]"))),
        (
            "ifs.js",
            format!("{tool}{}{}", "if(a)".repeat(30_000), many("var a=1", |n| format!(",b{n}=1"))),
        ),
        ("calls.js", format!("{tool}{}", nest("server.tool(x,", "y", ")"))),
        (
            "chain.ts",
            format!(
                "{tool}{}",
                many("server.registerTool(n, {inputSchema: z", |_| ".a()".to_owned())
            ),
        ),
        ("classes.ts", format!("{tool}{}", nest_times(40_000, "class A { a = ", "1", "}"))),
        ("names.ts", many(tool, |n| format!("const a{n} = a{};\n", n + 1))),
        ("spread.ts", format!("{tool}{}server.tool(t49, run);\n", doubling())),
        ("parens.py", format!("x = {}\n", nest("(", "'https://b.test/'", ")"))),
        ("lambdas.py", format!("x = {}\n", nest("lambda:", "0", ""))),
        (
            "decorators.py",
            format!("import mcp\n{}", many("", |n| format!("@mcp.tool(name=A{n})\n"))),
        ),
        ("same.py", many("import mcp\n", |_| "A = A\nmcp.add_tool(A)\n".to_owned())),
        ("blocks.go", format!("package a\nfunc f() {}\n", nest("{", "mcp.NewTool(\"a\")", "}"))),
        ("literals.go", format!("package a\nvar x = {}\n", nest("mcp.Tool{Name: ", "1", "}"))),
        ("inputs.rs", format!("{rust}#[tool]\nfn f{} {{}}\n", nest("(", "x", ")"))),
        ("attribute.rs", format!("{rust}#[tool{}]\nfn f() {{}}\n", nest("(", "x", ")"))),
        (
            "fields.rs",
            format!(
                "{rust}struct S {{ #[a{}] a: A{} }}\n",
                nest_times(100_000, "(", "x", ")"),
                nest_times(100_000, "(", "x", ")")
            ),
        ),
        ("blocks.rs", format!("{rust}fn f() {}\n", nest("{", "x", "}"))),
        ("package.json", nest("[", "1", "]")),
        (
            "openapi.json",
            format!("{{\"openapi\": \"3.0.0\", \"paths\": {}}}", nest("{\"a\":", "1", "}")),
        ),
        ("openapi.yaml", format!("openapi: 3.0.0\npaths: {}\n", nest("[", "1", "]"))),
        ("pyproject.toml", format!("x = {}\n", nest("[", "1", "]"))),
    ]
}

/// Each list holds the one before it twice.
fn doubling() -> String {
    let mut text = "const t0 = ['a', 'b'];\n".to_owned();
    for n in 1..50 {
        _ = writeln!(
            text,
            "const t{n} = [...t{0}, ...t{0}];\nfor (const t of t{n}) server.tool(t, run);",
            n - 1
        );
    }
    text
}

#[tokio::test]
async fn deeply_nested_sources_are_read_in_bounded_time() {
    // HARDENING A06: what is found does not matter, but that there is an answer
    let _loud = crate::MACHINE.read().await;
    let around = TempDir::new().unwrap();
    let manager = Manager::of_folder(around.path()).await;
    for (file, text) in hostile() {
        assert!(text.len() < 4 << 20, "{file} would not be looked into");
        let repository = around.path().join(file);
        std::fs::create_dir(&repository).unwrap();
        git(&repository, &["init", "-q"]);
        write(&repository, file, &text);
        commit(&repository);
        let began = Instant::now();
        let url = repository.display().to_string();
        let analysis = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap();
        println!("{file}: {:?}, {}", began.elapsed(), analysis["notes"]);
        assert_eq!(analysis["files"], json!([file]));
    }
}
