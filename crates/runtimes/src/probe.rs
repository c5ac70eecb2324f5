//! Probing of an agent without a session: the path of its program, its version, flags, login and models. On this
//! machine, or on the host that it is configured for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::adapter::AgentProfile;
use crate::capabilities::Capabilities;
use crate::environment::{RuntimeEnvironment, RuntimeSettings};
use crate::host::Host;
use crate::login::{LoginQuestion, LoginSearch, LoginSources};
use crate::program_query::{ProbeHost, ProgramAnswer};
use crate::resolution::{Located, ProgramQuestions, Resolution};
use crate::runtime::{AgentOrder, LoginState, Lookup, OfferedModel, Preflight};

/// Timeout of a question about the login, or about a substitute program.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Rules for finding an agent's program, and questions that are asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Its name on the path.
    pub program: &'static str,
    /// Arguments that print its help.
    pub help: &'static [&'static str],
    /// Flags without which it is of no use, as its help names them.
    pub required: &'static [&'static str],
    /// Flags that older versions do not have, and that can be done without.
    pub optional: &'static [OptionalFlag],
    pub stand_in: Option<Substitute>,
    pub models: ModelListing,
    pub login: LoginSources,
}

/// A flag that not every version has.
#[derive(Debug, Clone, Copy)]
pub struct OptionalFlag {
    /// Name in the help text.
    pub name: &'static str,
    /// Removes the capabilities that a version without the flag lacks.
    pub without: fn(&mut Capabilities),
}

/// Program that replaces one that is not installed, if it confirms that it can.
#[derive(Debug, Clone, Copy)]
pub struct Substitute {
    pub program: &'static str,
    /// Arguments before all others.
    pub leading: &'static [&'static str],
    /// Arguments of the question.
    pub question: &'static [&'static str],
    pub answer: &'static str,
    /// Why it may not be the same.
    pub doubt: &'static str,
}

/// Source of an agent's list of models.
#[derive(Debug, Clone, Copy)]
pub enum ModelListing {
    Nobody,
    /// The catalogue of GitHub, or of the provider in its place.
    Catalogue,
    /// The program, which prints a line `provider/model` for each.
    Program {
        args: &'static [&'static str],
        refresh: &'static str,
        patience: Duration,
    },
}

/// Prober of one agent.
#[derive(Clone)]
pub(crate) struct Prober {
    profile: Arc<AgentProfile>,
    /// With the variables that are configured for the agent.
    runtime_env: Arc<RuntimeEnvironment>,
    settings: RuntimeSettings,
}

impl Prober {
    pub(crate) fn new(profile: Arc<AgentProfile>, runtime_env: &RuntimeEnvironment) -> Self {
        let settings = runtime_env.settings(&profile.card.name);
        let runtime_env = match settings.host {
            Host::Local => runtime_env.with(&settings.env),
            Host::Ssh(_) => runtime_env.clone(),
        };
        Self { profile, runtime_env: Arc::new(runtime_env), settings }
    }

    /// The same for a session with a host, variables and arguments of its own.
    pub(crate) fn of_session(&self, order: &AgentOrder) -> Self {
        let AgentOrder { host, env, extra, .. } = order;
        Self {
            profile: Arc::clone(&self.profile),
            runtime_env: match host {
                Host::Local => Arc::new(self.runtime_env.with(env)),
                Host::Ssh(_) => Arc::clone(&self.runtime_env),
            },
            settings: RuntimeSettings {
                host: host.clone(),
                env: env.clone(),
                args: extra.clone(),
                program: self.settings.program.clone(),
            },
        }
    }

    fn host(&self) -> ProbeHost<'_> {
        ProbeHost { host: &self.settings.host, runtime_env: &self.runtime_env, env: &self.settings.env }
    }

    fn probe(&self) -> &Probe {
        &self.profile.probe
    }

    /// Locates the program or its substitute. Programs on other hosts are resolved there.
    pub(crate) async fn locate(&self) -> Option<Located> {
        if let Host::Ssh(_) = self.settings.host {
            let program = self.settings.program.as_deref().unwrap_or(self.probe().program);
            return Some(Located { program: program.to_owned(), leading: Vec::new(), doubt: None });
        }
        let found = match &self.settings.program {
            Some(configured) => self.runtime_env.find(configured),
            None => self.runtime_env.on_path(self.probe().program),
        };
        match (found, &self.settings.program) {
            (Some(path), _) => Some(Located::program(&path)),
            // A configured program is used without alternatives.
            (None, Some(_)) => None,
            (None, None) => self.stand_in().await,
        }
    }

    async fn stand_in(&self) -> Option<Located> {
        let stand_in = self.probe().stand_in?;
        let program = Located::program(&self.runtime_env.on_path(stand_in.program)?);
        let located = Located {
            leading: stand_in.leading.iter().map(|word| (*word).to_owned()).collect(),
            doubt: Some(stand_in.doubt.to_owned()),
            ..program.clone()
        };
        let remembered = Resolution::remembered(&self.profile.card.name, &self.runtime_env);
        if remembered.is_some_and(|known| known.located == located) {
            return Some(located);
        }
        let answer = self.host().ask(&program, stand_in.question, ANSWER_TIME).await.ok()?;
        (answer.is_success() && answer.stdout.contains(stand_in.answer)).then_some(located)
    }

    fn questions(&self) -> ProgramQuestions<'_> {
        let Probe { help, required, optional, login, .. } = self.probe();
        let of_login = login.question.and_then(|question| question.in_help);
        let named = required.iter().copied().chain(optional.iter().map(|flag| flag.name)).chain(of_login);
        ProgramQuestions { name: &self.profile.card.name, help, named: named.collect() }
    }

    /// Facts about a program: cached if the program is unchanged, probed otherwise.
    pub(crate) async fn known(&self, located: &Located) -> Resolution {
        match self.remembered(located) {
            Some(known) => known,
            None => self.ask(located).await,
        }
    }

    pub(crate) fn remembered(&self, located: &Located) -> Option<Resolution> {
        let remembered = match self.settings.host {
            Host::Local => Resolution::remembered(&self.profile.card.name, &self.runtime_env),
            // The file may be another by now.
            Host::Ssh(_) => None,
        };
        remembered.filter(|known| known.located == *located)
    }

    /// Asks the program itself.
    pub(crate) async fn ask(&self, located: &Located) -> Resolution {
        Resolution::ask(located.clone(), &self.questions(), &self.host()).await
    }

    /// Flags among the optional ones that the program is known not to have.
    pub(crate) fn lacking(&self, known: &Resolution) -> BTreeSet<String> {
        self.lacking_flags(known).map(|flag| flag.name.to_owned()).collect()
    }

    fn lacking_flags<'a>(&self, known: &'a Resolution) -> impl Iterator<Item = &'static OptionalFlag> + 'a {
        let optional = self.probe().optional;
        optional.iter().filter(|flag| known.lacks.iter().any(|lacking| lacking == flag.name))
    }

    /// Whether some flags are optional.
    pub(crate) fn has_optional_flags(&self) -> bool {
        !self.probe().optional.is_empty()
    }

    /// Checks the login; problems are returned as sentences.
    pub(crate) async fn login(
        &self,
        located: &Located,
        known: Option<&Resolution>,
    ) -> (LoginState, Vec<String>) {
        let sources = &self.probe().login;
        let (found, mut warnings) = match self.settings.host {
            Host::Local => sources.find(&self.runtime_env),
            Host::Ssh(_) => (self.found_elsewhere(sources).await, Vec::new()),
        };
        let auth = match (found, sources.question) {
            (LoginSearch::Login(source), _) => LoginState::Found(source),
            (LoginSearch::Unclear, _) | (LoginSearch::Nothing, None) => LoginState::Unknown,
            (LoginSearch::Nothing, _) if sources.is_provider_named(&self.settings.args) => {
                LoginState::Unknown
            }
            (LoginSearch::Nothing, Some(question)) => {
                let auth = self.ask_for_login(&question, located, known).await;
                if let (LoginState::Found(_), Some(program)) = (&auth, question.program) {
                    let label = &self.profile.card.label;
                    warnings.push(format!(
                        "no token for {label} is set; the login of `{program}` is all there is"
                    ));
                }
                auth
            }
        };
        (auth, warnings)
    }

    async fn found_elsewhere(&self, sources: &LoginSources) -> LoginSearch {
        let shell = Located { program: "sh".to_owned(), leading: vec!["-c".to_owned()], doubt: None };
        match self.host().ask(&shell, &[&sources.script()], ANSWER_TIME).await {
            Ok(answer) if answer.is_success() => sources.found_by_script(&answer.stdout),
            Ok(_) | Err(_) => LoginSearch::Unclear,
        }
    }

    async fn ask_for_login(
        &self,
        question: &LoginQuestion,
        located: &Located,
        known: Option<&Resolution>,
    ) -> LoginState {
        let host = self.host();
        let asked = match question.program {
            Some(name) => match (&self.settings.host, self.runtime_env.on_path(name)) {
                (Host::Local, Some(path)) => Located::program(&path),
                (Host::Ssh(_), _) => Located { program: name.to_owned(), leading: Vec::new(), doubt: None },
                (Host::Local, None) => return LoginState::Missing,
            },
            None => {
                if let Some(word) = question.in_help {
                    let known = match known {
                        Some(known) => known.clone(),
                        None => self.known(located).await,
                    };
                    if known.lacks.iter().any(|lacking| lacking == word) {
                        return LoginState::Unknown;
                    }
                }
                located.clone()
            }
        };
        match host.ask(&asked, question.args, ANSWER_TIME).await {
            Ok(answer) => LoginSources::answered(question, Some(answer.is_success())),
            Err(_) => LoginSources::answered(question, None),
        }
    }

    /// Whether a missing login is certain: a program by another name may have logins of its own.
    pub(crate) fn is_conclusive(&self, located: &Located) -> bool {
        let name = located.program.rsplit('/').next();
        name == Some(self.probe().program)
    }

    pub(crate) fn login_problem(&self) -> String {
        format!("no login for {} was found: {}", self.profile.card.label, self.probe().login.advice)
    }

    pub(crate) fn not_installed(&self) -> String {
        format!("{} is not installed: {}", self.profile.card.label, self.profile.card.install)
    }

    pub(crate) async fn preflight(self) -> Preflight {
        let host = match &self.settings.host {
            Host::Local => None,
            Host::Ssh(ssh) => Some(ssh.target.clone()),
        };
        let Some(located) = self.locate().await else {
            return Preflight { problems: vec![self.not_installed()], host, ..Preflight::default() };
        };
        // Always anew: a look is how people find out that something has changed.
        let known = self.ask(&located).await;
        if let Some(problem) = known.absent.clone() {
            return Preflight { problems: vec![problem], host, ..Preflight::default() };
        }
        let (auth, mut warnings) = self.login(&located, Some(&known)).await;
        let program = &known.located.program;
        let mut problems = Vec::new();
        warnings.extend(known.located.doubt.clone());
        if let Some(why) = &known.trouble {
            problems.push(format!("`{program} --version` {why}"));
        }
        let required = self.probe().required;
        let missing: Vec<&str> =
            known.lacks.iter().map(String::as_str).filter(|flag| required.contains(flag)).collect();
        if !missing.is_empty() {
            let flags = missing.join(", ");
            warnings.push(format!("the help of `{program}` does not name {flags}, which are needed"));
        }
        let without: Vec<&str> = self.lacking_flags(&known).map(|flag| flag.name).collect();
        if !without.is_empty() {
            let flags = without.join(", ");
            warnings.push(format!("the help of `{program}` does not name {flags}; it is driven without"));
        }
        if auth == LoginState::Missing {
            problems.push(self.login_problem());
        }
        let mut capabilities = self.profile.card.capabilities.clone();
        self.lacking_flags(&known).for_each(|flag| (flag.without)(&mut capabilities));
        Preflight {
            program: Some(program.into()),
            host,
            capabilities: Some(capabilities).filter(|able| *able != self.profile.card.capabilities),
            version: known.version,
            help_hash: known.help_hash,
            effort_levels: known.effort_levels,
            best_effort: known.located.doubt.is_some(),
            auth,
            problems,
            warnings,
        }
    }

    pub(crate) async fn models(self, lookup: Lookup) -> Option<Vec<OfferedModel>> {
        match self.probe().models {
            ModelListing::Nobody => None,
            ModelListing::Catalogue => (self.runtime_env.catalogue.0)(lookup, &self.settings.env).await,
            ModelListing::Program { args, refresh, patience } => {
                let mut args = args.to_vec();
                if lookup == Lookup::Fresh {
                    args.push(refresh);
                }
                let located = self.locate().await?;
                let ProgramAnswer { code, stdout, .. } =
                    self.host().ask(&located, &args, patience).await.ok()?;
                (code == Some(0)).then(|| stdout.lines().filter_map(listed_model).collect())
            }
        }
    }
}

/// A line `provider/model`.
fn listed_model(line: &str) -> Option<OfferedModel> {
    let (provider, name) = line.trim().split_once('/')?;
    Some(OfferedModel {
        id: line.trim().to_owned(),
        name: Some(name.to_owned()),
        provider: Some(provider.to_owned()),
        multiplier: None,
    })
}
