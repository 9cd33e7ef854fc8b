//! How manager and core are, and how they are set up. TD-123, TD-143, TD-144

use std::sync::Arc;

use gateway::own_tools::Tool;
use serde_json::json;

use super::{Described, Effect, object};
use crate::desk::Desk;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![server_config(desk)]
}

fn server_config(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "server_config",
        title: "Show the configuration",
        description: "Show how the core and the manager are set up: ports, data directory, log level, allowed \
            origins and how long sessions are kept. Tokens and keys are never shown. Takes no arguments.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: object(
            &json!({
                "core_port": {"type": "integer"},
                "manager_port": {"type": "integer"},
                "data_dir": {"type": "string"},
                "log_level": {"type": "string"},
                "cors_origins": {"type": "string"},
                "mcp_session_ttl_hours": {"type": "number"},
            }),
            &["core_port", "manager_port", "data_dir", "log_level"],
        ),
    }
    .does(desk, |desk, _| async move { Ok(json!(desk.shown)) })
}
