//! Sessions for editors: the same composition as for a prompt, where the client says.

use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_acp::{Background, OpenError, Opened, SessionOpener, Wanted};
use hangar_agent::model::ModelProvider;
use hangar_agent::session::{Command, Input};
use hangar_protocol::data::SessionWarning;
use hangar_store::Store;
use hangar_tools::shell::Shells;

use crate::args::RunArgs;
use crate::compose::{self, Host, ModelSource, SessionRequest};
use crate::flags;
use crate::selection::Selection;
use crate::settings::Settings;

pub(super) struct Opener {
    settings: Settings,
    args: RunArgs,
}

impl Opener {
    /// Flags that make no sense are refused before there is a client.
    pub(super) fn new(settings: Settings, args: RunArgs) -> Result<Self> {
        flags::policy(&args, &settings)?;
        Ok(Self { settings, args })
    }

    fn host(&self) -> Result<Host> {
        let mut host = flags::host(&self.settings, &self.args)?;
        // Clients show how full the context is.
        host.conduct.metered = true;
        host.models = ModelSource { keeps_model: true, ..host.models.unrecorded() };
        Ok(host)
    }

    fn compose(&self, wanted: Wanted) -> Result<Opened> {
        let Wanted { id, directory, mcp_servers, warnings, sink } = wanted;
        let stored = Store::new(&self.settings.home).contains(&id);
        let mut host = self.host()?;
        host.conduct.mode = host.conduct.mode.filter(|_| !stored);
        let mut spec = flags::spec(&self.args);
        spec.workspace.directory = Some(directory);
        spec.servers.configs = Some(mcp_servers);
        spec.identity.client_name = Some("acp".to_owned());
        let request = SessionRequest {
            selection: Selection::by_id(id, stored),
            spec,
            host,
            prompt: None,
            attachments: Vec::new(),
            sink,
            hooks: None,
            away: None,
        };
        let mut opened = compose::check(&self.settings, request)?.open()?;
        opened.opening.extend(
            warnings
                .into_iter()
                .map(|warning| Input::Command(Command::Record(SessionWarning::new("mcp", warning).into()))),
        );
        Ok(Opened {
            driver: opened.driver,
            opening: opened.opening,
            mcp: opened.mcp,
            filter: opened.filter,
            background: Box::new(Commands(opened.shells)),
        })
    }
}

impl SessionOpener for Opener {
    fn open(&self, wanted: Wanted) -> Result<Opened, OpenError> {
        self.compose(wanted).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn provider(&self, model: &str) -> Result<Arc<dyn ModelProvider>, OpenError> {
        let mut spec = flags::spec(&self.args);
        spec.model.name = Some(model.to_owned());
        let provider = || compose::provider(&self.settings, &self.host()?, &spec.model);
        provider().map_err(|error| OpenError(format!("{error:#}")))
    }
}

/// Commands that run in the background of a session.
struct Commands(Shells);

impl Background for Commands {
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.0.shutdown().await })
    }
}
