//! Sessions for clients of the Agent Client Protocol: the same composition as for a prompt, from the program's own flags.

use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_acp::{Background, OpenError, Opened, SessionOpener, Wanted};
use hangar_agent::model::ModelProvider;
use hangar_agent::session::{Command, Compaction, Input};
use hangar_protocol::data::SessionWarning;
use hangar_store::Store;
use hangar_tools::shell::Shells;

use crate::args::RunArgs;
use crate::compose::{self, Plan};
use crate::plan;
use crate::providers::{self, Chosen};
use crate::redact;
use crate::selection::Selection;
use crate::settings::Settings;

pub(super) struct Opener {
    settings: Settings,
    args: RunArgs,
}

impl Opener {
    /// Flags that make no sense are refused before there is a client.
    pub(super) fn new(settings: Settings, args: RunArgs) -> Result<Self> {
        plan::policy(&args, &settings)?;
        Ok(Self { settings, args })
    }

    fn choose(&self, model: Option<&str>) -> Result<Chosen> {
        providers::choose(&self.settings, providers::Wanted { model, ..providers::Wanted::default() })
    }

    fn compose(&self, wanted: Wanted) -> Result<Opened> {
        let Wanted { id, directory, mcp_servers, warnings, sink } = wanted;
        let choose = |before: Option<&str>| self.choose(self.args.model.as_deref().or(before));
        let usual = plan::of_run(&self.settings, &self.args, "", &choose, sink)?;
        let mut servers = usual.mcp;
        if let Some(servers) = &mut servers {
            servers.client.extend(mcp_servers);
        }
        let stored = Store::new(&self.settings.home).contains(&id);
        let plan = Plan {
            selection: if stored { Selection::Resume(id) } else { Selection::New { id, name: None } },
            directory: Some(directory),
            mode: usual.mode.filter(|_| !stored),
            // Clients show how full the context is.
            metered: true,
            compaction: Some(Compaction::default()),
            prompt: None,
            mcp: servers,
            client_name: Some("acp".to_owned()),
            ..usual
        };
        let mut composed = compose::session(&self.settings, plan)?;
        composed.opening.extend(
            warnings
                .into_iter()
                .map(|warning| Input::Command(Command::Record(SessionWarning::new("mcp", warning).into()))),
        );
        Ok(Opened {
            driver: composed.driver,
            opening: composed.opening,
            mcp: composed.mcp,
            filter: plan::filter(&self.args),
            background: Box::new(Commands(composed.shells)),
        })
    }
}

impl SessionOpener for Opener {
    fn open(&self, wanted: Wanted) -> Result<Opened, OpenError> {
        self.compose(wanted).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn provider(&self, model: &str) -> Result<Arc<dyn ModelProvider>, OpenError> {
        let chosen = self.choose(Some(model)).map_err(|error| OpenError(format!("{error:#}")))?;
        let redactor = redact::of_session(&self.settings, &self.args.secret_env_vars, &[], &chosen);
        Ok(redactor.provider(chosen.provider))
    }
}

/// Commands that run in the background of a session.
struct Commands(Shells);

impl Background for Commands {
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.0.shutdown().await })
    }
}
