//! The web UI: the files of `pages`, which `cargo xtask web` builds from `web/`. They are part of the program.

use std::io::Read as _;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::api::App;
use crate::old_addresses;
use crate::problem::Problem;

/// A file of `pages`, as `build.rs` packs it.
struct File {
    name: &'static str,
    /// Entity tag, in quotes.
    tag: &'static str,
    /// Content, in the format of gzip.
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

const INDEX: &str = "index.html";
const PAGES: [&str; 15] = [
    INDEX,
    "sessions",
    "new",
    "jobs",
    "runs",
    "approvals",
    "queue",
    "issues",
    "inbox",
    "costs",
    "search",
    "memory",
    "runtimes",
    "fleet",
    "settings",
];
/// Pages of one session, run or workflow, by its id.
const PAGES_OF_ONE: [&str; 3] = ["sessions", "runs", "workflows"];

/// Content security policy of the pages. Nothing is loaded from other hosts; canvases of this machine are shown in frames.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
frame-src http://127.0.0.1:* http://localhost:*; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

pub(crate) async fn serve(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    if let Some(location) = old_addresses::location(&app, &uri, &headers) {
        return Redirect::temporary(&location).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    // Names are looked up in the program, not opened, so a path cannot lead anywhere else.
    let name = if path.is_empty() { INDEX } else { path };
    if let Some(file) = find(name) {
        return respond(file, &headers);
    }
    if !is_page(name) && !wants_page(&headers) {
        return Problem::new(StatusCode::NOT_FOUND, "route_not_found", format!("there is no /{name}"))
            .into_response();
    }
    // Pages of the UI are one file, which finds out by itself where it is.
    let mut response = match find(INDEX) {
        Some(file) => respond(file, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    };
    if !is_page(name) {
        // The page tells people, and the status tells programs.
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// Whether a path is a page of the UI; matches `parse` of `web/src/router.ts`.
fn is_page(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments[..] {
        [] => true,
        [page] => PAGES.contains(&page),
        [page, _] => PAGES_OF_ONE.contains(&page),
        ["issues", _, _] => true,
        [..] => false,
    }
}

/// Whether a browser requests a document to show, not a file that a page uses.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

fn respond(file: &'static File, headers: &HeaderMap) -> Response {
    let known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == file.tag.as_bytes());
    // Vite puts a hash into the names below `assets`, so those never change.
    let lasting = file.name.starts_with("assets/");
    let cache = if lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else if accepts_gzip(headers) {
        ([(header::CONTENT_TYPE, kind(file.name)), (header::CONTENT_ENCODING, "gzip")], file.packed)
            .into_response()
    } else {
        let mut content = Vec::new();
        match flate2::read::GzDecoder::new(file.packed).read_to_end(&mut content) {
            Ok(_) => ([(header::CONTENT_TYPE, kind(file.name))], content).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    let out = response.headers_mut();
    out.insert(header::ETAG, HeaderValue::from_static(file.tag));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    out.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Whether a client takes gzip. One that says anything about its quality gets the plain file.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|coding| coding.trim() == "gzip"))
}

/// Media type of a file. Vite makes no others.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "png")) => "image/png",
        Some((_, "woff2")) => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    /// Headers and body that a client gets for a file.
    async fn get(file: &'static File, asked: &[(header::HeaderName, &'static str)]) -> (HeaderMap, Vec<u8>) {
        let asked = asked.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let response = respond(file, &asked.collect());
        let headers = response.headers().clone();
        (headers, to_bytes(response.into_body(), 1 << 24).await.unwrap().to_vec())
    }

    #[tokio::test]
    async fn every_file_is_served_as_it_is_or_packed_to_those_who_take_gzip() {
        let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("pages");
        assert!(FILES.len() > 3);
        for file in FILES {
            let content = std::fs::read(pages.join(file.name)).unwrap();
            let (headers, plain) = get(file, &[]).await;
            assert!(plain == content, "{}", file.name);
            assert!(!headers.contains_key(header::CONTENT_ENCODING), "{headers:?}");
            assert_ne!(headers[header::CONTENT_TYPE], "application/octet-stream", "{}", file.name);
            let (headers, packed) = get(file, &[(header::ACCEPT_ENCODING, "br, gzip")]).await;
            assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
            assert_eq!(headers[header::VARY], "accept-encoding");
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == content, "{}", file.name);
            let (_, refused) = get(file, &[(header::ACCEPT_ENCODING, "gzip;q=0")]).await;
            assert!(refused == content, "{}", file.name);
            let (_, known) = get(file, &[(header::IF_NONE_MATCH, file.tag)]).await;
            assert!(known.is_empty(), "{}", file.name);
        }
    }

    #[test]
    fn pages_are_those_of_the_ui() {
        let router = include_str!("../../../web/src/router.ts");
        let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
        let lines = || router.lines().map(str::trim);
        let pages: Vec<String> = lines().filter(|line| line.starts_with("case \"")).map(quoted).collect();
        let of_one: Vec<String> =
            lines().filter(|line| line.starts_with("if (first === ")).map(quoted).collect();
        let sorted = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort();
            names
        };
        let sorted_too = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(&PAGES), sorted_too(pages));
        assert_eq!(sorted(&PAGES_OF_ONE), sorted_too(of_one));
    }

    #[test]
    fn what_is_no_page_is_none() {
        for path in
            ["", "sessions", "sessions/a", "runs/b/", "new", "index.html", "issues/w/i", "workflows/w"]
        {
            assert!(is_page(path), "{path}");
        }
        for path in ["metrics", "livez", "readyz", "sessions/a/b", "jobs/x", "assets/gone.js", "favicon.ico"]
        {
            assert!(!is_page(path), "{path}");
        }
    }
}
