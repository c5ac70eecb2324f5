//! The steps, and what is asked next. Nothing is done here: work is handed out, and its result comes back as an input.

use hangar_terminal::dialog::{BodyPart, HostAnswer, HostAsk, HostItem, HostQuestion};

use super::draft::{Draft, KeyKind, TypedKey};
use super::offers::{COPILOT, HOSTED, LOCAL, Offers, label, preset};
use super::work::{FoundServer, ListProblem, ListedModel, Work, WorkDone};

/// Ids of items that are no presets.
const SCRIPTED: &str = "scripted";
const LOCAL_SERVER: &str = "local";
const COMPATIBLE: &str = "compatible";
const TYPE_NAME: &str = "type";
const AGAIN: &str = "again";
/// Ways to give a key.
const TYPED: &str = "typed";
const VARIABLE: &str = "variable";
const FILE: &str = "file";
const COMMAND: &str = "command";
const NO_KEY: &str = "none";
/// Choices after a question that failed.
const OTHER_MODEL: &str = "other";
const USE: &str = "use";

/// Next step after an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    Ask(HostQuestion),
    Work(Work),
    Done(Outcome),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The person left.
    Left,
    /// The scripted model is tried.
    Demo,
    /// Writes a provider and a model to `config.toml`, and shows the result of the probe.
    Chosen { draft: Draft, model: String, says: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Provider,
    Servers(Vec<FoundServer>),
    Address,
    GitHub,
    Way,
    Key(&'static str),
    Finding,
    Listing,
    Models,
    Unlisted(ListProblem),
    ModelName,
    Probing(String),
    Failed { model: String, says: String },
}

/// A provider and a model on the way to being set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    offers: Offers,
    /// Whether it comes unasked, at a start without a model.
    is_unasked: bool,
    step: Step,
    draft: Option<Draft>,
    models: Vec<ListedModel>,
    /// Local servers that were listed, if the provider was chosen among them.
    servers: Option<Vec<FoundServer>>,
    /// Why the step before was of no use.
    problem: Option<String>,
}

impl Setup {
    pub(crate) fn new(offers: Offers, is_unasked: bool) -> (Self, Next) {
        let mut setup = Self {
            offers,
            is_unasked,
            step: Step::Provider,
            draft: None,
            models: Vec::new(),
            servers: None,
            problem: None,
        };
        let first = setup.go(Step::Provider);
        // Later questions follow from keys.
        setup.is_unasked = false;
        (setup, first)
    }

    /// Takes an answer of the person.
    pub(crate) fn answer(&mut self, answer: HostAnswer) -> Next {
        match answer {
            HostAnswer::Back => self.back(),
            HostAnswer::Picked(id) => self.picked(&id),
            HostAnswer::Typed(text) => self.typed(text),
        }
    }

    /// Takes the result of the work that was handed out.
    pub(crate) fn done(&mut self, done: WorkDone) -> Next {
        match (&self.step, done) {
            (Step::Finding, WorkDone::Local(servers)) => {
                if servers.is_empty() {
                    self.problem = Some(
                        "No server answered at the usual ports of this machine. Start one and look again, or give its address."
                            .to_owned(),
                    );
                }
                self.go(Step::Servers(servers))
            }
            (Step::Listing, WorkDone::Listed(Ok(models))) => {
                self.models = models;
                match self.models.is_empty() {
                    true => self.go(Step::ModelName),
                    false => self.go(Step::Models),
                }
            }
            (Step::Listing, WorkDone::Listed(Err(problem))) if problem.is_refused => {
                self.problem = Some(problem.message);
                self.go(if self.asks_key() { Step::Way } else { Step::Provider })
            }
            (Step::Listing, WorkDone::Listed(Err(problem))) => {
                self.models.clone_from(&problem.known);
                self.go(Step::Unlisted(problem))
            }
            (Step::Probing(model), WorkDone::Probed { works, says }) => {
                let model = model.clone();
                if works { self.chosen(model, says) } else { self.go(Step::Failed { model, says }) }
            }
            // The person went another way meanwhile.
            _ => self.go(self.step.clone()),
        }
    }

    /// Whether the key of the provider is given by the person.
    fn asks_key(&self) -> bool {
        let draft = self.draft.as_ref();
        let preset = draft.and_then(|draft| preset(draft.preset?));
        let is_local = draft.and_then(|draft| draft.preset).is_some_and(is_local);
        !is_local
            && draft.is_some_and(|draft| !draft.is_built_in)
            && preset.is_none_or(|preset| preset.api_key_command.is_none())
    }

    fn chosen(&self, model: String, says: String) -> Next {
        match &self.draft {
            Some(draft) => Next::Done(Outcome::Chosen { draft: draft.clone(), model, says }),
            None => Next::Done(Outcome::Left),
        }
    }

    fn back(&mut self) -> Next {
        let before = match &self.step {
            Step::Provider => return Next::Done(Outcome::Left),
            Step::Way if self.draft.as_ref().is_some_and(|draft| draft.base_url.is_some()) => Step::Address,
            Step::Address => self.first_choice(),
            Step::Servers(_) | Step::GitHub | Step::Way | Step::Finding => Step::Provider,
            Step::Key(_) => Step::Way,
            Step::Listing | Step::Models | Step::Unlisted(_) => self.before_models(),
            Step::ModelName if self.models.is_empty() => self.before_models(),
            Step::ModelName | Step::Probing(_) | Step::Failed { .. } if !self.models.is_empty() => {
                Step::Models
            }
            Step::ModelName | Step::Probing(_) | Step::Failed { .. } => Step::ModelName,
        };
        self.go(before)
    }

    /// The step that led to the models.
    fn before_models(&self) -> Step {
        let Some(draft) = &self.draft else { return Step::Provider };
        match &draft.key {
            KeyKind::Typed(_) => Step::Key(TYPED),
            KeyKind::Variable(_) => Step::Key(VARIABLE),
            KeyKind::File(_) => Step::Key(FILE),
            KeyKind::Command(_) => Step::Key(COMMAND),
            KeyKind::Usual if draft.preset.is_none() => Step::Way,
            KeyKind::Usual if draft.base_url.is_some() => Step::Address,
            KeyKind::Usual => self.first_choice(),
        }
    }

    /// The list in which the provider was chosen.
    fn first_choice(&self) -> Step {
        self.servers.clone().map_or(Step::Provider, Step::Servers)
    }

    fn picked(&mut self, id: &str) -> Next {
        match self.step.clone() {
            Step::Provider => self.provider(id),
            Step::Servers(_) if id == AGAIN => self.go(Step::Finding),
            Step::Servers(servers) if id == COMPATIBLE => {
                self.servers = Some(servers);
                self.compatible()
            }
            Step::Servers(servers) => {
                self.servers = Some(servers);
                self.begin(id);
                self.go(Step::Listing)
            }
            Step::GitHub => {
                self.begin(COPILOT);
                self.go(Step::Key(TYPED))
            }
            Step::Way if id == NO_KEY => self.with_key(KeyKind::Usual),
            Step::Way => {
                let way = [TYPED, VARIABLE, FILE, COMMAND].into_iter().find(|way| *way == id);
                self.go(Step::Key(way.unwrap_or(TYPED)))
            }
            Step::Models | Step::Unlisted(_) if id == TYPE_NAME => self.go(Step::ModelName),
            Step::Unlisted(_) if id == AGAIN => self.go(Step::Listing),
            Step::Models | Step::Unlisted(_) => self.go(Step::Probing(id.to_owned())),
            Step::Failed { model, says } => match id {
                USE => self.chosen(model, says),
                AGAIN => self.go(Step::Probing(model)),
                _ if self.models.is_empty() => self.go(Step::ModelName),
                _ => self.go(Step::Models),
            },
            step => self.go(step),
        }
    }

    fn typed(&mut self, text: String) -> Next {
        match self.step.clone() {
            Step::Address => {
                if !text.starts_with("http://") && !text.starts_with("https://") {
                    self.problem = Some("The address starts with http:// or https://.".to_owned());
                    return self.go(Step::Address);
                }
                if let Some(draft) = &mut self.draft {
                    draft.name = self.offers.name_for(draft.preset, Some(&text));
                    draft.base_url = Some(text);
                }
                self.go(if self.asks_key() { Step::Way } else { Step::Listing })
            }
            Step::Key(TYPED) => self.with_key(KeyKind::Typed(TypedKey(text))),
            Step::Key(VARIABLE) => {
                let name = text.trim_start_matches('$').to_owned();
                if self.offers.variables.contains(&name) {
                    return self.with_key(KeyKind::Variable(name));
                }
                self.problem = Some(format!(
                    "{name} is not set in this terminal. Set it before you start {}, or give the key in another way.",
                    self.offers.program
                ));
                self.go(Step::Way)
            }
            Step::Key(FILE) => self.with_key(KeyKind::File(text)),
            Step::Key(_) => self.with_key(KeyKind::Command(text)),
            Step::ModelName => self.go(Step::Probing(text)),
            step => self.go(step),
        }
    }

    fn with_key(&mut self, key: KeyKind) -> Next {
        if let Some(draft) = &mut self.draft {
            draft.key = key;
        }
        self.go(Step::Listing)
    }

    /// Begins with a preset, or with any compatible server.
    fn begin(&mut self, id: &str) {
        let preset = preset(id);
        let name = preset.map(|preset| preset.name);
        self.models.clear();
        self.draft = Some(Draft {
            name: self.offers.name_for(name, None),
            label: name.map_or("The server", label).to_owned(),
            preset: name,
            base_url: None,
            key: KeyKind::Usual,
            is_built_in: false,
        });
    }

    fn compatible(&mut self) -> Next {
        self.begin(COMPATIBLE);
        self.go(Step::Address)
    }

    fn provider(&mut self, id: &str) -> Next {
        self.servers = None;
        match id {
            SCRIPTED => return Next::Done(Outcome::Demo),
            LOCAL_SERVER => return self.go(Step::Finding),
            COMPATIBLE => return self.compatible(),
            COPILOT if self.offers.github.is_some() => {
                self.begin(COPILOT);
                if let Some(draft) = &mut self.draft {
                    crate::providers::GITHUB.clone_into(&mut draft.name);
                    "GitHub Copilot".clone_into(&mut draft.label);
                    draft.is_built_in = true;
                }
                return self.go(Step::Listing);
            }
            COPILOT => return self.go(Step::GitHub),
            _ => {}
        }
        let Some(known) = preset(id) else { return self.go(Step::Provider) };
        self.begin(id);
        // Addresses of these belong to an account.
        if known.base_url.is_none() || id == "bedrock" {
            return self.go(Step::Address);
        }
        let is_found = self.offers.found(&known).is_some() || !self.asks_key();
        self.go(if is_found { Step::Listing } else { Step::Way })
    }

    fn go(&mut self, step: Step) -> Next {
        self.step = step;
        let draft = self.draft.clone();
        match (&self.step, draft) {
            (Step::Finding, _) => return Next::Work(Work::FindLocal),
            (Step::Listing, Some(draft)) => return Next::Work(Work::List(draft)),
            (Step::Probing(model), Some(draft)) => return Next::Work(Work::Probe(draft, model.clone())),
            _ => {}
        }
        let (title, text, asks) = self.question();
        let problem = self.problem.take().map(BodyPart::Warning);
        let parts = problem.into_iter().chain((!text.is_empty()).then_some(BodyPart::Text(text))).collect();
        Next::Ask(HostQuestion { title, parts, asks, is_unasked: self.is_unasked })
    }

    /// Title, text and what is asked for in the present step.
    fn question(&self) -> (String, String, HostAsk) {
        let name = self.draft.as_ref().map_or("the provider", |draft| &draft.label);
        let text = |hidden| HostAsk::Text { hidden };
        match &self.step {
            Step::Provider => (
                "Which model provider do you want to use?".to_owned(),
                String::new(),
                HostAsk::Pick(self.provider_items()),
            ),
            Step::Servers(servers) => {
                ("Which server?".to_owned(), String::new(), HostAsk::Pick(server_items(servers)))
            }
            Step::Address => {
                let (title, told) = self.address_text();
                (title, told, text(false))
            }
            Step::GitHub => (
                "GitHub Copilot".to_owned(),
                format!(
                    "{0} does not open GitHub's login page itself. Set COPILOT_GITHUB_TOKEN or GH_TOKEN to a token of an \
                     account with Copilot, or log in with `gh auth login`, and start {0} again.",
                    self.offers.program
                ),
                HostAsk::Pick(vec![item(TYPED, "Type or paste a token now", "")]),
            ),
            Step::Way => {
                // Labels begin a list item elsewhere.
                let name = match name.strip_prefix("The ") {
                    Some(rest) => format!("the {rest}"),
                    None => (*name).to_owned(),
                };
                (format!("How does {name} get its key?"), String::new(), HostAsk::Pick(self.way_items()))
            }
            Step::Key(way) => {
                let (title, told) = self.key_text(way);
                (title, told, text(*way == TYPED))
            }
            Step::Models => {
                (format!("Which model of {name}?"), String::new(), HostAsk::Pick(self.model_items(&[])))
            }
            Step::Unlisted(problem) => (
                format!("{name} did not list its models"),
                problem.message.clone(),
                HostAsk::Pick(self.model_items(&[item(AGAIN, "Ask again", "")])),
            ),
            Step::ModelName => {
                ("What is the model called?".to_owned(), format!("As {name} writes it."), text(false))
            }
            Step::Failed { model, says } => (
                format!("{model} does not work as it should"),
                says.clone(),
                HostAsk::Pick(vec![
                    item(OTHER_MODEL, "Choose another model", ""),
                    item(AGAIN, "Ask it again", ""),
                    item(USE, "Use it all the same", ""),
                ]),
            ),
            Step::Finding | Step::Listing | Step::Probing(_) => {
                ("One moment …".to_owned(), String::new(), HostAsk::Nothing)
            }
        }
    }

    fn address_text(&self) -> (String, String) {
        let told = match self.draft.as_ref().and_then(|draft| draft.preset) {
            Some("azure") => "The address of your resource, such as https://NAME.openai.azure.com.",
            Some("bedrock") => "With your region: https://bedrock-mantle.REGION.api.aws/anthropic.",
            Some("vertex") => {
                "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION/endpoints/openapi"
            }
            _ => "Up to the version: http://localhost:8000/v1.",
        };
        ("What is the address of the API?".to_owned(), told.to_owned())
    }

    fn key_text(&self, way: &str) -> (String, String) {
        let name = self.draft.as_ref().map_or("server", |draft| &draft.name);
        let (title, told) = match way {
            TYPED => (
                "The key",
                format!("It is kept in {}/keys/{name}, which only you can read.", self.offers.home),
            ),
            VARIABLE => {
                ("Which variable holds the key?", "Its name is written down, not the key.".to_owned())
            }
            FILE => (
                "Which file holds the key?",
                "Its path is written down; the file is read at each start.".to_owned(),
            ),
            _ => ("Which command prints the key?", "It is run by `sh -c` when the key is needed.".to_owned()),
        };
        (title.to_owned(), told)
    }

    fn provider_items(&self) -> Vec<HostItem> {
        let hosted = |wanted: bool| {
            HOSTED.iter().filter_map(move |(name, label)| {
                let variable = preset(name).and_then(|preset| self.offers.found(&preset));
                let detail = variable.map(|name| format!("{name} is set")).unwrap_or_default();
                (variable.is_some() == wanted).then(|| item(name, label, &detail))
            })
        };
        let github = match &self.offers.github {
            Some(found) => item(COPILOT, "GitHub Copilot", found),
            None => item(COPILOT, "GitHub Copilot", "needs a GitHub token"),
        };
        let is_found = self.offers.github.is_some();
        let mut items: Vec<HostItem> = hosted(true).collect();
        items.extend(Some(github.clone()).filter(|_| is_found));
        let local: Vec<&str> = LOCAL.iter().map(|(_, label)| *label).collect();
        items.push(item(LOCAL_SERVER, "A model on this machine", &local.join(", ")));
        items.extend(hosted(false));
        items.extend(Some(github).filter(|_| !is_found));
        items.push(item(COMPATIBLE, "Another server", "any that speaks OpenAI's API"));
        items.push(item(
            SCRIPTED,
            "Try it with the scripted model",
            "a demo: it follows a script, no model answers",
        ));
        items
    }

    fn way_items(&self) -> Vec<HostItem> {
        let usual = self.draft.as_ref().and_then(|draft| preset(draft.preset?)?.api_key_env);
        let usual = usual.map(|name| format!("such as {name}")).unwrap_or_default();
        let is_typed = self.draft.as_ref().is_some_and(|draft| matches!(draft.key, KeyKind::Typed(_)));
        let typed = if is_typed { "Type the key again" } else { "I type or paste it" };
        let mut items = vec![
            item(TYPED, typed, "kept in a file that only you can read"),
            item(VARIABLE, "From an environment variable", &usual),
            item(FILE, "From a file of mine", ""),
            item(COMMAND, "From a command that prints it", "such as a password manager"),
        ];
        if self.draft.as_ref().is_some_and(|draft| draft.preset.is_none()) {
            items.push(item(NO_KEY, "It needs no key", ""));
        }
        items
    }

    fn model_items(&self, first: &[HostItem]) -> Vec<HostItem> {
        let listed = self.models.iter().map(|model| item(&model.id, &model.id, &model.detail));
        let mut items: Vec<HostItem> = first.iter().cloned().chain(listed).collect();
        items.push(item(TYPE_NAME, "Another one", "type its name"));
        items
    }
}

fn is_local(preset: &str) -> bool {
    LOCAL.iter().any(|(name, _)| *name == preset)
}

fn server_items(servers: &[FoundServer]) -> Vec<HostItem> {
    let found = servers.iter().map(|server| {
        let address = preset(server.preset).and_then(|preset| preset.base_url).unwrap_or_default();
        let models =
            if server.models == 1 { "1 model".to_owned() } else { format!("{} models", server.models) };
        item(server.preset, label(server.preset), &format!("{models} at {address}"))
    });
    let mut items: Vec<HostItem> = found.collect();
    items.push(item(AGAIN, "Look again", ""));
    items.push(item(COMPATIBLE, "At another address", ""));
    items
}

fn item(id: &str, label: &str, detail: &str) -> HostItem {
    HostItem { id: id.to_owned(), label: label.to_owned(), detail: detail.to_owned() }
}

#[cfg(test)]
mod tests;
