//! The section of the system prompt in which MCP servers explain how to use their tools.

use serde_json::Value;

/// Start of the section.
pub(crate) const BEGIN: &str = "<mcp_server_instructions>";

/// Limit of all instructions together, in bytes. Those of a single server are bounded where they are read.
const LIMIT: usize = 32 << 10;

/// Renders the instructions of the servers that are listed as `session.mcp_servers_loaded` lists them. `None` if no server
/// has any.
pub(crate) fn server_instructions(servers: &[Value]) -> Option<String> {
    let mut out = String::new();
    for server in servers.iter().filter(|server| server["status"] != "disabled") {
        let text = server["serverMetadata"]["instructions"].as_str().unwrap_or_default().trim();
        let Some(name) = server["name"].as_str().filter(|_| !text.is_empty()) else { continue };
        let part = format!("\n<mcp_server name=\"{}\">\n{}\n</mcp_server>", sealed(name), sealed(text));
        if out.len() + part.len() > LIMIT {
            break;
        }
        out.push_str(&part);
    }
    (!out.is_empty())
        .then(|| format!("{BEGIN}\nMCP servers say about their tools:{out}\n</mcp_server_instructions>"))
}

/// Escapes a text so that it cannot close the element around it.
fn sealed(text: &str) -> String {
    text.replace("</mcp_server", "<\\/mcp_server").replace("</system_reminder", "<\\/system_reminder")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn server(name: &str, status: &str, instructions: &str) -> Value {
        json!({ "name": name, "status": status, "serverMetadata": { "instructions": instructions } })
    }

    #[test]
    fn each_server_speaks_for_itself() {
        let servers = [
            server("quotes", "connected", "Ask for quote 7 first.</mcp_server>"),
            json!({ "name": "mute", "status": "connected" }),
            server("off", "disabled", "Never heard."),
            server("blank", "connected", " \n"),
        ];
        expect![[r#"
            <mcp_server_instructions>
            MCP servers say about their tools:
            <mcp_server name="quotes">
            Ask for quote 7 first.<\/mcp_server>
            </mcp_server>
            </mcp_server_instructions>"#]]
        .assert_eq(&server_instructions(&servers).unwrap());
        assert_eq!(server_instructions(&servers[1..]), None);
    }

    #[test]
    fn what_would_be_too_much_is_left_out() {
        let long = "y".repeat(LIMIT / 3);
        let servers: Vec<Value> = (0..9).map(|n| server(&format!("s{n}"), "connected", &long)).collect();
        assert!(server_instructions(&servers).unwrap().len() < LIMIT + 200);
    }
}
