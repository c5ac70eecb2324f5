//! The built-in tools.

use std::path::PathBuf;

use hangar_agent::tool::ToolFilter;
use serde::Deserialize;

group! {
    /// The tools that the model is shown, and the handling of their changes and outputs.
    pub struct ToolOptions {
        available: Vec<String> = "availableTools",
        excluded: Vec<String> = "excludedTools",
        precedence: ToolFilterPrecedence = "toolFilterPrecedence",
        large_output: LargeOutput = "largeOutput",
        /// Whether files are kept as they were before tools change them, for rewinding.
        tracks_files: bool = "enableFileChangeTracking",
        tool_search: ToolSearch = "toolSearch",
    }
}

impl ToolOptions {
    pub fn filter(&self) -> ToolFilter {
        // A list of what is there says all there is to say, unless the client means both lists.
        let both = self.precedence == Some(ToolFilterPrecedence::Excluded);
        let excluded = self.excluded.clone().filter(|_| both || self.available.is_none());
        ToolFilter { available: self.available.clone(), excluded: excluded.unwrap_or_default() }
    }

    /// Whether the tool for skills is asked for by name.
    pub fn names_skills(&self) -> bool {
        self.available.iter().flatten().any(|name| name == "skill" || name == "builtin:skill")
    }
}

/// Which list counts where a tool is in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolFilterPrecedence {
    Available,
    Excluded,
}

/// Hiding of tools of MCP servers behind a search when they are many.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSearch {
    pub enabled: Option<bool>,
    /// Number of all tools above which they are hidden.
    pub defer_threshold: Option<u64>,
}

/// Handling of outputs that are too large for the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LargeOutput {
    pub enabled: Option<bool>,
    pub max_size_bytes: Option<u64>,
    pub output_dir: Option<PathBuf>,
}
