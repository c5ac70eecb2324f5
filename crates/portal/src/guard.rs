//! Access control of the portal: it admits its own page and programs of the user, not pages of other sites in the
//! user's browser.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::hmac;

use crate::problem::Problem;
use crate::serve::AdmissionSlot;

/// Maximum length of a token.
const MAX_TOKEN: usize = 4096;
const COOKIE_MEANING: &[u8] = b"hangar portal cookie";

/// Whether a request may change something or start programs. Every admitted request carries it, for routes that do so
/// on a GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangePermit {
    Admitted,
    Refused,
}

impl ChangePermit {
    pub(crate) const REFUSAL: &'static str = "a GET that changes something is taken from programs of this machine and \
         from the portal's own page; use POST, or send the token as `Authorization: Bearer TOKEN`";
}

/// Access rules for all requests.
pub struct AccessGuard {
    address: SocketAddr,
    /// Names by which the portal may be called beside its addresses.
    names: Vec<String>,
    token: Option<Token>,
    /// A second token for other processes of the same user, which find it in a file of theirs.
    local: Option<Token>,
}

/// Kept as a key, so that it cannot be printed.
struct Token {
    key: hmac::Key,
    /// MAC of the right token under the key of this process.
    expected: hmac::Tag,
    checking: hmac::Key,
    cookie: String,
}

impl AccessGuard {
    pub fn new(address: SocketAddr, names: Vec<String>, token: Option<String>) -> Self {
        Self { address, names, token: token.map(|token| Token::new(&token)), local: None }
    }

    /// Accepts a second token, where one is needed.
    #[must_use]
    pub fn with_local_token(self, token: &str) -> Self {
        Self { local: self.token.is_some().then(|| Token::new(token)), ..self }
    }

    pub fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Compares a text with the token in constant time.
    pub fn is_token(&self, text: &str) -> bool {
        [&self.token, &self.local].into_iter().flatten().any(|token| token.matches(text))
    }

    /// The cookie for who has shown the token. It is not the token.
    pub fn cookie(&self) -> Option<String> {
        let token = self.token.as_ref()?;
        Some(format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), token.cookie))
    }

    pub fn no_cookie(&self) -> String {
        format!("{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0", self.cookie_name())
    }

    /// Browsers send cookies to all ports of a host, so portals tell theirs apart by name.
    fn cookie_name(&self) -> String {
        format!("hangar_portal_{}", self.address.port())
    }

    /// Whether a request carries the token in a header, which no page can make a browser add.
    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let bearer = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        bearer.is_some_and(|bearer| self.is_token(bearer.trim()))
    }

    pub fn is_authenticated(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        if self.has_bearer(headers) {
            return true;
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| key == name && token.is_cookie(value))
    }

    /// Checks the host and the origin of a request.
    fn admits(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let hosts = hosts(uri, headers);
        if hosts.is_empty() || !hosts.iter().all(|host| self.is_our_name(host)) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "wrong_host",
                "the portal is not known by the name in the Host header; open it by its address, or start it with \
                 --allow-host NAME",
            ));
        }
        if !uri.path().starts_with("/api") && uri.path() != "/metrics" {
            return Ok(());
        }
        let foreign = || {
            Problem::new(
                StatusCode::FORBIDDEN,
                "cross_origin",
                "requests of other pages are refused; use the page that the portal serves, or a program",
            )
        };
        if !headers.get_all(header::ORIGIN).iter().all(|origin| is_own(origin, &hosts)) {
            return Err(foreign());
        }
        let refers_elsewhere = || !headers.get_all(header::REFERER).iter().all(|page| is_own(page, &hosts));
        match site(headers) {
            Some(b"same-origin") => Ok(()),
            // Browsers of old say no more than which page a request is from.
            None if !reads(method) && refers_elsewhere() => Err(foreign()),
            None => Ok(()),
            // The address bar.
            Some(b"none") if reads(method) => Ok(()),
            Some(_) => Err(foreign()),
        }
    }

    /// Whether an admitted GET may change something.
    ///
    /// Browsers send no `Origin` with the GET of an image, and `Sec-Fetch-Site` only to loopback names and over TLS. A
    /// portal under another name cannot tell such a request from that of a program.
    fn changes(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> ChangePermit {
        let hosts = hosts(uri, headers);
        let mut pages = headers.get_all(header::REFERER).iter().peekable();
        let is_browser = text(headers, header::USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
        let may = if !reads(method) || self.has_bearer(headers) || site(headers) == Some(b"same-origin") {
            true
        } else if pages.peek().is_some() {
            pages.all(|page| is_own(page, &hosts))
        } else {
            hosts.iter().all(|host| is_loopback(host)) && (site(headers).is_some() || !is_browser)
        };
        if may { ChangePermit::Admitted } else { ChangePermit::Refused }
    }

    /// Whether a host name is ours; another site may point other names here.
    fn is_our_name(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        if port.is_some_and(|port| port != self.address.port()) && self.address.ip().is_loopback() {
            return self.names.iter().any(|known| known.eq_ignore_ascii_case(host));
        }
        if self.names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return true;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            // An address cannot be pointed elsewhere.
            Ok(address) => address.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// Hosts that a request names. One that is unreadable or repeated does not match either.
fn hosts<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Vec<&'a str> {
    let named = headers.get_all(header::HOST).iter().map(|value| value.to_str().unwrap_or_default());
    named.chain(uri.authority().map(axum::http::uri::Authority::as_str)).collect()
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a browser visits the address: from its address bar, by a link, or ahead of time.
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    let mode = headers.get("sec-fetch-mode").map(HeaderValue::as_bytes);
    site(headers) == Some(b"none") || mode == Some(b"navigate")
}

/// Site of the page that a request is from, as the browser reports it.
fn site(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get("sec-fetch-site").map(HeaderValue::as_bytes)
}

/// Whether an origin, or the address of a page, is at one of these hosts.
fn is_own(page: &HeaderValue, hosts: &[&str]) -> bool {
    let page = page.to_str().ok().and_then(|page| page.split_once("://"));
    let host = page.map(|(_, rest)| rest.split_once('/').map_or(rest, |(host, _)| host));
    host.is_some_and(|host| hosts.iter().any(|known| host.eq_ignore_ascii_case(known)))
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether a host always means this machine.
fn is_loopback(host: &str) -> bool {
    let (name, _) = split_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && !name.ends_with(':') && port.parse::<u16>().is_ok() => {
            (name, port.parse().ok())
        }
        _ => (host, None),
    }
}

impl Token {
    fn new(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        let checking = hmac::Key::new(hmac::HMAC_SHA256, uuid::Uuid::new_v4().as_bytes());
        let expected = hmac::sign(&checking, token.as_bytes());
        let cookie = hmac::sign(&key, COOKIE_MEANING);
        let cookie = cookie.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { key, expected, checking, cookie }
    }

    fn matches(&self, text: &str) -> bool {
        text.len() <= MAX_TOKEN
            && hmac::verify(&self.checking, text.as_bytes(), self.expected.as_ref()).is_ok()
    }

    fn is_cookie(&self, text: &str) -> bool {
        let bytes: Option<Vec<u8>> = (0..text.len() / 2)
            .map(|at| text.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect();
        text.len() == self.cookie.len()
            && bytes.is_some_and(|bytes| hmac::verify(&self.key, COOKIE_MEANING, &bytes).is_ok())
    }
}

/// Stands before all routes.
pub(crate) async fn check(State(app): State<crate::api::App>, mut request: Request, next: Next) -> Response {
    let guard = &app.guard;
    if let Err(problem) = guard.admits(request.method(), request.uri(), request.headers()) {
        return problem.into_response();
    }
    let path = request.uri().path();
    // Metrics name projects and accounts. Whether the portal lives is no secret.
    let guarded = path.starts_with("/api") || path == "/metrics";
    let open = !guarded
        || matches!(path, "/api/v1/meta" | "/api/v1/login")
        // A signature takes the place of the token there.
        || (path.starts_with("/api/v1/hooks/") && request.method() == Method::POST);
    let authenticated = guard.is_authenticated(request.headers());
    if !open && !authenticated {
        let problem = Problem::new(
            StatusCode::UNAUTHORIZED,
            "token_required",
            "the portal needs its token: log in, or send it as `Authorization: Bearer TOKEN`",
        );
        return problem.into_response();
    }
    if authenticated && let Some(place) = request.extensions().get::<AdmissionSlot>() {
        place.admit();
    }
    let changes = guard.changes(request.method(), request.uri(), request.headers());
    request.extensions_mut().insert(changes);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, token: Option<&str>) -> AccessGuard {
        AccessGuard::new(address.parse().unwrap(), vec!["portal.test".to_owned()], token.map(str::to_owned))
    }

    #[track_caller]
    fn check(address: &str, method: Method, headers: &[(&'static str, &str)], expected: Result<(), &str>) {
        check_at("/api/v1/sessions", address, method, headers, expected);
    }

    #[track_caller]
    fn check_at(
        uri: &str,
        address: &str,
        method: Method,
        headers: &[(&'static str, &str)],
        expected: Result<(), &str>,
    ) {
        let map = map(headers);
        let admitted = guard(address, None).admits(&method, &uri.parse().unwrap(), &map);
        let code = admitted.map_err(|problem| serde_json::to_value(&problem).unwrap()["code"].clone());
        assert_eq!(code.map_err(|code| code.as_str().unwrap().to_owned()), expected.map_err(str::to_owned));
    }

    fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // As they come over the wire: a byte for each character.
            let bytes: Vec<u8> = value.chars().map(|letter| letter as u8).collect();
            map.append(*name, HeaderValue::from_bytes(&bytes).unwrap());
        }
        map
    }

    #[track_caller]
    fn check_change(method: Method, headers: &[(&'static str, &str)], expected: ChangePermit) {
        let guard = guard(LOOPBACK, Some("secret"));
        assert_eq!(
            guard.changes(&method, &"/api/stop".parse().unwrap(), &map(headers)),
            expected,
            "{headers:?}"
        );
    }

    const LOOPBACK: &str = "127.0.0.1:8888";

    const AGENT: (&str, &str) = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");

    #[test]
    fn a_get_that_changes_something_is_a_program_s_on_this_machine_or_the_page_s() {
        for host in ["127.0.0.1:8888", "localhost:8888", "[::1]:8888"] {
            let host = ("host", host);
            check_change(Method::GET, &[host], ChangePermit::Admitted);
            check_change(Method::GET, &[host, ("user-agent", "curl/8.5.0")], ChangePermit::Admitted);
            check_change(Method::GET, &[host, AGENT, ("sec-fetch-site", "none")], ChangePermit::Admitted);
            check_change(Method::GET, &[host, AGENT], ChangePermit::Refused);
            check_change(Method::GET, &[host, ("referer", "http://evil.example/a")], ChangePermit::Refused);
        }
        let named = ("host", "portal.test");
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            check_change(method, &[named], ChangePermit::Refused);
        }
        check_change(Method::GET, &[named, AGENT, ("sec-fetch-site", "none")], ChangePermit::Refused);
        check_change(Method::GET, &[named, AGENT, ("sec-fetch-site", "same-origin")], ChangePermit::Admitted);
        check_change(
            Method::GET,
            &[named, AGENT, ("referer", "http://portal.test/runs")],
            ChangePermit::Admitted,
        );
        check_change(Method::GET, &[named, ("referer", "http://portal.test.evil/")], ChangePermit::Refused);
        check_change(
            Method::GET,
            &[named, ("referer", "http://evil/http://portal.test/")],
            ChangePermit::Refused,
        );
        check_change(Method::GET, &[named, ("authorization", "Bearer secret")], ChangePermit::Admitted);
        check_change(Method::GET, &[named, ("authorization", "Bearer x")], ChangePermit::Refused);
        check_change(Method::POST, &[named], ChangePermit::Admitted);
    }

    #[test]
    fn a_browser_that_says_only_which_page_it_shows_is_believed() {
        let host = ("host", "localhost:8888");
        let other = ("referer", "http://evil.example/page");
        check(LOOPBACK, Method::POST, &[host, other], Err("cross_origin"));
        check(LOOPBACK, Method::POST, &[host, ("referer", "http://localhost:8888/runs")], Ok(()));
        check(LOOPBACK, Method::GET, &[host, other], Ok(()));
    }

    #[test]
    fn the_portal_answers_to_its_own_names() {
        for host in ["127.0.0.1:8888", "localhost:8888", "[::1]:8888", "LOCALHOST:8888", "portal.test"] {
            check(LOOPBACK, Method::GET, &[("host", host)], Ok(()));
        }
    }

    #[test]
    fn a_name_that_was_pointed_here_is_refused() {
        for host in ["evil.example:8888", "evil.example", "localhost.evil.example:8888", "", "10.0.0.1:8888"]
        {
            check(LOOPBACK, Method::GET, &[("host", host)], Err("wrong_host"));
        }
    }

    #[test]
    fn on_all_addresses_any_address_is_ours_and_any_name_is_not() {
        check("0.0.0.0:8888", Method::GET, &[("host", "10.0.0.1:8888")], Ok(()));
        check("0.0.0.0:8888", Method::GET, &[("host", "evil.example:8888")], Err("wrong_host"));
    }

    #[test]
    fn pages_of_others_are_refused() {
        let host = ("host", "localhost:8888");
        for other in ["http://evil.example", "http://localhost:9999", "null"] {
            check(LOOPBACK, Method::POST, &[host, ("origin", other)], Err("cross_origin"));
        }
        check(LOOPBACK, Method::POST, &[host, ("origin", "http://localhost:8888")], Ok(()));
        for site in ["cross-site", "same-site"] {
            check(LOOPBACK, Method::POST, &[host, ("sec-fetch-site", site)], Err("cross_origin"));
            check(LOOPBACK, Method::GET, &[host, ("sec-fetch-site", site)], Err("cross_origin"));
        }
        check(LOOPBACK, Method::POST, &[host, ("sec-fetch-site", "none")], Err("cross_origin"));
        check(LOOPBACK, Method::GET, &[host, ("sec-fetch-site", "none")], Ok(()));
    }

    #[test]
    fn what_is_said_twice_has_to_be_right_twice() {
        let (ours, theirs) = (("host", "localhost:8888"), ("host", "evil.example"));
        check(LOOPBACK, Method::GET, &[ours, theirs], Err("wrong_host"));
        check(LOOPBACK, Method::GET, &[theirs, ours], Err("wrong_host"));
        let whole = |host: &str| format!("http://{host}/api/v1/meta");
        check_at(&whole("evil.example"), LOOPBACK, Method::GET, &[ours], Err("wrong_host"));
        check_at(&whole("localhost:8888"), LOOPBACK, Method::GET, &[ours], Ok(()));
        check_at(&whole("localhost:8888"), LOOPBACK, Method::GET, &[], Ok(()));
        let (own, other) = (("origin", "http://localhost:8888"), ("origin", "http://evil.example"));
        check(LOOPBACK, Method::POST, &[ours, own, other], Err("cross_origin"));
        check(LOOPBACK, Method::POST, &[ours, own], Ok(()));
    }

    #[test]
    fn what_cannot_be_read_is_not_ours() {
        let host = ("host", "localhost:8888");
        check(LOOPBACK, Method::GET, &[("host", "\u{ff}")], Err("wrong_host"));
        check(LOOPBACK, Method::POST, &[host, ("origin", "http://\u{ff}")], Err("cross_origin"));
        check(LOOPBACK, Method::POST, &[host, ("sec-fetch-site", "\u{ff}")], Err("cross_origin"));
    }

    #[test]
    fn the_token_opens_and_its_cookie_does_too() {
        let guard = guard(LOOPBACK, Some("secret"));
        let with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            guard.is_authenticated(&headers)
        };
        assert!(with("authorization", "Bearer secret"));
        assert!(!with("authorization", "Bearer secre"));
        assert!(!with("authorization", "secret"));
        let cookie = guard.cookie().unwrap();
        assert!(!cookie.contains("secret"));
        let pair = cookie.split(';').next().unwrap();
        assert!(with("cookie", &format!("a=b; {pair}")));
        assert!(!with("cookie", &pair.replace('=', "=0")));
        assert!(!with("cookie", "hangar_portal_8888=secret"));
        assert!(!guard.is_authenticated(&HeaderMap::new()));
    }
}
