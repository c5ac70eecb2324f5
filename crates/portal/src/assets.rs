//! The web UI: the files of `pages`, which `cargo xtask web` builds from `web/`. They are part of the program.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::api::App;
use crate::old_addresses;
use crate::problem::Problem;

#[derive(rust_embed::RustEmbed)]
#[folder = "pages"]
struct Files;

const INDEX: &str = "index.html";
const PAGES: [&str; 14] = [
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
    // Names in the program are looked up, not opened, so a path cannot lead anywhere else; in a build that reads them from
    // the disk it could.
    if path.split('/').any(|part| part == ".." || part.contains('\\') || part.contains('\0')) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let name = if path.is_empty() { INDEX } else { path };
    if let Some(file) = Files::get(name) {
        return respond(name, file, &headers);
    }
    if !is_page(name) && !wants_page(&headers) {
        return Problem::new(StatusCode::NOT_FOUND, "route_not_found", format!("there is no /{name}"))
            .into_response();
    }
    // Pages of the UI are one file, which finds out by itself where it is.
    let mut response = match Files::get(INDEX) {
        Some(file) => respond(INDEX, file, &headers),
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

fn respond(name: &str, file: rust_embed::EmbeddedFile, headers: &HeaderMap) -> Response {
    let hash: String =
        file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // Vite puts a hash into the names below `assets`, so those never change.
    let lasting = name.starts_with("assets/");
    let cache = if lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = file.metadata.mimetype().to_owned();
        let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind };
        let mut response = file.data.into_owned().into_response();
        if let Ok(kind) = HeaderValue::from_str(&kind) {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response
    };
    let out = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        out.insert(header::ETAG, tag);
    }
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    out.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

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
