//! `cargo xtask catalogue FILE`: the selection of models.dev's catalogue that is embedded in `hangar-models`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

const FACTS: &str = "crates/models/src/facts/facts.toml";
const SELECTION: &str = "crates/models/src/facts/models-dev.jsonl";

/// Fields of a model that are kept.
const KEPT: [&str; 5] = ["reasoning", "reasoning_options", "modalities", "limit", "cost"];

/// Writes the selection from an `api.json` of models.dev.
pub(crate) fn write(file: &Path) -> Result<()> {
    let root = crate::root();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let facts = std::fs::read_to_string(root.join(FACTS)).with_context(|| format!("cannot read {FACTS}"))?;
    let selection =
        select(&text, &hosts(&facts)).with_context(|| format!("cannot use {}", file.display()))?;
    std::fs::write(root.join(SELECTION), &selection).with_context(|| format!("cannot write {SELECTION}"))?;
    println!("{SELECTION}: {} models, {} KB", selection.lines().count() - 1, selection.len() / 1024);
    Ok(())
}

/// The hosts that the table of facts names, each once.
fn hosts(facts: &str) -> Vec<&str> {
    let lines = facts.lines().filter_map(|line| line.strip_prefix("catalogue = \"")?.strip_suffix('"'));
    let mut hosts: Vec<&str> = lines.collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// A head with the day of the newest entry, then a line for each model that can call tools, by host and name.
fn select(api: &str, hosts: &[&str]) -> Result<String> {
    let api: Map<String, Value> = serde_json::from_str(api).context("it is not JSON as models.dev has it")?;
    let mut lines = Vec::new();
    let mut date = "";
    for host in hosts {
        let models = api.get(*host).and_then(|host| host.get("models")).and_then(Value::as_object);
        for (id, model) in models.into_iter().flatten().filter(|(_, model)| is_for_agents(model)) {
            date = date.max(model.get("last_updated").and_then(Value::as_str).unwrap_or_default());
            lines.push(line(host, id, model));
        }
    }
    if lines.is_empty() {
        bail!("it has no model of {}", hosts.join(", "));
    }
    lines.sort_unstable();
    let head = json!({ "source": "https://models.dev", "date": date });
    Ok(format!("{head}\n{}\n", lines.join("\n")))
}

/// Whether an agent can use the model: it calls tools, answers in text, and is still served.
fn is_for_agents(model: &Value) -> bool {
    let outputs = model.pointer("/modalities/output").and_then(Value::as_array);
    model.get("tool_call") == Some(&json!(true))
        && model.get("status") != Some(&json!("deprecated"))
        && outputs.is_none_or(|outputs| outputs.contains(&json!("text")))
}

fn line(host: &str, id: &str, model: &Value) -> String {
    let mut kept = Map::new();
    kept.insert("id".to_owned(), json!(format!("{host}/{id}")));
    for field in KEPT {
        if let Some(value) = model.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(Value::Object(modalities)) = kept.get_mut("modalities") {
        modalities.retain(|name, _| name == "input");
    }
    if let Some(Value::Object(cost)) = kept.get_mut("cost") {
        let has_tiers = cost.contains_key("tiers");
        cost.retain(|name, _| {
            matches!(name.as_str(), "input" | "output" | "cache_read" | "cache_write" | "tiers")
                || (name == "context_over_200k" && !has_tiers)
        });
    }
    Value::Object(kept).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = include_str!("../../crates/models/src/facts/testdata/api.json");

    #[test]
    fn the_selection_has_a_line_for_each_model_that_an_agent_can_use() {
        let selection = select(API, &["acme", "nowhere"]).unwrap();
        let lines: Vec<Value> = selection.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({ "source": "https://models.dev", "date": "2026-12-24" }));
        let ids: Vec<&str> = lines[1..].iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["acme/rocket-1", "acme/rocket-1.5", "acme/sparkler"]);
        assert!(selection.lines().skip(1).all(|line| line.starts_with(r#"{"id":""#)), "{selection}");
        assert_eq!(lines[2]["cost"]["tiers"][0]["tier"]["size"], json!(256_000));
        assert_eq!(lines[2]["cost"]["context_over_200k"], Value::Null);
        assert_eq!(lines[2]["name"], Value::Null);
    }

    #[test]
    fn a_file_without_known_hosts_is_refused() {
        assert!(select(API, &["nowhere"]).unwrap_err().to_string().contains("no model of nowhere"));
        assert!(select("[]", &["acme"]).is_err());
    }

    #[test]
    fn hosts_are_those_of_the_table() {
        assert_eq!(hosts("catalogue = \"b\"\nx = 1\ncatalogue = \"a\"\ncatalogue = \"b\"\n"), ["a", "b"]);
    }
}
