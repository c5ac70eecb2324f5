//! Sessions for clients of the Agent Client Protocol, from the program's own flags.

use std::sync::Arc;

use anyhow::Result;
use hangar_acp::{EditorOpenError, EditorSessionOpener, RequestedSession};
use hangar_engine::{Engine, Naming, ServerStart};
use hangar_protocol::data::SessionWarning;
use hangar_store::Store;

use crate::args::RunArgs;
use crate::compose::working_dir;
use crate::flags;
use crate::opening::{self, ClientOrder, Questions, Resumed, SessionOrder};
use crate::selection::SessionSelection;
use crate::settings::Settings;

pub(super) struct Opener {
    settings: Settings,
    args: Arc<RunArgs>,
}

impl Opener {
    /// Flags that make no sense are refused before there is a client.
    pub(super) fn new(settings: Settings, args: RunArgs) -> Result<Self> {
        flags::policy(&args, &settings)?;
        Ok(Self { settings, args: Arc::new(args) })
    }
}

impl EditorSessionOpener for Opener {
    fn open(&self, wanted: RequestedSession) -> Result<Engine, EditorOpenError> {
        let RequestedSession { id, directory, mcp_servers, warnings, sink } = wanted;
        let directory = working_dir(Some(&directory))
            .map_err(|error| EditorOpenError::Directory(format!("{error:#}")))?;
        let stored = Store::new(&self.settings.home).contains(&id);
        let order = SessionOrder {
            args: Arc::clone(&self.args),
            selection: SessionSelection::by_id(id, stored),
            directory: Some(directory),
            system: None,
            named_after: None,
            attachments: Vec::new(),
            outputs: Vec::new(),
            resumed: Resumed::AsItWas,
            questions: Questions::Permissions,
            client: Some(ClientOrder { name: "acp", mcp_servers }),
            records: warnings.into_iter().map(|text| SessionWarning::new("mcp", text).into()).collect(),
            notes_script: false,
            is_queued: false,
        };
        let settings = self.settings.clone();
        opening::open(settings, order, ServerStart::WithPrompt, Naming::Titled, sink)
            .map(|opened| opened.engine)
            .map_err(|error| EditorOpenError::Failed(format!("{error:#}")))
    }
}
