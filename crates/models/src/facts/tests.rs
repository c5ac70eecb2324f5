use super::*;
use crate::base_url::BaseUrl;

#[track_caller]
fn provider(kind: ProviderKind, url: &str) -> ProviderConfig {
    ProviderConfig::new("p", kind, BaseUrl::parse(url).unwrap())
}

const PER_MODEL: ProviderKind = ProviderKind::OpenAi { wire: WireApi::PerModel };

#[test]
fn the_embedded_table_can_be_read() {
    let table = table::FactsTable::parse(table::FACTS).unwrap();
    assert!(table.hosts.len() > 15 && !table.date.is_empty());
}

#[test]
fn a_model_is_found_however_its_name_is_written() {
    for (model, expected) in [
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6"),
        ("anthropic.claude-opus-4-8", "claude-opus-4-8"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5.4", "gpt-5-4"),
        ("qwen/qwen3-coder:free", "qwen3-coder"),
        ("gpt-oss:20b", "gpt-oss:20b"),
        ("deepseek-v4-pro", "deepseek-v4-pro"),
        ("", ""),
    ] {
        assert_eq!(name::key(model), expected, "{model}");
    }
}

#[test]
fn a_name_goes_out_as_the_host_writes_it() {
    let listed = ["claude-sonnet-4.5", "claude-opus-4-5-20251101"];
    for (model, spelling, listed, expected) in [
        ("claude-sonnet-4.5", Spelling::Dashes, &[][..], Some("claude-sonnet-4-5")),
        ("claude-sonnet-4-5", Spelling::Dashes, &[], None),
        ("claude-sonnet-4-5", Spelling::Dots, &[], Some("claude-sonnet-4.5")),
        ("claude-sonnet-4-5-20250929", Spelling::Dots, &[], Some("claude-sonnet-4.5-20250929")),
        ("anthropic/claude-opus-4-6", Spelling::Dots, &[], Some("anthropic/claude-opus-4.6")),
        ("claude-sonnet-4-5", Spelling::Listed, &listed, Some("claude-sonnet-4.5")),
        ("claude-opus-4.5", Spelling::Dashes, &listed, Some("claude-opus-4-5-20251101")),
        ("claude-opus-4.6", Spelling::Dashes, &listed, Some("claude-opus-4-6")),
        ("gpt-5.4", Spelling::Dashes, &[], None),
        ("my-own", Spelling::Dots, &listed, None),
    ] {
        assert_eq!(spelled(model, spelling, listed).as_deref(), expected, "{model}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_ones() {
    let known = ["claude-sonnet-4.5", "claude-haiku-4.5", "gpt-5.4", "gpt-5.4-mini"];
    assert_eq!(nearest("claude-sonet-4.5", known)[0], "claude-sonnet-4.5");
    assert_eq!(nearest("gpt5.4", known)[0], "gpt-5.4");
    assert_eq!(nearest("zzz", known), Vec::<&str>::new());
    let claudes = [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-opus-5-5",
        "claude-sonnet-5",
        "claude-sonnet-5-5",
    ];
    let check = |model: &str, expected: [&str; 3]| assert_eq!(nearest(model, claudes), expected, "{model}");
    check("claude-sonnet-6", ["claude-sonnet-5-5", "claude-sonnet-5", "claude-sonnet-4-5"]);
    check("claude-sonnet-4.6", ["claude-sonnet-4-5", "claude-sonnet-5", "claude-sonnet-5-5"]);
    check("claude-sonnet", ["claude-sonnet-5-5", "claude-sonnet-5", "claude-sonnet-4-5"]);
    assert_eq!(nearest("claude-opus-5", claudes)[..2], ["claude-opus-5-5", "claude-sonnet-5"]);
    let gpts = ["gpt-5", "gpt-5.4-mini", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-6-sol"];
    assert_eq!(nearest("gpt-5.7-sol", gpts)[..2], ["gpt-5.6-sol", "gpt-6-sol"]);
}

/// Efforts as they are sent: a level, a budget, `off`, or `-` for nothing. `!` marks one that was changed.
fn sent(model: &str) -> String {
    let show = |level: Level| {
        let effort = of(model).effort(Some(level.name()));
        let sent = match effort.reasoning {
            Reasoning::Unset => "-".to_owned(),
            Reasoning::Level(level) => level.name().to_owned(),
            Reasoning::Budget(tokens) => tokens.to_string(),
            Reasoning::Off => "off".to_owned(),
        };
        if effort.instead_of.is_some() { format!("{sent}!") } else { sent }
    };
    Level::ALL.map(show).join(" ")
}

#[test]
fn an_effort_becomes_the_nearest_that_the_model_takes() {
    for (model, expected) in [
        ("claude-opus-5-5", "low! low! low medium high xhigh max"),
        ("claude-opus-5", "off low! low medium high xhigh max"),
        ("claude-opus-4-8", "off low! low medium high xhigh max"),
        ("claude-opus-4-6", "off low! low medium high high! max"),
        ("claude-opus-4-5", "off low! low medium high high! high!"),
        ("claude-sonnet-4-5", "off 1024 4000 10000 16000 31999 31999"),
        ("gpt-5", "minimal! minimal low medium high high! high!"),
        ("gpt-5.2", "none low! low medium high xhigh xhigh!"),
        ("gpt-5.6-sol", "none low! low medium high xhigh max"),
        ("gpt-6.1-sol", "low! low! low medium high xhigh max"),
        ("gpt-5.4-pro", "medium! medium! medium! medium high xhigh xhigh!"),
        ("gemini-3.8-flash", "low! low! low medium high high! high!"),
        ("gemini-3.5-flash-lite", "minimal! minimal low medium high high! high!"),
        ("grok-4.5", "low! low! low medium high high! high!"),
        ("grok-4.3", "none low! low medium high high! high!"),
        ("deepseek-v4-pro", "none low! low high! high high! max"),
        ("kimi-k3", "low! low! low high! high max! max"),
        ("glm-5.3", "low! low! low high! high max! max"),
        ("mistral-medium-3-5", "none none! high! high! high high! high!"),
        ("gpt-4.1", "- - - - - - -"),
        ("who-knows", "- - - - - - -"),
    ] {
        assert_eq!(sent(model), expected, "{model}");
    }
}

#[test]
fn nothing_is_sent_for_an_effort_that_nobody_asked_for_or_knows() {
    assert_eq!(of("gpt-5").effort(None).value(), None);
    assert_eq!(of("gpt-5").effort(Some("bad")).value(), None);
}

#[test]
fn the_thinking_types_that_a_claude_refuses_are_known() {
    use ThinkingType::{Adaptive, Disabled, Enabled};
    for (model, accepted) in [
        ("claude-fable-5.1", vec![Adaptive]),
        ("claude-opus-5.5", vec![Adaptive]),
        ("claude-sonnet-5.5", vec![Adaptive]),
        ("claude-opus-5", vec![Adaptive, Disabled]),
        ("claude-haiku-5.5", vec![Adaptive, Disabled]),
        ("claude-opus-4.7", vec![Adaptive, Disabled]),
        ("claude-opus-4.6", vec![Adaptive, Enabled, Disabled]),
        ("claude-sonnet-4.5", vec![Enabled, Disabled]),
        ("claude-3-5-sonnet-20241022", vec![]),
        ("claude-next", vec![Adaptive]),
    ] {
        let rule = of(model).thinking.unwrap();
        let taken: Vec<_> =
            [Adaptive, Enabled, Disabled].into_iter().filter(|kind| rule.accepts(*kind)).collect();
        assert_eq!(taken, accepted, "{model}");
    }
}

#[test]
fn numbers_of_the_table_are_those_of_the_model() {
    for (model, window, prompt, answer, rates) in [
        ("claude-opus-5-5", 1_000_000, 872_000, 128_000, Some((4.0, 20.0, Some(0.2), Some(5.0)))),
        ("claude-sonnet-4.5", 200_000, 168_000, 32_000, Some((3.0, 15.0, Some(0.3), Some(3.75)))),
        ("gpt-5.4", 1_050_000, 922_000, 128_000, Some((2.5, 15.0, Some(0.25), None))),
        ("gpt-5.6-terra", 1_050_000, 922_000, 128_000, Some((2.0, 12.0, Some(0.2), Some(2.5)))),
        ("gpt-5.4-mini", 400_000, 272_000, 128_000, Some((0.75, 4.5, Some(0.075), None))),
        ("gpt-6-sol", 1_050_000, 922_000, 128_000, Some((2.0, 10.0, None, Some(2.5)))),
        ("gpt-5.6-sol-fast", 1_050_000, 922_000, 128_000, None),
        ("gpt-4.1", 1_047_576, 1_014_808, 32_768, Some((2.0, 8.0, Some(0.5), None))),
    ] {
        let facts = of(model);
        assert_eq!(facts.window, Some(window), "{model}");
        assert_eq!((facts.prompt_limit(), facts.answer_limit()), (Some(prompt), Some(answer)), "{model}");
        let price = facts.price.map(|price| price.rates);
        let price = price.map(|rates| (rates.input, rates.output, rates.cache_read, rates.cache_write));
        assert_eq!(price, rates, "{model}");
    }
}

#[test]
fn a_model_is_asked_at_the_endpoint_that_its_host_has_for_it() {
    use Endpoint::{Chat, Messages, Responses};
    for (url, model, expected) in [
        ("https://api.openai.com/v1", "gpt-5.4", Responses),
        ("https://api.openai.com/v1", "o3", Responses),
        ("https://api.openai.com/v1", "gpt-4.1", Chat),
        ("https://api.openai.com/v1", "gpt-5.1-chat-latest", Responses),
        ("https://api.x.ai/v1", "grok-4.5", Responses),
        ("https://openrouter.ai/api/v1", "anthropic/claude-opus-5", Messages),
        ("https://openrouter.ai/api/v1", "openai/gpt-5.4", Chat),
        ("https://api.mistral.ai/v1", "devstral-2512", Chat),
        ("https://api.deepseek.com", "deepseek-v4-pro", Chat),
        ("http://localhost:11434/v1", "gpt-oss:20b", Chat),
        ("http://proxy.example/v1", "gpt-5.4", Chat),
        ("http://proxy.example/v1", "claude-opus-5", Chat),
    ] {
        assert_eq!(endpoint(&provider(PER_MODEL, url), model), expected, "{url} {model}");
    }
}

#[test]
fn a_configured_wire_wins_over_the_table() {
    let openai = |wire| provider(ProviderKind::OpenAi { wire }, "https://api.openai.com/v1");
    assert_eq!(endpoint(&openai(WireApi::Completions), "gpt-5.4"), Endpoint::Chat);
    assert_eq!(endpoint(&openai(WireApi::Responses), "gpt-4.1"), Endpoint::Responses);
    let azure = |api_version| {
        let kind = ProviderKind::Azure { wire: WireApi::PerModel, api_version };
        provider(kind, "https://me.openai.azure.com")
    };
    assert_eq!(endpoint(&azure(None), "gpt-5.4"), Endpoint::Responses);
    assert_eq!(endpoint(&azure(None), "my-deployment"), Endpoint::Chat);
    assert_eq!(endpoint(&azure(Some("2024-10-21".to_owned())), "gpt-5.4"), Endpoint::Chat);
}

#[test]
fn a_host_is_known_by_preset_address_and_kind() {
    let check = |config: &ProviderConfig, expected: Option<&str>| {
        assert_eq!(host(config).name.as_deref(), expected, "{}", config.base_url);
    };
    check(&provider(PER_MODEL, "https://api.openai.com/v1"), Some("openai"));
    check(&provider(PER_MODEL, "https://api.openai.com.evil.example/v1"), None);
    check(&provider(PER_MODEL, "https://openrouter.ai/api/v1"), Some("openrouter"));
    check(&provider(PER_MODEL, "http://127.0.0.1:11434/v1"), Some("ollama"));
    check(&provider(PER_MODEL, "http://10.0.0.1:11434/v1"), None);
    check(&provider(PER_MODEL, "http://127.0.0.1:5000/v1"), None);
    check(&provider(ProviderKind::Anthropic, "http://127.0.0.1:5000"), Some("anthropic"));
    check(&provider(ProviderKind::Copilot, "http://127.0.0.1:5000"), Some("copilot"));
    let mut vllm = provider(PER_MODEL, "http://gpu.example:9000/v1");
    vllm.preset = Some("vllm".to_owned());
    check(&vllm, Some("vllm"));
}

#[test]
fn ids_are_checked_by_the_rule_of_the_host() {
    let rule = |url| host(&provider(PER_MODEL, url)).ids;
    let mistral = rule("https://api.mistral.ai/v1");
    assert!(mistral.accepts("aB3dE6gH9") && !mistral.accepts("aB3dE6gH") && !mistral.accepts("call_6gH9"));
    let openai = rule("https://api.openai.com/v1");
    assert!(openai.accepts(&"x".repeat(40)) && !openai.accepts(&"x".repeat(41)) && !openai.accepts(""));
    let anthropic = host(&provider(ProviderKind::Anthropic, "https://api.anthropic.com")).ids;
    assert!(anthropic.accepts("toolu_01-a") && !anthropic.accepts("call.1"));
}

/// A list of the provider: id, window, longest answer.
fn with_list(mut config: ProviderConfig, models: &[(&str, u64, u64)]) -> ProviderConfig {
    let entry = |(id, window, output): &(&str, u64, u64)| {
        let text = format!(r#"{{"id":"{id}","context_length":{window},"max_output_tokens":{output}}}"#);
        crate::catalogue::parse_entry(&config, &serde_json::from_str(&text).unwrap()).unwrap()
    };
    let list: Vec<_> = models.iter().map(entry).collect();
    config.learnt.listed = Some(list.into());
    config
}

const CATALOGUE: &str = r#"{"openai":{"models":{"gpt-5.4":{"limit":{"context":2000000,"output":64000},"cost":{"input":1,"output":2}}}},
    "acme":{"models":{"rocket":{"limit":{"context":50000,"output":8000}}}}}"#;

fn with_catalogue(mut config: ProviderConfig, date: &str) -> ProviderConfig {
    config.learnt.user = Some(std::sync::Arc::new(Catalogue::parse(CATALOGUE, date).unwrap()));
    config
}

#[test]
fn configuration_goes_before_list_user_file_table_and_default() {
    let openai = || provider(PER_MODEL, "https://api.openai.com/v1");
    let limit = |config: &ProviderConfig, model: &str| {
        let resolved = resolve(config, model);
        (resolved.prompt_limit, resolved.sources.prompt)
    };
    assert_eq!(limit(&openai(), "who-knows"), (128_000, FactSource::Default));
    assert_eq!(limit(&openai(), "gpt-5.4-mini"), (272_000, FactSource::Embedded));
    let user = with_catalogue(openai(), "2027-01-01");
    assert_eq!(limit(&user, "gpt-5.4"), (1_936_000, FactSource::UserFile));
    assert_eq!(resolve(&user, "gpt-5.4").facts.price.unwrap().rates.input, 1.0);
    let listed = with_list(user, &[("gpt-5.4", 100_000, 10_000)]);
    assert_eq!(limit(&listed, "openai/gpt-5.4"), (90_000, FactSource::Provider));
    let configured = ProviderConfig { max_prompt_tokens: Some(7), ..listed };
    assert_eq!(limit(&configured, "gpt-5.4"), (7, FactSource::Config));
}

#[test]
fn an_old_file_of_the_user_only_adds_what_is_not_known() {
    let config = with_catalogue(provider(PER_MODEL, "https://api.openai.com/v1"), "2025-01-01");
    assert_eq!(resolve(&config, "gpt-5.4").sources.window, FactSource::Embedded);
    let mut acme = with_catalogue(provider(PER_MODEL, "https://api.acme.example/v1"), "2025-01-01");
    acme.preset = Some("acme".to_owned());
    assert_eq!(resolve(&acme, "rocket").sources.window, FactSource::Default, "a host that no table has");
}

#[test]
fn a_prompt_stays_below_the_price_step_unless_told_otherwise() {
    for (model, expected, full) in [
        ("gpt-5.4", 272_000, Some(922_000)),
        ("gpt-5.4-mini", 272_000, None),
        ("grok-4.5", 200_000, Some(420_000)),
        ("claude-haiku-5.5", 100_000, Some(872_000)),
        ("claude-opus-5", 872_000, None),
    ] {
        let mut config = provider(PER_MODEL, "https://gateway.example/v1");
        let resolved = resolve(&config, model);
        assert_eq!((resolved.prompt_limit, resolved.full_prompt_limit), (expected, full), "{model}");
        config.full_window = true;
        let resolved = resolve(&config, model);
        assert_eq!(
            (resolved.prompt_limit, resolved.full_prompt_limit),
            (full.unwrap_or(expected), None),
            "{model}"
        );
    }
}

#[test]
fn a_host_s_own_numbers_go_before_the_vendor_s() {
    let copilot = provider(ProviderKind::Copilot, "https://api.githubcopilot.com");
    let resolved = resolve(&copilot, "claude-opus-4.6");
    assert!(resolved.facts.window < of("claude-opus-4.6").window, "{:?}", resolved.facts.window);
    assert_eq!(resolved.facts.price, None, "requests are billed there");
    let mut ollama = provider(PER_MODEL, "http://localhost:11434/v1");
    assert_eq!(resolve(&ollama, "gpt-oss:20b").facts.price.unwrap().rates.output, 0.0);
    ollama = with_list(ollama, &[("gpt-oss:20b", 8192, 0)]);
    assert!(resolve(&ollama, "gpt-oss:20b").prompt_limit <= 8192 * 3 / 4);
}

#[test]
fn gateways_are_asked_which_models_they_have_and_vendors_are_not() {
    let asked = |kind: ProviderKind, url: &str| needs_list(&provider(kind, url), "claude-opus-5");
    assert!(asked(PER_MODEL, "https://gateway.example/v1"));
    assert!(asked(ProviderKind::Anthropic, "https://proxy.example"), "a gateway to a known vendor");
    assert!(asked(ProviderKind::Copilot, "https://api.githubcopilot.com"));
    assert!(!asked(ProviderKind::Anthropic, "https://api.anthropic.com"));
    assert!(!asked(PER_MODEL, "http://localhost:11434/v1"), "a local server has what it was started with");
    let gateway = provider(ProviderKind::Anthropic, "https://proxy.example");
    assert!(!needs_list(&gateway, "who-knows"), "no small model would come of it");
    assert!(
        !needs_list(&with_list(gateway, &[("claude-opus-5", 1, 1)]), "claude-opus-5"),
        "it is there already"
    );
}

#[test]
fn a_small_model_is_of_the_same_vendor_and_is_served_there() {
    let small = |config: &ProviderConfig, model: &str| small_model(config, model);
    let anthropic = provider(ProviderKind::Anthropic, "https://api.anthropic.com");
    assert_eq!(small(&anthropic, "claude-opus-5").as_deref(), Some("claude-haiku-5-5"));
    assert_eq!(small(&anthropic, "claude-haiku-5.5"), None);
    let listed = with_list(anthropic, &[("claude-opus-5", 1, 1), ("claude-haiku-4-5-20251001", 1, 1)]);
    assert_eq!(small(&listed, "claude-opus-5").as_deref(), Some("claude-haiku-4-5-20251001"));
    let gateway = provider(PER_MODEL, "https://gateway.example/v1");
    assert_eq!(small(&gateway, "claude-opus-5"), None, "nobody knows what it serves");
    let listed = with_list(gateway, &[("anthropic/claude-haiku-4.5", 1, 1)]);
    assert_eq!(small(&listed, "claude-opus-5").as_deref(), Some("anthropic/claude-haiku-4.5"));
    assert_eq!(small(&listed, "who-knows"), None);
    // Before their lists were read, hosts of several vendors have what the catalogue has of them.
    let router = provider(PER_MODEL, "https://openrouter.ai/api/v1");
    assert_eq!(small(&router, "anthropic/claude-opus-4.6").as_deref(), Some("anthropic/claude-haiku-4.5"));
    assert_eq!(
        small(&router, "google/gemini-3.1-pro-preview").as_deref(),
        Some("google/gemini-3.5-flash-lite")
    );
    let github = provider(ProviderKind::Copilot, "https://api.githubcopilot.com");
    assert_eq!(small(&github, "claude-sonnet-4.6").as_deref(), Some("claude-haiku-4.5"));
    assert_eq!(small(&github, "gpt-5.4").as_deref(), Some("gpt-5.6-luna"));
}

#[test]
fn a_name_that_a_provider_lacks_has_suggestions_and_is_missing_where_that_is_certain() {
    let anthropic = provider(ProviderKind::Anthropic, "https://api.anthropic.com");
    let openai = provider(PER_MODEL, "https://api.openai.com/v1");
    let gateway = provider(PER_MODEL, "https://gateway.example/v1");
    let check = |config: &ProviderConfig, model: &str, missing: bool, first: Option<&str>| {
        assert_eq!(is_missing(config, model), missing, "{model}");
        assert_eq!(suggestions(config, model).first().map(String::as_str), first, "{model}");
    };
    check(&anthropic, "nosuch", true, None);
    check(&anthropic, "gpt-5.4", true, Some("gpt-5.5"));
    check(&anthropic, "claude-opus-9", false, Some("claude-opus-5-5"));
    check(&anthropic, "claude-sonet-5-5", false, Some("claude-sonnet-5-5"));
    check(&openai, "nosuch", true, None);
    check(&openai, "o9-mini", false, None);
    check(&gateway, "nosuch", false, None);
    check(&gateway, "claude-sonet-5.5", false, Some("claude-sonnet-5-5"));
    let listed = with_list(gateway, &[("llama-4", 1, 1)]);
    check(&listed, "claude-opus-5", false, None);
    check(&listed, "lama-4", false, Some("llama-4"));
    let proxy = provider(ProviderKind::Anthropic, "https://proxy.example");
    let listed = with_list(proxy, &[("claude-haiku-4-5", 1, 1)]);
    check(&listed, "claude-opus-4-5", false, Some("claude-haiku-4-5"));
    check(&listed, "nosuch", true, None);
    let listed =
        with_list(provider(ProviderKind::Copilot, "https://api.githubcopilot.com"), &[("gpt-5.4", 1, 1)]);
    check(&listed, "gpt-5.5", true, Some("gpt-5.4"));
    // A running session may try what GitHub has and the account's list lacks.
    assert!(!is_unheard_of(&listed, "gpt-5.5") && !is_unheard_of(&listed, "gpt-5.4"));
    assert!(is_unheard_of(&listed, "nosuch") && is_unheard_of(&anthropic, "gpt-5.4"));
}

#[test]
fn the_name_on_the_wire_is_the_provider_s_own() {
    let anthropic = provider(ProviderKind::Anthropic, "https://api.anthropic.com");
    assert_eq!(wire_name(&anthropic, "claude-sonnet-4.5"), "claude-sonnet-4-5");
    assert_eq!(wire_name(&anthropic, "p/claude-sonnet-4-5"), "claude-sonnet-4-5");
    let listed = with_list(anthropic, &[("claude-sonnet-4-5-20250929", 1, 1)]);
    assert_eq!(wire_name(&listed, "claude-sonnet-4.5"), "claude-sonnet-4-5-20250929");
    let configured = ProviderConfig { wire_model: Some("mine".to_owned()), ..listed };
    assert_eq!(wire_name(&configured, "claude-sonnet-4.5"), "mine");
}

#[test]
fn models_of_the_catalogue_that_the_table_does_not_name_have_numbers() {
    assert_eq!(of("gpt-4.1-mini").price.unwrap().rates.input, 0.4);
    assert_eq!(of("glm-4.6").window, Some(204_800));
    assert!(of("claude-opus-4-1").price.is_some());
}

#[test]
fn the_limits_of_every_current_model_are_known() {
    let unknown: Vec<&&str> = ids().iter().filter(|model| of(model).prompt_limit().is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn patches_are_for_the_models_trained_on_them() {
    for model in ["gpt-5.1-codex", "gpt-5.2-codex", "gpt-5.4", "gpt-5.4-mini", "gpt-4o"] {
        assert!(of(model).patches, "{model}");
    }
    for model in
        ["gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.2", "gpt-4.1", "gpt-oss:20b", "o3", "claude-opus-5"]
    {
        assert!(!of(model).patches, "{model}");
    }
}

#[test]
fn claude_counts_more_tokens_than_the_vocabulary() {
    for (model, percent) in [
        ("claude-sonnet-4", 100),
        ("claude-haiku-4.5", 100),
        ("claude-sonnet-4-5-20250929", 110),
        ("claude-opus-4.5", 115),
        ("claude-sonnet-4.6", 117),
        ("claude-opus-5", 150),
        ("gpt-5", 100),
    ] {
        assert_eq!(of(model).token_percent, percent, "{model}");
    }
}

#[test]
fn a_search_of_the_web_is_the_host_s_the_model_s_and_the_user_s_wish() {
    let searched = |file: &str, model: &str| {
        let config = &crate::config::table::providers(file, |_: &str| None).unwrap()[0];
        let price = resolve(config, model).facts.price.and_then(|price| price.searches);
        web_search(config, model).map(|search| (search.tool, price))
    };
    let claude = "[providers.x]\ntype = \"anthropic\"\nweb_search = true";
    let tool = |name: &str, price| Some((name.to_owned(), price));
    assert_eq!(searched(claude, "claude-opus-5-5"), tool("web_search_20250305", Some(10.0)));
    assert_eq!(searched(claude, "claude-3-opus"), None);
    assert_eq!(searched("[providers.x]\ntype = \"anthropic\"", "claude-opus-5-5"), None);
    let gateway =
        "[providers.x]\nbase_url = \"https://gateway.example/v1\"\nhost = \"openai\"\nweb_search = true";
    assert_eq!(searched(gateway, "gpt-5.6-sol"), tool("web_search", Some(10.0)));
    assert_eq!(searched(gateway, "gpt-4.1"), None);
    // An unknown model may have it, and xAI reports the cost of its searches.
    let grok = "[providers.x]\ntype = \"xai\"\nweb_search = true";
    assert_eq!(searched(grok, "novelty-1"), tool("web_search", None));
}

#[test]
fn a_provider_is_tried_with_a_cheap_model_of_its_list_or_of_the_tables() {
    let anthropic = provider(ProviderKind::Anthropic, "https://api.anthropic.com");
    assert_eq!(cheapest_model(&anthropic).as_deref(), Some("claude-haiku-5-5"));
    let listed = with_list(anthropic, &[("claude-opus-5", 1, 1), ("claude-haiku-4-5-20251001", 1, 1)]);
    assert_eq!(cheapest_model(&listed).as_deref(), Some("claude-haiku-4-5-20251001"));
    let groq = provider(PER_MODEL, "https://api.groq.com/openai/v1");
    assert!(cheapest_model(&groq).is_some());
    let gateway = provider(PER_MODEL, "https://gateway.example/v1");
    assert_eq!(cheapest_model(&gateway), None, "nobody knows what it serves");
    let named =
        with_list(gateway.clone(), &[("whisper-9", 1, 1), ("gpt-5.6-sol", 1, 1), ("gpt-5.4-nano", 1, 1)]);
    assert_eq!(cheapest_model(&named).as_deref(), Some("gpt-5.4-nano"));
    let unknown = with_list(gateway, &[("one", 1, 1), ("two", 1, 1)]);
    assert_eq!(cheapest_model(&unknown).as_deref(), Some("one"));
}

#[test]
fn what_is_written_to_the_cache_has_its_price_at_other_hosts_too() {
    let written = |url: &str, model: &str| {
        let price = resolve(&provider(PER_MODEL, url), model).facts.price.unwrap();
        price.rates.cache_write.unwrap() / price.rates.input
    };
    for url in [
        "https://openrouter.ai/api/v1",
        "https://bedrock-mantle.eu-central-1.api.aws/anthropic",
        "https://litellm.example/v1",
        "https://api.anthropic.com",
    ] {
        for model in ["anthropic/claude-sonnet-4.5", "claude-opus-5-5"] {
            assert!((written(url, model) - 1.25).abs() < 1e-9, "{url} {model} {}", written(url, model));
        }
    }
    let mut listed = provider(PER_MODEL, "https://litellm.example/v1");
    let entry = serde_json::json!({ "id": "claude-sonnet-4-5", "pricing": { "prompt": "0.000004", "completion": "0.00002" } });
    listed.learnt.listed = Some([crate::catalogue::parse_entry(&listed, &entry).unwrap()].into());
    let rates = resolve(&listed, "claude-sonnet-4-5").facts.price.unwrap().rates;
    assert_eq!((rates.input, rates.cache_write), (4.0, Some(5.0)));
}
