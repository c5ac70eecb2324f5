//! The web UI: the files of `pages`, which `cargo xtask web` builds from `web/`. They are part of the program.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

#[derive(rust_embed::RustEmbed)]
#[folder = "pages"]
struct Files;

const INDEX: &str = "index.html";

/// What the page may load and do. Nothing comes from elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

pub(crate) async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    // No page has such an address, and no link of ours leads there.
    if path.split('/').any(|part| part == "..") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
    // Pages of the UI are one file, which finds out by itself where it is.
    let name = if is_file { path } else { INDEX };
    // A name is looked up in the program, not opened, so it cannot lead anywhere else.
    match Files::get(name) {
        Some(file) => respond(name, file, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
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
