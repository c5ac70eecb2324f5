//! Access to the server: its owner over standard input and output, and over TCP every client with the connection token, which
//! comes from the environment or is generated here.

use std::net::IpAddr;

use anyhow::{Result, bail};
use hangar_server::{ConnectionToken, ServerAccess};

use crate::args::ServerArgs;
use crate::settings::Settings;

/// Variable in which SDKs pass the token to a server that they start.
const TOKEN: &str = "COPILOT_CONNECTION_TOKEN";

/// Admission of clients, with the token as it is announced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Owner,
    /// By a token that the process which started the server knows.
    Given(String),
    /// By a generated token, which has to be printed.
    Generated(String),
    Anyone,
}

impl Admission {
    pub(crate) fn of(server: &ServerArgs, settings: &Settings) -> Result<Self> {
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
            Self::Given(token) | Self::Generated(token) => ServerAccess::Token(ConnectionToken::new(token)),
            Self::Anyone => ServerAccess::Anyone,
        }
    }

    /// Token that clients have to show, if there is one.
    pub(crate) fn into_token(self) -> Option<String> {
        match self {
            Self::Given(token) | Self::Generated(token) => Some(token),
            Self::Owner | Self::Anyone => None,
        }
    }

    /// Checks that the admission is strict enough for clients that reach this address.
    pub(crate) fn suits(&self, address: IpAddr) -> Result<()> {
        if *self == Self::Anyone && !address.is_loopback() {
            bail!(
                "{address} can be reached from other machines, so the server needs a token: leave out --no-token"
            );
        }
        Ok(())
    }
}
