//! Paths of the operator's own: each calls one tool, by the same rules as `/tools/NAME`. TC-32

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gateway::client::Client;
use gateway::error::{Class, Error};
use gateway::outbox;
use gateway::request::Request as GatewayRequest;
use gateway::schema::{Mismatch, Schema};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use mcp::json;
use mcp::rpc::{Code, Outcome, Raw};
use serde_json::{Map, Value};

use super::choice::decode as decode_query;
use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::{Refused, json as json_body, read};
use super::head::Head;
use super::rest::decode;
use crate::reply::{rest as reply, whole};

/// A path, the tool that it calls, and what may be said.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: Method,
    /// As it is written: `/weather/{city}`.
    pub path: String,
    pub tool: String,
    pub description: Option<String>,
    pub request: Option<Schema>,
    pub response: Option<Schema>,
}

/// What a path leads to.
pub enum Found<'r> {
    Route(&'r Route, Vec<(&'r str, String)>),
    /// It is there for other methods.
    Methods(String),
}

const VALIDATION: &str = "VALIDATION_ERROR";
const INTERNAL: &str = "INTERNAL_ERROR";
const RESPONSE: &str = "RESPONSE_VALIDATION_ERROR";

impl Route {
    /// The names in its path.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(parameter)
    }

    /// What a path says, if it is one of this route.
    fn matches<'r>(&'r self, path: &str) -> Option<Vec<(&'r str, &'r str, String)>> {
        let (mut own, mut asked) = (self.path.split('/'), path.split('/'));
        let mut said = Vec::new();
        loop {
            match (own.next(), asked.next()) {
                (None, None) => return Some(said),
                (Some(own), Some(asked)) => match parameter(own) {
                    Some(name) if !asked.is_empty() => said.push((own, name, asked.to_owned())),
                    None if own == asked => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
    }
}

fn parameter(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// The route of a request: of several that fit, the one with the fewest free parts.
pub fn find<'r>(
    routes: &'r [Route],
    method: &Method,
    path: &str,
) -> Result<Option<Found<'r>>, Refused> {
    let mut fitting: Vec<_> =
        routes.iter().filter_map(|route| Some((route, route.matches(path)?))).collect();
    fitting.sort_by_key(|(_, said)| said.len());
    if let Some((route, said)) = fitting.iter().find(|(route, _)| route.method == *method) {
        let said = said.iter().map(|(_, name, text)| Ok((*name, decode(text)?)));
        return Ok(Some(Found::Route(route, said.collect::<Result<_, Refused>>()?)));
    }
    let methods: Vec<_> = fitting.iter().map(|(route, _)| route.method.as_str()).collect();
    Ok((!methods.is_empty()).then(|| Found::Methods(methods.join(", "))))
}

impl Endpoint {
    /// Calls the tool of a route.
    pub(super) async fn call_route(
        &self,
        client: &Arc<Client>,
        route: &Route,
        said: Vec<(&str, String)>,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        let body = read(body).await?;
        let arguments = match self.arguments_of(client, route, said, head, &body) {
            Ok(arguments) => arguments,
            Err(mismatch) => return Ok(invalid(&mismatch)),
        };
        let name = json::quote(&route.tool);
        let params = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
        let _under_way = self.under_way.token();
        let (outbox, _) = outbox::channel();
        let params = Some(Raw::trusted(params));
        let request = GatewayRequest::new(Raw::trusted("0"), "tools/call".into(), params);
        let request = request.in_session();
        let answer = self.gateway.handle(client, &request, &client.outlet(outbox)).await;
        Ok(answered(route, whole(answer).await))
    }

    /// The arguments: what the path, the query and the body say, each name once.
    fn arguments_of(
        &self,
        client: &Client,
        route: &Route,
        said: Vec<(&str, String)>,
        head: &Head<'_>,
        body: &Bytes,
    ) -> Result<Value, Mismatch> {
        let mut arguments = match body.trim_ascii() {
            b"" => Map::new(),
            text => match serde_json::from_slice(text) {
                Ok(Value::Object(arguments)) => arguments,
                _ => return Err(mismatch("", "the body must be a JSON object")),
            },
        };
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let own = self.gateway.session_context().and_then(|rules| rules.query.as_deref());
        for pair in head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode_query(name), decode_query(value)) else {
                return Err(mismatch("", "the query is not encoded well; write `%` as `%25`"));
            };
            // These choose what is shown, as they do everywhere.
            if !["toolsets", "tools"].contains(&&*name) && own != Some(&*name) {
                texts.entry(name).or_default().push(value);
            }
        }
        let twice = "it is said twice; say it in one place";
        for (name, value) in said {
            if texts.insert(name.to_owned(), vec![value]).is_some() {
                return Err(mismatch(name, twice));
            }
        }
        let written = route.request.as_ref().map(|schema| schema.written().clone());
        let own_schema = || {
            let definition = client.tool(&route.tool).ok()?;
            let [schema] = definition.members(["inputSchema"]).ok()?;
            serde_json::from_str(schema?).ok()
        };
        let schema: Value = written.or_else(own_schema).unwrap_or_default();
        for (name, values) in texts {
            let property = &schema["properties"][&name];
            let Some(value) = typed(values, property) else { return Err(mismatch(&name, twice)) };
            if arguments.insert(name.clone(), value).is_some() {
                return Err(mismatch(&name, twice));
            }
        }
        let arguments = Value::Object(arguments);
        match &route.request {
            Some(schema) => schema.check(&arguments).map(|()| arguments),
            None => Ok(arguments),
        }
    }
}

/// Texts as the type that a schema wants; what does not fit stays a text, for the schema to refuse. `None` if
/// there are several and one is wanted.
fn typed(mut texts: Vec<String>, property: &Value) -> Option<Value> {
    let one = |text: String, kind: &Value| match kind.as_str() {
        Some("integer" | "number" | "boolean") => {
            let value = serde_json::from_str(&text).ok();
            let value = value.filter(|value: &Value| value.is_number() || value.is_boolean());
            value.unwrap_or(Value::String(text))
        }
        _ => Value::String(text),
    };
    if property["type"] == "array" {
        let items = &property["items"]["type"];
        return Some(texts.into_iter().map(|text| one(text, items)).collect());
    }
    let text = texts.pop()?;
    texts.is_empty().then(|| one(text, &property["type"]))
}

fn mismatch(name: &str, problem: &str) -> Mismatch {
    let at = if name.is_empty() { String::new() } else { format!("/{name}") };
    Mismatch { at, problem: problem.to_owned() }
}

fn invalid(mismatch: &Mismatch) -> Response<Body> {
    let Mismatch { at, problem } = mismatch;
    let place = if at.is_empty() { "the request".to_owned() } else { format!("`{at}`") };
    let (at, words) = (json::quote(at), json::quote(problem));
    let details = format!(r#"[{{"path":{at},"message":{words}}}]"#);
    let message = format!("{place}: {problem}");
    failed(StatusCode::BAD_REQUEST, VALIDATION, &message, Some(&Raw::trusted(details)))
}

fn failed(status: StatusCode, code: &str, message: &str, details: Option<&Raw>) -> Response<Body> {
    json_body(status, reply::body(code, message, details))
}

/// The answer: what the tool gives as data, or all of it.
fn answered(route: &Route, outcome: Result<Outcome, Error>) -> Response<Body> {
    let internal = StatusCode::INTERNAL_SERVER_ERROR;
    let result = match outcome {
        Ok(Outcome::Result(result)) => result,
        Ok(Outcome::Error(error)) => {
            let [code, message] = error.members(["code", "message"]).unwrap_or_default();
            let message = message.and_then(json::string).unwrap_or_default();
            let code = code.and_then(|code| code.parse().ok()).map(Code);
            return match code {
                Some(Code::INVALID_PARAMS) => invalid(&mismatch("", &message)),
                _ => failed(internal, INTERNAL, &message, Some(&error)),
            };
        }
        // Who may not see the tool is told the same as where there is none.
        Err(error) => {
            return match error.class() {
                Class::Upstream | Class::Control | Class::Params => {
                    failed(internal, INTERNAL, &error.to_string(), None)
                }
                _ => {
                    let (status, body) = reply::to_failed(&error);
                    json_body(status, body)
                }
            };
        }
    };
    let result: Value = serde_json::from_slice(result.as_bytes()).unwrap_or_default();
    let texts: Vec<&str> = result["content"]
        .as_array()
        .map(|blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect())
        .unwrap_or_default();
    if result["isError"] == true {
        return failed(internal, INTERNAL, &texts.join("\n"), None);
    }
    let parsed = || match texts[..] {
        [text] => serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string()),
        _ => None,
    };
    let data = result.get("structuredContent").cloned().or_else(parsed);
    let data = data.unwrap_or(result);
    let checked = route.response.as_ref().map_or(Ok(()), |schema| schema.check(&data));
    if let Err(Mismatch { at, .. }) = checked {
        // What it is instead is not shown: the schema may be there to keep it in.
        let place = if at.is_empty() { "as a whole".to_owned() } else { format!("at `{at}`") };
        let message = format!("the tool's answer is not what the route promises, {place}");
        return failed(internal, RESPONSE, &message, None);
    }
    json_body(StatusCode::OK, data.to_string().into())
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use serde_json::json;

    use super::{Found, Route, find, typed};

    #[test]
    fn plain_parts_win_over_free_ones() {
        // TC-32
        let route = |method: Method, path: &str| Route {
            method,
            path: path.to_owned(),
            tool: path.to_owned(),
            description: None,
            request: None,
            response: None,
        };
        let routes = [
            route(Method::GET, "/a/{x}"),
            route(Method::GET, "/a/b"),
            route(Method::POST, "/a/{x}"),
            route(Method::GET, "/a/{x}/c/{y}"),
        ];
        let check = |method: Method, path: &str, expected: &str| {
            let found = match find(&routes, &method, path) {
                Ok(Some(Found::Route(route, said))) => format!("{} {said:?}", route.path),
                Ok(Some(Found::Methods(methods))) => methods,
                Ok(None) => "nothing".to_owned(),
                Err(refused) => refused.0.as_u16().to_string(),
            };
            assert_eq!(found, expected, "{path}");
        };
        check(Method::GET, "/a/b", "/a/b []");
        check(Method::GET, "/a/z%2Fz", r#"/a/{x} [("x", "z/z")]"#);
        check(Method::POST, "/a/b", r#"/a/{x} [("x", "b")]"#);
        check(Method::GET, "/a/1/c/2", r#"/a/{x}/c/{y} [("x", "1"), ("y", "2")]"#);
        check(Method::PUT, "/a/1", "GET, POST");
        check(Method::GET, "/a/%ff", "400");
        for nothing in ["/a", "/a/", "/a/1/c", "/b", "/a/1/c/2/3"] {
            check(Method::GET, nothing, "nothing");
        }
    }

    #[test]
    fn texts_become_what_the_schema_wants() {
        let check = |texts: &[&str], property, expected| {
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(typed(texts, &property), expected);
        };
        check(&["7"], json!({"type": "integer"}), Some(json!(7)));
        check(&["seven"], json!({"type": "integer"}), Some(json!("seven")));
        check(&["true"], json!({"type": "boolean"}), Some(json!(true)));
        check(&["7"], json!({"type": "string"}), Some(json!("7")));
        check(&["7"], json!(null), Some(json!("7")));
        check(&["[1]"], json!({"type": "number"}), Some(json!("[1]")));
        check(&["1", "2"], json!({"type": "string"}), None);
        let list = json!({"type": "array", "items": {"type": "integer"}});
        check(&["1", "2"], list, Some(json!([1, 2])));
    }
}
