//! Addresses of hosts: only public ones are asked, and those that were looked at.

use std::net::{IpAddr, SocketAddr};

use crate::limits::LOOK_UP_TIME_MAX;

/// The addresses of a host, if all of them are public.
pub async fn public(host: &str, port: u16) -> Result<Vec<IpAddr>, String> {
    let looking = tokio::net::lookup_host((host, port));
    let found = tokio::time::timeout(LOOK_UP_TIME_MAX, looking).await;
    let found = found.map_err(|_| format!("the name `{host}` can't be looked up"))?;
    let found: Vec<SocketAddr> =
        found.map_err(|error| format!("the name `{host}` can't be looked up: {error}"))?.collect();
    if let Some(inside) = found.iter().find(|address| !is_public(address.ip())) {
        return Err(format!("`{host}` is at {}, which is no public address", inside.ip()));
    }
    if found.is_empty() {
        return Err(format!("the name `{host}` has no address"));
    }
    Ok(found.iter().map(SocketAddr::ip).collect())
}

/// The setting that makes git use these addresses, and no others.
pub fn pin(host: &str, port: u16, addresses: &[IpAddr]) -> String {
    let shown = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let all: Vec<String> = addresses.iter().map(shown).collect();
    format!("http.curloptResolve={host}:{port}:{}", all.join(","))
}

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_multicast()
                || first == 0
                || first >= 240
                || (first == 100 && (64..128).contains(&second))
                || (first == 198 && (18..20).contains(&second)))
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public(IpAddr::V4(mapped)),
            // Global unicast, without the parts that lead to other networks.
            None => {
                let [first, second, ..] = address.segments();
                (0x2000..0x4000).contains(&first)
                    && first != 0x2002
                    && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
            }
        },
    }
}
