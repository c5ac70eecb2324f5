//! The answer of a server as the answer of a tool.

use hangar_agent::model::Part;
use hangar_agent::tool::{McpContent, ToolOutcome, ToolStatus};
use serde_json::Value;

/// Outcome of a `tools/call`, from its result.
pub(crate) fn of_result(server: &str, result: &Value) -> ToolOutcome {
    let blocks: &[Value] = result["content"].as_array().map_or(&[], Vec::as_slice);
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let mut texts = Vec::new();
    let mut links = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => texts.push(text("text")),
            "image" => images.push(image(text("mimeType"), text("data"))),
            "resource" => {
                let resource = &block["resource"];
                let mime_type = resource["mimeType"].as_str().unwrap_or_default();
                match (resource["text"].as_str(), resource["blob"].as_str()) {
                    (Some(text), _) => texts.push(text),
                    (None, Some(blob)) if mime_type.starts_with("image/") => {
                        images.push(image(mime_type, blob));
                    }
                    (None, _) => links.push(resource["uri"].as_str().unwrap_or_default()),
                }
            }
            "resource_link" => links.push(text("uri")),
            _ => {}
        }
    }
    let mut text = texts.concat();
    // Servers repeat what they structured as text for clients that do not know better.
    let repeated = |value: &Value| {
        texts.iter().any(|text| serde_json::from_str::<Value>(text).ok().as_ref() == Some(value))
    };
    if let Some(value) = structured.filter(|value| !repeated(value)) {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&value.to_string());
    }
    if text.is_empty() {
        text = links.join("\n");
    }
    let failed = result["isError"].as_bool().unwrap_or(false);
    let mut outcome = if failed { failure(server, &text) } else { ToolOutcome::success(text) };
    outcome.content = Some(Box::new(McpContent { blocks: blocks.to_vec(), structured: structured.cloned() }));
    outcome.images = images;
    outcome
}

pub(crate) fn failure(server: &str, problem: &str) -> ToolOutcome {
    ToolOutcome::failure(format!("MCP server '{server}': {problem}"))
}

pub(crate) fn timeout(server: &str, problem: &str) -> ToolOutcome {
    ToolOutcome::of(ToolStatus::Timeout, format!("MCP server '{server}': {problem}"))
}

fn image(mime_type: &str, data: &str) -> Part {
    Part::Image { mime_type: mime_type.to_owned(), data: data.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: Value, text: &str, images: usize) {
        let outcome = of_result("s", &result);
        assert_eq!((outcome.text.as_str(), outcome.images.len()), (text, images));
    }

    #[test]
    fn texts_and_resources_are_told_and_images_are_shown() {
        check(
            json!({"content": [
                {"type": "text", "text": "see"},
                {"type": "image", "mimeType": "image/png", "data": "AA"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "image/gif", "blob": "AA"}},
                {"type": "resource_link", "uri": "file:///c", "name": "c"},
                {"type": "audio", "mimeType": "audio/wav", "data": "AA"}]}),
            "seeinside",
            2,
        );
    }

    #[test]
    fn links_are_told_where_there_is_nothing_else() {
        check(
            json!({"content": [{"type": "resource_link", "uri": "file:///c", "name": "c"}]}),
            "file:///c",
            0,
        );
    }

    #[test]
    fn structure_is_told_unless_the_text_repeats_it() {
        check(
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}),
            "x\n\n{\"a\":1}",
            0,
        );
        check(
            json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}}),
            "{\"a\": 1}",
            0,
        );
        check(json!({"content": [], "structuredContent": {"a": 1}}), "{\"a\":1}", 0);
    }

    #[test]
    fn an_error_names_its_server() {
        let outcome = of_result("s", &json!({"isError": true, "content": [{"type": "text", "text": "no"}]}));
        assert_eq!(outcome.status, ToolStatus::Failure);
        assert_eq!(outcome.text, "MCP server 's': no");
    }
}
