//! Texts of Jira: a tree of nodes in Cloud (Atlassian Document Format), plain in Data Center.

use serde_json::{Value, json};

/// Deepest node that is read.
const MAX_DEPTH: usize = 64;

/// The text of a field. Blocks are on lines of their own.
pub(super) fn text(value: &Value) -> String {
    if let Some(plain) = value.as_str() {
        return plain.replace("\r\n", "\n");
    }
    let mut out = String::new();
    append(value, &mut out, 0);
    out.trim().to_owned()
}

fn append(node: &Value, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    let attribute = |name: &str| node["attrs"][name].as_str().unwrap_or_default();
    match node["type"].as_str().unwrap_or_default() {
        "text" => out.push_str(node["text"].as_str().unwrap_or_default()),
        "hardBreak" => out.push('\n'),
        "mention" | "emoji" | "status" | "date" => out.push_str(attribute("text")),
        "inlineCard" | "blockCard" => out.push_str(attribute("url")),
        "rule" => out.push_str("---\n"),
        "listItem" => {
            out.push_str("- ");
            children(node, out, depth);
        }
        "codeBlock" => {
            out.push_str(&format!("```{}\n", attribute("language")));
            children(node, out, depth);
            out.push_str("\n```\n\n");
        }
        "heading" => {
            let level = node["attrs"]["level"].as_u64().unwrap_or(1).min(6);
            out.push_str(&"#".repeat(usize::try_from(level).unwrap_or(1)));
            out.push(' ');
            children(node, out, depth);
            out.push_str("\n\n");
        }
        "paragraph" => {
            children(node, out, depth);
            out.push_str("\n\n");
        }
        "bulletList" | "orderedList" => {
            let mut items = String::new();
            children(node, &mut items, depth);
            // The paragraphs of items need no empty lines between them.
            let lines: Vec<&str> = items.lines().filter(|line| !line.trim().is_empty()).collect();
            out.push_str(&lines.join("\n"));
            out.push_str("\n\n");
        }
        _ => children(node, out, depth),
    }
}

fn children(node: &Value, out: &mut String, depth: usize) {
    for child in node["content"].as_array().into_iter().flatten() {
        append(child, out, depth + 1);
    }
}

/// A text as a tree, with a paragraph for each part between empty lines.
pub(super) fn document(text: &str) -> Value {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    let paragraph = |part: &str| {
        let mut content: Vec<Value> = Vec::new();
        for (at, line) in part.lines().enumerate() {
            if at > 0 {
                content.push(json!({ "type": "hardBreak" }));
            }
            if !line.is_empty() {
                content.push(json!({ "type": "text", "text": line }));
            }
        }
        json!({ "type": "paragraph", "content": content })
    };
    json!({ "type": "doc", "version": 1, "content": paragraphs.map(paragraph).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_survives_the_tree() {
        let said = "One\ntwo\n\nthree";
        assert_eq!(text(&document(said)), said);
        let list = json!({ "type": "doc", "content": [
            { "type": "heading", "attrs": { "level": 2 }, "content": [{ "type": "text", "text": "T" }] },
            { "type": "bulletList", "content": [
                { "type": "listItem", "content": [{ "type": "paragraph", "content": [{ "type": "text", "text": "a" }] }] },
                { "type": "listItem", "content": [{ "type": "paragraph", "content": [{ "type": "mention", "attrs": { "text": "@b" } }] }] },
            ] },
        ] });
        assert_eq!(text(&list), "## T\n\n- a\n- @b");
    }
}
