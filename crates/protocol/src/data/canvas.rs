//! Canvases, which clients declare and hosts show, and remote control of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// A canvas that a client provides.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasDeclaration {
    #[serde(rename = "canvasId", alias = "id")]
    pub id: String,
    pub display_name: String,
    pub description: String,
    pub icon: Option<String>,
    /// JSON Schema of the input.
    pub input_schema: Option<Value>,
    pub actions: Option<Vec<CanvasAction>>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasAction {
    pub name: String,
    pub description: Option<String>,
    pub input_schema: Option<Value>,
}

/// A declared canvas with the connection or extension that provides it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedCanvas {
    pub extension_id: String,
    pub extension_name: Option<String>,
    #[serde(flatten)]
    pub declaration: CanvasDeclaration,
}

/// An instance of a canvas was opened or changed.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasOpened {
    pub instance_id: String,
    pub extension_id: String,
    pub extension_name: Option<String>,
    pub canvas_id: String,
    pub icon: Option<String>,
    pub title: Option<String>,
    pub status: Option<String>,
    pub url: Option<String>,
    pub input: Option<Value>,
}

/// The durable part of an open instance: its address holds as long as its provider.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasRecorded {
    pub instance_id: String,
    pub extension_id: String,
    pub extension_name: Option<String>,
    pub canvas_id: String,
    pub title: Option<String>,
    pub input: Option<Value>,
}

macro_rules! instance_event {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            pub instance_id: String,
            pub extension_id: String,
            pub canvas_id: String,
        }
    };
}

instance_event! {
    /// An instance of a canvas was closed.
    CanvasClosed
}
instance_event! {
    /// The same in the log.
    CanvasRemoved
}
instance_event! {
    /// The provider of an open instance is gone for now.
    CanvasUnavailable
}

/// The canvases that can be opened, after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanvasRegistryChanged {
    pub canvases: Vec<OfferedCanvas>,
}

/// Whether others may steer the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteSteerableChanged {
    pub remote_steerable: bool,
}
