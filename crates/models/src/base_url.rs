//! Base URL of a provider.

use std::fmt;

use reqwest::Url;

/// An `http` or `https` address to which the paths of an API are appended. Prints without user name, password and query.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("it is not a URL")]
    NotAUrl,
    #[error("it must start with http:// or https://")]
    Scheme,
}

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let url = Url::parse(text.trim()).map_err(|_| BadUrl::NotAUrl)?;
        match url.scheme() {
            "http" | "https" => Ok(Self(url)),
            _ => Err(BadUrl::Scheme),
        }
    }

    /// Name or address of the host.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.0.port_or_known_default()
    }

    /// Whether it needs no certificates.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }

    /// Whether it is on this machine, so that no proxy applies.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|ip| ip.is_loopback())
    }

    /// The address with `segments` behind its path. The query stays.
    pub(crate) fn join(&self, segments: &[&str]) -> Url {
        self.join_behind(self.segments().count(), segments)
    }

    /// The address with `segments` behind the first `kept` parts of its path. The query stays.
    pub(crate) fn join_behind(&self, kept: usize, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        let surplus = self.segments().count().saturating_sub(kept);
        // An `http` URL always has a path, so this is never `Err`.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            for _ in 0..surplus {
                path.pop();
            }
            path.extend(segments);
        }
        url
    }

    /// The path's parts, as they are written in the address.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.path_segments().into_iter().flatten().filter(|segment| !segment.is_empty())
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.0.clone();
        // Both fail only for URLs that cannot have credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        f.write_str(url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, segments: &[&str], joined: &str) {
        assert_eq!(BaseUrl::parse(base).unwrap().join(segments).as_str(), joined);
    }

    #[test]
    fn paths_are_appended() {
        check("http://h:1/v1", &["chat", "completions"], "http://h:1/v1/chat/completions");
        check("http://h:1/v1/", &["responses"], "http://h:1/v1/responses");
        check("http://h:1", &["models"], "http://h:1/models");
        check("https://h/a%20b?tenant=x", &["models"], "https://h/a%20b/models?tenant=x");
    }

    #[test]
    fn credentials_and_query_are_not_printed() {
        let url = BaseUrl::parse("https://me:pass@h.example/v1/?key=abc").unwrap();
        assert_eq!(format!("{url} {url:?}"), "https://h.example/v1 https://h.example/v1");
    }

    #[test]
    fn loopback_is_known_by_name_and_address() {
        let loopback = |url: &str| BaseUrl::parse(url).unwrap().is_loopback();
        assert!(loopback("http://localhost:11434/v1"));
        assert!(loopback("http://127.8.0.1/"));
        assert!(loopback("http://[::1]:80/"));
        assert!(!loopback("http://localhost.example/"));
        assert!(!loopback("http://10.0.0.1/"));
    }

    #[test]
    fn other_schemes_are_refused() {
        assert_eq!(BaseUrl::parse("notaurl"), Err(BadUrl::NotAUrl));
        assert_eq!(BaseUrl::parse("ftp://h/"), Err(BadUrl::Scheme));
    }
}
