//! Whom the server serves: its owner over standard input and output, and over TCP whoever has the connection token, which
//! comes from the environment or is made here.

use std::net::IpAddr;

use anyhow::{Result, bail};
use hangar_server::{ServerAccess, Token};

use crate::args::ServerArgs;
use crate::settings::Settings;

/// The variable in which SDKs hand the token to a server that they start.
const TOKEN: &str = "COPILOT_CONNECTION_TOKEN";

/// Admission of clients, with the token as it is announced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Owner,
    /// By a token that whoever started the server knows.
    Given(String),
    /// By a token that nobody knows until it is printed.
    Generated(String),
    Anyone,
}

impl Admission {
    pub(super) fn of(server: &ServerArgs, settings: &Settings) -> Result<Self> {
        if server.stdio {
            return Ok(Self::Owner);
        }
        match (settings.var(TOKEN), server.no_token) {
            (Some(_), true) => {
                bail!(
                    "--no-token and {TOKEN} contradict each other: leave out the flag or unset the variable"
                )
            }
            (Some(token), false) => Ok(Self::Given(token.to_owned())),
            (None, true) => Ok(Self::Anyone),
            (None, false) => Ok(Self::Generated(uuid::Uuid::new_v4().simple().to_string())),
        }
    }

    pub(super) fn access(&self) -> ServerAccess {
        match self {
            Self::Owner => ServerAccess::Owner,
            Self::Given(token) | Self::Generated(token) => ServerAccess::Token(Token::new(token)),
            Self::Anyone => ServerAccess::Anyone,
        }
    }

    /// Checks that the admission is strict enough for clients that reach this address.
    pub(super) fn suits(&self, address: IpAddr) -> Result<()> {
        if *self == Self::Anyone && !address.is_loopback() {
            bail!(
                "{address} can be reached from other machines, so the server needs a token: leave out --no-token"
            );
        }
        Ok(())
    }
}
