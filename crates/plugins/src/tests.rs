use std::fs;

use hangar_git::Environment;

use super::*;

/// A home folder, and a marketplace beside it with one plugin in a folder.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.write("market/marketplace.json", &market("./tidy", "1.0.0"));
        machine.write("market/tidy/skills/sweep/SKILL.md", "---\nname: sweep\ndescription: Sweeps.\n---\n");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn shell(&self, script: &str) {
        let mut command = std::process::Command::new("sh");
        let status =
            command.args(["-ec", script]).current_dir(self.0.path()).env("HOME", self.0.path()).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Makes a repository of the marketplace, and returns its URL.
    fn repository(&self) -> String {
        self.shell(
            "cd market && git init -q -b main . && git add . && git -c user.name=t -c user.email=t@x commit -q -m one",
        );
        format!("file://{}", self.path("market").display())
    }

    fn plugins(&self) -> Plugins {
        let path = std::env::var_os("PATH").unwrap();
        let environment = Environment::of([("PATH".into(), path), ("HOME".into(), self.0.path().into())]);
        Plugins::new(&self.path("home"), Git::new(environment), || Timestamp::UNIX_EPOCH)
    }

    async fn add(&self, source: &str) -> String {
        self.plugins().add_marketplace(source, self.0.path()).await.unwrap()
    }

    async fn install(&self, source: &str) -> Result<Installation, String> {
        self.plugins().install(source, self.0.path()).await.map_err(|error| error.0)
    }

    fn loaded(&self) -> Vec<String> {
        enabled(&self.path("home")).0.iter().flat_map(|plugin| plugin.contents().skills).collect()
    }

    /// Folders of ours: copies and clones.
    fn copies(&self) -> usize {
        let entries = fs::read_dir(self.path("home/plugins")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

fn market(source: &str, version: &str) -> String {
    format!(
        r#"{{"name": "yard", "plugins": [{{"name": "tidy", "source": "{source}", "version": "{version}",
        "description": "Tidies."}}]}}"#
    )
}

#[tokio::test]
async fn a_plugin_of_a_directory_is_loaded_from_there() {
    let machine = Machine::new();
    assert_eq!(machine.add("./market").await, "yard");
    let done = machine.install("tidy@yard").await.unwrap();
    assert_eq!((done.skills, done.plugin.version.as_deref()), (1, Some("1.0.0")));
    assert!(done.plugin.is_live());
    assert_eq!((machine.loaded(), machine.copies()), (vec!["sweep".to_owned()], 0));
    machine.write("market/tidy/skills/mop/SKILL.md", "---\nname: mop\ndescription: Mops.\n---\n");
    assert_eq!(machine.loaded(), ["mop", "sweep"]);
}

#[tokio::test]
async fn a_plugin_of_a_repository_changes_only_by_an_update() {
    let machine = Machine::new();
    let url = machine.repository();
    assert_eq!(machine.add(&url).await, "yard");
    machine.install("tidy@yard").await.unwrap();
    assert_eq!(machine.copies(), 2, "a clone and a copy");
    machine.write("market/tidy/skills/mop/SKILL.md", "---\nname: mop\ndescription: Mops.\n---\n");
    machine.write("market/marketplace.json", &market("./tidy", "2.0.0"));
    machine.shell("cd market && git add . && git -c user.name=t -c user.email=t@x commit -q -m two");
    assert_eq!(machine.loaded(), ["sweep"]);
    let done = machine.plugins().update("tidy").await.unwrap();
    assert_eq!(done.previous_version.as_deref(), Some("1.0.0"));
    assert_eq!(done.plugin.version.as_deref(), Some("2.0.0"));
    assert_eq!((machine.loaded().len(), machine.copies()), (2, 2));
    let all = machine.plugins().update_all().await.unwrap();
    assert!(all.iter().all(|(_, updated)| updated.is_ok()));
    let in_use = machine.plugins().remove_marketplace("yard", false).unwrap();
    assert_eq!(in_use, Removal::InUse { plugins: vec!["tidy@yard".to_owned()] });
    machine.plugins().remove_marketplace("yard", true).unwrap();
    assert_eq!((machine.loaded().len(), machine.copies()), (0, 0));
}

#[tokio::test]
async fn a_directory_or_a_repository_is_installed_directly() {
    let machine = Machine::new();
    machine.write("alone/plugin.json", r#"{"name": "alone", "version": "3.0.0"}"#);
    machine.write("alone/SKILL.md", "---\nname: one\ndescription: One.\n---\n");
    let done = machine.install("./alone").await.unwrap();
    assert_eq!((done.plugin.name.as_str(), done.plugin.marketplace.as_str(), done.skills), ("alone", "", 1));
    let id = done.plugin.direct_source_id();
    assert!(id.is_some());
    machine.write("alone/SKILL.md", "changed");
    assert!(!fs::read_to_string(done.plugin.path.join("SKILL.md")).unwrap().contains("changed"));
    machine.plugins().uninstall("alone", id.as_deref()).unwrap();
    assert_eq!((machine.loaded().len(), machine.copies()), (0, 0));
    let url = machine.repository();
    let done = machine.install(&url).await.unwrap_err();
    assert_eq!(done, format!("URL: {url} is not a plugin: it has no plugin.json"));
    assert_eq!(machine.copies(), 0, "a failed installation leaves nothing");
}

#[tokio::test]
async fn a_disabled_plugin_is_not_loaded_and_stays_disabled_over_an_update() {
    let machine = Machine::new();
    machine.add("./market").await;
    machine.install("tidy@yard").await.unwrap();
    let plugins = machine.plugins();
    assert_eq!(plugins.switch(&["tidy@yard".to_owned(), "unknown".to_owned()], false).unwrap().len(), 1);
    assert!(machine.loaded().is_empty());
    plugins.update("tidy@yard").await.unwrap();
    assert!(machine.loaded().is_empty());
    plugins.switch(&["tidy".to_owned()], true).unwrap();
    assert_eq!(machine.loaded(), ["sweep"]);
}

#[tokio::test]
async fn paths_of_a_marketplace_stay_in_it() {
    for (source, expected) in [
        ("../outside", "Plugin path escapes marketplace directory: ../outside"),
        ("/etc", "Plugin path escapes marketplace directory: /etc"),
        ("./link", "Plugin path escapes marketplace directory: ./link"),
        ("./nothing", "Plugin source directory not found: "),
    ] {
        let machine = Machine::new();
        machine.write("outside/plugin.json", "{}");
        std::os::unix::fs::symlink(machine.path("outside"), machine.path("market/link")).unwrap();
        machine.write("market/marketplace.json", &market(source, "1.0.0"));
        machine.add("./market").await;
        let error = machine.install("tidy@yard").await.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn requests_for_nothing_are_sentences() {
    let machine = Machine::new();
    machine.add("./market").await;
    let plugins = machine.plugins();
    let again = plugins.add_marketplace("./market", machine.0.path()).await.unwrap_err();
    assert_eq!(again.0, "Marketplace \"yard\" already registered");
    let missing = machine.install("broom@yard").await.unwrap_err();
    assert_eq!(missing, "Plugin \"broom\" not found in marketplace \"yard\". Available plugins: tidy");
    assert_eq!(machine.install("tidy@none").await.unwrap_err(), "Marketplace \"none\" not found");
    assert_eq!(plugins.uninstall("tidy", None).unwrap_err().0, "Plugin \"tidy\" is not installed");
    let fixed = plugins.remove_marketplace("awesome-copilot", true).unwrap_err();
    assert_eq!(fixed.0, "Marketplace \"awesome-copilot\" is a default marketplace and cannot be removed");
    assert!(plugins.marketplaces().unwrap().iter().any(|known| known.is_default));
}

#[test]
fn a_damaged_list_is_a_sentence_and_is_not_overwritten() {
    let machine = Machine::new();
    machine.write("home/plugins.json", "{oops");
    let (loaded, warnings) = enabled(&machine.path("home"));
    assert!(loaded.is_empty() && warnings[0].contains("is damaged"), "{warnings:?}");
    assert!(machine.plugins().switch(&[], true).is_err());
    assert_eq!(fs::read_to_string(machine.path("home/plugins.json")).unwrap(), "{oops");
}
