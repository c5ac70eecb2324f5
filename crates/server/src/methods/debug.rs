//! `session.debug.collectLogs`: the log of a session and the logs of the server, in a directory or an archive for a report. Values that
//! look like credentials are replaced; the session's own log has none, since its secrets are redacted when it is written.

mod archive;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use self::archive::ArchiveWriter;
use super::{Call, Failure, Method, Reply};

/// Largest file that is collected; of a longer one the end.
const MAX_FILE: usize = 32 << 20;
/// Most files of the caller.
const MAX_ENTRIES: usize = 100;
/// Process logs that are collected beside the current one, unless the caller says otherwise.
const PREVIOUS_LOGS: usize = 5;

pub(super) const METHODS: &[Method] =
    &[Method { name: "session.debug.collectLogs", run: |call| Box::pin(collect(call)) }];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    destination: Destination,
    #[serde(default)]
    include: Include,
    #[serde(default)]
    additional_entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Destination {
    Directory {
        output_directory: PathBuf,
    },
    Archive {
        output_path: PathBuf,
        #[serde(default)]
        no_overwrite: bool,
    },
}

impl Destination {
    fn path(&self) -> &Path {
        match self {
            Self::Directory { output_directory } => output_directory,
            Self::Archive { output_path, .. } => output_path,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Include {
    events: Option<bool>,
    process_logs: Option<bool>,
    previous_process_log_limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    path: PathBuf,
    bundle_path: String,
    #[serde(default)]
    required: bool,
}

/// A bundle that is being written.
struct Bundle {
    /// The directory, or the place of the archive.
    path: PathBuf,
    /// `None` for a directory.
    archive: Option<ArchiveWriter>,
    entries: Vec<Value>,
    skipped: Vec<Value>,
}

impl Bundle {
    fn add(&mut self, name: &str, source: &str, text: &str) -> Result<(), Failure> {
        let text = redacted(text);
        let written = match &mut self.archive {
            Some(archive) => archive.add(name, &text),
            None => hangar_disk::keep(&self.path.join(name), &text),
        };
        written.map_err(|error| unwritten(&self.path.join(name), &error))?;
        self.entries.push(json!({ "bundlePath": name, "source": source, "sizeBytes": text.len() }));
        Ok(())
    }

    fn skip(&mut self, name: &str, path: &Path, reason: &str) {
        self.skipped.push(json!({ "bundlePath": name, "path": path, "reason": reason }));
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
}

/// Text in which values that look like credentials are replaced.
fn redacted(text: &str) -> String {
    const STARTS: [&str; 8] = ["ghp_", "gho_", "ghu_", "ghs_", "github_pat_", "sk-", "xoxb-", "Bearer "];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, start)) =
        STARTS.iter().filter_map(|start| Some((rest.find(start)?, *start))).min_by_key(|(at, _)| *at)
    {
        let (before, found) = rest.split_at(at);
        let value = &found[start.len()..];
        let end = value.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_.=".contains(letter));
        let length = end.unwrap_or(value.len());
        out.push_str(before);
        out.push_str(start);
        // A short word is not a credential.
        out.push_str(if length >= 16 { "[redacted]" } else { &value[..length] });
        rest = &value[length..];
    }
    out.push_str(rest);
    out
}

/// The end of a file as text.
fn read_end(path: &Path) -> std::io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_FILE as u64)))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Paths of the server's log files, the newest first.
fn process_logs(home: &Path, limit: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.join("logs")).into_iter().flatten().flatten();
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            Some((entry.metadata().ok().filter(std::fs::Metadata::is_file)?.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).take(limit).collect()
}

async fn collect(call: Call) -> Result<Reply, Failure> {
    let Params { destination, include, additional_entries } = call.params()?;
    let live = call.live()?;
    if destination.path().as_os_str().is_empty() || additional_entries.len() > MAX_ENTRIES {
        return Err(Failure::Params(format!(
            "a bundle has a place, and at most {MAX_ENTRIES} entries of the caller"
        )));
    }
    let path = call.hub.config().directory.join(destination.path());
    let archive = match destination {
        Destination::Directory { .. } => None,
        Destination::Archive { .. } => {
            Some(ArchiveWriter::create(&path).map_err(|error| unwritten(&path, &error))?)
        }
    };
    let mut bundle = Bundle { path, archive, entries: Vec::new(), skipped: Vec::new() };
    if include.events.unwrap_or(true) {
        // Work in progress is logged before the log is copied.
        live.ask(|_| ()).await?;
        let events = super::sessions::events(&call, &live.id).await?;
        let lines: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
        let lines = lines.map_err(|error| Failure::new(error.to_string()))?;
        bundle.add("events.jsonl", "events", &format!("{}\n", lines.join("\n")))?;
    }
    if include.process_logs.unwrap_or(true) {
        let limit = include.previous_process_log_limit.unwrap_or(PREVIOUS_LOGS).min(MAX_ENTRIES) + 1;
        for path in process_logs(&call.hub.home(), limit) {
            let name = format!("logs/{}", path.file_name().unwrap_or_default().to_string_lossy());
            match read_end(&path) {
                Ok(text) => bundle.add(&name, "process-log", &text)?,
                Err(error) => bundle.skip(&name, &path, &error.to_string()),
            }
        }
    }
    for Entry { path, bundle_path, required } in additional_entries {
        let stays =
            Path::new(&bundle_path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !stays || bundle_path.is_empty() {
            return Err(Failure::Params(format!("`bundlePath` {bundle_path} leads out of the bundle")));
        }
        match read_end(&path) {
            Ok(text) => bundle.add(&bundle_path, "additional", &text)?,
            Err(error) if required => {
                return Err(Failure::new(format!("{} cannot be read: {error}", path.display())));
            }
            Err(error) => bundle.skip(&bundle_path, &path, &error.to_string()),
        }
    }
    let (kind, path) = match (bundle.archive, destination) {
        (Some(archive), Destination::Archive { no_overwrite, .. }) => {
            let done = archive.finish(&bundle.path, !no_overwrite);
            ("archive", done.map_err(|error| unwritten(&bundle.path, &error))?)
        }
        _ => ("directory", bundle.path),
    };
    let mut result = json!({ "kind": kind, "path": path, "entries": bundle.entries });
    if !bundle.skipped.is_empty() {
        result["skippedEntries"] = json!(bundle.skipped);
    }
    Reply::of(result)
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn values_that_look_like_credentials_are_replaced() {
        for (text, expected) in [
            ("token ghp_0123456789abcdef0123 end", "token ghp_[redacted] end"),
            ("Authorization: Bearer abcdefghijklmnopqrst\n", "Authorization: Bearer [redacted]\n"),
            ("task-sk-1 and sk-short", "task-sk-1 and sk-short"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }
}
