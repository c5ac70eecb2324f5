//! Where in a client's file system a session's files are.

use std::sync::Arc;

use crate::keeper::FileKeeper;
use crate::queue::ClientFiles;

/// How paths are written there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Conventions {
    #[default]
    Posix,
    Windows,
}

/// The folder of one session with a client.
#[derive(Debug, Clone)]
pub struct ClientHome {
    pub files: ClientFiles,
    root: String,
    conventions: Conventions,
    /// Whether there is a database too.
    pub has_tables: bool,
    /// Where the session works, unless it is told otherwise.
    pub initial_cwd: String,
}

impl ClientHome {
    pub fn new(
        keeper: Arc<dyn FileKeeper>,
        root: &str,
        conventions: Conventions,
        has_tables: bool,
        initial_cwd: &str,
    ) -> Self {
        let plan = join(root, conventions, "plan.md");
        Self {
            files: ClientFiles::new(keeper, plan),
            root: root.to_owned(),
            conventions,
            has_tables,
            initial_cwd: initial_cwd.to_owned(),
        }
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    /// The path of a file in the folder, whose name here has `/` between its parts.
    pub fn path(&self, name: &str) -> String {
        join(&self.root, self.conventions, name)
    }

    /// The plan, as it was last read or written.
    pub fn plan(&self) -> Option<String> {
        self.files.known()
    }
}

fn join(root: &str, conventions: Conventions, name: &str) -> String {
    match conventions {
        Conventions::Posix => format!("{}/{name}", root.trim_end_matches('/')),
        Conventions::Windows => {
            format!("{}\\{}", root.trim_end_matches(['/', '\\']), name.replace('/', "\\"))
        }
    }
}
