//! Which addresses are public.

use std::net::IpAddr;

use super::is_public;

#[test]
fn only_public_addresses_are_asked() {
    let is_public = |text: &str| is_public(text.parse::<IpAddr>().unwrap());
    for inside in [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2001::1",
        "64:ff9b::7f00:1",
        "ff02::1",
    ] {
        assert!(!is_public(inside), "{inside}");
    }
    for outside in
        ["140.82.121.4", "1.1.1.1", "2606:50c0:8000::154", "2a00:1450::1", "::ffff:1.1.1.1"]
    {
        assert!(is_public(outside), "{outside}");
    }
}
