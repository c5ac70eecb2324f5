//! Metadata of a session: the content of `workspace.yaml`, readable without the log.

use hangar_agent::log::{ListedFact, ListedProvider};
use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Body, Event};
use jiff::Timestamp;

use crate::yaml::YamlDocument;

pub(crate) const META_FILE: &str = "workspace.yaml";

/// A larger file is not one that any program writes here.
pub(crate) const META_BYTES: u64 = 256 * 1024;

/// Longest name that is made from a prompt.
const DERIVED_CHARS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMeta {
    pub context: Option<WorkingDirectory>,
    pub name: Option<SessionName>,
    /// The program that started the session.
    pub client_name: Option<String>,
    pub model_provider: Option<ListedProvider>,
    /// Number of compactions.
    pub summary_count: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionName {
    /// Chosen by the user.
    Given(String),
    /// Made from the first prompt.
    Derived(String),
}

impl SessionName {
    /// A name from a session's first prompt; `None` if there is nothing to see in it.
    pub fn from_prompt(prompt: &str) -> Option<Self> {
        let prompt = prompt.trim();
        let mut name: String = prompt.chars().take(DERIVED_CHARS).collect();
        if name.len() < prompt.len() {
            name.push_str("...");
        }
        (!name.is_empty()).then_some(Self::Derived(name))
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Given(name) | Self::Derived(name) => name,
        }
    }
}

impl SessionMeta {
    pub fn new(context: WorkingDirectory, now: Timestamp) -> Self {
        Self {
            context: Some(context),
            name: None,
            client_name: None,
            model_provider: None,
            summary_count: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// Takes in something that lists show.
    pub(crate) fn note(&mut self, fact: ListedFact) {
        match fact {
            ListedFact::GivenName(name) => self.name = Some(SessionName::Given(name)),
            ListedFact::DerivedName(name) => self.name = Some(SessionName::Derived(name)),
            ListedFact::FirstPrompt(_) if self.name.is_some() => {}
            ListedFact::FirstPrompt(prompt) => self.name = SessionName::from_prompt(&prompt),
            ListedFact::Context(context) => self.context = Some(context),
            ListedFact::ModelProvider(provider) => self.model_provider = Some(provider),
            ListedFact::Checkpoint(checkpoint) => {
                self.summary_count = u32::try_from(checkpoint.number).unwrap_or(u32::MAX);
            }
        }
    }

    /// The session is as new as its last event.
    pub(crate) fn note_event(&mut self, event: &Event) {
        if let Ok(time) = event.timestamp().parse::<Timestamp>() {
            self.updated_at = self.updated_at.max(time);
        }
    }

    /// Parses `workspace.yaml`; `None` if required fields are missing.
    pub(crate) fn from_document(document: &YamlDocument) -> Option<Self> {
        let time = |name| document.get(name).and_then(|text| text.parse::<Timestamp>().ok());
        let created_at = time("created_at").or_else(|| time("updated_at"))?;
        let given = document.get("user_named").as_deref() == Some("true");
        Some(Self {
            context: document.get("cwd").map(|cwd| WorkingDirectory {
                cwd,
                git_root: document.get("git_root"),
                repository: document.get("repository"),
                branch: document.get("branch"),
            }),
            name: document.get("name").map(if given { SessionName::Given } else { SessionName::Derived }),
            client_name: document.get("client_name"),
            model_provider: document
                .get("model_provider")
                .map(|base_url| ListedProvider { base_url, name: document.get("model_provider_name") }),
            summary_count: document.get("summary_count").and_then(|text| text.parse().ok()).unwrap_or(0),
            created_at,
            updated_at: time("updated_at").unwrap_or(created_at),
        })
    }

    /// Metadata from the first event of a log, for a session that has no usable `workspace.yaml`.
    pub(crate) fn from_first_event(body: Option<&Body>, written: Timestamp) -> Self {
        let start = match body {
            Some(Body::SessionStart(start)) => Some(start),
            _ => None,
        };
        let created_at = start.and_then(|start| start.start_time.parse().ok()).unwrap_or(written);
        Self {
            context: start.and_then(|start| start.context.clone()),
            name: None,
            client_name: None,
            model_provider: None,
            summary_count: 0,
            created_at,
            updated_at: created_at,
        }
    }

    /// Writes everything known here into a document and leaves the rest of it alone.
    pub(crate) fn write_to(&self, document: &mut YamlDocument) {
        let mut text = |name: &str, value: Option<&str>| match value {
            Some(value) => document.set(name, value),
            None => document.remove(name),
        };
        let context = self.context.as_ref();
        text("cwd", context.map(|context| context.cwd.as_str()));
        text("git_root", context.and_then(|context| context.git_root.as_deref()));
        text("repository", context.and_then(|context| context.repository.as_deref()));
        text("branch", context.and_then(|context| context.branch.as_deref()));
        text("client_name", self.client_name.as_deref());
        let provider = self.model_provider.as_ref();
        text("model_provider", provider.map(|provider| provider.base_url.as_str()));
        text("model_provider_name", provider.and_then(|provider| provider.name.as_deref()));
        text("name", self.name.as_ref().map(SessionName::as_str));
        document.set_plain("user_named", &matches!(self.name, Some(SessionName::Given(_))));
        document.set_plain("summary_count", &self.summary_count);
        document.set_plain("created_at", &format_args!("{:.3}", self.created_at));
        document.set_plain("updated_at", &format_args!("{:.3}", self.updated_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> SessionMeta {
        SessionMeta {
            context: Some(WorkingDirectory {
                cwd: "/home/me/repo".to_owned(),
                git_root: Some("/home/me/repo".to_owned()),
                repository: Some("acme/widgets".to_owned()),
                branch: Some("feat/x".to_owned()),
            }),
            name: Some(SessionName::Given("my: feature".to_owned())),
            client_name: Some("hangar".to_owned()),
            model_provider: Some(ListedProvider {
                base_url: "https://models.example/v1".to_owned(),
                name: Some("models".to_owned()),
            }),
            summary_count: 2,
            created_at: "2026-11-15T22:00:40.599Z".parse().unwrap(),
            updated_at: "2026-11-15T22:00:40.710Z".parse().unwrap(),
        }
    }

    #[test]
    fn everything_survives_being_written_and_read() {
        let mut document = YamlDocument::default();
        meta().write_to(&mut document);
        assert_eq!(SessionMeta::from_document(&YamlDocument::parse(&document.render())), Some(meta()));
    }

    #[test]
    fn the_file_of_another_program_is_read_and_its_own_fields_kept() {
        let text = "id: x\ncwd: /w\nhost_type: github\nname: hi\nuser_named: false\nsummary_count: 0\nfork_count: 3\n\
                    created_at: 2026-11-15T22:00:40.599Z\nupdated_at: 2026-11-15T22:00:40.710Z\n";
        let mut document = YamlDocument::parse(text);
        let mut meta = SessionMeta::from_document(&document).unwrap();
        assert_eq!(meta.name, Some(SessionName::Derived("hi".to_owned())));
        meta.name = Some(SessionName::Given("ho".to_owned()));
        meta.write_to(&mut document);
        let expected = text.replace("name: hi", "name: ho").replace("user_named: false", "user_named: true");
        assert_eq!(document.render(), expected);
    }

    #[test]
    fn a_name_from_a_prompt_is_bounded() {
        assert_eq!(SessionName::from_prompt(" \n "), None);
        assert_eq!(SessionName::from_prompt(" hi\n"), Some(SessionName::Derived("hi".to_owned())));
        let long = SessionName::from_prompt(&"é".repeat(10_000)).unwrap();
        assert_eq!(long.as_str().chars().count(), DERIVED_CHARS + 3);
    }
}
