//! How manager and core are, and how they are set up. TD-143, TD-144

use std::sync::Arc;
use std::time::Duration;

use gateway::own_tools::Tool;
use serde_json::json;

use super::{Described, Effect};
use crate::desk::Desk;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![health(desk), server_config(desk)]
}

fn health(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "health",
        title: "Check the health",
        description: "How the manager and the core are: manager_uptime, core_reachable (if false tell the user \
            to start it; \"problem\" says why), python_version, namespaces_loaded, total_tools.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: ("manager_uptime", "string"),
    }
    .does(desk, |desk, _| async move {
        let served = desk.core.served().await;
        let python = desk.interpreter(None).await.map(|python| python.version);
        let counts = served.clone().unwrap_or_default();
        let mut answer = json!({
            "manager_uptime": uptime(desk.started.elapsed()),
            "core_reachable": served.is_ok(),
            "python_version": python.unwrap_or_else(|error| error.to_string()),
            "namespaces_loaded": counts.namespaces,
            "total_tools": counts.tools,
        });
        if let Err(unreached) = served {
            answer["problem"] = unreached.to_string().into();
        }
        Ok(answer)
    })
}

/// A time as people say it: its two largest units.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

fn server_config(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "server_config",
        title: "Show the configuration",
        description: "How core and manager are set up: ports, folders, limits. Never a token or key.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: ("core_port", "integer"),
    }
    .does(desk, |desk, _| async move { Ok(json!(desk.shown)) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::uptime;

    #[test]
    fn uptime_has_two_units() {
        let check = |seconds, text| assert_eq!(uptime(Duration::from_secs(seconds)), text);
        check(5, "5s");
        check(65, "1m 5s");
        check(8_100, "2h 15m");
        check(90_000, "1d 1h");
    }
}
