//! The vendor's own web search: the tool, its blocks when they are sent back, and the originals that they are compared
//! with.

use serde_json::{Value, json};

use super::error::invalid;
use super::messages::list;
use super::prefix::canonical;
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::scenario::WebPage;
use crate::signature::digest;

const NAME: &str = "web_search";
const RESULT: &str = "web_search_tool_result";

/// Whether the vendor may search.
pub(super) fn is_offered(body: &Value) -> bool {
    let is_search = |tool: &Value| tool["name"] == NAME && tool["type"].is_string();
    body["tool_choice"]["type"] != "none" && list(&body["tools"]).iter().any(is_search)
}

/// Checks the tool and the blocks that it left. Returns rules of the simulator that the request breaks.
pub(super) fn check(body: &Value, history: &AnswerHistory) -> Result<Vec<String>, Refusal> {
    tool(body)?;
    let mut violations = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    for (index, message) in list(&body["messages"]).iter().enumerate() {
        // A paused turn continues in the next message of the assistant.
        if let (Some((at, id)), true) = (open, message["role"] != "assistant") {
            return Err(unanswered(at, id));
        }
        for (place, block) in list(&message["content"]).iter().enumerate() {
            let path = format!("messages.{index}.content.{place}");
            let id = |name: &str| block[name].as_str().unwrap_or_default();
            match (open, block["type"].as_str().unwrap_or_default()) {
                (Some((_, asked)), RESULT) if asked == id("tool_use_id") => {
                    result_unchanged(&path, block, history)?;
                    open = None;
                }
                (_, RESULT) => return Err(unexpected(&path, id("tool_use_id"))),
                (Some((at, asked)), _) => return Err(unanswered(at, asked)),
                (None, "server_tool_use") if block["name"] == NAME => {
                    violations.extend(use_changed(&path, block, history));
                    open = Some((index, id("id")));
                }
                (None, _) => {}
            }
        }
    }
    Ok(violations)
}

fn tool(body: &Value) -> Result<(), Refusal> {
    for (index, tool) in list(&body["tools"]).iter().enumerate().filter(|(_, tool)| tool["name"] == NAME) {
        let Some(kind) = tool["type"].as_str().filter(|kind| kind.starts_with("web_search_")) else {
            continue;
        };
        if tool["max_uses"].as_i64().is_some_and(|uses| uses < 1) {
            return Err(invalid(format!("tools.{index}.{kind}.max_uses: Input should be greater than 0")));
        }
        if !tool["allowed_domains"].is_null() && !tool["blocked_domains"].is_null() {
            return Err(invalid(format!(
                "tools.{index}.{kind}: Only one of allowed_domains and blocked_domains may be specified"
            )));
        }
        if !body["output_config"]["format"].is_null() {
            return Err(invalid(
                "output_config.format: citations cannot be enabled when a format is specified",
            ));
        }
    }
    Ok(())
}

fn unanswered(index: usize, id: &str) -> Refusal {
    invalid(format!(
        "messages.{index}: `{NAME}` tool use with id `{id}` was found without a corresponding `{RESULT}` block"
    ))
}

fn unexpected(path: &str, id: &str) -> Refusal {
    invalid(format!(
        "{path}: unexpected `tool_use_id` found in `{RESULT}` blocks: {id}. Each `{RESULT}` block must have a \
         corresponding `server_tool_use` block before it."
    ))
}

/// Results are encrypted, and must be sent back unchanged.
fn result_unchanged(path: &str, block: &Value, history: &AnswerHistory) -> Result<(), Refusal> {
    match history.recall(&key(block)) {
        Some(issued) if *issued != canonical(block) => {
            Err(invalid(format!("{path}: Invalid `encrypted_content` in `{RESULT}` block")))
        }
        Some(_) | None => Ok(()),
    }
}

/// The vendor answers, but the cache and the thinking are lost.
fn use_changed(path: &str, block: &Value, history: &AnswerHistory) -> Option<String> {
    let issued = history.recall(&key(block))?;
    (*issued != canonical(block)).then(|| format!("{path} is not the search as it was made"))
}

fn key(block: &Value) -> String {
    let id = block["tool_use_id"].as_str().or(block["id"].as_str()).unwrap_or_default();
    format!("{}:{id}", block["type"].as_str().unwrap_or_default())
}

/// Remembers the blocks of a search, for requests that send them back.
pub(super) fn remember(block: &Value, history: &mut AnswerHistory) {
    if block["type"] == "server_tool_use" || block["type"] == RESULT {
        history.remember(key(block), json!(canonical(block)));
    }
}

/// A search that a paused turn ended with, and its future results.
pub(super) fn pending(body: &Value, history: &AnswerHistory) -> Value {
    let last = list(&body["messages"]).last().filter(|last| last["role"] == "assistant");
    let block = last.and_then(|last| list(&last["content"]).last());
    let id = block.filter(|block| block["type"] == "server_tool_use").and_then(|block| block["id"].as_str());
    let found = id.and_then(|id| Some(json!({"id": id, "found": history.recall(&format!("pending:{id}"))?})));
    found.unwrap_or_default()
}

pub(super) fn result(id: &str, found: &[WebPage]) -> Value {
    let page = |page: &WebPage| {
        json!({
            "type": "web_search_result", "url": page.url, "title": page.title, "page_age": null,
            "encrypted_content": digest(&["found", &page.url, &page.title]),
        })
    };
    json!({"type": RESULT, "tool_use_id": id, "content": found.iter().map(page).collect::<Vec<_>>()})
}

pub(super) fn citation(page: &WebPage) -> Value {
    json!({
        "type": "web_search_result_location", "url": page.url, "title": page.title, "cited_text": page.title,
        "encrypted_index": digest(&["index", &page.url]),
    })
}
