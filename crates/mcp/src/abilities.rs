//! What servers may ask of a client, as far as a gateway can pass it on.

use crate::json;
use crate::rpc::Raw;

/// The parts of a client's capabilities that matter to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is declared by itself")]
pub struct Abilities {
    pub roots: bool,
    pub tells_roots_changed: bool,
    pub sampling: bool,
    pub sampling_tools: bool,
    pub sampling_context: bool,
    /// Asking a person to fill in a form.
    pub forms: bool,
    /// Sending a person to a URL.
    pub urls: bool,
}

impl Abilities {
    pub const NONE: Abilities = Abilities {
        roots: false,
        tells_roots_changed: false,
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        forms: false,
        urls: false,
    };
    pub const ALL: Abilities = Abilities {
        roots: true,
        tells_roots_changed: true,
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        forms: true,
        urls: true,
    };

    /// Reads what a client declares.
    pub fn of(capabilities: &Raw) -> Abilities {
        let wanted = ["roots", "sampling", "elicitation"];
        let [roots, sampling, elicitation] = capabilities.members(wanted).unwrap_or_default();
        let part = |of: Option<&str>, name: &'static str| {
            let members = of.map(|of| json::members(of.as_bytes(), [name]));
            let [part] = members.and_then(Result::ok).unwrap_or_default();
            part.is_some_and(|part| part != "false" && part != "null")
        };
        let urls = part(elicitation, "url");
        Abilities {
            roots: roots.is_some(),
            tells_roots_changed: part(roots, "listChanged"),
            sampling: sampling.is_some(),
            sampling_tools: part(sampling, "tools"),
            sampling_context: part(sampling, "context"),
            // Without any word on the mode, forms are meant.
            forms: elicitation.is_some() && (!urls || part(elicitation, "form")),
            urls,
        }
    }

    /// The capabilities that a server is told.
    pub fn declaration(self) -> String {
        let object = |parts: &[(bool, &str)]| {
            let parts: Vec<_> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
            format!("{{{}}}", parts.join(","))
        };
        let roots = object(&[(self.tells_roots_changed, r#""listChanged":true"#)]);
        let sampling = object(&[
            (self.sampling_tools, r#""tools":{}"#),
            (self.sampling_context, r#""context":{}"#),
        ]);
        // Older servers know no modes.
        let elicitation =
            object(&[(self.forms && self.urls, r#""form":{}"#), (self.urls, r#""url":{}"#)]);
        object(&[
            (self.roots, &format!(r#""roots":{roots}"#)),
            (self.sampling, &format!(r#""sampling":{sampling}"#)),
            (self.forms || self.urls, &format!(r#""elicitation":{elicitation}"#)),
        ])
    }

    /// Whether a request of a server is one that such a client can answer.
    pub fn answers(self, method: &str, params: Option<&Raw>) -> bool {
        match method {
            "roots/list" => self.roots,
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => {
                let members = params.map(|params| params.members(["mode"]));
                let [mode] = members.and_then(Result::ok).unwrap_or_default();
                if mode == Some("\"url\"") { self.urls } else { self.forms }
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Abilities;
    use crate::rpc::Raw;

    fn of(capabilities: &str) -> Abilities {
        Abilities::of(&Raw::trusted(capabilities.to_owned()))
    }

    #[test]
    fn what_a_client_declares_is_what_a_server_is_told() {
        for declared in [
            "{}",
            r#"{"roots":{}}"#,
            r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}"#,
            r#"{"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}"#,
            r#"{"elicitation":{"url":{}}}"#,
        ] {
            assert_eq!(of(declared).declaration(), declared);
        }
        assert_eq!(
            of(r#"{"elicitation":{"form":{}},"x":{}}"#).declaration(),
            r#"{"elicitation":{}}"#
        );
        assert_eq!(of(r#"{"roots":{"listChanged":false}}"#).declaration(), r#"{"roots":{}}"#);
        assert_eq!(of(&Abilities::ALL.declaration()), Abilities::ALL);
        assert_eq!(of("{}"), Abilities::NONE);
    }

    #[test]
    fn client_is_asked_only_in_the_modes_that_it_declares() {
        let params = Raw::trusted(r#"{"mode":"url"}"#);
        let answers = |declared: &str| {
            let method = "elicitation/create";
            [of(declared).answers(method, None), of(declared).answers(method, Some(&params))]
        };
        assert_eq!(answers("{}"), [false, false]);
        assert_eq!(answers(r#"{"elicitation":{}}"#), [true, false]);
        assert_eq!(answers(r#"{"elicitation":{"url":{}}}"#), [false, true]);
        assert_eq!(answers(r#"{"elicitation":{"form":{},"url":{}}}"#), [true, true]);
    }
}
