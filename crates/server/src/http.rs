//! The HTTP door: Streamable HTTP at `/mcp`, on an accept loop of our own.
//!
//! The loop is ours because slow and silent connections need bounds that a ready-made one lacks.

pub mod tls;

mod body;
mod checks;
mod choice;
mod connection;
mod cors;
mod crowd;
mod docs;
mod endpoint;
mod events;
mod exchange;
mod head;
mod health;
mod legacy;
mod metrics;
mod modern;
mod openapi;
pub mod reload;
mod rest;
pub mod routes;
mod service;
mod sessions;
mod standing;
mod streams;
mod traffic;
mod wire;

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gateway::Gateway;
use gateway::auth::Keys;
use gateway::place::Place;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::checks::Checks;
use crate::http::crowd::Crowd;
use crate::http::endpoint::Endpoint;
use crate::http::metrics::Metrics;
use crate::http::reload::Reload;
use crate::http::routes::Route;
use crate::http::sessions::Sessions;
use crate::http::tls::Tls;
use crate::http::traffic::Traffic;
use crate::limits::{
    ACCEPT_COMPLAINT_EVERY, ACCEPT_PAUSE, CLOSE_MAX, CONNECTIONS_MAX, DRAIN_MAX, FILES_RESERVED,
    HANDSHAKE_TIMEOUT, SESSION_IDLE_MAX, SESSION_SWEEP_TICKS, TICK,
};

/// What the operator chooses.
pub struct Settings {
    /// What clients must show.
    pub keys: Keys,
    /// Whether the transport of 2024-11-05 is served as well.
    pub has_sse: bool,
    /// Where there is none, the door is plain.
    pub tls: Option<Tls>,
    /// Origins of pages that may use the door, as a browser writes them.
    pub allowed_origins: Vec<String>,
    /// Names under which the door is reached, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// A session that was not used for this long is forgotten.
    pub session_ttl: Duration,
    /// Whether `/readyz` wants all servers to be ready; else one is enough.
    pub awaits_all: bool,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Where MCP is served beside `/mcp`: paths, and what is shown there.
    pub places: Vec<(String, Place)>,
    /// How what is served is read again, where that can be asked for.
    pub reload: Option<Reload>,
    /// What may stand before every path, such as `/mcp-gateway`.
    pub base_path: Option<String>,
    /// Paths that call a tool each.
    pub routes: Vec<Route>,
}

impl Settings {
    /// The usual ones.
    pub fn new(keys: Keys) -> Settings {
        Settings {
            keys,
            has_sse: true,
            tls: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            session_ttl: SESSION_IDLE_MAX,
            awaits_all: false,
            connections_max: CONNECTIONS_MAX,
            places: Vec::new(),
            reload: None,
            base_path: None,
            routes: Vec::new(),
        }
    }
}

/// How many connections a process can hold that may have so many files open.
pub fn connections_max(files: usize) -> usize {
    files.saturating_sub(FILES_RESERVED).clamp(1, CONNECTIONS_MAX)
}

/// Serves until `stop` is called, then lets requests under way finish.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    settings: Settings,
    stop: CancellationToken,
) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let tls = settings.tls.clone();
    let endpoint = open(gateway.clone(), settings, is_local, stop.clone());
    let connections = TaskTracker::new();
    let mut complained = None;
    loop {
        let (stream, address) = tokio::select! {
            accepted = accept(&listener, &mut complained) => accepted,
            () = stop.cancelled() => break,
        };
        let member = tokio::select! {
            member = endpoint.crowd.join() => member,
            () = stop.cancelled() => break,
        };
        member.traffic.comes_from(address);
        let (endpoint, tls, stop) = (Arc::clone(&endpoint), tls.clone(), stop.clone());
        connections.spawn(async move {
            serve_one(stream, &member.traffic, endpoint, tls, stop).await;
        });
    }
    drop(listener);
    endpoint.crowd.close();
    gateway.wind_down();
    _ = timeout(DRAIN_MAX, endpoint.drained()).await;
    connections.close();
    _ = timeout(CLOSE_MAX, connections.wait()).await;
}

fn open(
    gateway: Gateway,
    settings: Settings,
    is_local: bool,
    stop: CancellationToken,
) -> Arc<Endpoint> {
    let checks = Checks {
        keys: settings.keys,
        is_local,
        hosts: settings.allowed_hosts,
        origins: settings.allowed_origins,
    };
    let sessions = Sessions::new(gateway.clone(), settings.session_ttl);
    let crowd = Crowd::new(settings.connections_max);
    let mut places = settings.places;
    places.push(("/mcp".to_owned(), gateway.place()));
    let endpoint = Arc::new(Endpoint {
        gateway,
        sessions,
        checks,
        crowd,
        metrics: Metrics::default(),
        reload: settings.reload,
        stop,
        under_way: TaskTracker::new(),
        has_sse: settings.has_sse,
        awaits_all: settings.awaits_all,
        places,
        base_path: settings.base_path,
        routes: settings.routes,
    });
    tokio::spawn(look_after(Arc::downgrade(&endpoint)));
    endpoint
}

/// Ends what nobody uses any more, for as long as there is a door.
async fn look_after(endpoint: Weak<Endpoint>) {
    let mut ticks = interval(TICK);
    // After a standstill of the whole machine nobody is to blame.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await; // The first comes at once.
    for tick in 1_u64.. {
        ticks.tick().await;
        let Some(endpoint) = endpoint.upgrade() else { return };
        endpoint.crowd.tick();
        if tick.is_multiple_of(SESSION_SWEEP_TICKS) {
            endpoint.sessions.expire();
            endpoint.gateway.forget_old_contexts();
        }
    }
}

/// Agrees on TLS where there is one, then answers requests.
async fn serve_one(
    stream: TcpStream,
    traffic: &Traffic,
    endpoint: Arc<Endpoint>,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let Some(Tls(acceptor)) = tls else {
        return connection::serve(stream, traffic, endpoint).await;
    };
    let agreed = tokio::select! {
        agreed = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => agreed,
        () = traffic.ordered_to_leave() => return,
        () = stop.cancelled() => return,
    };
    if let Ok(Ok(stream)) = agreed {
        connection::serve(stream, traffic, endpoint).await;
    }
}

async fn accept(listener: &TcpListener, complained: &mut Option<Instant>) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Small messages go back and forth; waiting to fill packets costs 40 ms each.
                _ = stream.set_nodelay(true);
                return (stream, address.ip());
            }
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() >= ACCEPT_COMPLAINT_EVERY) {
                    tracing::warn!(%error, "can't accept connections; are there too many?");
                    *complained = Some(Instant::now());
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
