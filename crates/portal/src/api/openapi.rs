//! The description of the API. It is committed, and part of the program as it is there: the code that makes it from the types would be
//! half a megabyte. A test generates it.

use std::io::Read as _;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use super::Of;

#[cfg(test)]
mod generate;

/// `docs/openapi.json`, compressed by `build.rs`.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

pub(super) async fn document(State(app): Of) -> Result<Json<Value>, StatusCode> {
    served(app.guard.needs_token()).map(Json).ok_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The description, for a portal that wants its token shown or has none.
fn served(needs_token: bool) -> Option<Value> {
    let mut text = Vec::new();
    GzDecoder::new(PACKED).read_to_end(&mut text).ok()?;
    let mut document: Value = serde_json::from_slice(&text).ok()?;
    if !needs_token {
        document["security"] = json!([]);
        let paths = document["paths"].as_object_mut()?.values_mut();
        for operation in paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
            operation.as_object_mut()?.shift_remove("security");
        }
    }
    Some(document)
}
