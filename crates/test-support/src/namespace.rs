//! A network of its own for servers: a namespace of the kernel with several links to this machine, each of which a test may cut.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Networks of two hosts in 198.18.0.0/15, which is for tests and routed nowhere.
const NETWORKS: u32 = 1 << 15;
/// Most links of a namespace.
const MAX_LINKS: u32 = 4;

/// A namespace that ends with the test.
pub struct Namespace {
    name: String,
    links: u32,
    /// Number of the first of its networks.
    first: u32,
}

impl Namespace {
    /// A namespace with so many links. `None` where that takes rights that the test does not have; in CI it has them.
    pub fn new(links: u32) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        assert!(links <= MAX_LINKS, "at most {MAX_LINKS} links");
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let first = (pid.wrapping_mul(16) + count * MAX_LINKS) % NETWORKS;
        let namespace = Self { name: format!("hg{pid:x}-{count}"), links, first };
        match namespace.create() {
            Ok(()) => Some(namespace),
            Err(why) if std::env::var_os("CI").is_none() => {
                let why = format!(
                    "not tested: no network namespace can be made here ({why}); it needs root and iproute2\n"
                );
                let _ = std::io::stderr().write_all(why.as_bytes());
                None
            }
            Err(why) => panic!("a network namespace cannot be made: {why}"),
        }
    }

    fn create(&self) -> Result<(), String> {
        ip(&["netns", "add", &self.name])?;
        let inside = ["-n", self.name.as_str()];
        ip(&[&inside[..], &["link", "set", "lo", "up"]].concat())?;
        for n in 0..self.links {
            let (near, far) = (self.near(n), self.far(n));
            ip(&["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &self.name])?;
            ip(&["addr", "add", &format!("{}/30", self.host(n, 1)), "dev", &near])?;
            ip(&["link", "set", &near, "up"])?;
            let address = format!("{}/30", self.host(n, 2));
            ip(&[&inside[..], &["addr", "add", &address, "dev", &far]].concat())?;
            ip(&[&inside[..], &["link", "set", &far, "up"]].concat())?;
        }
        Ok(())
    }

    fn near(&self, n: u32) -> String {
        format!("{}n{n}", self.name)
    }

    fn far(&self, n: u32) -> String {
        format!("{}f{n}", self.name)
    }

    fn host(&self, n: u32, host: u32) -> String {
        let number = (self.first + n) % NETWORKS * 4 + host;
        format!("198.{}.{}.{}", 18 + (number >> 16), number >> 8 & 255, number & 255)
    }

    /// Address of the programs in it over a link.
    pub fn address(&self, link: u32) -> String {
        self.host(link, 2)
    }

    /// Beginning of a command line that runs in it.
    pub fn entering(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(str::to_owned).into()
    }

    /// Cuts a link or mends it. While it is cut, packets are lost without a word.
    pub fn cut(&self, link: u32, cut: bool) {
        let state = if cut { "down" } else { "up" };
        ip(&["-n", &self.name, "link", "set", &self.far(link), state]).expect("a link");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for n in 0..self.links {
            let _ = ip(&["link", "del", &self.near(n)]);
        }
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| format!("starting ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}
