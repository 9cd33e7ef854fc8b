//! Tools over plain HTTP: `/tools`, their schemas, `/openapi.json`, `/.well-known/mcp-config`.
//!
//! The same gateway as behind MCP. There are no sessions, so that a selection belongs to the caller.

use std::sync::Arc;

use bytes::Bytes;
use gateway::client::Client;
use gateway::error::Error;
use gateway::outbox;
use gateway::request::Request as GatewayRequest;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use mcp::json;
use mcp::rpc::Raw;
use serde_json::Value;

use super::checks::Proof;
use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::{Refused, json as json_body, read, refuse};
use super::head::Head;
use super::openapi;
use super::routes::{self, Found};
use crate::reply::{rest as reply, whole};

/// What a path means; the names are those of the caller, decoded.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    List,
    Call(String),
    Schema(String),
    OpenApi,
    Config,
    Namespaces,
}

impl Endpoint {
    /// Answers what is not MCP.
    pub(super) async fn rest(
        &self,
        proof: &Proof,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        match routes::find(&self.routes, head.method, head.path())? {
            Some(Found::Route(route, said)) => {
                self.gateway.awake().await;
                let client = self.principal(proof, &self.place(proof, head)?, None);
                return self.call_route(&client, route, said, head, body).await;
            }
            Some(Found::Methods(methods)) => return Ok(not_allowed(&methods)),
            None => {}
        }
        let route = route(head.path())?;
        let allowed = if matches!(route, Route::Call(_)) { Method::POST } else { Method::GET };
        if *head.method != allowed {
            return Ok(not_allowed(allowed.as_str()));
        }
        if route == Route::Namespaces {
            return Ok(self.namespaces(proof));
        }
        // Nobody is greeted here, so the first one who asks waits for what is still starting.
        self.gateway.awake().await;
        let place = self.place(proof, head)?;
        let client = match &route {
            // TC-27: a session's own state is told to whoever has opened it.
            Route::List if head.session.value().is_some() => {
                Arc::clone(&self.session(proof, &place, head, None)?.client)
            }
            _ => self.principal(proof, &place, None),
        };
        match route {
            Route::List => Ok(self.list(&client).await),
            Route::Call(name) => self.call(&client, &name, head, body).await,
            Route::Schema(name) => {
                let tool = self.gateway.definition(&client, &name).await;
                Ok(tool.map_or_else(|error| failed(&error), |tool| schemas(&tool)))
            }
            Route::OpenApi => {
                if let Err(error) = self.gateway.read_for(&client).await {
                    return Ok(failed(&error));
                }
                let routes = self.routes.iter().filter(|route| client.tool(&route.tool).is_ok());
                let routes: Vec<_> = routes.collect();
                let namespace = head.namespace.text();
                let document = openapi::document(&client.tools(), &routes, namespace);
                Ok(json_body(StatusCode::OK, document))
            }
            Route::Config | Route::Namespaces => {
                // TC-31
                let schema = self.gateway.session_context_schema();
                let mut response = json_body(StatusCode::OK, schema.into());
                let media_type = HeaderValue::from_static("application/schema+json");
                response.headers_mut().insert(CONTENT_TYPE, media_type);
                Ok(response)
            }
        }
    }

    /// The namespaces that `X-Namespace` may name. TD-75
    fn namespaces(&self, proof: &Proof) -> Response<Body> {
        let names = self.gateway.namespaces_in(&self.gateway.place(), &proof.caller);
        let quoted: Vec<_> = names.iter().map(|name| json::quote(name.as_str())).collect();
        let mut text = format!(r#"{{"namespaces":[{}]"#, quoted.join(","));
        if proof.caller.is_operator() {
            let details = self.namespace_details(&names);
            if !details.is_empty() {
                text += &format!(r#","details":{}"#, Value::Object(details));
            }
        }
        text.push('}');
        json_body(StatusCode::OK, text.into())
    }

    async fn call(
        &self,
        client: &Arc<Client>,
        name: &str,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        if head.content_type.value().is_some() && !head.has_json() {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, SEND_JSON);
        }
        let body = read(body).await?;
        let arguments = arguments(head, &body)?;
        let name = json::quote(name);
        let params = [br#"{"name":"#, name.as_bytes(), br#","arguments":"#, arguments, b"}"];
        Ok(self.ask(client, "tools/call", Some(Raw::trusted(params.concat()))).await)
    }

    /// The tools; where clients have toolsets, with which there are and which are on. TC-27
    async fn list(&self, client: &Arc<Client>) -> Response<Body> {
        let (status, mut body) = self.answered(client, "tools/list", None).await;
        if let (StatusCode::OK, Some(toolsets)) = (status, self.gateway.toolset_status(client)) {
            body = json::splice(&body, &[(1..1, format!("{toolsets},").as_bytes())]).into();
        }
        json_body(status, body)
    }

    async fn ask(&self, client: &Arc<Client>, method: &str, params: Option<Raw>) -> Response<Body> {
        let (status, body) = self.answered(client, method, params).await;
        json_body(status, body)
    }

    /// Makes a request of the gateway. What an upstream says meanwhile is lost, and what it asks
    /// is refused: nobody is there to answer.
    async fn answered(
        &self,
        client: &Arc<Client>,
        method: &str,
        params: Option<Raw>,
    ) -> (StatusCode, Bytes) {
        let _under_way = self.under_way.token();
        let (outbox, _) = outbox::channel();
        let request =
            GatewayRequest::new(Raw::trusted("0"), method.to_owned(), params).in_session();
        let answer = self.gateway.handle(client, &request, &client.outlet(outbox)).await;
        reply::to_call(whole(answer).await)
    }
}

const SEND_JSON: &str = "send the arguments as `application/json`";

/// The arguments of a call: an object, or nothing at all.
fn arguments<'a>(head: &Head<'_>, body: &'a Bytes) -> Result<&'a [u8], Refused> {
    let text = body.trim_ascii();
    if text.is_empty() {
        return Ok(b"{}");
    }
    if head.content_type.value().is_none() {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, SEND_JSON);
    }
    let checked = json::members(text, []).map(|[]| text);
    checked.or_else(|fault| {
        let reason = format!("the body must be the object of the arguments, but it is {fault}");
        refuse(StatusCode::BAD_REQUEST, &reason)
    })
}

/// The schemas of a tool.
fn schemas(definition: &Raw) -> Response<Body> {
    let [input, output] = definition.members(["inputSchema", "outputSchema"]).unwrap_or_default();
    let input = input.unwrap_or("{}");
    let output = output.map_or(String::new(), |output| format!(r#","outputSchema":{output}"#));
    json_body(StatusCode::OK, format!(r#"{{"inputSchema":{input}{output}}}"#).into())
}

fn failed(error: &Error) -> Response<Body> {
    let (status, body) = reply::to_failed(error);
    json_body(status, body)
}

fn not_allowed(allowed: &str) -> Response<Body> {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let reason = format!("use {allowed} here");
    let mut response = json_body(status, reply::to_refused(status, &reason));
    let allowed = HeaderValue::from_str(allowed).expect("methods are visible ASCII");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

fn route(path: &str) -> Result<Route, Refused> {
    let nothing = || {
        let reason =
            "there is nothing here; MCP is at `/mcp`, REST at `/tools` and `/openapi.json`";
        refuse(StatusCode::NOT_FOUND, reason)
    };
    match path {
        "/tools" => return Ok(Route::List),
        "/openapi.json" => return Ok(Route::OpenApi),
        "/.well-known/mcp-config" => return Ok(Route::Config),
        "/namespaces" => return Ok(Route::Namespaces),
        _ => {}
    }
    // The path is split before it is decoded: a `%2F` belongs to a name.
    let Some(rest) = path.strip_prefix("/tools/") else { return nothing() };
    match rest.split_once('/') {
        None if !rest.is_empty() => Ok(Route::Call(decode(rest)?)),
        Some((name, "schema")) if !name.is_empty() => Ok(Route::Schema(decode(name)?)),
        _ => nothing(),
    }
}

/// The name in a segment of a path; decoded once, strictly.
pub fn decode(segment: &str) -> Result<String, Refused> {
    let wrong = || {
        let reason = "the name in the path is not encoded well; write `%` as `%25`";
        refuse(StatusCode::BAD_REQUEST, reason)
    };
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return wrong() };
        bytes.extend(u8::try_from(high * 16 + low));
    }
    String::from_utf8(bytes).or_else(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::{Route, route};

    #[test]
    fn paths_are_split_before_they_are_decoded_and_decoded_once() {
        let call = |name: &str| Ok(Route::Call(name.to_owned()));
        let check = |path: &str, expected: Result<Route, u16>| {
            let found = route(path).map_err(|refused| refused.0.as_u16());
            assert_eq!(found, expected, "{path}");
        };
        check("/tools", Ok(Route::List));
        check("/tools/a_echo", call("a_echo"));
        check("/tools/a%2Fb", call("a/b"));
        check("/tools/..%2f..%2freload", call("../../reload"));
        check("/tools/%2561", call("%61"));
        check("/tools/caf%C3%A9", call("café"));
        check("/tools/schema", call("schema"));
        check("/tools/a%2Fb/schema", Ok(Route::Schema("a/b".to_owned())));
        for bad in ["/tools/%", "/tools/%2", "/tools/%zz", "/tools/%+1", "/tools/%ff"] {
            check(bad, Err(400));
        }
        for nothing in [
            "/",
            "//tools",
            "/Tools",
            "/tools/",
            "/tools//schema",
            "/tools/a/b",
            "/tools/a/schema/",
        ] {
            check(nothing, Err(404));
        }
    }
}
