//! Getting a document over HTTP, redirect by redirect, within bounds.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url, redirect};

use super::guard::{Addresses, BlockedAddress};

/// For everything: names, connections, redirects and the body.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

const CONNECT_LIMIT: Duration = Duration::from_secs(20);

const REDIRECT_LIMIT: usize = 10;

/// Bytes of a body that are read; what follows is cut off.
const BODY_LIMIT: usize = 5 * 1024 * 1024;

/// Policy for redirects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Any host. Right where any host may be fetched anyway.
    #[default]
    AnyHost,
    /// The host that was asked for. A permission for one host is then not a permission for wherever that host points.
    SameHost,
}

/// Addresses that a fetch may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebAccess {
    pub addresses: Addresses,
    pub redirects: Redirects,
}

pub(crate) struct WebDocument {
    /// Address after redirects.
    pub(crate) url: Url,
    /// Without parameters: `text/html`.
    pub(crate) content_type: Option<String>,
    pub(crate) text: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Blocked(#[from] BlockedAddress),
    #[error("the server answered with status code {0}")]
    Status(u16),
    #[error("more than {REDIRECT_LIMIT} redirects")]
    TooManyRedirects,
    #[error("it redirects to another host, {0}; call web_fetch with that URL to follow")]
    OtherHost(Url),
    #[error("it redirects to {0:?}, which is not an http or https URL")]
    BadRedirect(String),
    #[error("no answer within {} seconds", TIME_LIMIT.as_secs())]
    Timeout,
    #[error("{0}")]
    Http(String),
}

/// A client that checks the addresses it connects to. It follows no redirects and uses no proxy, which would connect in
/// its place.
pub(crate) fn client(reach: WebAccess) -> Result<Client, FetchError> {
    // The binary installs its provider at the start; a client built without one would panic.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Client::builder()
        .user_agent("Hangar-WebFetch")
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .dns_resolver(Arc::new(reach.addresses))
        .build()
        .map_err(|error| FetchError::Http(describe(&error)))
}

pub(crate) async fn fetch(client: &Client, reach: WebAccess, url: Url) -> Result<WebDocument, FetchError> {
    tokio::time::timeout(TIME_LIMIT, follow(client, reach, url)).await.unwrap_or(Err(FetchError::Timeout))
}

async fn follow(client: &Client, reach: WebAccess, asked: Url) -> Result<WebDocument, FetchError> {
    let mut url = asked.clone();
    for _ in 0..=REDIRECT_LIMIT {
        check_literal(reach.addresses, &url)?;
        let response = client
            .get(url.clone())
            .header(ACCEPT, "text/markdown, text/html, */*")
            .send()
            .await
            .map_err(|error| blocked_or_failed(&error))?;
        let status = response.status();
        match response.headers().get(LOCATION) {
            Some(location) if status.is_redirection() => {
                let next = redirect_target(&url, location)?;
                if reach.redirects == Redirects::SameHost && !is_same_host(&asked, &next) {
                    return Err(FetchError::OtherHost(next));
                }
                url = next;
            }
            _ if status.is_success() => return read(response, url).await,
            _ => return Err(FetchError::Status(status.as_u16())),
        }
    }
    Err(FetchError::TooManyRedirects)
}

/// Addresses written in the URL itself are connected to without being resolved.
fn check_literal(addresses: Addresses, url: &Url) -> Result<(), BlockedAddress> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => addresses.check(address),
        Err(_) => Ok(()),
    }
}

fn redirect_target(from: &Url, location: &HeaderValue) -> Result<Url, FetchError> {
    let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
    match from.join(&location) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err(FetchError::BadRedirect(location)),
    }
}

/// `www.` in front makes no other host, and neither does `https` for `http`.
fn is_same_host(asked: &Url, next: &Url) -> bool {
    let host = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    host(asked) == host(next)
}

async fn read(response: Response, url: Url) -> Result<WebDocument, FetchError> {
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| FetchError::Http(describe(&error)))?;
        let room = BODY_LIMIT - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() == BODY_LIMIT {
            break;
        }
    }
    let (kind, parameters) =
        match content_type.as_deref().map(|value| value.split_once(';').unwrap_or((value, ""))) {
            Some((kind, parameters)) => (Some(kind.trim().to_ascii_lowercase()), parameters.to_owned()),
            None => (None, String::new()),
        };
    Ok(WebDocument { url, content_type: kind, text: decode(&body, &parameters) })
}

fn decode(body: &[u8], parameters: &str) -> String {
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let encoding = charset
        .and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()))
        .unwrap_or(encoding_rs::UTF_8);
    encoding.decode(body).0.into_owned()
}

/// The refusal of the resolver comes back wrapped in errors of the connection.
fn blocked_or_failed(error: &reqwest::Error) -> FetchError {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(current) = source {
        if let Some(blocked) = current.downcast_ref::<BlockedAddress>() {
            return FetchError::Blocked(blocked.clone());
        }
        source = current.source();
    }
    FetchError::Http(describe(error))
}

/// The innermost cause, which is the one that says something.
fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
