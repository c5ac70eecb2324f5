//! Attachments of a prompt. Files are read here, so that the session itself does no I/O.

use std::io::{BufRead, BufReader};
use std::path::Path;

use base64::Engine as _;
use hangar_protocol::data::Attachment;
use hangar_protocol::rpc;
use serde_json::{Value, json};

/// Largest file whose lines are counted.
const MAX_COUNTED: u64 = 16 << 20;
/// Largest image that is shown to the model.
const MAX_IMAGE: u64 = 20 << 20;

/// Parses an attachment; unknown kinds are ignored.
pub(crate) fn read(mut value: Value) -> Option<Attachment> {
    let path_key = if value["type"] == "selection" { "filePath" } else { "path" };
    if value["displayName"].is_null()
        && let Some(path) = value[path_key].as_str()
    {
        let name = Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy());
        value["displayName"] = Value::String(name.into_owned());
    }
    if value["type"] == "selection" {
        complete_selection(&mut value);
    }
    let mut attachment: Attachment = rpc::read_value(value).ok()?;
    match &mut attachment {
        Attachment::File { path, display_name, line_range, facts, .. } => {
            let path = Path::new(path);
            if let Some(image) = image(path, display_name) {
                return Some(image);
            }
            *facts = count_lines(path).map(|lines| match line_range {
                Some(range) if range.start == range.end => format!("line {} of {lines} lines", range.start),
                Some(range) => format!("lines {}-{} of {lines} lines", range.start, range.end),
                None => format!("{lines} lines"),
            });
        }
        Attachment::Directory { path, facts, .. } => {
            *facts = std::fs::read_dir(path).ok().map(|entries| format!("{} items", entries.count()));
        }
        Attachment::Selection { .. }
        | Attachment::GithubReference { .. }
        | Attachment::Blob { .. }
        | Attachment::ExtensionContext { .. } => {}
    }
    Some(attachment)
}

/// Fills in the text and position of a selection, which clients may leave out and the event requires. Without a
/// position the text is assumed to begin its file.
fn complete_selection(value: &mut Value) {
    if value["text"].is_null() {
        value["text"] = json!("");
    }
    if value["selection"].is_null() {
        let text = value["text"].as_str().unwrap_or_default();
        let last = text.rsplit('\n').next().unwrap_or_default();
        let end = json!({ "line": text.matches('\n').count(), "character": last.encode_utf16().count() });
        value["selection"] = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    }
}

fn count_lines(path: &Path) -> Option<usize> {
    if !is_file_within(path, MAX_COUNTED) {
        return None;
    }
    Some(BufReader::new(std::fs::File::open(path).ok()?).split(b'\n').count())
}

/// Pipes and devices are no files: reading one may never end.
fn is_file_within(path: &Path, most: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= most)
}

/// Image file, which the model is shown.
fn image(path: &Path, display_name: &str) -> Option<Attachment> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let mime_type = match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    };
    if !is_file_within(path, MAX_IMAGE) {
        return None;
    }
    let data = base64::engine::general_purpose::STANDARD.encode(std::fs::read(path).ok()?);
    Some(Attachment::Blob {
        data: Some(data),
        mime_type: mime_type.to_owned(),
        display_name: Some(display_name.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_without_its_place_gets_one() {
        let read = read(json!({ "type": "selection", "filePath": "/a/b.rs", "text": "one\ntwo" }));
        let expected = json!({
            "type": "selection", "filePath": "/a/b.rs", "displayName": "b.rs", "text": "one\ntwo",
            "selection": { "start": { "line": 0, "character": 0 }, "end": { "line": 1, "character": 3 } },
        });
        assert_eq!(serde_json::to_value(read).unwrap(), expected);
    }

    #[test]
    fn a_device_is_named_and_not_read() {
        let read = read(json!({ "type": "file", "path": "/dev/zero" }));
        let expected = json!({ "type": "file", "path": "/dev/zero", "displayName": "zero" });
        assert_eq!(serde_json::to_value(read).unwrap(), expected);
    }
}
