//! What is said between the gateway and a worker: a line of JSON each, over one socket. TD-21 … TD-26
//!
//! Requests and results are carried over from MCP as the bytes they came in; a worker knows no MCP.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use mcp::json;
use mcp::rpc::{self, Outcome, Raw};
use mcp::text::shorten;

/// Why a call of a tool has failed. TD-26
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFault {
    NotFound,
    InvalidArguments,
    Dependency,
    Timeout,
    Internal,
    Cancelled,
}

impl ToolFault {
    const ALL: [ToolFault; 6] = [
        ToolFault::NotFound,
        ToolFault::InvalidArguments,
        ToolFault::Dependency,
        ToolFault::Timeout,
        ToolFault::Internal,
        ToolFault::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ToolFault::NotFound => "tool_not_found",
            ToolFault::InvalidArguments => "invalid_arguments",
            ToolFault::Dependency => "dependency_error",
            ToolFault::Timeout => "execution_timeout",
            ToolFault::Internal => "internal_error",
            ToolFault::Cancelled => "cancelled",
        }
    }

    /// What a code means; one that is not known is the worker's own matter.
    fn parse(code: &str) -> ToolFault {
        let mut all = ToolFault::ALL.into_iter();
        all.find(|fault| fault.as_str() == code).unwrap_or(ToolFault::Internal)
    }
}

impl fmt::Display for ToolFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a worker answers instead of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub fault: ToolFault,
    pub message: String,
    pub details: Option<Raw>,
}

/// Something that a worker says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Its tools are loaded; it takes calls. Files that can't be used are named, and so are the tools whose
    /// schema alone tells what they take.
    Ready {
        faults: Vec<String>,
        /// Files that could not be imported, and what a call of their tools fails with.
        broken: Vec<(String, Failure)>,
        exact: Vec<String>,
        /// What there is besides tools: `resources`, `prompts`.
        offers: Vec<String>,
    },
    Answer {
        id: u64,
        answer: Result<Raw, Failure>,
    },
    /// A tool goes on although its call is over and its time is up.
    Stuck {
        tool: String,
    },
    /// The parameters of a `notifications/progress`, under the id of the call.
    Progress(Raw),
    /// The parameters of a `notifications/message` that belongs to a call.
    Log {
        id: u64,
        params: Raw,
    },
    /// A question of a call to its client, under an id of the worker's.
    Ask {
        id: u64,
        ask: Raw,
        method: String,
        params: Option<Raw>,
    },
    /// Nobody waits for the answer to a question any more.
    Unask(Raw),
}

/// What a tool may ask a client.
const ASKED: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// A request in a worker's words; `None` if it has none for that.
pub fn request(
    id: &str,
    method: &str,
    params: Option<&[u8]>,
    timeout: Duration,
    client: Option<u64>,
) -> Option<Bytes> {
    let text = match method {
        "tools/list" => format!(r#"{{"id":{id},"op":"tools.list"}}"#),
        "ping" => format!(r#"{{"id":{id},"op":"ping"}}"#),
        "resources/list" => format!(r#"{{"id":{id},"op":"resources.list"}}"#),
        "resources/templates/list" => format!(r#"{{"id":{id},"op":"templates.list"}}"#),
        "prompts/list" => format!(r#"{{"id":{id},"op":"prompts.list"}}"#),
        "resources/read" => {
            let ([uri], seconds) = (json::members(params?, ["uri"]).ok()?, timeout.as_secs_f64());
            format!(r#"{{"id":{id},"op":"resources.read","uri":{},"timeout":{seconds}}}"#, uri?)
        }
        "prompts/get" => {
            let [name, arguments] = json::members(params?, ["name", "arguments"]).ok()?;
            let (name, arguments) = (name?, arguments.unwrap_or("{}"));
            let seconds = timeout.as_secs_f64();
            format!(
                r#"{{"id":{id},"op":"prompts.get","prompt":{name},"timeout":{seconds},"arguments":{arguments}}}"#
            )
        }
        "tools/call" => {
            let [name, arguments, meta] =
                json::members(params?, ["name", "arguments", "_meta"]).ok()?;
            let arguments = arguments.filter(|arguments| *arguments != "null").unwrap_or("{}");
            let token =
                meta.and_then(|meta| json::members(meta.as_bytes(), ["progressToken"]).ok());
            let progress = if let Some([Some(_)]) = token { r#","progress":true"# } else { "" };
            let (name, seconds) = (name?, timeout.as_secs_f64());
            let session = client.map(|client| format!(r#","session":"{client}""#));
            let session = session.unwrap_or_default();
            format!(
                r#"{{"id":{id},"op":"tools.call","tool":{name},"timeout":{seconds}{progress}{session},"arguments":{arguments}}}"#
            )
        }
        _ => return None,
    };
    Some(text.into())
}

/// Tells a worker that nobody waits for a call any more.
pub fn cancel(id: u64) -> Bytes {
    format!(r#"{{"op":"cancel","id":{id}}}"#).into()
}

/// Gives a worker what a client has answered.
pub fn answered(ask: &Raw, outcome: &Outcome) -> Bytes {
    let (member, said) = match outcome {
        Outcome::Result(result) => ("result", result.as_bytes()),
        Outcome::Error(error) => ("error", error.as_bytes()),
    };
    let head = [br#"{"op":"answer","id":"#, ask.as_bytes(), b",\"", member.as_bytes(), b"\":"];
    [head.concat().as_slice(), said, b"}"].concat().into()
}

/// Reads what a worker says; the error says in words why it is not understood.
pub fn parse(frame: &Bytes) -> Result<Said, String> {
    let whole = Raw::trusted(frame.clone());
    let wanted = ["op", "id", "ok", "result", "error"];
    let [op, id, ok, result, error] = whole.members(wanted).map_err(|fault| fault.to_string())?;
    let id = id.and_then(|id| id.parse::<u64>().ok());
    match op.and_then(json::string).as_deref() {
        Some("ready") => {
            let (faults, broken) = (faults(&whole), broken(&whole));
            let [exact, offers] = ["exact", "offers"].map(|member| names(&whole, member));
            return Ok(Said::Ready { faults, broken, exact, offers });
        }
        Some("stuck") => {
            let [tool] = whole.members(["tool"]).map_err(|fault| fault.to_string())?;
            let tool = tool.and_then(json::string).unwrap_or_default().into_owned();
            return Ok(Said::Stuck { tool });
        }
        Some("progress") => {
            let id = id.ok_or("progress without the id of a call")?;
            return Ok(Said::Progress(progress(&whole, id)?));
        }
        Some("ask") => {
            let id = id.ok_or("a question without the id of a call")?;
            let [ask, method, params] =
                whole.members(["ask", "method", "params"]).map_err(|fault| fault.to_string())?;
            let method = method.and_then(json::string).ok_or("a question without a method")?;
            if !ASKED.contains(&&*method) {
                return Err(format!("`{}` is nothing that a client is asked", shorten(&method)));
            }
            let (method, params) = (method.into_owned(), params.map(|params| whole.part(params)));
            return Ok(Said::Ask { id, ask: number(&whole, ask)?, method, params });
        }
        Some("unask") => {
            let [ask] = whole.members(["ask"]).map_err(|fault| fault.to_string())?;
            return Ok(Said::Unask(number(&whole, ask)?));
        }
        Some("log") => {
            let id = id.ok_or("a log message without the id of a call")?;
            return Ok(Said::Log { id, params: log(&whole)? });
        }
        Some(_) => return Err("it is none of the messages that a worker may send".into()),
        None => {}
    }
    let id = id.ok_or("an answer without its id")?;
    let answer = match (ok, result, error) {
        (Some("true"), Some(result), None) => Ok(whole.part(result)),
        (Some("false"), None, Some(error)) => Err(failure(&whole, error)?),
        _ => return Err("an answer is `ok` with a `result`, or not with an `error`".into()),
    };
    Ok(Said::Answer { id, answer })
}

/// The number of a question.
fn number(whole: &Raw, ask: Option<&str>) -> Result<Raw, String> {
    let ask = ask.filter(|ask| ask.parse::<u64>().is_ok());
    Ok(whole.part(ask.ok_or("a question without its number")?))
}

/// What a worker says of files that it could not use: the place, the problem, and its traceback.
fn faults(whole: &Raw) -> Vec<String> {
    let fault = |text: &str| {
        let wanted = ["file", "line", "message", "traceback"];
        let [file, line, message, traceback] = json::members(text.as_bytes(), wanted).ok()?;
        let [file, message] = [json::string(file?)?, json::string(message?)?];
        let line = line.filter(|line| *line != "null").map(|line| format!(":{line}"));
        let traceback = traceback.and_then(json::string);
        let traceback = traceback.map(|text| format!("\n{}", text.trim_end()));
        Some(format!(
            "{file}{}: {message}{}",
            line.unwrap_or_default(),
            traceback.unwrap_or_default()
        ))
    };
    let Ok([Some(list)]) = whole.members(["faults"]) else { return Vec::new() };
    json::elements(list).unwrap_or_default().into_iter().filter_map(fault).collect()
}

/// The files that could not be imported at all: their faults have a code.
fn broken(whole: &Raw) -> Vec<(String, Failure)> {
    let one = |text: &str| {
        let wanted = ["file", "line", "message", "code"];
        let [file, line, message, code] = json::members(text.as_bytes(), wanted).ok()?;
        let (file, message, code) =
            (json::string(file?)?, json::string(message?)?, json::string(code?)?);
        let line = line.filter(|line| *line != "null").map(|line| format!(":{line}"));
        let place = format!("{file}{}", line.unwrap_or_default());
        let message = format!("the file of the tool can't be imported: {place}: {message}");
        let fault = ToolFault::parse(&code);
        Some((file.into_owned(), Failure { fault, message, details: None }))
    };
    let Ok([Some(list)]) = whole.members(["faults"]) else { return Vec::new() };
    json::elements(list).unwrap_or_default().into_iter().filter_map(one).collect()
}

/// A list of names.
fn names(whole: &Raw, member: &'static str) -> Vec<String> {
    let Ok([Some(list)]) = whole.members([member]) else { return Vec::new() };
    let names = json::elements(list).unwrap_or_default().into_iter();
    names.filter_map(|name| Some(json::string(name)?.into_owned())).collect()
}

fn failure(whole: &Raw, error: &str) -> Result<Failure, String> {
    let wanted = ["code", "message", "details"];
    let [code, message, details] =
        json::members(error.as_bytes(), wanted).map_err(|fault| fault.to_string())?;
    let text = |part: Option<&str>| part.and_then(json::string).unwrap_or_default().into_owned();
    let details = details.filter(|details| *details != "null");
    Ok(Failure {
        fault: ToolFault::parse(&text(code)),
        message: text(message),
        details: details.map(|details| whole.part(details)),
    })
}

fn progress(whole: &Raw, id: u64) -> Result<Raw, String> {
    let [progress, total, message] =
        whole.members(["progress", "total", "message"]).map_err(|fault| fault.to_string())?;
    let progress = progress.ok_or("progress without a number")?;
    let mut text = format!(r#"{{"progressToken":{id},"progress":{progress}"#);
    for (name, value) in [("total", total), ("message", message)] {
        if let Some(value) = value.filter(|value| *value != "null") {
            text += &format!(r#","{name}":{value}"#);
        }
    }
    Ok(Raw::trusted(text + "}"))
}

fn log(whole: &Raw) -> Result<Raw, String> {
    let [level, logger, data] =
        whole.members(["level", "logger", "data"]).map_err(|fault| fault.to_string())?;
    let mut text = format!(r#"{{"level":{}"#, level.unwrap_or(r#""info""#));
    if let Some(logger) = logger.filter(|logger| *logger != "null") {
        text += &format!(r#","logger":{logger}"#);
    }
    Ok(Raw::trusted(format!(r#"{text},"data":{}}}"#, data.unwrap_or("null"))))
}

/// The notification that a log message is to a client.
pub fn log_notice(params: &Raw) -> Bytes {
    rpc::notification("notifications/message", Some(params.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use mcp::rpc::{Outcome, Raw};

    use super::{Failure, Said, ToolFault, answered, parse, request};

    fn said(text: &'static str) -> Result<Said, String> {
        parse(&Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn call_becomes_an_operation_with_the_same_bytes() {
        // TD-22
        let params = br#"{"arguments":{ "a": 1.50 },"name":"add","_meta":{"progressToken":7}}"#;
        let time = Duration::from_secs(45);
        let frame = request("7", "tools/call", Some(params), time, Some(3)).unwrap();
        assert_eq!(
            frame,
            r#"{"id":7,"op":"tools.call","tool":"add","timeout":45,"progress":true,"session":"3","arguments":{ "a": 1.50 }}"#
        );
        let (params, time) = (br#"{"name":"now"}"#, Duration::from_secs(1));
        let bare = request("8", "tools/call", Some(params), time, None);
        assert_eq!(
            bare.unwrap(),
            r#"{"id":8,"op":"tools.call","tool":"now","timeout":1,"arguments":{}}"#
        );
        assert_eq!(request("9", "completion/complete", None, Duration::ZERO, None), None);
    }

    #[test]
    fn question_to_a_client_is_one_of_three() {
        let Ok(Said::Ask { id: 7, ask, method, params: Some(params) }) =
            said(r#"{"op":"ask","ask":1,"method":"roots/list","params":{"a":1},"id":7}"#)
        else {
            panic!("no question")
        };
        assert_eq!((ask.as_bytes(), method.as_str()), (b"1".as_slice(), "roots/list"));
        assert_eq!(params.as_bytes(), br#"{"a":1}"#);
        let result = Outcome::Result(Raw::trusted(r#"{"roots":[]}"#));
        let frame = r#"{"op":"answer","id":1,"result":{"roots":[]}}"#;
        assert_eq!(answered(&ask, &result), frame);
        assert!(matches!(said(r#"{"op":"unask","ask":1,"id":7}"#), Ok(Said::Unask(_))));
        let other = said(r#"{"op":"ask","ask":1,"method":"tools/list","id":7}"#);
        assert_eq!(other.unwrap_err(), "`tools/list` is nothing that a client is asked");
        assert!(said(r#"{"op":"ask","ask":"x","method":"roots/list","id":7}"#).is_err());
    }

    #[test]
    fn answers_are_results_or_failures_with_a_code() {
        // TD-23, TD-24, TD-26
        let Ok(Said::Answer { id: 3, answer: Ok(result) }) =
            said(r#"{"id":3,"ok":true,"result":{"content":[]},"latency_ms":2}"#)
        else {
            panic!("no result")
        };
        assert_eq!(result.as_bytes(), br#"{"content":[]}"#);
        for (code, fault) in [
            ("tool_not_found", ToolFault::NotFound),
            ("invalid_arguments", ToolFault::InvalidArguments),
            ("dependency_error", ToolFault::Dependency),
            ("execution_timeout", ToolFault::Timeout),
            ("internal_error", ToolFault::Internal),
            ("something_new", ToolFault::Internal),
        ] {
            let text = format!(
                r#"{{"id":3,"ok":false,"error":{{"code":"{code}","message":"no","details":null}}}}"#
            );
            let failure = Failure { fault, message: "no".into(), details: None };
            assert_eq!(parse(&text.into()), Ok(Said::Answer { id: 3, answer: Err(failure) }));
        }
    }

    #[test]
    fn what_is_said_during_a_call_becomes_notifications() {
        let Ok(Said::Progress(params)) =
            said(r#"{"op":"progress","id":4,"progress":1,"total":null,"message":"half"}"#)
        else {
            panic!("no progress")
        };
        assert_eq!(params.as_bytes(), br#"{"progressToken":4,"progress":1,"message":"half"}"#);
        let Ok(Said::Log { id: 4, params }) =
            said(r#"{"op":"log","id":4,"level":"warning","logger":null,"data":"x"}"#)
        else {
            panic!("no log")
        };
        assert_eq!(params.as_bytes(), br#"{"level":"warning","data":"x"}"#);
    }

    #[test]
    fn what_is_no_message_is_refused_in_words() {
        for text in ["", "[]", "{}", "hello", r#"{"id":1}"#, r#"{"id":1,"ok":true}"#] {
            assert!(said(text).is_err(), "{text}");
        }
        assert!(said(r#"{"op":"boast"}"#).is_err() && said(r#"{"op":"log"}"#).is_err());
    }
}
