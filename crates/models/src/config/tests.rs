use expect_test::{Expect, expect};

use super::*;

fn check_variables(variables: &[(&str, &str)], expected: Expect) {
    let lookup =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    expected.assert_eq(&match variables::provider(lookup) {
        Ok(None) => "none".into(),
        Ok(Some(config)) => show(&config),
        Err(error) => error.to_string(),
    });
}

/// A variable and a file.
struct Keys;

impl table::KeySources for Keys {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "MY_KEY").then(|| "sk-from-env".to_owned())
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        match path {
            "keys/mine" => Ok("sk-from-file\n".to_owned()),
            _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "not there")),
        }
    }
}

fn check_file(toml: &str, expected: Expect) {
    expected.assert_eq(&match table::providers(toml, Keys) {
        Ok(providers) => providers.iter().map(show).collect::<Vec<_>>().join("\n"),
        Err(error) => error.to_string(),
    });
}

fn show(config: &ProviderConfig) -> String {
    let ProviderConfig { name, kind, base_url, auth, headers, model, wire_model, .. } = config;
    let auth = match auth {
        Auth::None => "no credential".into(),
        Auth::ApiKey(key) => format!("key {}", key.reveal()),
        Auth::Bearer(token) => format!("token {}", token.reveal()),
        Auth::Command(command) => format!("command {command}"),
    };
    let headers: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
    let limits = (config.max_prompt_tokens, config.max_output_tokens, &config.proxy, config.limits.stall);
    format!("{name} {kind:?} {base_url} {auth} {headers:?} {model:?} as {wire_model:?} {limits:?}")
}

const URL: (&str, &str) = ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1");

#[test]
fn a_base_url_makes_a_provider() {
    check_variables(&[], expect!["none"]);
    check_variables(&[("COPILOT_PROVIDER_API_KEY", "k")], expect!["none"]);
    check_variables(
        &[URL],
        expect![
            "custom OpenAi { wire: PerModel } http://127.0.0.1:1/v1 no credential [] None as None (None, None, System, 120s)"
        ],
    );
}

#[test]
fn every_variable_is_heard() {
    check_variables(
        &[
            ("COPILOT_PROVIDER_BASE_URL", "https://my.openai.azure.com"),
            ("COPILOT_PROVIDER_TYPE", "azure"),
            ("COPILOT_PROVIDER_WIRE_API", "responses"),
            ("COPILOT_PROVIDER_TRANSPORT", "websockets"),
            ("COPILOT_PROVIDER_API_KEY", "key-1"),
            ("COPILOT_PROVIDER_AZURE_API_VERSION", "2024-10-21"),
            ("COPILOT_PROVIDER_HEADERS", "X-A: b\\nX-C: d:e\nX-F:g"),
            ("COPILOT_PROVIDER_MODEL_ID", "gpt-5.4"),
            ("COPILOT_PROVIDER_WIRE_MODEL", "my-deployment"),
            ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "1000"),
            ("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "200"),
        ],
        expect![[
            r#"custom Azure { wire: Responses, api_version: Some("2024-10-21") } https://my.openai.azure.com key key-1 ["x-a=b", "x-c=d:e", "x-f=g"] Some("gpt-5.4") as Some("my-deployment") (Some(1000), Some(200), System, 120s)"#
        ]],
    );
}

#[test]
fn a_bearer_token_wins_over_a_command_and_that_over_a_key() {
    let key = ("COPILOT_PROVIDER_API_KEY", "key-1");
    let command = ("COPILOT_PROVIDER_API_KEY_COMMAND", "print key");
    let token = ("COPILOT_PROVIDER_BEARER_TOKEN", "token-1");
    check_variables(
        &[URL, key, command, token],
        expect![
            "custom OpenAi { wire: PerModel } http://127.0.0.1:1/v1 token token-1 [] None as None (None, None, System, 120s)"
        ],
    );
    check_variables(
        &[URL, key, command],
        expect![
            "custom OpenAi { wire: PerModel } http://127.0.0.1:1/v1 command print key [] None as None (None, None, System, 120s)"
        ],
    );
}

#[test]
fn the_model_is_its_own_wire_name_unless_both_are_given() {
    check_variables(
        &[URL, ("COPILOT_MODEL", "m")],
        expect![[
            r#"custom OpenAi { wire: PerModel } http://127.0.0.1:1/v1 no credential [] Some("m") as None (None, None, System, 120s)"#
        ]],
    );
    check_variables(
        &[URL, ("COPILOT_MODEL", "m"), ("COPILOT_PROVIDER_MODEL_ID", "gpt-5")],
        expect![[
            r#"custom OpenAi { wire: PerModel } http://127.0.0.1:1/v1 no credential [] Some("gpt-5") as Some("m") (None, None, System, 120s)"#
        ]],
    );
}

#[test]
fn a_bad_value_names_its_variable_and_what_is_allowed() {
    check_variables(
        &[URL, ("COPILOT_PROVIDER_TYPE", "foo")],
        expect![[r#"COPILOT_PROVIDER_TYPE is "foo"; it must be one of: openai, azure, anthropic"#]],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_WIRE_API", "foo")],
        expect![[r#"COPILOT_PROVIDER_WIRE_API is "foo"; it must be one of: completions, responses"#]],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_TRANSPORT", "foo")],
        expect![[r#"COPILOT_PROVIDER_TRANSPORT is "foo"; it must be one of: http, websockets"#]],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_TRANSPORT", "websockets")],
        expect!["COPILOT_PROVIDER_TRANSPORT=websockets needs COPILOT_PROVIDER_WIRE_API=responses"],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "0")],
        expect![[r#"COPILOT_PROVIDER_MAX_PROMPT_TOKENS is "0"; it must be a positive whole number"#]],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "many")],
        expect![[r#"COPILOT_PROVIDER_MAX_OUTPUT_TOKENS is "many"; it must be a positive whole number"#]],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_HEADERS", "sk-secret-value")],
        expect!["COPILOT_PROVIDER_HEADERS holds a header that is not of the form `Name: Value`"],
    );
    check_variables(
        &[URL, ("COPILOT_PROVIDER_API_KEY", "sk\u{7}secret")],
        expect!["COPILOT_PROVIDER_API_KEY holds characters that cannot be sent in a header"],
    );
    check_variables(
        &[("COPILOT_PROVIDER_BASE_URL", "nothing")],
        expect!["COPILOT_PROVIDER_BASE_URL is not usable: it is not a URL"],
    );
    check_variables(
        &[("COPILOT_PROVIDER_BASE_URL", "file:///x")],
        expect!["COPILOT_PROVIDER_BASE_URL is not usable: it must start with http:// or https://"],
    );
}

#[test]
fn a_file_has_many_providers() {
    check_file(
        r#"
        theme = "dark"

        [providers.local]
        base_url = "http://localhost:11434/v1"
        model = "qwen3-coder"
        max_prompt_tokens = 32000
        proxy = false
        stall_seconds = 600

        [providers.openai]
        wire_api = "responses"
        api_key_env = "MY_KEY"

        [providers.claude]
        type = "anthropic"
        api_key_command = "pass claude"
        headers = { "X-Team" = "a" }

        [providers.github]
        type = "copilot"
        bearer_token = "gho_1"

        [providers.work]
        type = "azure"
        base_url = "https://work.openai.azure.com"
        azure_api_version = "2024-10-21"
        api_key_env = "NOT_SET"
        wire_model = "dep"
        "#,
        expect![[r#"
            claude Anthropic https://api.anthropic.com command pass claude ["x-team=a"] None as None (None, None, System, 120s)
            github Copilot https://api.githubcopilot.com token gho_1 [] None as None (None, None, System, 120s)
            local OpenAi { wire: PerModel } http://localhost:11434/v1 no credential [] Some("qwen3-coder") as None (Some(32000), None, None, 600s)
            openai OpenAi { wire: Responses } https://api.openai.com/v1 key sk-from-env [] None as None (None, None, System, 120s)
            work Azure { wire: PerModel, api_version: Some("2024-10-21") } https://work.openai.azure.com no credential [] None as Some("dep") (None, None, System, 120s)"#]],
    );
}

#[test]
fn a_preset_needs_three_lines_at_most() {
    let variables = |name: &str| name.ends_with("_KEY").then(|| format!("the {name}"));
    let check = |toml: &str, expected: &str| {
        let provider = table::providers(toml, variables).unwrap().remove(0);
        let auth = match &provider.auth {
            Auth::None => "none".to_owned(),
            Auth::ApiKey(key) | Auth::Bearer(key) => key.reveal().to_owned(),
            Auth::Command(command) => format!("$({command})"),
        };
        let host = crate::facts::host(&provider).name.unwrap();
        assert_eq!(format!("{host} {} {auth}", provider.base_url), expected, "{toml}");
    };
    check(
        "[providers.r]\ntype = \"openrouter\"",
        "openrouter https://openrouter.ai/api/v1 the OPENROUTER_API_KEY",
    );
    check("[providers.x]\ntype = \"xai\"", "xai https://api.x.ai/v1 the XAI_API_KEY");
    check("[providers.k]\ntype = \"kimi\"\napi_key = \"mine\"", "kimi https://api.moonshot.ai/v1 mine");
    check("[providers.a]\ntype = \"anthropic\"", "anthropic https://api.anthropic.com the ANTHROPIC_API_KEY");
    check("[providers.o]\ntype = \"ollama\"", "ollama http://localhost:11434/v1 none");
    check(
        "[providers.g]\nhost = \"openai\"\nbase_url = \"https://gateway.example/v1\"",
        "openai https://gateway.example/v1 none",
    );
    check("[providers.v]\ntype = \"vllm\"\nbase_url = \"http://gpu:9/v1\"", "vllm http://gpu:9/v1 none");
    check(
        "[providers.v]\ntype = \"vertex\"\nbase_url = \"https://us-east5-aiplatform.googleapis.com/v1/p\"",
        "vertex https://us-east5-aiplatform.googleapis.com/v1/p $(gcloud auth print-access-token)",
    );
}

/// The documented configuration of every preset is valid, short, and names a model that is known.
#[test]
fn every_preset_is_documented_in_three_lines() {
    let documented = include_str!("../../../../docs/models.md");
    let (_, block) = documented.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let providers = table::providers(block, |_: &str| Some("a-key".to_owned())).unwrap();
    for preset in crate::facts::presets() {
        let (_, lines) =
            block.split_once(&format!("[providers.{preset}]\n")).unwrap_or_else(|| panic!("{preset}"));
        assert!(lines.lines().take_while(|line| !line.is_empty()).count() <= 3, "{preset}");
        let provider = providers.iter().find(|provider| provider.name == preset).unwrap();
        let is_local = crate::facts::host(provider).local.is_some();
        if let Some(model) = provider.model.as_deref().filter(|_| !is_local) {
            assert!(crate::facts::of(model).known, "{model} of {preset}");
        }
    }
}

#[test]
fn the_usual_key_of_a_vendor_is_not_for_another_address() {
    let toml = "[providers.x]\ntype = \"anthropic\"\nbase_url = \"https://proxy.example\"";
    let provider = table::providers(toml, |_: &str| Some("sk-usual".to_owned())).unwrap().remove(0);
    assert_eq!(provider.auth, Auth::None);
}

#[test]
fn a_mistake_in_the_file_is_named() {
    check_file(
        "[providers.x]\nhost = \"foo\"",
        expect![[
            r#"providers.x.host is "foo"; it must be one of: anthropic, azure, bedrock, copilot, deepseek, gemini, glm, groq, kimi, llamacpp, lmstudio, minimax, mistral, ollama, openai, openrouter, qwen, vertex, vllm, xai"#
        ]],
    );
    check_file(
        "[providers.x]\ntype = \"foo\"",
        expect![[
            r#"providers.x.type is "foo"; it must be one of: anthropic, azure, bedrock, copilot, deepseek, gemini, glm, groq, kimi, llamacpp, lmstudio, minimax, mistral, ollama, openai, openrouter, qwen, vertex, vllm, xai"#
        ]],
    );
    check_file("[providers.x]\ntype = \"azure\"", expect!["providers.x needs a base_url"]);
    check_file(
        "[providers.x]\nbase_ulr = \"http://h\"",
        expect![
            "config.toml:2: unknown field `base_ulr`, expected one of `type`, `host`, `base_url`, `wire_api`, `api_key`, `api_key_env`, `api_key_command`, `api_key_file`, `api_key_keychain`, `bearer_token`, `azure_api_version`, `headers`, `model`, `wire_model`, `max_prompt_tokens`, `max_output_tokens`, `price`, `web_search`, `proxy`, `stall_seconds`, `first_byte_seconds`"
        ],
    );
    check_file(
        "[providers.x]\nbase_url = \"http://h\"\nweb_search = true",
        expect![
            "providers.x.web_search is true, but only anthropic, openai, xai are known to search the web; `host` names the one behind a gateway"
        ],
    );
    check_file(
        "[providers.x]\nmax_prompt_tokens = 0",
        expect!["config.toml:2: invalid value: integer `0`, expected a nonzero u64"],
    );
    check_file(
        "[providers.x]\nheaders = { \"a b\" = \"c\" }",
        expect!["providers.x.headers holds a header that is not of the form `Name: Value`"],
    );
}

#[test]
fn a_mistake_beside_a_credential_does_not_show_it() {
    check_file(
        "[providers.x]\napi_key = \"sk-hidden\" oops",
        expect!["config.toml:2: unexpected key or value, expected newline, `#`"],
    );
    check_file("[providers.x]\n\napi_key = 271828", expect!["config.toml:3: a credential must be a string"]);
}

#[test]
fn nothing_secret_is_in_the_debug_form() {
    let variables = |name: &str| match name {
        "COPILOT_PROVIDER_BASE_URL" => Some("https://u:hidden1@h/?k=hidden2".to_owned()),
        "COPILOT_PROVIDER_API_KEY" => Some("hidden3".to_owned()),
        "COPILOT_PROVIDER_HEADERS" => Some("X-Key: hidden4".to_owned()),
        _ => None,
    };
    let debug = format!("{:?}", variables::provider(variables).unwrap());
    assert!(!debug.contains("hidden"), "{debug}");
}

#[test]
fn an_id_names_its_provider_or_belongs_to_the_first() {
    let provider =
        |name: &str| ProviderConfig::new(name, ProviderKind::Anthropic, BaseUrl::parse("http://h").unwrap());
    let providers = [provider("a"), provider("b")];
    let found = |id| find(&providers, id).map(|(provider, model)| (provider.name.as_str(), model.to_owned()));
    assert_eq!(found("b/m"), Some(("b", "m".into())));
    assert_eq!(found("m"), Some(("a", "m".into())));
    assert_eq!(found("Qwen/Qwen3"), Some(("a", "Qwen/Qwen3".into())));
    assert_eq!(find(&[], "m"), None);
}

#[test]
fn the_wire_name_is_for_the_model_that_it_is_about() {
    let mut config = ProviderConfig::new("a", ProviderKind::Anthropic, BaseUrl::parse("http://h").unwrap());
    config.wire_model = Some("dep".into());
    assert_eq!(config.wire_name("any"), "dep");
    config.model = Some("a/m".into());
    assert_eq!((config.wire_name("m"), config.wire_name("other")), ("dep", "other"));
}

#[test]
fn a_price_is_read_and_one_that_makes_no_sense_is_refused() {
    let table = |price: &str| format!("[providers.p]\nbase_url = \"http://x/v1\"\nprice = {price}\n");
    let price =
        |text: &str| table::providers(&table(text), |_: &str| None).map(|mut read| read.remove(0).price);
    let rates = price("{ input = 1, output = 5.5, cache_read = 0.1 }").unwrap().unwrap().rates;
    assert_eq!((rates.input, rates.output, rates.cache_read, rates.cache_write), (1.0, 5.5, Some(0.1), None));
    let refused = price("{ input = -1, output = 5 }").unwrap_err().to_string();
    assert!(refused.contains("price has a rate that is not a number of US dollars"), "{refused}");
    assert!(price("{ input = 1 }").unwrap_err().to_string().contains("output"));
}

#[test]
fn a_name_in_front_of_a_model_is_that_of_a_provider_or_of_the_models_of_the_first_one() {
    let file = |text: &str| table::providers(text, Keys).unwrap();
    let claude = file(
        "[providers.claude]\ntype = \"anthropic\"\n[providers.own]\nbase_url = \"http://gateway.example/v1\"",
    );
    let check = |providers: &[ProviderConfig], id: &str, unknown: Option<&str>| {
        assert_eq!(unknown_provider(providers, id), unknown, "{id}");
    };
    check(&claude, "nosuch/claude-sonnet-4-5", Some("nosuch"));
    check(&claude, "claude/claude-sonnet-4-5", None);
    check(&claude, "own/some/model", None);
    check(&claude, "claude-sonnet-4-5", None);
    let router = file("[providers.router]\ntype = \"openrouter\"");
    check(&router, "anthropic/claude-sonnet-4.5", None);
    check(&router, "nosuch/model", Some("nosuch"));
    // Nobody knows what these call their models.
    check(&file("[providers.own]\nbase_url = \"http://gateway.example/v1\""), "nosuch/model", None);
    check(&file("[providers.local]\ntype = \"ollama\""), "hf.co/some/model", None);
}

#[test]
fn a_key_is_read_from_a_file() {
    check_file(
        "[providers.a]\ntype = \"anthropic\"\napi_key_file = \"keys/mine\"",
        expect![
            "a Anthropic https://api.anthropic.com key sk-from-file [] None as None (None, None, System, 120s)"
        ],
    );
    check_file(
        "[providers.a]\ntype = \"anthropic\"\napi_key_file = \"keys/gone\"",
        expect!["providers.a.api_key_file is `keys/gone`, which cannot be read: not there"],
    );
}
