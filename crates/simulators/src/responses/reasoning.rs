//! Reasoning that is sent back: encrypted content unchanged, followed by the item that it led to.

use serde_json::Value;

use super::Gpt;
use super::error::{invalid, refuse};
use super::items::{kind, message_key, not_stored, search_key};
use super::tools::list;
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::signature::{Seal, digest};

/// Indexes of reasoning that the model will not see.
pub(super) fn check(
    model: &Gpt,
    body: &Value,
    account: &str,
    history: &AnswerHistory,
) -> Result<Vec<usize>, Refusal> {
    let items = list(&body["input"]);
    let mut dropped = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if kind(item) == "reasoning" {
            if !is_valid(model, item, account)? {
                dropped.push(index);
            }
            followed(item, items.get(index + 1), history)?;
        } else {
            preceded(item, index.checked_sub(1).and_then(|before| items.get(before)), history)?;
        }
    }
    Ok(dropped)
}

/// Whether the model can read a reasoning item.
fn is_valid(model: &Gpt, item: &Value, account: &str) -> Result<bool, Refusal> {
    let id = item["id"].as_str();
    let Some(encrypted) = item["encrypted_content"].as_str() else {
        return Err(not_stored(id.unwrap_or("rs_unknown")));
    };
    let unverified = |reason: &str| {
        let head: String = encrypted.chars().take(4).collect();
        let message = format!("The encrypted content {head}... could not be verified. Reason: {reason}");
        invalid(message, "input", "invalid_encrypted_content")
    };
    let Some(seal) = Seal::open(encrypted) else {
        return Err(unverified("Encrypted content could not be decrypted or parsed."));
    };
    if seal.account != account {
        return Err(unverified("Encrypted content organization_id did not match the target organization."));
    }
    if seal.model != model.id {
        return match id {
            Some(_) => Err(unverified("Encrypted content belongs to an item of another model.")),
            None => Ok(false),
        };
    }
    if seal.content != summary_hash(item) {
        return Err(unverified("Encrypted content item_id did not match the target item."));
    }
    Ok(true)
}

/// Hash of the visible content of a reasoning item.
pub(super) fn summary_hash(item: &Value) -> String {
    let parts: Vec<_> = list(&item["summary"]).iter().filter_map(|part| part["text"].as_str()).collect();
    digest(&["summary", &parts.join("\n")])
}

/// Looks up a reasoning item by its content: its id may be missing.
pub(super) fn reasoning_key(item: &Value) -> String {
    format!("reasoning:{}", digest(&[item["encrypted_content"].as_str().unwrap_or_default()]))
}

/// A key for an item that its copy in a later request has too.
pub(super) fn identity(item: &Value) -> String {
    match kind(item) {
        "message" => message_key(item),
        "reasoning" => reasoning_key(item),
        "web_search_call" => search_key(item["id"].as_str().unwrap_or_default()),
        _ => format!("call:{}", item["call_id"].as_str().unwrap_or_default()),
    }
}

fn followed(item: &Value, next: Option<&Value>, history: &AnswerHistory) -> Result<(), Refusal> {
    let Some(issued) = history.recall(&reasoning_key(item)) else { return Ok(()) };
    let Some(follower) = issued["next"].as_str() else { return Ok(()) };
    if next.is_some_and(|next| identity(next) == follower) {
        return Ok(());
    }
    let id = issued["id"].as_str().unwrap_or_default();
    let message =
        format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
    Err(refuse(400, message, Some("input"), None))
}

/// An item with an id must be sent with the reasoning that led to it.
fn preceded(item: &Value, before: Option<&Value>, history: &AnswerHistory) -> Result<(), Refusal> {
    let Some(id) = item["id"].as_str() else { return Ok(()) };
    let Some(issued) = history.recall(&format!("item:{id}")) else { return Ok(()) };
    let Some(reasoning) = issued["before"].as_str() else { return Ok(()) };
    if before.is_some_and(|before| identity(before) == reasoning) {
        return Ok(());
    }
    let needed = issued["reasoning"].as_str().unwrap_or_default();
    let message = format!(
        "Item '{id}' of type '{}' was provided without its required 'reasoning' item: '{needed}'.",
        kind(item)
    );
    Err(refuse(400, message, Some("input"), None))
}
