use super::*;
use crate::base_url::BaseUrl;
use crate::config::WireApi;

fn config(kind: ProviderKind, base: &str) -> ProviderConfig {
    ProviderConfig::new("p", kind, BaseUrl::parse(base).unwrap())
}

fn check(kind: ProviderKind, base: &str, expected: &str) {
    let config = config(kind, base);
    assert_eq!(url(&config, facts::endpoint(&config, "gpt 5").into(), "gpt 5").as_str(), expected);
}

fn azure(wire: WireApi, version: Option<&str>) -> ProviderKind {
    ProviderKind::Azure { wire, api_version: version.map(str::to_owned) }
}

#[test]
fn each_wire_has_its_path() {
    let openai = |wire| ProviderKind::OpenAi { wire };
    check(openai(WireApi::Completions), "http://h/v1", "http://h/v1/chat/completions");
    check(openai(WireApi::Responses), "http://h/v1/", "http://h/v1/responses");
    check(ProviderKind::Anthropic, "http://h", "http://h/v1/messages");
    check(ProviderKind::Anthropic, "http://h/v1", "http://h/v1/messages");
    check(ProviderKind::Anthropic, "http://h/proxy", "http://h/proxy/v1/messages");
}

#[test]
fn azure_has_a_path_for_each_deployment_or_one_for_all() {
    use WireApi::{Completions, Responses};
    let version = Some("2024-10-21");
    check(
        azure(Completions, version),
        "https://h",
        "https://h/openai/deployments/gpt%205/chat/completions?api-version=2024-10-21",
    );
    check(
        azure(Completions, version),
        "https://h/openai/deployments/mine",
        "https://h/openai/deployments/mine/chat/completions?api-version=2024-10-21",
    );
    check(azure(Responses, version), "https://h", "https://h/openai/responses?api-version=2024-10-21");
    check(azure(Completions, None), "https://h", "https://h/openai/v1/chat/completions");
    check(azure(Completions, None), "https://h/openai/v1", "https://h/openai/v1/chat/completions");
    check(
        azure(Completions, None),
        "https://h/openai/deployments/mine",
        "https://h/openai/v1/chat/completions",
    );
    check(azure(Responses, None), "https://h/api/projects/p", "https://h/api/projects/p/openai/v1/responses");
}

#[test]
fn each_provider_lists_its_models_somewhere() {
    let check =
        |kind, base: &str, expected: &str| assert_eq!(models_url(&config(kind, base)).as_str(), expected);
    check(ProviderKind::OpenAi { wire: WireApi::Completions }, "http://h/v1", "http://h/v1/models");
    check(ProviderKind::Copilot, "http://h", "http://h/models");
    check(ProviderKind::Anthropic, "http://h", "http://h/v1/models?limit=1000");
    check(azure(WireApi::Completions, None), "https://h", "https://h/openai/v1/models");
    check(azure(WireApi::Completions, Some("v")), "https://h", "https://h/openai/models?api-version=v");
}

#[test]
fn facts_name_the_endpoint_and_the_limit() {
    let mut config = config(ProviderKind::Anthropic, "http://u:p@h/v1?x=y");
    config.model = Some("p/claude-sonnet-4.5".into());
    let facts = Provider::new(config.clone()).facts();
    assert_eq!((facts.endpoint, facts.base_url.as_str()), ("/v1/messages", "http://h/v1"));
    assert_eq!((facts.is_byok, facts.max_prompt_tokens), (true, Some(168_000)));
    config.max_prompt_tokens = Some(9);
    assert_eq!(Provider::new(config).facts().max_prompt_tokens, Some(9));
}
