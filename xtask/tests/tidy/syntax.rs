//! Rules about Rust code, read as its grammar says.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::{Source, check, hold_all_to};

const FUNCTION_LINES_MAX: usize = 70;

fn has_short_functions(source: &Source) -> Vec<String> {
    struct Functions<'a> {
        source: &'a Source,
        offences: Vec<String>,
    }

    impl Functions<'_> {
        fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let first = signature.fn_token.span.start().line;
            let last = block.brace_token.span.close().end().line;
            let lines = last - first + 1;
            if lines > FUNCTION_LINES_MAX {
                let name = &signature.ident;
                let what = format!("`{name}` has {lines} lines; the most is {FUNCTION_LINES_MAX}");
                self.offences.push(self.source.offence(first, &what));
            }
        }
    }

    impl Visit<'_> for Functions<'_> {
        fn visit_item_fn(&mut self, function: &syn::ItemFn) {
            self.measure(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }

        fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
            self.measure(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }

        fn visit_trait_item_fn(&mut self, function: &syn::TraitItemFn) {
            if let Some(block) = &function.default {
                self.measure(&function.sig, block);
            }
            visit::visit_trait_item_fn(self, function);
        }
    }

    let mut functions = Functions { source, offences: Vec::new() };
    match syntax(source) {
        Ok(file) => functions.visit_file(&file),
        Err(offences) => return offences,
    }
    functions.offences
}

#[test]
fn every_function_fits_on_a_screen() {
    hold_all_to(has_short_functions);
}

#[test]
fn long_function_is_found_wherever_it_is() {
    let lines = |count: usize| "let _ = 1;\n".repeat(count);
    let whole = |count: usize| format!("fn f() {{\n{}}}\n", lines(count - 2));
    check(has_short_functions, "a.rs", &whole(70), &[]);
    let found = ["a.rs:1: `f` has 71 lines; the most is 70"];
    check(has_short_functions, "a.rs", &whole(71), &found);
    let found = ["a.rs:2: `f` has 71 lines; the most is 70"];
    for outside in ["impl S", "trait T", "mod m", "fn g()"] {
        let text = format!("{outside} {{\nasync {}}}\n", whole(71));
        let mut offences = found.to_vec();
        if outside == "fn g()" {
            offences.insert(0, "a.rs:1: `g` has 73 lines; the most is 70");
        }
        check(has_short_functions, "a.rs", &text, &offences);
    }
    check(has_short_functions, "a.md", &whole(71), &[]);
}

fn names_what_it_imports(source: &Source) -> Vec<String> {
    struct Globs<'a> {
        source: &'a Source,
        offences: Vec<String>,
    }

    impl Visit<'_> for Globs<'_> {
        fn visit_use_glob(&mut self, glob: &syn::UseGlob) {
            let line = glob.star_token.span.start().line;
            self.offences.push(self.source.offence(line, "import each thing by its name, not `*`"));
        }
    }

    let mut globs = Globs { source, offences: Vec::new() };
    match syntax(source) {
        Ok(file) => globs.visit_file(&file),
        Err(offences) => return offences,
    }
    globs.offences
}

#[test]
fn every_import_is_named() {
    hold_all_to(names_what_it_imports);
}

#[test]
fn glob_import_is_found() {
    for import in ["use super::*;", "pub use a::b::*;", "use a::{b, c::*};"] {
        let text = format!("//! A.\nmod m {{\n    {import}\n}}\n");
        let found = ["a.rs:3: import each thing by its name, not `*`"];
        check(names_what_it_imports, "a.rs", &text, &found);
    }
    check(names_what_it_imports, "a.rs", "use a::{b, c};\n", &[]);
}

fn is_safe(source: &Source) -> Vec<String> {
    fn search(tokens: TokenStream, source: &Source, offences: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Ident(word) if word == "unsafe" => {
                    let line = word.span().start().line;
                    offences.push(source.offence(line, "write it without `unsafe`"));
                }
                TokenTree::Group(group) => search(group.stream(), source, offences),
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    let mut offences = Vec::new();
    if source.is_rust() {
        match source.text.parse() {
            Ok(tokens) => search(tokens, source, &mut offences),
            Err(problem) => offences.push(source.offence(1, &format!("cannot read it: {problem}"))),
        }
    }
    offences
}

#[test]
fn nothing_is_unsafe() {
    hold_all_to(is_safe);
}

#[test]
fn unsafe_code_is_found_in_macros_too() {
    for code in ["unsafe { f() }", "unsafe fn g() {}", "m! { unsafe { f() } }"] {
        let text = format!("//! A.\nfn h() {{ {code} }}\n");
        check(is_safe, "a.rs", &text, &["a.rs:2: write it without `unsafe`"]);
    }
    check(is_safe, "a.rs", "#![forbid(unsafe_code)]\n// unsafe\n", &[]);
}

/// The syntax tree of a Rust file, or the offences to report instead: none for other files.
fn syntax(source: &Source) -> Result<syn::File, Vec<String>> {
    if !source.is_rust() {
        return Err(Vec::new());
    }
    syn::parse_file(&source.text).map_err(|problem| {
        let line = problem.span().start().line;
        vec![source.offence(line, &format!("cannot read it: {problem}"))]
    })
}
