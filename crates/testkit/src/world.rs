//! A test world in memory: fake upstreams, a gateway, clients on its stdio door.
//!
//! `let world = World::of([("git", Script::with_tools(["log"]))]).active(&["git_*"]).start();`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use catalog::patterns::Patterns;
use catalog::snapshot::Rules;
use catalog::surface::{Inactive, Surface};
use gateway::{Gateway, Member, Settings};
use mcp::names::UriStyle;
use serde_json::json;
use tokio::io::{DuplexStream, duplex, split};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use upstream::inventories::Inventories;
use upstream::launch::{BuiltIn, Launch, Spawner};
use upstream::remote::{Headers, Remote, Transport};
use upstream::supervisor::{Restart, Settings as UpstreamSettings};

use crate::client::LineClient;
use crate::fake::{self, Script};

const PIPE_BYTES: usize = 1024 * 1024;

/// What the world is to be made of.
pub struct Plan {
    members: Vec<(Member, Fake)>,
    starts_on: Vec<String>,
    uri_style: UriStyle,
    surface: Surface,
    inventories: Option<Arc<Inventories>>,
}

/// A running world.
pub struct World {
    pub gateway: Gateway,
    fakes: Vec<Fake>,
}

/// The outside of a fake upstream.
#[derive(Clone)]
pub struct Fake {
    name: String,
    crash: broadcast::Sender<()>,
    starts: Arc<AtomicU32>,
}

impl World {
    /// Upstreams by namespace, in this order.
    pub fn of<const N: usize>(upstreams: [(&str, Script); N]) -> Plan {
        let member = |(at, (namespace, script)): (usize, (&str, Script))| {
            let name = if namespace.is_empty() { format!("server-{at}") } else { namespace.into() };
            let fake = Fake {
                name: name.clone(),
                crash: broadcast::Sender::new(1),
                starts: Arc::default(),
            };
            let upstream = UpstreamSettings::new(name.parse().unwrap(), fake.launch(script));
            (Member { namespace: namespace.parse().unwrap(), upstream }, fake)
        };
        Plan {
            members: upstreams.into_iter().enumerate().map(member).collect(),
            starts_on: Vec::new(),
            uri_style: UriStyle::Underscore,
            surface: Surface::default(),
            inventories: None,
        }
    }

    /// A client that has finished its handshake.
    pub async fn connect(&self) -> LineClient {
        let mut client = self.connect_raw();
        client.initialize(json!({})).await;
        client
    }

    /// A client of this program that has finished its handshake.
    pub async fn connect_as(&self, program: &str) -> LineClient {
        let mut client = self.connect_raw();
        client.initialize_as(program, json!({})).await;
        client
    }

    /// A client that has not said anything yet.
    pub fn connect_raw(&self) -> LineClient {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (input, output) = split(theirs);
        let caller = gateway::auth::local(None);
        let stop = CancellationToken::new();
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            let place = gateway.place();
            server::stdio::serve(gateway, caller, &place, input, output, stop).await;
        });
        let (reader, writer) = split(ours);
        LineClient::new(reader, writer)
    }

    /// Ends the connection of an upstream as a crash would.
    pub fn crash(&self, name: &str) {
        _ = self.fake(name).crash.send(());
    }

    /// How often an upstream was started.
    pub fn starts(&self, name: &str) -> u32 {
        self.fake(name).starts.load(Ordering::SeqCst)
    }

    fn fake(&self, name: &str) -> &Fake {
        self.fakes.iter().find(|fake| fake.name == name).expect("there is such an upstream")
    }
}

impl Plan {
    /// A further upstream, which runs already.
    pub fn remote(mut self, namespace: &str, url: &str) -> Plan {
        let remote = Remote {
            url: url.parse().unwrap(),
            transport: Transport::default(),
            headers: Headers::default(),
        };
        let fake = Fake {
            name: namespace.into(),
            crash: broadcast::Sender::new(1),
            starts: Arc::default(),
        };
        let upstream = UpstreamSettings::new(namespace.parse().unwrap(), Launch::Url(remote));
        self.members.push((Member { namespace: namespace.parse().unwrap(), upstream }, fake));
        self
    }

    /// Changes the settings of the upstream that was added last.
    pub fn tuned(mut self, change: impl FnOnce(&mut UpstreamSettings)) -> Plan {
        change(&mut self.members.last_mut().unwrap().0.upstream);
        self
    }

    pub fn active(mut self, patterns: &[&str]) -> Plan {
        self.starts_on = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        self
    }

    pub fn uri_style(mut self, style: UriStyle) -> Plan {
        self.uri_style = style;
        self
    }

    /// What upstreams offer is kept in a folder, for the next world that is given it.
    pub fn remembering(mut self, folder: &Path) -> Plan {
        let inventories = Inventories::open(folder.to_owned(), true).unwrap();
        self.inventories = Some(Arc::new(inventories));
        self
    }

    pub fn stubs(mut self) -> Plan {
        self.surface = Surface::Activate { inactive: Inactive::Stub };
        self
    }

    /// Everything is on, and there is no control tool.
    pub fn filter(mut self) -> Plan {
        self.surface = Surface::Filter;
        self
    }

    pub fn restarting(mut self) -> Plan {
        for (member, _) in &mut self.members {
            member.upstream.restart =
                Restart::OnFailure { delay_max: upstream::limits::RESTART_DELAY_MAX };
        }
        self
    }

    pub fn call_timeout(mut self, timeout: Duration) -> Plan {
        for (member, _) in &mut self.members {
            member.upstream.call_timeout = timeout;
        }
        self
    }

    pub fn start(self) -> World {
        let fakes = self.members.iter().map(|(_, fake)| fake.clone()).collect();
        let settings = self.into_settings();
        // No process is started in memory, so the guard is never asked for.
        World { gateway: Gateway::start(settings, &Spawner::new("no guard")), fakes }
    }

    /// What a gateway would be made of.
    pub fn into_settings(self) -> Settings {
        let starts_on = Patterns::parse(&self.starts_on).unwrap();
        let members = self.members.into_iter().map(|(member, _)| member).collect();
        let rules = Rules { starts_on, uri_style: self.uri_style, ..Rules::default() };
        let inventories = self.inventories;
        Settings { rules, inventories, ..Settings::new(self.surface, members) }
    }
}

impl Fake {
    fn launch(&self, script: Script) -> Launch {
        let fake = self.clone();
        Launch::BuiltIn(BuiltIn(Arc::new(move || {
            fake.starts.fetch_add(1, Ordering::SeqCst);
            let (ours, theirs) = duplex(PIPE_BYTES);
            tokio::spawn(run(script.clone(), theirs, fake.crash.subscribe()));
            ours
        })))
    }
}

async fn run(script: Script, pipe: DuplexStream, mut crash: broadcast::Receiver<()>) {
    let (reader, writer) = split(pipe);
    fake::serve_until(script, reader, writer, async move { _ = crash.recv().await }).await;
}
