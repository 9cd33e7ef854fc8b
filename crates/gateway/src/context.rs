//! What clients say when they connect, for servers of their own: read, and forgotten in time. TC-35, TC-36

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use catalog::session_context::{self, Encoding, SessionContext};
use catalog::surface::Surface;
use tokio::time::Instant;
use upstream::context::Context;

use crate::client::Client;
use crate::limits::{CONTEXT_BYTES_MAX, CONTEXT_IDLE_MAX, CONTEXTS_MAX};
use crate::place::Place;
use crate::{Clients, Gateway};

/// The client that stands for all requests of a proven caller at a place.
pub(crate) struct Principal {
    pub client: Arc<Client>,
    /// When it was last looked for.
    pub last_used: Instant,
}

impl Principal {
    /// Whether nothing is under way for it.
    pub fn is_idle(&self) -> bool {
        // One is held here and one among all that are connected.
        Arc::strong_count(&self.client) <= 2
    }
}

impl Gateway {
    /// What clients may say when they connect, if anything.
    pub fn session_context(&self) -> Option<&SessionContext> {
        self.0.session_context.as_ref()
    }

    /// The JSON Schema of it. TC-31
    pub fn session_context_schema(&self) -> String {
        let known = self.session_context().map(SessionContext::document);
        known.unwrap_or_else(session_context::nothing).to_string()
    }

    /// A place for a client that says something; what can't be used counts as not said. TC-12, TC-13
    pub fn in_context(&self, place: Place, said: Option<&str>) -> Place {
        let context = || {
            let rules = self.session_context()?;
            let said = said.filter(|said| said.len() <= 2 * CONTEXT_BYTES_MAX)?;
            let text = match rules.encoding {
                Encoding::Json => said.to_owned(),
                Encoding::Base64 => decode(said)?,
            };
            let context = rules.read(&text).filter(|_| text.len() <= CONTEXT_BYTES_MAX)?;
            Some(Arc::new(Context::new(session_context::paths(&context))))
        };
        match place.scope.surface {
            Surface::Static => place,
            _ => Place { context: context(), ..place },
        }
    }

    /// Forgets whom nobody has heard of for long and who has said something. TC-36
    pub fn forget_old_contexts(&self) {
        if self.session_context().is_some() {
            self.forget_contexts(&mut self.clients(), usize::MAX);
        }
    }

    /// The same, and those who were heard of least lately where there are as many as `most`.
    pub(crate) fn forget_contexts(&self, clients: &mut Clients, most: usize) {
        let mut gone: Vec<_> = Vec::new();
        let is_over = |principal: &Principal| {
            principal.is_idle() && principal.last_used.elapsed() >= CONTEXT_IDLE_MAX
        };
        let has_context = |key: &crate::PrincipalKey| key.context.is_some();
        let over = clients.principals.extract_if(|key, known| has_context(key) && is_over(known));
        gone.extend(over.map(|(_, principal)| principal.client));
        let count = clients.principals.keys().filter(|key| has_context(key)).count();
        if count >= most {
            let known = clients.principals.iter().filter(|(key, _)| has_context(key));
            let idle = known.filter(|(_, principal)| principal.is_idle());
            let mut idle: Vec<_> =
                idle.map(|(key, principal)| (principal.last_used, key.clone())).collect();
            idle.sort_by_key(|(last_used, _)| *last_used);
            let surplus = idle.into_iter().take(count - most + 1);
            let removed = surplus.filter_map(|(_, key)| clients.principals.remove(&key));
            gone.extend(removed.map(|principal| principal.client));
        }
        for client in &gone {
            clients.connected.remove(&client.id);
            self.upstreams().for_each(|(_, upstream)| upstream.forget_client(client.id));
        }
        if !gone.is_empty() {
            self.review_needs_of(clients);
        }
    }

    /// Makes room for one more principal that says something.
    pub(crate) fn make_room_for_context(&self, clients: &mut Clients) {
        self.forget_contexts(clients, CONTEXTS_MAX);
    }
}

/// The text that stands in base64, in either alphabet, padded or not. A `+` that was not encoded has become
/// a blank on its way.
fn decode(said: &str) -> Option<String> {
    let said: String = said.trim().replace(' ', "+");
    let alphabet =
        if said.contains(['-', '_']) { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(false);
    let bytes = GeneralPurpose::new(alphabet, config).decode(said).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::session_context::{Encoding, Merge, SessionContext};
    use catalog::surface::Surface;
    use tokio::time::advance;
    use upstream::launch::Spawner;

    use super::decode;
    use crate::auth::local;
    use crate::limits::{CONTEXT_IDLE_MAX, CONTEXTS_MAX};
    use crate::{Gateway, Settings};

    #[tokio::test(start_paused = true)]
    async fn contexts_are_kept_by_caller_and_value_up_to_a_number_and_for_a_time() {
        // TC-36
        let rules = SessionContext {
            query: None,
            header: None,
            encoding: Encoding::Json,
            allowed: None,
            merge: Merge::default(),
            defaults: serde_json::Map::new(),
            schema: None,
        };
        let settings = Settings::new(Surface::Filter, Vec::new());
        let settings = Settings { session_context: Some(rules), ..settings };
        let gateway = Gateway::start(settings, &Spawner::new("no guard"));
        let ask = |agent: &str, said: Option<&str>| {
            let place = gateway.in_context(gateway.place(), said);
            gateway.principal(&local(Some(agent)), &place, None)
        };
        let count = || gateway.clients().principals.len();
        let plain = ask("a", None);
        let first = ask("a", Some(r#"{"n":0}"#));
        assert!(Arc::ptr_eq(&first, &ask("a", Some(r#" {"n": 0} "#))));
        assert!(!Arc::ptr_eq(&first, &ask("b", Some(r#"{"n":0}"#))), "another caller's");
        assert!(Arc::ptr_eq(&plain, &ask("a", Some("no JSON"))), "as if nothing was said");
        for n in 1..CONTEXTS_MAX + 50 {
            advance(std::time::Duration::from_millis(1)).await;
            ask("a", Some(&format!(r#"{{"n":{n}}}"#)));
            assert!(count() <= CONTEXTS_MAX + 1, "{n}");
        }
        assert!(Arc::ptr_eq(&first, &ask("a", Some(r#"{"n":0}"#))), "it is still held");
        drop(first);
        advance(CONTEXT_IDLE_MAX).await;
        gateway.forget_old_contexts();
        assert_eq!(count(), 1, "who says nothing is remembered all the same");
    }

    #[test]
    fn both_alphabets_are_read_padded_or_not() {
        // TC-35
        for said in ["eyJhIjoiPz8+In0=", "eyJhIjoiPz8+In0", "eyJhIjoiPz8-In0", "eyJhIjoiPz8 In0"] {
            assert_eq!(decode(said).as_deref(), Some(r#"{"a":"??>"}"#), "{said}");
        }
        for said in ["{\"a\":1}", "eyJ", "====", "gICA"] {
            assert_eq!(decode(said), None, "{said}");
        }
    }
}
