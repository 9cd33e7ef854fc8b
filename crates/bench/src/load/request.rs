//! The questions of the load, made once, and the verdict on an answer.
//!
//! Only an id and a number change from one question to the next, both of a fixed width, so that
//! they are written over the old ones. All clients use the same ids: an answer that goes to the
//! wrong client has the right id, and is told by its number.

use std::net::SocketAddr;
use std::ops::Range;

use memchr::memmem;

use crate::ids;
use crate::offer::MARKER;

/// Ids begin here, so that all of them have the same width.
const FIRST: u64 = 100_000_000;
/// The numbers of one client.
const STRIDE: u64 = 1_000_000;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Dialect {
    /// MCP 2025-11-25, with a handshake.
    Legacy,
    /// MCP 2026-07-28.
    Modern,
    /// No MCP: a tool is a path, its arguments are the body.
    Rest,
}

/// Where to ask.
#[derive(Clone, Debug)]
pub struct Door {
    pub address: SocketAddr,
    pub path: String,
    pub dialect: Dialect,
    pub token: Option<String>,
    /// What stands before the names of tools.
    pub prefix: String,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Question {
    /// A call of a tool, and how large its result shall be.
    Call { tool: String, bytes: usize },
    /// The list of tools, and how many there must be.
    List { tools: usize },
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    /// It is the answer to another question.
    Swapped,
}

/// A request of one client, ready to be sent.
pub struct Template {
    request: Vec<u8>,
    ids: Vec<Range<usize>>,
    numbers: Vec<Range<usize>>,
    client: usize,
    asked: u64,
    question: Question,
    is_rest: bool,
    /// The length of a list that was counted.
    counted: Option<usize>,
}

impl Door {
    /// A message as a request of its own.
    pub fn post(&self, body: &str, session: Option<&str>) -> Vec<u8> {
        let version = match self.dialect {
            Dialect::Modern => "2026-07-28",
            Dialect::Legacy | Dialect::Rest => "2025-11-25",
        };
        let fields = format!("mcp-protocol-version: {version}\r\n");
        self.request("POST", &self.path, &fields, session, body)
    }

    /// The request that opens the stream of a session.
    pub fn stream(&self, session: Option<&str>) -> Vec<u8> {
        let fields = "mcp-protocol-version: 2025-11-25\r\n";
        self.request("GET", &self.path, fields, session, "")
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        session: Option<&str>,
        body: &str,
    ) -> Vec<u8> {
        let accept = match method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\naccept: {accept}\r\n{fields}",
            self.address
        );
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some(session) = session {
            head += &format!("mcp-session-id: {session}\r\n");
        }
        if method == "POST" {
            let length = body.len();
            head += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        }
        format!("{head}\r\n{body}").into_bytes()
    }

    fn ask(&self, question: &Question, session: Option<&str>) -> Vec<u8> {
        if self.dialect == Dialect::Rest {
            let (path, arguments) = match question {
                Question::Call { tool, bytes } => {
                    (format!("{}{}{tool}", self.path, self.prefix), arguments(*bytes))
                }
                Question::List { .. } => (self.path.clone(), String::new()),
            };
            return self.request("POST", &path, "", session, &arguments);
        }
        let (method, name, params) = match question {
            Question::Call { tool, bytes } => {
                let name = format!("{}{tool}", self.prefix);
                let params = format!(r#""name":"{name}","arguments":{}"#, arguments(*bytes));
                ("tools/call", Some(name), params)
            }
            Question::List { .. } => ("tools/list", None, String::new()),
        };
        if self.dialect == Dialect::Legacy {
            return self.post(&message(method, &params), session);
        }
        let comma = if params.is_empty() { "" } else { "," };
        let envelope = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body = message(method, &format!("{params}{comma}{envelope}"));
        let name = name.map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
        let fields = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
        self.request("POST", &self.path, &fields, session, &body)
    }
}

/// Letters that stand for the id and the number until they are written.
const ID: &str = "\u{1}IDIDIDI\u{1}";
const NUMBER: &str = "\u{2}NUMBER!\u{2}";

fn message(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":{{{params}}}}}"#)
}

fn arguments(bytes: usize) -> String {
    let bytes = if bytes == 0 { String::new() } else { format!(r#","bytes":{bytes}"#) };
    format!(r#"{{"text":"n{NUMBER}"{bytes}}}"#)
}

impl Template {
    pub fn new(door: &Door, question: &Question, session: Option<&str>, client: usize) -> Template {
        Template::of(door.ask(question, session), door, question, client)
    }

    /// The same question as a line, for a server with pipes.
    pub fn line(door: &Door, question: &Question) -> Template {
        let request = door.ask(question, None);
        let head = memmem::find(&request, b"\r\n\r\n").map_or(0, |end| end + 4);
        let mut line = request[head..].to_vec();
        line.push(b'\n');
        Template::of(line, door, question, 0)
    }

    fn of(request: Vec<u8>, door: &Door, question: &Question, client: usize) -> Template {
        let places = |mark: &str| -> Vec<Range<usize>> {
            let found = memmem::find_iter(&request, mark);
            found.map(|at| at..at + mark.len()).collect()
        };
        Template {
            ids: places(ID),
            numbers: places(NUMBER),
            request,
            client,
            asked: 0,
            question: question.clone(),
            is_rest: door.dialect == Dialect::Rest,
            counted: None,
        }
    }

    pub fn client(&self) -> usize {
        self.client
    }

    /// The next question.
    pub fn next(&mut self) -> &[u8] {
        self.asked += 1;
        let (id, number) = (self.id().to_string(), self.number().to_string());
        for place in &self.ids {
            self.request[place.clone()].copy_from_slice(id.as_bytes());
        }
        for place in &self.numbers {
            self.request[place.clone()].copy_from_slice(number.as_bytes());
        }
        &self.request
    }

    /// Whether this is the answer to the last question.
    pub fn judge(&mut self, status: u16, body: &[u8]) -> Verdict {
        if status != 200 {
            return Verdict::Wrong;
        }
        // An answer may come as an event; no other event of this load has an id.
        let message = memchr::memchr(b'{', body).map_or(&[][..], |start| &body[start..]);
        if !self.is_rest {
            let id = ids::find(message).map(|place| &message[place]);
            if id != Some(self.id().to_string().as_bytes()) {
                return Verdict::Wrong;
            }
        }
        match self.question {
            Question::Call { bytes, .. } => {
                let own = format!("n{}{MARKER}", self.number());
                let tail = &body[body.len().saturating_sub(4096)..];
                if body.len() >= bytes && memmem::rfind(tail, own.as_bytes()).is_some() {
                    Verdict::Right
                } else if memmem::rfind(tail, MARKER.as_bytes()).is_some() {
                    Verdict::Swapped
                } else {
                    Verdict::Wrong
                }
            }
            Question::List { tools } => {
                // Counted once; a list of the same length is taken for the same.
                if self.counted != Some(message.len())
                    && memmem::find_iter(message, "\"inputSchema\"").count() >= tools
                {
                    self.counted = Some(message.len());
                }
                let is_counted = self.counted == Some(message.len());
                if is_counted { Verdict::Right } else { Verdict::Wrong }
            }
        }
    }

    fn id(&self) -> u64 {
        FIRST + self.asked % STRIDE
    }

    /// No two clients ask with the same number.
    fn number(&self) -> u64 {
        FIRST + (self.client as u64 % 800) * STRIDE + self.asked % STRIDE
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Door, Question, Template, Verdict};

    fn door(dialect: Dialect) -> Door {
        let address = "127.0.0.1:8000".parse().unwrap();
        let token = Some("t".to_owned());
        Door { address, path: "/mcp".to_owned(), dialect, token, prefix: "a_".to_owned() }
    }

    fn template(dialect: Dialect) -> Template {
        let question = Question::Call { tool: "echo".to_owned(), bytes: 0 };
        let mut template = Template::new(&door(dialect), &question, Some("s"), 3);
        template.next();
        template
    }

    #[track_caller]
    fn check(verdict: Verdict, status: u16, body: &str) {
        assert_eq!(template(Dialect::Legacy).judge(status, body.as_bytes()), verdict, "{body}");
    }

    #[test]
    fn request_has_its_length_its_id_and_its_number() {
        let mut template = template(Dialect::Legacy);
        let request = String::from_utf8(template.next().to_vec()).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        assert!(head.contains("authorization: Bearer t") && head.contains("mcp-session-id: s"));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["id"], 100_000_002);
        assert_eq!(body["params"]["name"], "a_echo");
        assert_eq!(body["params"]["arguments"]["text"], "n103000002");
    }

    #[test]
    fn modern_request_says_in_its_head_what_it_asks() {
        let mut template = template(Dialect::Modern);
        let request = String::from_utf8(template.next().to_vec()).unwrap();
        assert!(request.contains("mcp-method: tools/call\r\nmcp-name: a_echo\r\n"), "{request}");
    }

    #[test]
    fn answer_is_right_with_its_own_id_and_number_only() {
        let answer = r#"{"id":100000001,"result":{"text":"n103000001 came back"}}"#;
        check(Verdict::Right, 200, answer);
        check(Verdict::Right, 200, &format!("event: message\ndata: {answer}\n\n"));
        check(Verdict::Wrong, 500, answer);
        check(Verdict::Wrong, 200, &answer.replace("100000001", "100000002"));
        check(Verdict::Swapped, 200, &answer.replace("n103000001", "n104000001"));
        check(Verdict::Wrong, 200, r#"{"id":100000001,"error":{}}"#);
        check(Verdict::Wrong, 200, "");
    }

    #[test]
    fn list_is_right_with_all_its_tools() {
        let question = Question::List { tools: 2 };
        let mut template = Template::new(&door(Dialect::Legacy), &question, None, 0);
        template.next();
        let list = |tools: usize| {
            format!(r#"{{"id":100000001,"t":[{}]}}"#, "{\"inputSchema\":1}".repeat(tools))
        };
        assert_eq!(template.judge(200, list(1).as_bytes()), Verdict::Wrong);
        assert_eq!(template.judge(200, list(2).as_bytes()), Verdict::Right);
        assert_eq!(template.judge(200, list(2).as_bytes()), Verdict::Right);
    }
}
