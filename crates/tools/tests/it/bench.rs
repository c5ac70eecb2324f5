//! A directory with files, the tools on it, and calls to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use expect_test::Expect;
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolStatus, Toolset,
};
use hangar_protocol::Body;
use hangar_protocol::data::ToolType;
use hangar_tools::spill::Spill;
use hangar_tools::sql::Database;
use hangar_tools::tool_files::ToolFiles;
use hangar_tools::web::{Addresses, WebAccess};
use hangar_tools::{Builtin, FileToolSet, Workspace, builtin};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) struct Bench {
    _dir: TempDir,
    /// Has `w`, the workspace, and room beside it for what lies outside.
    base: PathBuf,
    tools: Toolset,
}

/// Result of a call, and the events that it sent.
pub(crate) struct Answer {
    pub(crate) outcome: ToolOutcome,
    pub(crate) events: Vec<Body>,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with(FileToolSet::Edits, WebAccess::default(), files)
    }

    pub(crate) fn for_patches(files: &[(&str, &str)]) -> Self {
        Self::with(FileToolSet::Patches, WebAccess::default(), files)
    }

    /// With access to servers on this machine.
    pub(crate) fn for_web(reach: WebAccess) -> Self {
        Self::with(FileToolSet::Edits, WebAccess { addresses: Addresses::Any, ..reach }, &[])
    }

    pub(crate) fn with(dialect: FileToolSet, reach: WebAccess, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("w")).unwrap();
        let workspace = Arc::new(Workspace {
            cwd: base.join("w"),
            spill: Spill {
                dir: base.join("spill"),
                threshold: 20 * 1024,
                clean: None,
                files: ToolFiles::Here,
            },
            files: ToolFiles::Here,
            images: hangar_images::ImageLimits::default(),
        });
        let database = Arc::new(Database::new(base.join("session/session.db")));
        let database = Some(database);
        let tools = Toolset::new(builtin(Builtin { workspace, dialect, database, web: Some(reach) }));
        let bench = Self { _dir: dir, base, tools };
        for (name, content) in files {
            bench.write(name, content);
        }
        bench
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join("w").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        Arc::clone(self.tools.find(name).unwrap())
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.tools.names().collect()
    }

    /// `$W` in arguments stands for the workspace, `$O` for the directory around it.
    pub(crate) fn input(&self, arguments: &Value) -> ToolInput {
        let text = arguments.to_string().replace("$W", &self.shown("w")).replace("$O", &self.shown(""));
        let arguments: Value = serde_json::from_str(&text).unwrap();
        let kind = if arguments.is_string() { ToolType::Custom } else { ToolType::Function };
        ToolInput { call_id: "call".to_owned(), kind, arguments }
    }

    fn shown(&self, name: &str) -> String {
        self.base.join(name).display().to_string().trim_end_matches('/').to_owned()
    }

    /// Inspects a call and, if that has nothing against it, runs it.
    pub(crate) async fn call(&self, name: &str, arguments: &Value) -> Answer {
        let (tool, input) = (self.tool(name), self.input(arguments));
        match tool.inspect(&input) {
            Err(outcome) => Answer { outcome, events: Vec::new() },
            Ok(_) => self.run(&*tool, input).await,
        }
    }

    pub(crate) async fn run(&self, tool: &dyn Tool, input: ToolInput) -> Answer {
        let (progress, mut events) = mpsc::channel(64);
        let context = ToolContext {
            grant: hangar_agent::permissions::Grant::Full,
            cancel: CancellationToken::new(),
            hurry: CancellationToken::new(),
            progress,
        };
        let outcome = tool.run(input, context).await;
        let mut seen = Vec::new();
        while let Ok(event) = events.try_recv() {
            seen.push(*event);
        }
        Answer { outcome, events: seen }
    }

    /// Access that a call would need, in words.
    pub(crate) fn inspect(&self, name: &str, arguments: &Value) -> String {
        match self.tool(name).inspect(&self.input(arguments)) {
            Err(outcome) => self.render(&outcome),
            Ok(Access::None) => "nothing".to_owned(),
            Ok(Access::Needs(access)) => {
                let AccessRequest { request, reads, writes } = *access;
                let request = serde_json::to_string_pretty(&request).unwrap();
                let list = |paths: &[PathBuf]| -> String {
                    paths.iter().map(|path| format!(" {}", path.display())).collect()
                };
                self.tidy(&format!("{request}\nreads{}\nwrites{}", list(&reads), list(&writes)))
            }
        }
    }

    pub(crate) fn render(&self, outcome: &ToolOutcome) -> String {
        let text = match (outcome.status, &outcome.error) {
            (ToolStatus::Success, _) => outcome.text.clone(),
            (status, None) => format!("{status:?}: {}", outcome.text),
            (status, Some(error)) => format!("{status:?} ({error}): {}", outcome.text),
        };
        self.tidy(&text)
    }

    pub(crate) fn tidy(&self, text: &str) -> String {
        text.replace(&self.shown("w"), "$W").replace(&self.shown(""), "$O")
    }

    pub(crate) async fn check(&self, name: &str, arguments: Value, expected: Expect) {
        let answer = self.call(name, &arguments).await;
        expected.assert_eq(&self.render(&answer.outcome));
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }
}
