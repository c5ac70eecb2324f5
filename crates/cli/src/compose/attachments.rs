//! Files that go with a prompt.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hangar_protocol::data::Attachment;

/// Largest attachment.
const MAX_ATTACHMENT: u64 = 20 << 20;

/// Reads the files. Paths are relative to the working directory of the session.
pub(super) fn read(cwd: &Path, paths: &[PathBuf]) -> Result<Vec<Attachment>> {
    paths.iter().map(|path| attach(&cwd.join(path))).collect()
}

fn attach(path: &Path) -> Result<Attachment> {
    let meta =
        std::fs::metadata(path).with_context(|| format!("attachment not found: {}", path.display()))?;
    let display_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A directory is not sent, and a pipe might never end.
    if !meta.is_file() {
        bail!("attachment {} is not a regular file; --add-dir lets tools read a directory", path.display());
    }
    if meta.len() > MAX_ATTACHMENT {
        bail!("attachment {} is larger than {} MB", path.display(), MAX_ATTACHMENT >> 20);
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let mime_type = match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    };
    match mime_type {
        None => Ok(Attachment::File {
            path: path.display().to_string(),
            display_name,
            mime_type: None,
            line_range: None,
            facts: None,
        }),
        Some(mime_type) => {
            let bytes =
                std::fs::read(path).with_context(|| format!("cannot read attachment {}", path.display()))?;
            Ok(Attachment::Blob {
                data: Some(BASE64.encode(bytes)),
                mime_type: mime_type.to_owned(),
                display_name: Some(display_name),
            })
        }
    }
}
