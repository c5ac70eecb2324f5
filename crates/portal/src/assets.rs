//! The web UI: files of `web/dist` that are part of the program, or a page that says how to make them.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

#[derive(rust_embed::RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

const INDEX: &str = "index.html";

/// Shown where the program was built without the UI.
const WITHOUT_UI: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Hangar</title>\
<body style=\"font-family:sans-serif;max-width:40em;margin:4em auto;line-height:1.5\"><h1>Hangar is running</h1>\
<p>This program was built without its web UI. Run <code>cargo xtask web</code>, build again, and reload.</p>\
<p>The API works: <a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a> describes it.</p></body></html>";

/// What the page may load and do. Nothing comes from elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

pub(crate) async fn serve(uri: Uri, headers: HeaderMap) -> Response {
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
    let is_file = name.rsplit('/').next().is_some_and(|last| last.contains('.'));
    if is_file && name != INDEX {
        return StatusCode::NOT_FOUND.into_response();
    }
    // Pages of the UI are one file, which finds out by itself where it is.
    match Files::get(INDEX) {
        Some(file) => respond(INDEX, file, &headers),
        None => {
            with_headers(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], WITHOUT_UI).into_response())
        }
    }
}

fn respond(name: &str, file: rust_embed::EmbeddedFile, headers: &HeaderMap) -> Response {
    let hash: String =
        file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // Vite puts a hash into the names below `assets`, so those never change.
    let lasting = name.starts_with("assets/") && !cfg!(debug_assertions);
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
    with_headers(response)
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
