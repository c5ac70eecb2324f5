//! Carrying slash commands out.

use std::path::Path;

use hangar_agent::agents::fleet;
use hangar_agent::log::{ListedFact, LogError};
use hangar_agent::session::{Command, Prompt};
use hangar_protocol::data::{Mode, PermissionMode, PermissionsChanged, SessionWarning, SkillsLoaded};

use super::{
    Autopilot, CommandError, CommandOutcome, CommandRefusal, CommandReply, ComposerRequest, McpCommand,
    Proposal, SkillsCommand, SlashCommand, prompts, tell,
};
use crate::engine::Engine;
use crate::parts::SwitchedModel;

impl Engine {
    /// Carries a command out as far as the session itself can. The caller receives the rest.
    pub fn carry_out(&mut self, command: SlashCommand) -> Result<CommandOutcome, CommandError> {
        Ok(match command {
            SlashCommand::AddDirectory(path) => text(self.add_directory(&path)?),
            SlashCommand::Autopilot(wanted) => self.autopilot(wanted)?,
            SlashCommand::Compact(focus) => CommandOutcome::Compact(focus),
            SlashCommand::Context => text(tell::context(self.session())),
            SlashCommand::Directory(None) => {
                text(format!("The session works in {}.", self.directory().display()))
            }
            SlashCommand::Directory(Some(path)) => {
                CommandOutcome::Compose(ComposerRequest::Move(self.directory().join(path)))
            }
            SlashCommand::Directories => text(tell::directories(&self.session().config().policy)),
            SlashCommand::Environment => CommandOutcome::Compose(ComposerRequest::Environment),
            SlashCommand::Fleet(task) => CommandOutcome::Send(Box::new(fleet::prompt(Some(&task)))),
            SlashCommand::Init => prompts::init(),
            SlashCommand::Mcp(McpCommand::Reload) => CommandOutcome::Compose(ComposerRequest::ReloadServers),
            SlashCommand::Mcp(command) => tell::mcp(self.mcp(), command)?,
            SlashCommand::Model(None) => text(format!("Model: {}", self.session().state().model)),
            SlashCommand::Model(Some(model)) => CommandOutcome::Compose(ComposerRequest::SwitchModel(model)),
            SlashCommand::Permissions(wanted) => {
                if let Some(mode) = wanted {
                    self.set_permission_mode(mode)?;
                }
                text(tell::permissions(self.permission_mode()).to_owned())
            }
            SlashCommand::Plan(prompt) => {
                self.admits(Mode::Plan)?;
                let shown = prompt.clone().unwrap_or_default();
                CommandOutcome::Propose(Proposal { prompt, shown, mode: Some(Mode::Plan) })
            }
            SlashCommand::Rename(name) => {
                self.rename(ListedFact::GivenName(name.clone()), name.clone())?;
                text(format!("The session is called {name} now."))
            }
            SlashCommand::ResetApprovals => {
                self.policy_mut().approvals.clear();
                self.set_permission_mode(PermissionMode::Manual)?;
                text("What was approved for this session is taken back.".to_owned())
            }
            SlashCommand::Research(question) => prompts::research(&question),
            SlashCommand::Review(what) => prompts::review(&what),
            SlashCommand::RubberDuck(what) => prompts::rubber_duck(&what),
            SlashCommand::Sandbox => text(tell::sandbox(self.sandboxed).to_owned()),
            SlashCommand::SecurityReview(what) => prompts::security_review(&what),
            SlashCommand::Session(query) => CommandOutcome::Compose(ComposerRequest::Query(query)),
            SlashCommand::SessionFiles => text(tell::files(self.session())),
            SlashCommand::Skills(SkillsCommand::Reload) => {
                let warnings = self.skills.reload();
                self.renew_skills()?;
                text(tell::reloaded(&self.skills, &warnings))
            }
            SlashCommand::Skills(SkillsCommand::List) => text(tell::skills(&self.skills)),
            SlashCommand::Skills(SkillsCommand::Info(name)) => text(tell::skill(&self.skills, &name)?),
            SlashCommand::Usage => text(tell::usage(&self.session().state().totals)),
        })
    }

    /// Executes a typed command to its end. Replies are events.
    pub(crate) fn execute(&mut self, command: Result<SlashCommand, CommandRefusal>) -> Result<(), LogError> {
        let done = command.map_err(CommandError::from).and_then(|command| {
            let outcome = self.carry_out(command)?;
            self.complete(outcome)
        });
        match done {
            Ok(None) => Ok(()),
            Ok(Some(reply)) => self.answer(Ok(reply)),
            Err(CommandError::Refused(refusal)) => self.answer(Err(refusal)),
            Err(CommandError::Log(error)) => Err(error),
        }
    }

    /// Does what is left of a command. `None` where its end is still to come.
    fn complete(&mut self, outcome: CommandOutcome) -> Result<Option<CommandReply>, CommandError> {
        match outcome {
            CommandOutcome::Replied(reply) => return Ok(Some(reply)),
            CommandOutcome::Later(reply) => self.reply_later(reply),
            CommandOutcome::Send(prompt) => self.send(*prompt)?,
            CommandOutcome::Propose(Proposal { prompt, shown, mode }) => {
                if let Some(mode) = mode {
                    self.command(Command::SetMode(mode))?;
                }
                let Some(prompt) = prompt else { return Ok(Some(CommandReply::Done(None))) };
                let shown = Some(shown).filter(|shown| *shown != prompt);
                self.send(Prompt { shown, ..Prompt::user(prompt) })?;
            }
            CommandOutcome::Compact(focus) => self.compact(focus)?,
            CommandOutcome::Compose(request) => return self.compose(request),
        }
        Ok(None)
    }

    /// Does what takes more than the session. `None` where the end is still to come.
    fn compose(&mut self, request: ComposerRequest) -> Result<Option<CommandReply>, CommandError> {
        let composer = std::sync::Arc::clone(&self.composer);
        Ok(Some(match request {
            ComposerRequest::Move(directory) => {
                self.recompose(&directory)?;
                CommandReply::Done(Some(format!("The session works in {} now.", self.directory().display())))
            }
            ComposerRequest::SwitchModel(model) => self.switch_model(&model)?,
            ComposerRequest::ReloadServers => {
                let directory = self.directory().to_path_buf();
                self.recompose(&directory)?;
                let host = self.mcp().cloned();
                self.reply_later(Box::pin(async move {
                    if let Some(host) = &host {
                        host.connect_all().await;
                    }
                    Ok(tell::mcp_list(host.as_ref()))
                }));
                return Ok(None);
            }
            ComposerRequest::Environment => self.environment(composer.instruction_files(self.directory())),
            ComposerRequest::Query(query) => {
                let answer = tell::query(query, composer.record()?, self.directory().to_path_buf());
                self.reply_later(Box::pin(answer));
                return Ok(None);
            }
        }))
    }

    /// Has another model answer.
    pub fn switch_model(&mut self, model: &str) -> Result<CommandReply, CommandError> {
        let effort = self.session().state().effort.clone();
        let SwitchedModel { provider, effort_notice } = self.composer.provider(model, effort.as_deref())?;
        self.set_provider(provider, model);
        let before = self.session().state().model.clone();
        self.command(Command::SetModel { model: model.to_owned(), effort })?;
        if let Some(notice) = effort_notice {
            self.command(Command::Record(SessionWarning::new("configuration", notice).into()))?;
        }
        Ok(CommandReply::Text(format!("Model changed from {before} to {model}")))
    }

    /// Recomposes the session. If that fails, it continues unchanged.
    fn recompose(&mut self, directory: &Path) -> Result<(), CommandError> {
        if !self.driver.is_idle() {
            let busy = "the session is at work; abort it or wait for it to be idle";
            return Err(CommandRefusal::new(busy).into());
        }
        // The new composition opens the log.
        self.driver.rest();
        let parts = self.composer.recompose(directory)?;
        self.replace(parts);
        self.open()?;
        self.start_servers();
        Ok(self.catch_up()?)
    }

    /// Instructions, tools and servers of the session.
    pub fn environment(&self, instructions: Vec<String>) -> CommandReply {
        tell::environment(self, instructions)
    }

    fn add_directory(&mut self, path: &str) -> Result<String, CommandRefusal> {
        let wanted = self.directory().join(path);
        let directory = std::fs::canonicalize(&wanted).ok().filter(|real| real.is_dir());
        let Some(directory) = directory else {
            return Err(CommandRefusal(format!("there is no directory {}", wanted.display())));
        };
        let told = format!("The session may use the files of {}.", directory.display());
        let roots = &mut self.policy_mut().roots;
        if !roots.contains(&directory) {
            roots.push(directory);
        }
        Ok(told)
    }

    fn autopilot(&mut self, wanted: Autopilot) -> Result<CommandOutcome, CommandError> {
        let mode = match wanted {
            Autopilot::Toggle if self.session().state().mode == Mode::Autopilot => Mode::Interactive,
            Autopilot::Off => Mode::Interactive,
            Autopilot::Toggle | Autopilot::On => Mode::Autopilot,
            Autopilot::Objective(objective) => {
                self.admits(Mode::Autopilot)?;
                let shown = objective.clone();
                let mode = Some(Mode::Autopilot);
                return Ok(CommandOutcome::Propose(Proposal { prompt: Some(objective), shown, mode }));
            }
        };
        self.admits(mode)?;
        self.command(Command::SetMode(mode))?;
        let state = if mode == Mode::Autopilot { "on" } else { "off" };
        Ok(CommandOutcome::Replied(CommandReply::Done(Some(format!("The autopilot is {state}.")))))
    }

    /// Checks that sessions may use this mode.
    fn admits(&self, mode: Mode) -> Result<(), CommandRefusal> {
        match self.options.features.absent_mode(mode) {
            Some(feature) => Err(CommandRefusal(format!("the feature `{feature}` is off"))),
            None => Ok(()),
        }
    }

    pub fn permission_mode(&self) -> PermissionMode {
        match self.session().config().policy.allow_all_tools {
            true => PermissionMode::AllowAll,
            false => PermissionMode::Manual,
        }
    }

    /// Sets the permission mode and publishes it. False for an unknown mode.
    pub fn set_permission_mode(&mut self, mode: PermissionMode) -> Result<bool, LogError> {
        let before = self.permission_mode();
        let all = match mode {
            PermissionMode::AllowAll => true,
            PermissionMode::Manual => false,
            // No model has an opinion on permissions here.
            PermissionMode::Assisted => return Ok(false),
        };
        self.policy_mut().set_allow_all(all);
        if mode != before {
            let previous_mode = Some(before);
            self.record(PermissionsChanged { previous_mode, mode, assisted_approval_model: None })?;
        }
        Ok(true)
    }

    /// Shows the model the current skills, and publishes them.
    fn renew_skills(&mut self) -> Result<(), LogError> {
        self.offer_skills()?;
        let skills = self.skills.list();
        self.record(SkillsLoaded { skills })
    }
}

fn text(text: String) -> CommandOutcome {
    CommandOutcome::Replied(CommandReply::Text(text))
}
