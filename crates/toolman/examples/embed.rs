//! A program with a gateway of its own: functions as tools, in toolsets that clients enable, over stdio.

use catalog::patterns::Patterns;
use catalog::surface::Surface;
use catalog::toolset::{Toolset, Toolsets};
use gateway::own_tools::OwnTools;
use gateway::{Gateway, Settings, auth};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let voice =
        OwnTools::new("voice")?.tool("shout", "Says it louder.", &schema, |arguments| async move {
            let text = arguments["text"].as_str().ok_or("`text` is missing; say something")?;
            Ok(json!({"said": text.to_uppercase()}))
        });
    let patterns = Patterns::parse(&["voice:*"]).map_err(|_| "no patterns")?;
    let loud = Toolset { name: "loud".into(), patterns, ..Toolset::default() };
    let mut settings = Settings::new(Surface::Dynamic, vec![voice.member()]);
    settings.rules.toolsets = Toolsets::new(vec![loud]);
    let gateway = Gateway::start(settings, &Spawner::new("no server has a process"));
    let (place, stop) = (gateway.place(), CancellationToken::new());
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    server::stdio::serve(gateway.clone(), auth::local(None), &place, input, output, stop).await;
    gateway.stop().await;
    Ok(())
}
