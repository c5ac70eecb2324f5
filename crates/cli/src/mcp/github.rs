//! GitHub's own MCP server, for those who ask for it.

use hangar_mcp::{ConfigSource, Layer};
use serde_json::{Map, json};

use crate::providers::{COPILOT_URL, github_login};
use crate::settings::Settings;

const NAME: &str = "github-mcp-server";

/// Tools of the server that are enabled beyond the defaults.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GitHubServer {
    pub(crate) enable_all_tools: bool,
    pub(crate) additional_toolsets: Vec<String>,
    pub(crate) additional_tools: Vec<String>,
    pub(crate) enable_insiders_mode: bool,
}

impl GitHubServer {
    /// Its configuration; none without a login.
    pub(super) fn layer(&self, settings: &Settings) -> Option<Layer> {
        if settings.flag("COPILOT_OFFLINE") {
            return None;
        }
        let token = github_login(settings, true)?.token;
        let base = settings.var("COPILOT_API_URL").unwrap_or(COPILOT_URL).trim_end_matches('/');
        let all = self.enable_all_tools || self.additional_toolsets.iter().any(|set| set == "all");
        let some = !self.additional_toolsets.is_empty() || !self.additional_tools.is_empty();
        // Tools that are requested by name may include ones that write.
        let path = if all || some { "mcp" } else { "mcp/readonly" };
        let mut headers = Map::new();
        headers.insert("Authorization".to_owned(), json!(format!("Bearer {token}")));
        if all {
            headers.insert("X-MCP-Toolsets".to_owned(), json!("all"));
        } else {
            if !self.additional_toolsets.is_empty() {
                headers.insert("X-MCP-Toolsets".to_owned(), json!(self.additional_toolsets.join(",")));
            }
            if !self.additional_tools.is_empty() {
                headers.insert("X-MCP-Tools".to_owned(), json!(self.additional_tools.join(",")));
            }
        }
        if self.enable_insiders_mode {
            headers.insert("X-MCP-Insiders".to_owned(), json!("true"));
        }
        let config = json!({ "type": "http", "url": format!("{base}/{path}"), "headers": headers });
        let mut servers = Map::new();
        servers.insert(NAME.to_owned(), config);
        Some(Layer { source: ConfigSource::Builtin, servers })
    }
}
