//! `glob`: the files whose paths match a pattern.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};
use serde_json::json;

use super::walk::{HeldRoot, NameFilter, Root, SearchLimit, files, places, roots};
use crate::answer;
use crate::arguments;
use crate::held_paths::HeldPaths;
use crate::inspected::InspectedCalls;
use crate::workspace::Workspace;

/// Files listed. The list of this many is spilled anyway.
const FILES_LIMIT: usize = 50_000;

pub struct Glob {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

struct Arguments {
    pattern: String,
    paths: Vec<String>,
}

impl Glob {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: "glob".to_owned(),
                title: Some("Finding files".to_owned()),
                description: "Lists the files whose paths match a pattern. `*` stays within a directory, `**` crosses \
                              them; a pattern without a slash matches names at any depth. Files excluded by .gitignore \
                              are not listed."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "pattern": {
                            "type": "string",
                            "description": "The pattern: \"*.md\", \"src/**/*.{ts,tsx}\"."
                        },
                        "paths": {
                            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                            "description": "Directories to look in, one or several. Leave it out for the working \
                                            directory."
                        }
                    },
                    "required": ["pattern"]
                })),
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

impl Tool for Glob {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let (_, paths) = parse(call)?.split();
        let roots = roots(&self.workspace, &paths);
        self.inspected.remember(&call.call_id, places(&roots).hold());
        Ok(Access::Needs(Box::new(super::access(&self.workspace, call, &roots, |shown: &Path| {
            format!("Search for files matching pattern in: {}", shown.display())
        }))))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        let stop = SearchLimit::new(context.cancel.clone());
        Box::pin(answer::looking(context.cancel, move || {
            let text = parse(&call).and_then(|arguments| {
                let (pattern, paths) = arguments.split();
                let roots = roots(&workspace, &paths);
                let places = inspected.confirm(&call.call_id, &places(&roots))?;
                find(&pattern, &roots, &places, &stop)
            });
            match text {
                Ok(text) => ToolOutcome::success(workspace.spill.fit(text, "glob")),
                Err(answer) => answer,
            }
        }))
    }
}

fn parse(call: &ToolInput) -> Result<Arguments, ToolOutcome> {
    arguments::read(call, |a| Arguments {
        pattern: a.required_text("pattern"),
        paths: a.texts("paths", "path"),
    })
}

impl Arguments {
    /// The pattern and the places it is about. A pattern that leads elsewhere (`/etc/*.conf`, `../x/*`) is split where
    /// its first wildcard is, so that the place is one that rules can see.
    fn split(self) -> (String, Vec<String>) {
        let leads_elsewhere =
            Path::new(&self.pattern).is_absolute() || self.pattern.split('/').any(|part| part == "..");
        if !self.paths.is_empty() || !leads_elsewhere {
            return (self.pattern, self.paths);
        }
        let wildcard = self.pattern.find(['*', '?', '[', '{']).unwrap_or(self.pattern.len());
        let Some(slash) = self.pattern[..wildcard].rfind('/') else { return (self.pattern, self.paths) };
        let (place, pattern) = (&self.pattern[..slash], &self.pattern[slash + 1..]);
        let place = if place.is_empty() { "/" } else { place };
        // A slash in front keeps a name from matching at any depth, which the whole pattern would not have.
        let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("/{pattern}") };
        (pattern, vec![place.to_owned()])
    }
}

fn find(
    pattern: &str,
    roots: &[Root],
    places: &HeldPaths,
    stop: &SearchLimit,
) -> Result<String, ToolOutcome> {
    let failed = |message: String| answer::failed(message.clone(), format!("Error: {message}"));
    let filter = NameFilter::new(pattern).map_err(|error| failed(format!("rg: {error}")))?;
    let mut held = Vec::new();
    let mut absent = Vec::new();
    for root in roots {
        match HeldRoot::new(root, places) {
            Some(root) => held.push(root),
            None => absent.push(root.given.display().to_string()),
        }
    }
    if !absent.is_empty() {
        return Err(failed(format!("Search paths do not exist: {}", absent.join(", "))));
    }
    let mut names: Vec<String> = held
        .iter()
        .flat_map(|root| files(root, Some(&filter), stop))
        .map(|file| file.shown)
        .take(FILES_LIMIT)
        .collect();
    if stop.is_cancelled() {
        return Err(answer::interrupted());
    }
    let is_cut = names.len() == FILES_LIMIT || stop.is_late();
    if names.is_empty() && !is_cut {
        return Ok("No files matched the pattern.".to_owned());
    }
    // Places inside one another give their files twice, which need not be in a row.
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let mut text = names.join("\n");
    if is_cut {
        text.push_str("\n\n(Warning: Not all files are listed)");
    }
    Ok(text)
}
