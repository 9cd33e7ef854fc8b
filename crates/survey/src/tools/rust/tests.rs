//! Tools of Rust, as its sources write them.

use crate::tools::testing::check;

#[test]
fn functions_under_the_attribute_of_rmcp_are_found() {
    let lib = r##"//! Counter.
use rmcp::{tool, tool_router};

#[derive(Deserialize, JsonSchema)]
pub struct SumRequest {
    /// The left side.
    pub a: i32,
    #[schemars(description = "the right side")]
    b: Option<i32>,
}

#[tool_router]
impl Counter {
    #[tool(description = "Adds \"two\" numbers")]
    async fn sum(&self, Parameters(SumRequest { a, b }): Parameters<SumRequest>) -> String {
        #[allow(unused)]
        let fn_like = 3;
        String::new()
    }

    /// Says hello.
    /// Twice.
    #[tool(name = "hello-there", annotations(title = "Hello"))]
    fn hello(&self) {}

    #[rmcp::tool(description = r#"Raw"#)]
    pub(crate) fn raw(&self) {}

    fn no_tool(&self) {}
}
"##;
    check(
        &[("src/lib.rs", lib)],
        "sum src/lib.rs:14 (a:i32!=The left side., b:Option<i32>=the right side) Adds \"two\" numbers\n\
         hello-there src/lib.rs:23 () Says hello.\nTwice.\n\
         raw src/lib.rs:26 () Raw\n",
    );
}

#[test]
fn attribute_of_another_crate_is_another_thing() {
    check(&[("src/lib.rs", "#[tool]\nfn a() {}\n")], "");
}

#[test]
fn broken_and_deep_sources_are_survived() {
    let deep = format!("// rmcp\nfn a() {}{}", "{".repeat(50_000), "}".repeat(50_000));
    check(&[("src/lib.rs", &deep), ("src/b.rs", "fn ( rmcp \" }")], "");
}

/// Set in a process that runs one test alone: memory is the process's, and so would be that of tests beside it.
const ALONE: &str = "TOOLMAN_TEST_ALONE";

#[test]
fn nothing_is_kept_of_what_was_read() {
    if std::env::var_os(ALONE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "tools::rust::tests::nothing_is_kept_of_what_was_read"]);
        let output = again.env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    let pages = || {
        let said = std::fs::read_to_string("/proc/self/statm").unwrap();
        said.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
    };
    let text = "// nothing but words\n".repeat(100_000);
    let mut found = super::Found::default();
    let before = pages();
    for _ in 0..100 {
        assert!(found.add("lib.rs", &text).is_some());
    }
    let grown = pages().saturating_sub(before) * 4096;
    assert!(grown < 50 * text.len(), "{grown} bytes are kept");
}
