//! Tools of Rust: functions under `#[tool(…)]` of rmcp, read as the tokens that the compiler would see.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::{Kept, Parameter, Tool, tidy};
use crate::limits::{DEPTH_MAX, TOOLS_MAX};
use crate::source::unescape;
use crate::{hosts, variables};

/// What was found in all files that were read.
#[derive(Default)]
pub struct Found {
    /// Each with the name of the struct of its arguments.
    tools: Vec<(Tool, Option<String>)>,
    structs: HashMap<String, Vec<Parameter>>,
    /// Another crate's `#[tool]` would be another thing.
    speaks_mcp: bool,
}

/// What a file tells besides.
#[derive(Default)]
pub struct Told {
    pub hosts: BTreeSet<String>,
    pub variables: BTreeSet<String>,
}

impl Found {
    /// Reads a file; `None` if it is nested as nobody nests code.
    pub fn add(&mut self, path: &str, text: &str) -> Option<Told> {
        self.speaks_mcp |= text.contains("rmcp");
        let told = match text.parse::<TokenStream>() {
            Ok(tokens) => {
                let told = look_around(tokens.clone());
                if told.is_some() {
                    self.read(path, tokens, 0);
                }
                told
            }
            Err(_) => Some(Told::default()),
        };
        // All tokens are gone, and with them what is kept to know their lines: a copy of every text.
        proc_macro2::extra::invalidate_current_thread_spans();
        told
    }

    pub fn tools(&self, kept: &mut Kept) {
        for (tool, wanted) in self.tools.iter().filter(|_| self.speaks_mcp) {
            let fields = wanted.as_ref().and_then(|name| self.structs.get(name));
            let parameters = fields.cloned().unwrap_or_default();
            kept.push(Tool { parameters, ..tool.clone() });
        }
    }
}

/// Hosts and variables of all tokens, however deep; `None` if that is too deep for what follows.
fn look_around(tokens: TokenStream) -> Option<Told> {
    let mut told = Told::default();
    let mut open = vec![(tokens, 0)];
    while let Some((tokens, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            return None;
        }
        let level: Vec<TokenTree> = tokens.into_iter().collect();
        // What is written to be read by people is an attribute: `#[doc = "…"]`.
        let is_doc = matches!(&level[..], [TokenTree::Ident(word), ..] if word == "doc");
        for token in level.iter().filter(|_| !is_doc) {
            match token {
                TokenTree::Literal(text) => {
                    told.hosts.extend(hosts::host(&literal(&text.to_string())));
                }
                TokenTree::Group(group) => open.push((group.stream(), depth + 1)),
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
        told.variables.extend(level.windows(5).filter_map(variable));
    }
    Some(told)
}

/// The text given to `env::var`, `env::var_os` or a function of that name.
fn variable(window: &[TokenTree]) -> Option<String> {
    let [TokenTree::Ident(env), TokenTree::Punct(_), TokenTree::Punct(_), rest @ ..] = window
    else {
        return None;
    };
    let [TokenTree::Ident(var), TokenTree::Group(given)] = rest else { return None };
    if env != "env" || !(var == "var" || var == "var_os") {
        return None;
    }
    match given.stream().into_iter().next()? {
        TokenTree::Literal(name) => {
            Some(literal(&name.to_string())).filter(|name| variables::is_name(name))
        }
        _ => None,
    }
}

/// What stands before an item.
#[derive(Default)]
struct Above {
    docs: String,
    /// The arguments of `#[tool(…)]`, if it is there.
    tool: Option<HashMap<String, String>>,
    line: usize,
}

impl Found {
    fn read(&mut self, path: &str, tokens: TokenStream, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let mut tokens = tokens.into_iter().peekable();
        let mut above = Above::default();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.peek() {
                        above.attribute(group);
                        tokens.next();
                    }
                }
                TokenTree::Ident(word) if word == "fn" => {
                    // The type of a function has no name.
                    let Some(TokenTree::Ident(name)) = tokens.next() else { continue };
                    let inputs = tokens.find_map(|token| match token {
                        TokenTree::Group(group) => {
                            (group.delimiter() == Delimiter::Parenthesis).then_some(group)
                        }
                        _ => None,
                    });
                    if let Some(inputs) = inputs {
                        self.function(path, &name, &inputs, std::mem::take(&mut above));
                    }
                }
                TokenTree::Ident(word) if word == "struct" => {
                    if let Some(TokenTree::Ident(name)) = tokens.next() {
                        self.fields_of(&name, &mut tokens);
                    }
                    above = Above::default();
                }
                TokenTree::Group(group) => {
                    self.read(path, group.stream(), depth + 1);
                    // The `(crate)` of `pub(crate)` ends no item.
                    if group.delimiter() == Delimiter::Brace {
                        above = Above::default();
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => above = Above::default(),
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn function(&mut self, path: &str, name: &Ident, inputs: &Group, above: Above) {
        let Some(mut said) = above.tool.filter(|_| self.tools.len() < 2 * TOOLS_MAX) else {
            return;
        };
        let tool = Tool {
            name: said.remove("name").unwrap_or_else(|| name.to_string()),
            file: path.to_owned(),
            line: above.line,
            description: tidy(&said.remove("description").unwrap_or(above.docs)),
            parameters: Vec::new(),
        };
        self.tools.push((tool, wanted(inputs)));
    }

    fn fields_of(
        &mut self,
        name: &Ident,
        tokens: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>,
    ) {
        let body = loop {
            match tokens.next() {
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    break group;
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => return,
                None => return,
                Some(_) => {}
            }
        };
        self.structs.insert(name.to_string(), fields(body.stream()));
    }
}

impl Above {
    fn attribute(&mut self, group: &Group) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        let words: Vec<String> = tokens.iter().take(8).map(ToString::to_string).collect();
        if words.first().is_some_and(|word| word == "doc")
            && let Some(TokenTree::Literal(text)) = tokens.last()
        {
            self.docs += literal(&text.to_string()).trim();
            self.docs.push('\n');
        }
        // `#[tool]`, `#[tool(…)]`, `#[rmcp::tool(…)]`
        let path: Vec<&TokenTree> =
            tokens.iter().take_while(|token| !matches!(token, TokenTree::Group(_))).collect();
        let is_tool = path.iter().all(|token| !matches!(token, TokenTree::Literal(_)))
            && path.last().is_some_and(|last| last.to_string() == "tool");
        if !is_tool {
            return;
        }
        let arguments = tokens.iter().find_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        });
        self.tool = Some(arguments.map(pairs).unwrap_or_default());
        self.line = group.span().start().line;
    }
}

/// `key = "text"` and so on; what is no text is left out.
fn pairs(tokens: TokenStream) -> HashMap<String, String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = HashMap::new();
    for window in tokens.windows(3) {
        if let [TokenTree::Ident(key), TokenTree::Punct(mark), TokenTree::Literal(text)] = window
            && mark.as_char() == '='
        {
            found.insert(key.to_string(), literal(&text.to_string()));
        }
    }
    found
}

/// The struct within `Parameters<Struct>`.
fn wanted(inputs: &Group) -> Option<String> {
    let words: Vec<String> = inputs.stream().into_iter().map(|token| token.to_string()).collect();
    let at = words.windows(2).position(|pair| pair[0] == "Parameters" && pair[1] == "<")?;
    let path: Vec<&String> = words[at + 2..].iter().take_while(|word| *word != ">").collect();
    path.into_iter().rfind(|word| word.starts_with(char::is_alphabetic)).cloned()
}

/// The fields of a struct, with what their comments say.
fn fields(tokens: TokenStream) -> Vec<Parameter> {
    let mut found = Vec::new();
    let mut above = Above::default();
    let mut is_defaulted = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    let text = group.to_string();
                    is_defaulted |= text.contains("default");
                    if let Some((_, about)) = text.split_once("description = \"") {
                        about.split('"').next().unwrap_or_default().clone_into(&mut above.docs);
                    }
                    above.attribute(&group);
                }
            }
            TokenTree::Ident(name) if name != "pub" => {
                let mut kind = String::new();
                let mut open = 0;
                for token in tokens.by_ref() {
                    let word = token.to_string();
                    match word.as_str() {
                        "," if open == 0 => break,
                        "<" => open += 1,
                        ">" => open -= 1,
                        _ => {}
                    }
                    kind += &word;
                }
                let kind = kind.trim_start_matches(':').to_owned();
                found.push(Parameter {
                    name: name.to_string(),
                    required: !is_defaulted && !kind.starts_with("Option"),
                    kind,
                    description: tidy(&above.docs),
                });
                above = Above::default();
                is_defaulted = false;
            }
            _ => {}
        }
    }
    found
}

/// The text of a literal, plain or raw.
fn literal(word: &str) -> String {
    if let Some(raw) = word.strip_prefix('r') {
        return raw.trim_matches('#').trim_matches('"').to_owned();
    }
    let inner = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    inner.map(unescape).unwrap_or_default()
}
