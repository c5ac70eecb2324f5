//! The built-in tools.

mod answer;
mod arguments;
pub mod files;
mod held_paths;
mod inspected;
pub mod memory;
pub mod patch;
pub mod paths;
pub mod search;
pub mod shell;
pub mod spill;
pub mod sql;
pub mod tool_files;
pub mod web;
mod workspace;

use std::sync::Arc;

use hangar_agent::tool::Tool;

pub use workspace::Workspace;

/// Set of tools for files that a model was trained on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileToolSet {
    /// `create`, `edit` and `grep`.
    #[default]
    Edits,
    /// `apply_patch` and `rg`: the GPT-5 families.
    Patches,
}

/// Configuration of the built-in tools.
#[derive(Clone)]
pub struct Builtin {
    pub workspace: Arc<Workspace>,
    pub dialect: FileToolSet,
    /// Shared by everything of a session that keeps or shows todos.
    /// `None` where there is none to be had: `sql` is then not offered.
    pub database: Option<Arc<sql::Database>>,
    /// `None` without a network: `web_fetch` is then not offered.
    pub web: Option<web::WebAccess>,
}

/// The built-in tools other than the shell's, in the order in which models are shown them.
pub fn builtin(options: Builtin) -> Vec<Arc<dyn Tool>> {
    let Builtin { workspace, dialect, database, web } = options;
    let mut tools: Vec<Arc<dyn Tool>> = match dialect {
        FileToolSet::Edits => vec![
            workspace.files.adapt(Arc::new(files::View::new(Arc::clone(&workspace)))),
            workspace.files.adapt(Arc::new(files::Create::new(Arc::clone(&workspace)))),
            workspace.files.adapt(Arc::new(files::EditTool::new(Arc::clone(&workspace)))),
        ],
        FileToolSet::Patches => vec![
            workspace.files.adapt(Arc::new(patch::ApplyPatch::new(Arc::clone(&workspace)))),
            workspace.files.adapt(Arc::new(files::View::new(Arc::clone(&workspace)))),
        ],
    };
    if let Some(reach) = web {
        tools.push(Arc::new(web::WebFetch::new(Arc::clone(&workspace), reach)));
    }
    if let Some(database) = database {
        tools.push(Arc::new(sql::Sql::new(Arc::clone(&workspace), database)));
    }
    let grep = match dialect {
        FileToolSet::Edits => "grep",
        FileToolSet::Patches => "rg",
    };
    tools.push(Arc::new(search::Grep::new(grep, Arc::clone(&workspace))));
    tools.push(Arc::new(search::Glob::new(workspace)));
    tools
}
