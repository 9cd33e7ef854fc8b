//! The door of everything here that serves HTTP: a port of this machine, told on stdout.

use std::net::Ipv4Addr;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};

use crate::limits::LOOK_PAUSE;

/// Opens a port, any if it is 0, and prints it in a line.
pub async fn open(port: u16) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("can't listen on port {port}; choose another with `--port`"))?;
    println!("{}", listener.local_addr()?.port());
    Ok(listener)
}

/// The next connection.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            // Without it, it is slower; nothing else.
            _ = stream.set_nodelay(true);
            return stream;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
