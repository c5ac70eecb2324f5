//! Which addresses may be fetched: none that only this machine or its network can reach.
//!
//! The check is made on the addresses that are connected to, after the name is resolved and again for each redirect; a
//! check of names alone could be evaded by a name that resolves to an inner address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Which addresses can be connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Addresses {
    #[default]
    PublicOnly,
    /// For tests, and for those whose documents live in their own network.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the host has the blocked address {address}. URLs must not target loopback, private, or link-local addresses."
)]
pub(crate) struct BlockedAddress {
    pub(crate) address: IpAddr,
}

impl Addresses {
    pub(crate) fn check(self, address: IpAddr) -> Result<(), BlockedAddress> {
        match self {
            Addresses::PublicOnly if !is_public(address) => Err(BlockedAddress { address }),
            Addresses::PublicOnly | Addresses::Any => Ok(()),
        }
    }
}

/// Resolves names as the system does and refuses those that lead to an address that is not allowed.
impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = *self;
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One inner address among outer ones would be a coin toss.
            for address in &addresses {
                policy.check(address.ip())?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        // Shared by carriers, kept for protocols and for benchmarks, and reserved.
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Loopback, unspecified, and IPv4 in the old compatible form.
        [0, 0, 0, 0, 0, 0, _, _] => false,
        // IPv4 under its other names: mapped, translated (local and well-known prefix), 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, documentation, the local translation prefix, discard.
        [0x2001, 0, ..] | [0x2001, 0xdb8, ..] | [0x64, 0xff9b, 1, ..] | [0x100, 0, 0, 0, ..] => false,
        // Unique local, link-local and site-local, multicast.
        [first, ..] => {
            (first & 0xfe00) != 0xfc00
                && (first & 0xffc0) != 0xfe80
                && (first & 0xffc0) != 0xfec0
                && (first & 0xff00) != 0xff00
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_addresses_are_blocked_in_every_spelling() {
        let inner = [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
        ];
        for address in inner {
            let address = address.parse().unwrap();
            assert_eq!(Addresses::PublicOnly.check(address), Err(BlockedAddress { address }));
            assert_eq!(Addresses::Any.check(address), Ok(()));
        }
    }

    #[test]
    fn outer_addresses_are_not() {
        for address in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::"]
        {
            assert_eq!(Addresses::PublicOnly.check(address.parse().unwrap()), Ok(()), "{address}");
        }
    }
}
