//! Events of MCP servers: logins, questions to the user and to the model, changed lists.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// A server needs a credential that the host may have.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpOauthRequired {
    pub request_id: String,
    pub server_name: String,
    pub server_url: String,
    pub reason: McpOauthReason,
    pub static_client_config: Option<McpOauthStaticClient>,
    pub www_authenticate_params: Option<McpOauthChallenge>,
    /// The protected-resource metadata as it came.
    pub resource_metadata: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpOauthReason {
    Initial,
    Refresh,
    Reauth,
    Upscope,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpOauthStaticClient {
    pub client_id: String,
    pub public_client: Option<bool>,
    /// Only `client_credentials` is said.
    pub grant_type: Option<String>,
}

/// The parameters of a `WWW-Authenticate` header.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpOauthChallenge {
    pub resource_metadata_url: Option<String>,
    pub scope: Option<String>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpOauthCompleted {
    pub request_id: String,
    /// `token` or `cancelled`.
    pub outcome: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpToolsListChanged {
    pub server_name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResourcesListChanged {
    pub server_name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptsListChanged {
    pub server_name: String,
}

/// A server asks the model (sampling).
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingRequested {
    pub request_id: String,
    pub server_name: String,
    pub mcp_request_id: Value,
    /// The request itself, for the client that decides about it.
    pub request: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingCompleted {
    pub request_id: String,
}
