//! The actual context window of a local model server. It was set when the server, or the model, was started; the
//! server's list of models has the model's maximum instead, or nothing.

use std::time::Duration;

use hangar_agent::model::ModelError;
use serde_json::{Value, json};

use crate::catalogue::{self, ModelInfo};
use crate::config::ProviderConfig;
use crate::facts::{self, LocalServer, is_same};
use crate::provider::Provider;

/// Time limit of the query when a session is opened. A server on this machine answers in milliseconds, or not at all.
const BOUND: Duration = Duration::from_millis(800);

/// Facts about a model from a local server, if it is one and answers at once. A model that is not loaded has no window.
pub async fn look(config: &ProviderConfig, model: &str) -> Option<ModelInfo> {
    let server = facts::host(config).local?;
    let provider = Provider::new(config.clone());
    let window =
        tokio::time::timeout(BOUND, window(&provider, server, config.bare(model))).await.ok()?.ok()??;
    let mut info = catalogue::parse_entry(config, &json!({ "id": config.bare(model) }))?;
    info.max_context_tokens = Some(window);
    Some(info)
}

/// Adds the windows that the server has its models loaded with to its list. A server that does not tell leaves the list as it
/// is.
pub(crate) async fn add_windows(provider: &Provider, server: LocalServer, models: &mut [ModelInfo]) {
    let Ok(Ok(answer)) = tokio::time::timeout(BOUND, ask(provider, server)).await else { return };
    for model in models {
        model.max_context_tokens = read(server, &answer, &model.id).or(model.max_context_tokens);
    }
}

/// The window of a model, if the server has it loaded.
pub(crate) async fn window(
    provider: &Provider,
    server: LocalServer,
    model: &str,
) -> Result<Option<u64>, ModelError> {
    Ok(read(server, &ask(provider, server).await?, model))
}

/// Asks the server for the models that it has loaded.
async fn ask(provider: &Provider, server: LocalServer) -> Result<Value, ModelError> {
    let (path, body): (&[&str], Option<Value>) = match server {
        LocalServer::Ollama => (&["api", "ps"], None),
        LocalServer::LmStudio => (&["api", "v0", "models"], None),
        LocalServer::LlamaCpp => (&["props"], None),
        LocalServer::Vllm => (&["v1", "models"], None),
    };
    provider.ask_server(path, body).await
}

/// Loads a model in Ollama, by a request without a prompt, and returns its window.
pub(crate) async fn load(provider: &Provider, model: &str) -> Result<Option<u64>, ModelError> {
    provider.ask_server(&["api", "generate"], Some(json!({ "model": model, "stream": false }))).await?;
    window(provider, LocalServer::Ollama, model).await
}

fn read(server: LocalServer, answer: &Value, model: &str) -> Option<u64> {
    let of_model = |list: &str, ids: &[&str], windows: &[&str]| {
        let entries = answer.get(list)?.as_array()?;
        let is_it = |entry: &&Value| {
            let mut names = ids.iter().filter_map(|id| entry.get(*id)?.as_str());
            names.any(|name| is_same(name, model) || name.strip_suffix(":latest") == Some(model))
        };
        let entry = entries.iter().find(is_it)?;
        windows.iter().find_map(|window| entry.get(*window)?.as_u64())
    };
    let window = match server {
        LocalServer::Ollama => of_model("models", &["name", "model"], &["context_length"]),
        LocalServer::LmStudio => of_model("data", &["id"], &["loaded_context_length"]),
        LocalServer::LlamaCpp => ["/default_generation_settings/n_ctx", "/n_ctx"]
            .iter()
            .find_map(|pointer| answer.pointer(pointer)?.as_u64()),
        LocalServer::Vllm => of_model("data", &["id"], &["max_model_len"]),
    };
    window.filter(|window| *window > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_window_is_read_as_each_server_tells_it() {
        let check = |server, answer: &str, model, expected| {
            assert_eq!(read(server, &serde_json::from_str(answer).unwrap(), model), expected, "{answer}");
        };
        let ps = r#"{"models":[{"name":"qwen3:8b","context_length":4096},{"name":"llama3:latest","context_length":8192}]}"#;
        check(LocalServer::Ollama, ps, "qwen3:8b", Some(4096));
        check(LocalServer::Ollama, ps, "llama3", Some(8192));
        check(LocalServer::Ollama, ps, "mistral", None);
        check(LocalServer::Ollama, r#"{"models":[]}"#, "qwen3:8b", None);
        let studio = r#"{"data":[{"id":"q","max_context_length":131072,"loaded_context_length":16384},{"id":"r","max_context_length":131072}]}"#;
        check(LocalServer::LmStudio, studio, "q", Some(16_384));
        check(LocalServer::LmStudio, studio, "r", None);
        check(LocalServer::LlamaCpp, r#"{"default_generation_settings":{"n_ctx":2048}}"#, "any", Some(2048));
        check(LocalServer::LlamaCpp, r#"{"n_ctx":0}"#, "any", None);
        check(
            LocalServer::Vllm,
            r#"{"data":[{"id":"Qwen/Qwen3","max_model_len":32768}]}"#,
            "Qwen/Qwen3",
            Some(32_768),
        );
    }
}
