//! Settings of a connection to the fleet.

use std::path::PathBuf;
use std::time::Duration;

use crate::FleetError;

/// Default of `lease_seconds`.
const LEASE: Duration = Duration::from_secs(30);
/// Shortest and longest lease. Below the first, an election of a leader would end it.
const LEASE_RANGE: std::ops::RangeInclusive<u64> = 1..=3600;
/// Longest prefix.
const MAX_PREFIX: usize = 32;
/// Default limit of the stream of orders, in bytes.
const WORK_BYTES: i64 = 256 << 20;

/// Addresses and credentials of the servers, and the settings of the streams.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// Addresses, such as `nats://a:4222`.
    pub servers: Vec<String>,
    /// Credentials file of a NATS user.
    pub creds: Option<PathBuf>,
    pub tls: TlsFiles,
    pub prefix: Prefix,
    /// Copies of each stream. Absent: three, or as many as there are servers.
    pub replicas: Option<usize>,
    /// Time after which an order whose worker is silent goes to another.
    pub lease: Duration,
    /// Age at which logs are removed; kept for ever without.
    pub retention: Option<Duration>,
    /// Size at which the stream of orders refuses new ones.
    pub work_bytes: i64,
}

/// Certificates of a connection.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// First token of all subjects, and of the names of the streams in capitals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        match !text.is_empty() && text.len() <= MAX_PREFIX && text.chars().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(FleetError::Invalid(format!(
                "`prefix` of [fleet] is `{text}`; it has 1 to {MAX_PREFIX} lower-case letters, digits, `_` and `-`"
            ))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of a stream.
    pub(crate) fn stream(&self, name: &str) -> String {
        format!("{}_{name}", self.0.to_ascii_uppercase())
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("hangar".to_owned())
    }
}

impl FleetSettings {
    /// Settings with the servers of a list that is separated by commas.
    pub fn of_url(list: &str) -> Result<Self, FleetError> {
        let servers: Vec<String> =
            list.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect();
        if servers.is_empty() {
            return Err(FleetError::Invalid(
                "no server of the fleet is named: give --fleet nats://HOST:4222, or `url` in [fleet]"
                    .to_owned(),
            ));
        }
        for server in &servers {
            if let Some((scheme, _)) = server.split_once("://")
                && !["nats", "tls"].contains(&scheme)
            {
                let shown = without_password(server);
                return Err(FleetError::Invalid(format!("`{shown}` is not the address of a NATS server")));
            }
        }
        Ok(Self {
            servers,
            creds: None,
            tls: TlsFiles::default(),
            prefix: Prefix::default(),
            replicas: None,
            lease: LEASE,
            retention: None,
            work_bytes: WORK_BYTES,
        })
    }

    /// The same settings with another lease.
    pub fn with_lease(self, seconds: u64) -> Result<Self, FleetError> {
        if !LEASE_RANGE.contains(&seconds) {
            return Err(FleetError::Invalid(format!(
                "`lease_seconds` of [fleet] is {seconds}; it is between {} and {}",
                LEASE_RANGE.start(),
                LEASE_RANGE.end()
            )));
        }
        Ok(Self { lease: Duration::from_secs(seconds), ..self })
    }

    /// The servers for messages, without passwords.
    pub fn shown(&self) -> String {
        self.servers.iter().map(|server| without_password(server)).collect::<Vec<_>>().join(",")
    }
}

fn without_password(server: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let shown = FleetSettings::of_url(url).map_or_else(|error| error.to_string(), |fleet| fleet.shown());
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_list_of_servers_is_shown_without_passwords() {
        check("nats://a:4222, nats://me:secret@b:4222", "nats://a:4222,nats://b:4222");
        check("a:4222", "nats://a:4222");
        check("http://me:secret@a", "`http://a` is not the address of a NATS server");
        check(" ,", "no server of the fleet is named: give --fleet nats://HOST:4222, or `url` in [fleet]");
    }

    #[test]
    fn a_prefix_is_one_token() {
        assert!(Prefix::parse("team-1").is_ok());
        for bad in ["", "a.b", "A", "a b", "*", &"x".repeat(33)] {
            assert!(Prefix::parse(bad).is_err(), "{bad}");
        }
    }
}
