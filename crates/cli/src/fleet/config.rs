//! `[fleet]` of `config.toml`.
//!
//! ```toml
//! [fleet]
//! url = "nats://a:4222,nats://b:4222"
//! creds = "/etc/hangar/fleet.creds"       # credentials file of a NATS user
//! tls = { ca = "/etc/hangar/ca.pem" }     # also cert and key, for servers that ask for a certificate
//! prefix = "hangar"                       # several fleets on the same servers have different ones
//! replicas = 3                            # copies of each stream; default: three, or the number of servers
//! lease_seconds = 30                      # silence after which another worker goes on
//! retention_days = 90                     # age at which logs are removed; default: never
//! ```

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hangar_fleet::{FleetSettings, Prefix, TlsFiles};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{Settings, parse_toml};

const DAY: u64 = 24 * 3600;

/// `[fleet]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FleetTable {
    /// NATS servers, separated by commas.
    url: Option<String>,
    /// Credentials file of a NATS user.
    creds: Option<PathBuf>,
    /// Certificates.
    tls: TlsTable,
    /// First part of the names of streams and subjects; hangar unless it is set.
    prefix: Option<String>,
    /// Copies of each stream; three, or the number of servers, unless it is set.
    #[schemars(range(min = 1, max = 5))]
    replicas: Option<u32>,
    /// Seconds of silence after which another worker goes on; 30 unless it is set.
    #[schemars(range(min = 1, max = 3600))]
    lease_seconds: Option<u64>,
    /// Days after which logs are removed; never unless it is set.
    #[schemars(range(min = 1, max = 36_500))]
    retention_days: Option<u32>,
}

/// Certificates of the connection to the servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TlsTable {
    /// Certificates of the authority that signed the servers'.
    ca: Option<PathBuf>,
    /// Certificate of this machine.
    cert: Option<PathBuf>,
    /// Its key.
    key: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    fleet: FleetTable,
}

/// Settings of the fleet. A URL of a flag wins.
pub(crate) fn load(settings: &Settings, url: Option<&str>) -> Result<FleetSettings> {
    let File { fleet } = settings.parse_config(&settings.config_text()?)?;
    of_table(fleet, url)
}

/// Checks the table of a text of `config.toml`.
pub(crate) fn check(text: &str) -> Result<()> {
    let File { fleet } = parse_toml(text)?;
    // The file need not name servers: the flag can.
    let url = fleet.url.is_none().then_some("nats://127.0.0.1:4222");
    of_table(fleet, url).map(drop)
}

fn of_table(table: FleetTable, url: Option<&str>) -> Result<FleetSettings> {
    let url = url.filter(|url| !url.is_empty()).or(table.url.as_deref()).unwrap_or_default();
    let mut fleet = FleetSettings::of_url(url)?;
    if let Some(seconds) = table.lease_seconds {
        fleet = fleet.with_lease(seconds)?;
    }
    if let Some(prefix) = &table.prefix {
        fleet.prefix = Prefix::parse(prefix)?;
    }
    if table.replicas.is_some_and(|replicas| !(1..=5).contains(&replicas)) {
        bail!("`replicas` of [fleet] is between 1 and 5");
    }
    fleet.replicas = table.replicas.map(usize::try_from).transpose().context("`replicas` of [fleet]")?;
    fleet.retention = table.retention_days.map(|days| Duration::from_secs(u64::from(days) * DAY));
    fleet.creds = table.creds;
    fleet.tls = TlsFiles { ca: table.tls.ca, cert: table.tls.cert, key: table.tls.key };
    Ok(fleet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(format!("{:#}", check(text).expect_err("a problem")), expected);
    }

    #[test]
    fn a_table_that_is_wrong_is_named() {
        assert!(check("").is_ok());
        assert!(check("[fleet]\nurl = \"nats://a,nats://b\"\nlease_seconds = 5").is_ok());
        refused("[fleet]\nlease_seconds = 0", "`lease_seconds` of [fleet] is 0; it is between 1 and 3600");
        refused("[fleet]\nreplicas = 7", "`replicas` of [fleet] is between 1 and 5");
        refused(
            "[fleet]\nprefix = \"a.b\"",
            "`prefix` of [fleet] is `a.b`; it has 1 to 32 lower-case letters, digits, `_` and `-`",
        );
        refused("[fleet]\nurl = \"http://a\"", "`http://a` is not the address of a NATS server");
    }
}
