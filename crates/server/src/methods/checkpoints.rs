//! Files beside a session's log (checkpoints, large pastes), and changes in its working directory.

use std::path::PathBuf;
use std::time::Duration;

use hangar_git::{CallLimits, Filters};
use hangar_protocol::data::{FileOperation, WorkspaceFileChanged};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

/// Largest paste that is kept.
const MAX_PASTE: usize = 16 << 20;
/// Largest difference of one file that is shown, and the most files.
const MAX_DIFF: usize = 1 << 20;
const MAX_FILES: usize = 1000;
/// Time and output limits of a call of git.
const GIT_BOUNDS: CallLimits = CallLimits { time: Duration::from_secs(30), output: 64 << 20 };

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.workspaces.listCheckpoints", run: |call| Box::pin(list(call)) },
    Method { name: "session.workspaces.readCheckpoint", run: |call| Box::pin(read(call)) },
    Method { name: "session.workspaces.addSummary", run: |call| Box::pin(add_summary(call)) },
    Method { name: "session.workspaces.truncateSummaries", run: |call| Box::pin(truncate_summaries(call)) },
    Method { name: "session.workspaces.saveLargePaste", run: |call| Box::pin(save_paste(call)) },
    Method { name: "session.workspaces.diff", run: |call| Box::pin(diff(call)) },
];

async fn list(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let entries = live.dir.checkpoints().await?;
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| json!({ "number": entry.number, "title": entry.title, "filename": entry.file }))
        .collect();
    Reply::of(json!({ "checkpoints": entries }))
}

async fn read(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        number: u64,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    Reply::of(json!({ "content": live.dir.checkpoint(params.number).await? }))
}

async fn add_summary(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        title: String,
        content: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if params.content.len() > MAX_PASTE {
        return Err(Failure::new(format!("the summary is larger than {} MB", MAX_PASTE >> 20)));
    }
    let _one_at_a_time = live.client_metadata.lock().await;
    let entry = live.dir.add_checkpoint(&params.title, &params.content).await?;
    let path = live.dir.path(&format!("checkpoints/{}", entry.file));
    let summary = json!({
        "checkpointNumber": entry.number,
        "checkpointTitle": entry.title,
        "checkpointPath": path,
    });
    let workspace = super::workspace_facts::workspace(&call).await?;
    Reply::of(json!({ "summary": summary, "workspace": workspace }))
}

async fn truncate_summaries(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        keep_count: usize,
    }
    let Params { keep_count } = call.params()?;
    let live = call.live()?;
    let one_at_a_time = live.client_metadata.lock().await;
    live.dir.truncate_checkpoints(keep_count).await?;
    drop(one_at_a_time);
    super::workspace_facts::told(call).await
}

async fn save_paste(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        content: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if params.content.len() > MAX_PASTE {
        return Err(Failure::new(format!("the paste is larger than {} MB", MAX_PASTE >> 20)));
    }
    let filename = format!("paste-{}.txt", (call.hub.config().now)().as_millisecond());
    let name = format!("files/{filename}");
    let size = params.content.len();
    live.dir.write(&name, params.content).await?;
    let changed = WorkspaceFileChanged { path: filename.clone(), operation: FileOperation::Create };
    live.ask(move |task| task.record(changed)).await?;
    Reply::of(json!({
        "saved": { "filename": filename, "filePath": live.dir.path(&name), "sizeBytes": size },
    }))
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DiffMode {
    Unstaged,
    Branch,
    Session,
}

impl DiffMode {
    fn as_str(self) -> &'static str {
        match self {
            DiffMode::Unstaged => "unstaged",
            DiffMode::Branch => "branch",
            DiffMode::Session => "session",
        }
    }
}

async fn diff(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        mode: DiffMode,
        #[serde(default)]
        ignore_whitespace: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let (cwd, launcher, tracked) = live
        .ask(|task| {
            let launcher = task.sandbox().map(|sandbox| sandbox.wrap("git".as_ref()));
            let tracked = task.spec.tools.tracks_files.unwrap_or(false);
            (PathBuf::from(task.cwd()), launcher, tracked)
        })
        .await?;
    // The session's commands may have written the repository's settings, so git is confined as they are.
    let git = call.hub.config().git.clone().launched_by(launcher);
    let git = Git(git.open(&cwd, Filters::Off).await.ok());
    let base = match params.mode {
        DiffMode::Branch => git.branch_base().await,
        DiffMode::Unstaged | DiffMode::Session => None,
    };
    let mode = if base.is_some() { DiffMode::Branch } else { DiffMode::Unstaged };
    let against = base.as_ref().map_or("HEAD", |(_, commit)| commit.as_str());
    let mut arguments = vec![
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=dirty",
        "--submodule=short",
        "-M",
    ];
    if params.ignore_whitespace {
        arguments.push("--ignore-all-space");
    }
    arguments.push(against);
    let mut changes = split(&git.says(&arguments).await.unwrap_or_default());
    let new = git.says(&["ls-files", "--others", "--exclude-standard"]).await.unwrap_or_default();
    for path in new.lines().take(MAX_FILES.saturating_sub(changes.len())) {
        // A file that Git does not know is compared with nothing; then it says so with its exit code.
        let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-index"];
        let shown = git.says(&[&plain[..], &["--", "/dev/null", path]].concat()).await;
        changes.push(change(path, None, "added", shown.unwrap_or_default()));
    }
    let mut result = json!({
        "requestedMode": params.mode.as_str(),
        "mode": mode.as_str(),
        "changes": changes,
        "isFallback": params.mode != mode,
    });
    if let Some((branch, _)) = base {
        result["baseBranch"] = json!(branch);
    }
    if params.mode == DiffMode::Session && !tracked {
        result["unavailableReason"] = json!("file-change-tracking-disabled");
    }
    Reply::of(result)
}

/// Git in a session's directory, if there is any.
struct Git<'a>(Option<hangar_git::WorkTree<'a>>);

impl Git<'_> {
    /// Default branch, and the merge base with the current one.
    async fn branch_base(&self) -> Option<(String, String)> {
        let remote = self.says(&["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]).await;
        for branch in remote.as_deref().map(str::trim).into_iter().chain(["main", "master"]) {
            if let Some(commit) = self.says(&["merge-base", branch, "HEAD"]).await {
                return Some((branch.to_owned(), commit.trim().to_owned()));
            }
        }
        None
    }

    /// Output of git. Exit code 1 is a valid result too: there are differences.
    async fn says(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.0.as_ref()?.run(arguments, GIT_BOUNDS).await.ok()?;
        let answered = answer.code == 0 || (answer.code == 1 && !answer.stdout.is_empty()) || answer.cut;
        answered.then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
    }
}

/// One change per file of a difference.
fn split(text: &str) -> Vec<Value> {
    const START: &str = "diff --git ";
    let mut files: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with(START) {
            if files.len() == MAX_FILES {
                break;
            }
            files.push(String::new());
        }
        if let Some(file) = files.last_mut() {
            file.push_str(line);
        }
    }
    files.into_iter().filter_map(describe).collect()
}

fn describe(diff: String) -> Option<Value> {
    // The headers end where the first hunk begins.
    let headers: Vec<&str> = diff.lines().take_while(|line| !line.starts_with("@@")).collect();
    let after = |mark: &str| headers.iter().find_map(|line| line.strip_prefix(mark));
    let has = |mark: &str| headers.iter().any(|line| line.starts_with(mark));
    let old = after("rename from ").or_else(|| after("--- a/"));
    let new = after("rename to ").or_else(|| after("+++ b/"));
    // A file without hunks (binary, empty, a mode) has its name in the first line only.
    let named = headers.first()?.rsplit_once(" b/").map(|(_, path)| path);
    let path = new.or(old).or(named)?.trim_end_matches('\t').to_owned();
    let kind = match () {
        () if has("new file mode") => "added",
        () if has("deleted file mode") => "deleted",
        () if has("rename from ") => "renamed",
        () => "modified",
    };
    let old = (kind == "renamed").then(|| old.map(str::to_owned)).flatten();
    Some(change(&path, old.as_deref(), kind, diff))
}

fn change(path: &str, old: Option<&str>, kind: &str, diff: String) -> Value {
    let truncated = diff.len() > MAX_DIFF;
    let mut value = json!({
        "path": path,
        "diff": if truncated { String::new() } else { diff },
        "changeType": kind,
    });
    if truncated {
        value["isTruncated"] = json!(true);
    }
    if let Some(old) = old {
        value["oldPath"] = json!(old);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diff: &str, expected: &[(&str, &str)]) {
        let found = split(diff);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|change| {
                (change["path"].as_str().unwrap_or(""), change["changeType"].as_str().unwrap_or(""))
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_difference_is_told_file_by_file() {
        check(
            "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\
             diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+--- a/no\n\
             diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n\
             diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
             diff --git a/i.png b/i.png\nindex 1..2 100644\nBinary files a/i.png and b/i.png differ\n",
            &[("x", "modified"), ("n", "added"), ("new", "renamed"), ("d", "deleted"), ("i.png", "modified")],
        );
    }
}
