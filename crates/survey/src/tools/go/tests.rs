//! Tools of Go, as its sources write them.

use crate::tools::testing::check;

#[test]
fn tools_of_mcp_go_are_found_with_their_options() {
    let main = r#"package main

const toolName = "calculate"

func main() {
	tool := mcp.NewTool(toolName,
		mcp.WithDescription("Does " + `sums`),
		mcp.WithNumber("x", mcp.Required(), mcp.Description("First")),
		mcp.WithString("op"),
	)
	s.AddTool(tool, handler)
}
"#;
    check(&[("main.go", main)], "calculate main.go:6 (x:number!=First, op:string) Does sums\n");
}

#[test]
fn tools_of_the_official_sdk_are_found_with_their_arguments() {
    let main = r#"package main

type args struct {
	Name string `json:"name" jsonschema:"who to greet"`
	Loud bool   `json:"loud,omitempty"`
	own  int
}

func greet(ctx context.Context, req *mcp.CallToolRequest, in args) (*mcp.CallToolResult, any, error) {
	return nil, nil, nil
}

func main() {
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: t("KEY", "Says hi")}, greet)
}
"#;
    check(
        &[("main.go", main)],
        "greet main.go:14 (name:string!=who to greet, loud:bool) Says hi\n",
    );
}
