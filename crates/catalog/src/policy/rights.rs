//! The rights of a caller: which rules hold for it.
//!
//! Callers with equal rights share one ceiling, so what only tells them apart is not in here.

use std::net::IpAddr;
use std::sync::Arc;

use super::Policies;
use crate::toolset::ToolsetPlace;

/// Who asks, as far as rules go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Who<'a> {
    pub agent: Option<&'a str>,
    /// Where it asks from; none on this machine's own pipes.
    pub address: Option<IpAddr>,
}

/// Which rules hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights {
    agent: Option<Arc<str>>,
    /// The places of the agent's conditions that its address does not meet.
    unmet: Vec<usize>,
    is_operator: bool,
    /// The toolsets that are granted, where that is what counts.
    grants: Option<Arc<[ToolsetPlace]>>,
}

impl Rights {
    /// The same, and only these toolsets.
    pub fn granting(self, toolsets: Vec<ToolsetPlace>) -> Rights {
        Rights { grants: Some(toolsets.into()), ..self }
    }

    /// The toolsets that are granted, where that is what counts.
    pub fn grants(&self) -> Option<&[ToolsetPlace]> {
        self.grants.as_deref()
    }

    /// The rights of whoever runs the gateway: no rule holds.
    pub fn operator() -> Rights {
        Rights { is_operator: true, ..Rights::default() }
    }

    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// The agent whose policy holds.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    pub(super) fn is_unmet(&self, condition: usize) -> bool {
        self.unmet.contains(&condition)
    }
}

impl Policies {
    /// The rights of a caller; an agent without a policy has those of anybody.
    pub fn rights_of(&self, who: Who<'_>) -> Rights {
        let Some((name, agent)) = who.agent.and_then(|name| self.agents.get_key_value(name)) else {
            return Rights::default();
        };
        let is_unmet = |at: &usize| !agent.conditions[*at].admits(who.address);
        Rights {
            agent: Some(name.as_ref().into()),
            unmet: (0..agent.conditions.len()).filter(is_unmet).collect(),
            ..Rights::default()
        }
    }
}
