use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};

use super::*;
use crate::base_url::BaseUrl;
use crate::config::WireApi;

fn config(kind: ProviderKind) -> ProviderConfig {
    ProviderConfig::new("p", kind, BaseUrl::parse("http://127.0.0.1:1").unwrap())
}

fn check(kind: ProviderKind, body: &str, expected: Expect) {
    let config = config(kind);
    let shown: Vec<String> = match ListPage::parse(body) {
        Ok(page) => page
            .models
            .iter()
            .filter_map(|model| parse_entry(&config, model))
            .map(|info| show(&info))
            .collect(),
        Err(error) => vec![error.message],
    };
    expected.assert_eq(&shown.join("\n"));
}

fn show(info: &ModelInfo) -> String {
    let ModelInfo { id, name, max_prompt_tokens, max_output_tokens, max_context_tokens, .. } = info;
    let ModelInfo { vision, tools, efforts, endpoints, multiplier, .. } = info;
    format!(
        "{id} {name:?} {:?} vision {vision:?} tools {tools:?} {efforts:?} {endpoints:?} {multiplier:?}",
        (max_prompt_tokens, max_output_tokens, max_context_tokens)
    )
}

const OPENAI: ProviderKind = ProviderKind::OpenAi { wire: WireApi::Completions };

#[test]
fn compatible_servers_say_what_they_know() {
    check(
        OPENAI,
        r#"{"object":"list","data":[
            {"id":"gpt-5","object":"model","created":1,"owned_by":"openai"},
            {"id":"qwen","object":"model","max_model_len":32768},
            {"id":"llama.gguf","meta":{"n_ctx":8192}},
            {"id":"a/b","name":"B","context_length":200000,"top_provider":{"max_completion_tokens":64000},"architecture":{"input_modalities":["text","image"]},"supported_parameters":["tools"]},
            {"object":"nameless"}]}"#,
        expect![[r#"
            gpt-5 None (None, None, None) vision None tools None None None None
            qwen None (None, None, Some(32768)) vision None tools None None None None
            llama.gguf None (None, None, Some(8192)) vision None tools None None None None
            a/b Some("B") (None, Some(64000), Some(200000)) vision Some(true) tools Some(true) None None None"#]],
    );
}

#[test]
fn github_s_list_says_whose_a_model_is_and_whether_the_account_may_use_it() {
    let config = config(ProviderKind::Copilot);
    let check = |model: &str, expected: Option<bool>| {
        let model = serde_json::from_str(model).unwrap();
        let info = parse_entry(&config, &model).unwrap();
        assert_eq!((info.vendor.as_deref(), info.entitled), (Some("Anthropic"), expected), "{model}");
    };
    check(r#"{"id":"a","vendor":"Anthropic","model_picker_enabled":true}"#, Some(true));
    check(
        r#"{"id":"a","vendor":"Anthropic","model_picker_enabled":false,"policy":{"state":"enabled"}}"#,
        Some(false),
    );
    check(r#"{"id":"a","vendor":"Anthropic","policy":{"state":"enabled"}}"#, Some(true));
    check(r#"{"id":"a","vendor":"Anthropic","preview":true}"#, Some(true));
    check(r#"{"id":"a","vendor":"Anthropic"}"#, Some(false));
}

#[test]
fn anthropic_s_list_has_names() {
    check(
        ProviderKind::Anthropic,
        r#"{"data":[{"type":"model","id":"claude-sonnet-4-5","display_name":"Claude Sonnet 4.5","max_input_tokens":200000,"max_tokens":64000}],"has_more":false}"#,
        expect![[
            r#"claude-sonnet-4-5 Some("Claude Sonnet 4.5") (None, Some(64000), Some(200000)) vision None tools None None None None"#
        ]],
    );
}

#[test]
fn github_s_list_is_cut_to_what_can_be_used() {
    check(
        ProviderKind::Copilot,
        r#"{"data":[
            {"id":"gpt-5.4","name":"GPT-5.4","supported_endpoints":["/responses"],"policy":{"state":"enabled"},"billing":{"multiplier":1},"capabilities":{"type":"chat","limits":{"max_context_window_tokens":400000,"max_output_tokens":128000,"max_prompt_tokens":272000},"supports":{"vision":true,"tool_calls":true,"reasoning_effort":["low","high"]}}},
            {"id":"free","billing":{"multiplier":0.33},"capabilities":{"type":"chat"}},
            {"id":"embed","capabilities":{"type":"embeddings"}},
            {"id":"off","policy":{"state":"disabled"},"capabilities":{"type":"chat"}}]}"#,
        expect![[r#"
            gpt-5.4 Some("GPT-5.4") (Some(272000), Some(128000), Some(400000)) vision Some(true) tools Some(true) Some(["low", "high"]) Some(["/responses"]) Some("1")
            free None (None, None, None) vision None tools None None None Some("0.33")"#]],
    );
}

#[test]
fn other_shapes_of_lists_are_read_and_what_is_none_is_said() {
    check(
        OPENAI,
        r#"[{"id":"a"}]"#,
        expect!["a None (None, None, None) vision None tools None None None None"],
    );
    check(
        OPENAI,
        r#"{"models":[{"name":"a"}]}"#,
        expect![[r#"a Some("a") (None, None, None) vision None tools None None None None"#]],
    );
    check(
        OPENAI,
        "<html>",
        expect!["the model provider's list of models is not JSON: expected value at line 1 column 1"],
    );
    check(OPENAI, r#"{"ok":true}"#, expect!["the model provider's list of models is not a list"]);
}

#[test]
fn prices_efforts_and_limits_of_images_are_read_where_a_provider_tells_them() {
    let info = |kind, body: &str| parse_entry(&config(kind), &serde_json::from_str(body).unwrap()).unwrap();
    let github = info(
        ProviderKind::Copilot,
        r#"{"id":"a","billing":{"token_prices":{"batch_size":1000000,"default":{"input_price":300,"output_price":1500,"cache_price":30,"context_max":200000},"long_context":{"input_price":600,"output_price":2250,"cache_price":60,"context_max":936000}}},"capabilities":{"limits":{"vision":{"max_prompt_images":5,"max_prompt_image_size":3145728}},"supports":{"adaptive_thinking":true,"max_thinking_budget":32000}}}"#,
    );
    let price = github.price.unwrap();
    assert_eq!((price.rates.input, price.rates.output, price.rates.cache_read), (3.0, 15.0, Some(0.3)));
    assert_eq!((price.first_step(), price.steps[0].rates.output), (Some(200_000), 22.5));
    assert_eq!((github.max_images, github.max_image_bytes), (Some(5), Some(3_145_728)));
    assert_eq!((github.adaptive_thinking, github.max_thinking_budget), (Some(true), Some(32_000)));

    let router = info(
        OPENAI,
        r#"{"id":"a/b","pricing":{"prompt":"0.000002","completion":"0.00001","input_cache_read":"0.0000002"},"reasoning":{"supported_efforts":["low","high"]}}"#,
    );
    let price = router.price.unwrap().rates;
    assert!((price.input - 2.0).abs() < 1e-9 && (price.cache_read.unwrap() - 0.2).abs() < 1e-9, "{price:?}");
    assert_eq!(router.efforts.unwrap(), ["low", "high"]);
    assert_eq!(info(OPENAI, r#"{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}}"#).price, None);

    let anthropic = info(
        ProviderKind::Anthropic,
        r#"{"id":"c","max_input_tokens":1000000,"max_tokens":128000,"capabilities":{"effort":{"low":{"supported":true},"max":{"supported":false}},"thinking":{"types":{"adaptive":{"supported":true}}},"image_input":{"supported":true}}}"#,
    );
    assert_eq!(anthropic.efforts.unwrap(), ["low"]);
    assert_eq!((anthropic.adaptive_thinking, anthropic.vision), (Some(true), Some(true)));
    let studio = info(OPENAI, r#"{"id":"q","max_context_length":131072,"loaded_context_length":8192}"#);
    assert_eq!(studio.max_context_tokens, Some(8192));
}

/// A cached list, and whether it is found at another moment and for another address.
fn cached(dir: &std::path::Path) -> (Cache, ProviderConfig, SystemTime) {
    let cache = Cache { dir: dir.join("models"), ttl: Duration::from_secs(60) };
    let config = config(OPENAI);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let models: Vec<ModelInfo> = ListPage::parse(r#"[{"id":"a"}]"#)
        .unwrap()
        .models
        .iter()
        .filter_map(|model| parse_entry(&config, model))
        .collect();
    cache.write(&config, now, &models);
    (cache, config, now)
}

#[test]
fn a_list_is_good_for_its_time_and_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, mut config, now) = cached(dir.path());
    assert_eq!(cache.read(&config, now).unwrap()[0].id, "a");
    assert!(cache.read(&config, now + Duration::from_secs(59)).is_some());
    assert_eq!(cache.read(&config, now + Duration::from_secs(60)), None);
    assert_eq!(cache.read(&config, now - Duration::from_secs(5)), None);
    config.base_url = BaseUrl::parse("http://127.0.0.1:2").unwrap();
    assert_eq!(cache.read(&config, now), None);
}

#[test]
fn a_damaged_list_is_ignored_and_no_part_of_one_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, config, now) = cached(dir.path());
    let files: Vec<_> = std::fs::read_dir(&cache.dir).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files, [cache.dir.join("p.json")]);
    std::fs::write(&files[0], "{\"version\":1,").unwrap();
    assert_eq!(cache.read(&config, now), None);
}
