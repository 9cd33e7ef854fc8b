//! What a call must fulfil although its tool is within the ceiling: constraints, a person's consent.

use super::{Agent, Allowed, Policies, Rights, Subject};

impl Policies {
    /// Whether a person is asked before each call.
    pub fn needs_consent(&self, rights: &Rights, subject: &Subject<'_>, by: Allowed) -> bool {
        let own = self.agent_of(rights).and_then(|agent| agent.confirmed.as_ref());
        let lists = [self.confirmed.as_ref(), own];
        lists.into_iter().flatten().any(|list| list.has(subject))
            || by == Allowed::Unnamed && self.fallback.asks_first
    }

    /// Whether a rule looks at the arguments of each call.
    pub fn constrains(&self, rights: &Rights, subject: &Subject<'_>) -> bool {
        let conditions = self.agent_of(rights).map_or(&[][..], |agent| &agent.conditions);
        conditions.iter().any(|rule| rule.arguments.is_some() && rule.is_about(subject))
    }

    /// Whether the arguments of a call are such as the rules want; the error says what is wrong.
    pub fn check_arguments(
        &self,
        rights: &Rights,
        subject: &Subject<'_>,
        arguments: &str,
    ) -> Result<(), String> {
        let conditions = self.agent_of(rights).map_or(&[][..], |agent| &agent.conditions);
        for condition in conditions.iter().filter(|rule| rule.is_about(subject)) {
            if let Some(constraint) = &condition.arguments {
                constraint.check(arguments)?;
            }
        }
        Ok(())
    }

    fn agent_of(&self, rights: &Rights) -> Option<&Agent> {
        rights.agent().and_then(|name| self.agents.get(name))
    }
}
