//! Storage of outputs that are too large for the model.

use std::path::PathBuf;

use anyhow::Result;
use hangar_spec::LargeOutput;
use hangar_tools::paths;
use hangar_tools::spill::{Cleaner, DEFAULT_THRESHOLD, Spill};
use hangar_tools::tool_files::ToolFiles;

use crate::redact::Redactor;
use crate::settings::Settings;

/// The directory for large outputs, and its owner.
#[derive(Clone)]
pub(super) struct SpillDir {
    pub(super) dir: PathBuf,
    pub(super) files: ToolFiles,
}

/// Size above which an output is large, unless the session sets its own.
pub(super) fn threshold(settings: &Settings) -> Result<usize> {
    Ok(settings.number("COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES")?.unwrap_or(DEFAULT_THRESHOLD))
}

impl SpillDir {
    pub(super) fn spill(
        &self,
        threshold: usize,
        options: Option<&LargeOutput>,
        redactor: &Redactor,
    ) -> Spill {
        let (threshold, dir) = match options {
            None => (threshold, self.dir.clone()),
            Some(LargeOutput { enabled: Some(false), .. }) => (usize::MAX, self.dir.clone()),
            Some(options) => {
                let size = options.max_size_bytes.and_then(|size| usize::try_from(size).ok());
                let chosen = options.output_dir.as_deref().and_then(|dir| std::path::absolute(dir).ok());
                let dir = chosen.map_or_else(|| self.dir.clone(), |chosen| paths::resolve(&chosen));
                (size.unwrap_or(threshold), dir)
            }
        };
        let redactor = redactor.clone();
        let clean = Cleaner::new(move |text| redactor.text(text));
        Spill { dir, threshold, files: self.files.clone(), clean: Some(clean) }
    }
}
