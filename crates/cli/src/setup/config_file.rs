//! `config.toml` with a provider more or less. Everything else in the file stays as its owner wrote it, comments included.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use toml_edit::{DocumentMut, Item, Table};

use super::draft::{CREDENTIALS, Draft, KEYS_DIR, KeyKind, set};
use crate::settings::Settings;

/// A provider of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredProvider {
    pub(crate) name: String,
    pub(crate) preset: Option<String>,
    pub(crate) base_url: Option<String>,
    /// How its credential is found, for people.
    pub(crate) credential: String,
}

/// Writes the provider and its model down: first the key that was typed, then the configuration that refers to it, each file in
/// one step. Returns the path of the configuration.
pub(crate) fn write(settings: &Settings, draft: &Draft, model: &str) -> Result<PathBuf> {
    let path = target(&settings.config_path());
    let text = added(&settings.config_text()?, draft, model)?;
    if let KeyKind::Typed(key) = &draft.key {
        let file = settings.home.join(draft.key_file());
        hangar_disk::keep(&file, format!("{}\n", key.0))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    hangar_disk::keep(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Removes a provider, then the key that was kept for it. Returns whether there was one.
pub(crate) fn remove(settings: &Settings, name: &str) -> Result<bool> {
    let path = target(&settings.config_path());
    let (text, key) = removed(&settings.config_text()?, name)?;
    hangar_disk::replace(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let Some(key) = key else { return Ok(false) };
    let file = settings.home.join(key);
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", file.display())),
    }
}

/// The file itself, if the configuration is a link: the link stays.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The providers of the file, none if it cannot be read.
pub(crate) fn configured_providers(settings: &Settings) -> Vec<ConfiguredProvider> {
    let Ok(document) = settings.config_text().and_then(|text| parse(&text)) else { return Vec::new() };
    let tables = document.get("providers").and_then(Item::as_table_like);
    let told = |(name, item): (&str, &Item)| {
        let table = item.as_table_like()?;
        let text = |key: &str| table.get(key).and_then(Item::as_str).map(str::to_owned);
        let credential = CREDENTIALS.iter().find_map(|key| {
            let value = text(key)?;
            Some(match *key {
                "api_key_env" => format!("key in the variable {value}"),
                "api_key_file" => format!("key in the file {value}"),
                "api_key_command" => "key printed by a command".to_owned(),
                _ => "key in the configuration".to_owned(),
            })
        });
        let preset = text("type");
        let usual = || {
            let usual = hangar_models::facts::preset(preset.as_deref()?)?.api_key_env?;
            Some(format!("key in the variable {usual}"))
        };
        let credential = credential.or_else(usual).unwrap_or_else(|| "no key".to_owned());
        Some(ConfiguredProvider { name: name.to_owned(), preset, base_url: text("base_url"), credential })
    };
    tables.into_iter().flat_map(|tables| tables.iter()).filter_map(told).collect()
}

/// Reads the file. The error names the line and does not show it: there may be a key on it.
fn parse(text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        anyhow!("config.toml:{}: {}", before.matches('\n').count() + 1, error.message())
    })
}

fn added(text: &str, draft: &Draft, model: &str) -> Result<String> {
    let mut document = parse(text)?;
    let has_model = document.contains_key("model");
    set(&mut document, "model", &format!("{}/{model}", draft.name));
    if !has_model && last_table(&document).is_none() {
        let end = take_end(&mut document);
        if let Some(mut key) = document.key_mut("model") {
            key.leaf_decor_mut().set_prefix(end);
        }
    }
    if draft.is_built_in {
        return Ok(document.to_string());
    }
    let providers = document.get("providers").and_then(Item::as_table_like);
    let is_added = providers.is_none_or(|tables| !tables.contains_key(&draft.name));
    let is_last = providers.is_none() || last_table(&document) == Some("providers");
    let end = if is_added && is_last { take_end(&mut document) } else { String::new() };
    let tables = document.entry("providers").or_insert_with(|| {
        let mut tables = Table::new();
        // Only its tables have headers.
        tables.set_implicit(true);
        Item::Table(tables)
    });
    let Some(tables) = tables.as_table_mut() else {
        bail!("`providers` of the configuration is no table of tables; write it as [providers.NAME]");
    };
    let mut table = filled(tables.get(&draft.name), draft)?;
    if !end.is_empty() {
        table.decor_mut().set_prefix(format!("{end}\n"));
    }
    tables.insert(&draft.name, Item::Table(table));
    Ok(document.to_string())
}

/// Name of the last table of the file.
fn last_table(document: &DocumentMut) -> Option<&str> {
    let is_table = |item: &Item| item.is_table() || item.is_array_of_tables();
    document.iter().filter(|(_, item)| is_table(item)).map(|(name, _)| name).last()
}

/// Removes and returns the comments at the end of the file, which go before an item that is added there.
fn take_end(document: &mut DocumentMut) -> String {
    let end = document.trailing().as_str().unwrap_or_default().to_owned();
    if end.trim().is_empty() {
        return String::new();
    }
    document.set_trailing("");
    end
}

/// The table of a provider as it is written.
pub(super) fn table(text: &str, draft: &Draft) -> Result<Table> {
    let document = parse(text)?;
    let tables = document.get("providers").and_then(Item::as_table_like);
    filled(tables.and_then(|tables| tables.get(&draft.name)), draft)
}

/// A provider's table with the draft in it. The table of another address is left alone: its headers and its key are not for this one.
fn filled(before: Option<&Item>, draft: &Draft) -> Result<Table> {
    let mut table = match before {
        None => Table::new(),
        Some(Item::Table(table)) => table.clone(),
        Some(_) => {
            bail!("`providers.{}` of the configuration is no table; write it as [providers.NAME]", draft.name)
        }
    };
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    if before.is_some() && !draft.is_at(text("type"), text("base_url")) {
        bail!(
            "`providers.{}` of the configuration has another address; rename it, or remove it with /logout",
            draft.name
        );
    }
    draft.fill(&mut table);
    Ok(table)
}

/// The file without a provider, and the path of the key that was kept for it.
fn removed(text: &str, name: &str) -> Result<(String, Option<String>)> {
    let mut document = parse(text)?;
    let tables = document.get_mut("providers").and_then(Item::as_table_like_mut);
    let Some(table) = tables.and_then(|tables| tables.remove(name)) else {
        bail!("the configuration has no provider `{name}`");
    };
    let file = table.as_table_like().and_then(|table| table.get("api_key_file")?.as_str());
    let key = file.filter(|file| *file == format!("{KEYS_DIR}/{name}")).map(str::to_owned);
    for setting in ["model", "small_model"] {
        let is_its = document.get(setting).and_then(Item::as_str).and_then(|model| model.split_once('/'));
        if is_its.is_some_and(|(provider, _)| provider == name) {
            document.remove(setting);
        }
    }
    Ok((document.to_string(), key))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::draft::TypedKey;
    use super::*;

    fn draft(key: KeyKind) -> Draft {
        Draft {
            name: "anthropic".to_owned(),
            label: "Anthropic".to_owned(),
            preset: Some("anthropic"),
            base_url: None,
            key,
            is_built_in: false,
        }
    }

    fn check(text: &str, key: KeyKind, expected: Expect) {
        expected.assert_eq(&added(text, &draft(key), "claude-sonnet-5").unwrap());
    }

    #[test]
    fn a_provider_is_added_to_an_empty_file() {
        check(
            "",
            KeyKind::Usual,
            expect![[r#"
                model = "anthropic/claude-sonnet-5"

                [providers.anthropic]
                type = "anthropic"
            "#]],
        );
    }

    #[test]
    fn what_the_owner_wrote_stays() {
        let text = "# mine\nmodel = \"old/one\" # the default\n\n[budget] # caps\nmax_cost = 2.5\n\n[providers.old]\nbase_url = \"http://localhost:1/v1\"\n";
        check(
            text,
            KeyKind::Typed(TypedKey("sk-secret".to_owned())),
            expect![[r#"
                model = "anthropic/claude-sonnet-5" # the default

                [budget] # caps
                max_cost = 2.5

                [providers.old]
                base_url = "http://localhost:1/v1"

                [providers.anthropic]
                type = "anthropic"
                api_key_file = "keys/anthropic"
            "#]],
        );
    }

    #[test]
    fn comments_at_the_end_stay_before_what_is_added() {
        for text in ["# mine\n", "model = \"a/b\" # why\n# mine\n", "[budget]\nmax_turns = 5\n\n# mine\n"] {
            let written = added(text, &draft(KeyKind::Usual), "m").unwrap();
            let (mine, table) = (written.find("# mine"), written.find("[providers."));
            assert!(mine.is_some() && mine < table, "{written}");
            assert!(!text.contains("# why") || written.contains("\" # why\n"), "{written}");
        }
    }

    #[test]
    fn another_credential_takes_the_place_of_the_one_before() {
        let text =
            "[providers.anthropic]\ntype = \"anthropic\"\napi_key = \"sk-old\"\nweb_search = true # yes\n";
        check(
            text,
            KeyKind::Variable("MY_KEY".to_owned()),
            expect![[r#"
                model = "anthropic/claude-sonnet-5"
                [providers.anthropic]
                type = "anthropic"
                web_search = true # yes
                api_key_env = "MY_KEY"
            "#]],
        );
    }

    #[test]
    fn a_table_of_another_address_is_not_changed() {
        for table in [
            "type = \"anthropic\"\nbase_url = \"https://gateway.example/v1\"\nheaders = { x-team = \"a\" }\n",
            "base_url = \"https://gateway.example/v1\"\n",
            "type = \"openai\"\n",
        ] {
            let text = format!("[providers.anthropic]\n{table}");
            let error = added(&text, &draft(KeyKind::Usual), "m").unwrap_err().to_string();
            assert!(error.contains("has another address"), "{error}");
        }
    }

    #[test]
    fn headers_with_a_credential_go_with_it() {
        check(
            "[providers.anthropic]\ntype = \"anthropic\"\n[providers.anthropic.headers]\nX-Api-Key = \"sk-old\"\nx-team = \"a\"\n",
            KeyKind::Variable("MY_KEY".to_owned()),
            expect![[r#"
                model = "anthropic/claude-sonnet-5"
                [providers.anthropic]
                type = "anthropic"
                api_key_env = "MY_KEY"
                [providers.anthropic.headers]
                x-team = "a"
            "#]],
        );
    }

    #[test]
    fn a_provider_is_removed_with_its_model_and_its_key() {
        let text = "# mine\nmodel = \"anthropic/x\"\nsmall_model = \"other/y\"\n\n[providers.anthropic]\ntype = \"anthropic\"\napi_key_file = \"keys/anthropic\"\n\n[providers.other]\ntype = \"openai\"\n";
        let (text, key) = removed(text, "anthropic").unwrap();
        assert_eq!(key.as_deref(), Some("keys/anthropic"));
        assert!(!text.contains("anthropic"), "{text}");
        assert!(text.contains("small_model = \"other/y\"") && text.contains("[providers.other]"), "{text}");
        // A key that somebody else keeps is not ours to remove.
        let theirs = "[providers.a]\ntype = \"anthropic\"\napi_key_file = \"/elsewhere/key\"\n";
        assert_eq!(removed(theirs, "a").unwrap().1, None);
        assert!(removed("", "a").is_err());
    }

    #[test]
    fn a_file_that_is_no_toml_is_named_by_its_line() {
        let error = added("a = 1\napi_key = sk-secret", &draft(KeyKind::Usual), "m").unwrap_err().to_string();
        assert!(error.starts_with("config.toml:2: ") && !error.contains("sk-secret"), "{error}");
    }
}
