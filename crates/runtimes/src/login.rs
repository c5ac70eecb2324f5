//! Login sources of an agent, as data, and the search for a login without using it.

use std::path::PathBuf;

use crate::environment::RuntimeEnvironment;
use crate::host::quoted;
use crate::runtime::LoginState;

/// Variables, files and questions by which an agent's login is found.
#[derive(Debug, Clone, Copy)]
pub struct LoginSources {
    /// Set where it uses another provider, which needs no login of its vendor's.
    pub provider: Option<&'static str>,
    /// Variables that hold a login, in the order in which it looks.
    pub variables: &'static [&'static str],
    /// Values of these variables that it passes over without a word.
    pub ignored: Option<IgnoredValue>,
    pub file: Option<LoginFile>,
    /// A file of settings that may name a provider with a key of its own, and the word that does: nobody can say then that
    /// a login is missing.
    pub own_providers: Option<(ConfigFile, &'static str)>,
    /// Words of arguments that name such a provider.
    pub provider_args: &'static [&'static str],
    pub question: Option<LoginQuestion>,
    /// Advice to the user where there is no login.
    pub advice: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct IgnoredValue {
    pub prefix: &'static str,
    /// Behind the name of the variable.
    pub warning: &'static str,
}

/// A file of the agent's own.
#[derive(Debug, Clone, Copy)]
pub struct ConfigFile {
    /// The variable that says where its directory is.
    pub variable: &'static str,
    /// The directory below the home of the user, if the variable is not set.
    pub directory: &'static str,
    pub name: &'static str,
}

/// A file that is there once somebody has logged in.
#[derive(Debug, Clone, Copy)]
pub struct LoginFile {
    pub file: ConfigFile,
    /// Members one of which is a list that is not empty then. Without any, the file itself is the sign.
    pub members: &'static [&'static str],
    /// Name of the source in messages.
    pub label: &'static str,
}

/// A command that ends with success where there is a login.
#[derive(Debug, Clone, Copy)]
pub struct LoginQuestion {
    /// Another program than the agent's.
    pub program: Option<&'static str>,
    pub args: &'static [&'static str],
    /// Words that the agent's help must contain: an older version might treat the question as a prompt.
    pub in_help: Option<&'static str>,
}

/// Result of the search without asking the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginSearch {
    Login(String),
    /// No login found, but there may be one elsewhere.
    Unclear,
    Nothing,
}

impl ConfigFile {
    fn path(&self, runtime_env: &RuntimeEnvironment) -> PathBuf {
        let directory = runtime_env.var(self.variable);
        directory.map_or_else(|| runtime_env.home.join(self.directory), Into::into).join(self.name)
    }

    /// The same for a shell elsewhere.
    fn shell_path(&self) -> String {
        format!("\"${{{}:-$HOME/{}}}/{}\"", self.variable, self.directory, self.name)
    }
}

impl LoginFile {
    fn is_there(&self, runtime_env: &RuntimeEnvironment) -> bool {
        let path = self.file.path(runtime_env);
        if self.members.is_empty() {
            return path.exists();
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // It may begin with remarks that JSON does not know.
        let json: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let config: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        self.members.iter().any(|name| config[*name].as_array().is_some_and(|list| !list.is_empty()))
    }
}

impl LoginSources {
    /// Looks at variables and files of this machine. With what is wrong with them, each a sentence.
    pub(crate) fn find(&self, runtime_env: &RuntimeEnvironment) -> (LoginSearch, Vec<String>) {
        if let Some(provider) = self.provider.filter(|name| runtime_env.var(name).is_some()) {
            return (LoginSearch::Login(provider.to_owned()), Vec::new());
        }
        let is_ignored = |name: &&str| {
            let prefix = self.ignored.map(|ignored| ignored.prefix);
            prefix.is_some_and(|prefix| runtime_env.var(name).is_some_and(|value| value.starts_with(prefix)))
        };
        let (ignored, others): (Vec<&str>, Vec<&str>) = self.variables.iter().copied().partition(is_ignored);
        let warning = self.ignored.map(|ignored| ignored.warning).unwrap_or_default();
        let warnings = ignored.iter().map(|name| format!("{name} {warning}")).collect();
        let found = match (runtime_env.first_var(&others), self.file) {
            (Some((name, _)), _) => LoginSearch::Login(name.to_owned()),
            (None, Some(file)) if file.is_there(runtime_env) => LoginSearch::Login(file.label.to_owned()),
            (None, _) => match ignored.first() {
                Some(name) => LoginSearch::Login((*name).to_owned()),
                None if self.names_provider(runtime_env) => LoginSearch::Unclear,
                None => LoginSearch::Nothing,
            },
        };
        (found, warnings)
    }

    /// Whether arguments name a provider with a key of its own.
    pub(crate) fn is_provider_named(&self, args: &[String]) -> bool {
        args.iter().any(|argument| self.provider_args.iter().any(|word| argument.contains(word)))
    }

    fn names_provider(&self, runtime_env: &RuntimeEnvironment) -> bool {
        self.own_providers.is_some_and(|(file, word)| {
            std::fs::read_to_string(file.path(runtime_env)).is_ok_and(|text| text.contains(word))
        })
    }

    /// A shell script that looks at the same places elsewhere, and prints the first that holds a login.
    pub(crate) fn script(&self) -> String {
        let mut script = String::new();
        for name in self.provider.iter().chain(self.variables) {
            let ignored = self.ignored.map(|ignored| format!("{}*|", ignored.prefix)).unwrap_or_default();
            let ignored = if self.variables.contains(name) { ignored } else { String::new() };
            script += &format!("case ${{{name}:-}} in {ignored}'') ;; *) echo {name}; exit;; esac\n");
        }
        if let Some(LoginFile { file, members, label }) = self.file {
            let holds = match members.is_empty() {
                true => format!("[ -e {} ]", file.shell_path()),
                // As exact as it can be without a reader of JSON: the list is followed by something.
                false => format!(
                    "cat {} 2>/dev/null | tr -d ' \\n' | grep -qE '\"({})\":\\[[^]]'",
                    file.shell_path(),
                    members.join("|")
                ),
            };
            script += &format!("if {holds}; then echo {}; exit; fi\n", quoted(label));
        }
        if let Some((file, word)) = self.own_providers {
            script += &format!(
                "if grep -q {} {} 2>/dev/null; then echo; exit; fi\n",
                quoted(word),
                file.shell_path()
            );
        }
        script
    }

    /// Parses the output of the search script.
    pub(crate) fn found_by_script(&self, printed: &str) -> LoginSearch {
        match printed.lines().next() {
            None => LoginSearch::Nothing,
            Some("") => LoginSearch::Unclear,
            Some(source) => LoginSearch::Login(source.to_owned()),
        }
    }

    /// Interprets the program's answer about its login; `None` if it could not be asked.
    pub(crate) fn answered(question: &LoginQuestion, is_logged_in: Option<bool>) -> LoginState {
        let words = question.program.into_iter().chain(question.args.iter().copied()).collect::<Vec<_>>();
        match is_logged_in {
            Some(true) => LoginState::Found(words.join(" ")),
            Some(false) => LoginState::Missing,
            None => LoginState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::agents::{claude, codex, copilot};

    /// Checks the result of the search, here and by the script for other hosts.
    #[track_caller]
    fn check(sources: LoginSources, vars: &[(&str, &str)], files: &[(&str, &str)], expected: LoginSearch) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let vars: BTreeMap<String, String> =
            vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let runtime_env = RuntimeEnvironment { vars: vars.clone(), ..RuntimeEnvironment::bare(home.path()) };
        assert_eq!(sources.find(&runtime_env).0, expected, "{vars:?} {files:?}");
        let output = elsewhere(&sources.script(), home.path(), &vars);
        let ignored = matches!(&expected, LoginSearch::Login(name) if vars.get(name).is_some_and(|value| value.starts_with("ghp_")));
        // Elsewhere a token that is passed over is no login.
        let expected = if ignored { LoginSearch::Nothing } else { expected };
        assert_eq!(sources.found_by_script(&output), expected, "{vars:?} {files:?}");
    }

    fn elsewhere(script: &str, home: &Path, vars: &BTreeMap<String, String>) -> String {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", script])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home);
        let output = shell.envs(vars).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).unwrap()
    }

    fn login(source: &str) -> LoginSearch {
        LoginSearch::Login(source.to_owned())
    }

    #[test]
    fn copilot_has_tokens_a_provider_or_somebody_who_logged_in() {
        let sources = copilot::LOGIN;
        check(sources, &[], &[], LoginSearch::Nothing);
        check(sources, &[("GITHUB_TOKEN", "ghu_x"), ("GH_TOKEN", "gho_x")], &[], login("GH_TOKEN"));
        check(sources, &[("GH_TOKEN", "ghp_x"), ("GITHUB_TOKEN", "ghu_x")], &[], login("GITHUB_TOKEN"));
        check(sources, &[("GH_TOKEN", "ghp_x")], &[], login("GH_TOKEN"));
        check(
            sources,
            &[("COPILOT_PROVIDER_BASE_URL", "http://x"), ("GH_TOKEN", "gho_x")],
            &[],
            login("COPILOT_PROVIDER_BASE_URL"),
        );
        let users = "// a remark\n{ \"loggedInUsers\": [\n{ \"login\": \"me\" }] }";
        check(sources, &[], &[(".copilot/config.json", users)], login("copilot login"));
        check(sources, &[], &[(".copilot/config.json", "{ \"loggedInUsers\": [ ] }")], LoginSearch::Nothing);
    }

    #[test]
    fn codex_may_have_a_provider_of_its_own() {
        let sources = codex::LOGIN;
        check(sources, &[("CODEX_API_KEY", "k")], &[], login("CODEX_API_KEY"));
        check(sources, &[], &[(".codex/auth.json", "{}")], login("auth.json"));
        check(sources, &[], &[(".codex/config.toml", "model_provider = \"mine\"")], LoginSearch::Unclear);
        check(sources, &[], &[(".codex/config.toml", "model = \"x\"")], LoginSearch::Nothing);
    }

    #[test]
    fn claude_has_keys_or_a_file() {
        let sources = claude::LOGIN;
        check(sources, &[("ANTHROPIC_API_KEY", "k")], &[], login("ANTHROPIC_API_KEY"));
        check(sources, &[], &[(".claude/.credentials.json", "{}")], login("~/.claude/.credentials.json"));
        check(sources, &[], &[], LoginSearch::Nothing);
    }
}
