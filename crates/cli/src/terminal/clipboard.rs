//! The clipboard: written by the terminal itself (OSC 52), read by the tools of the desktop.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest text that terminals take by OSC 52.
const MAX_COPY: usize = 74_000;
/// Largest image that is taken from the clipboard.
const MAX_IMAGE: usize = 20 << 20;

/// Programs that print an image of the clipboard as PNG.
const READERS: &[(&str, &[&str])] = &[
    ("wl-paste", &["--no-newline", "--type", "image/png"]),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"]),
    ("pngpaste", &["-"]),
];

/// Bytes that have the terminal put text on the clipboard.
pub(super) fn copy(text: &str) -> Result<Vec<u8>, String> {
    if text.len() > MAX_COPY {
        return Err(
            "the text is too long for the terminal's clipboard; /export writes it to a file".to_owned()
        );
    }
    Ok(format!("\x1b]52;c;{}\x07", STANDARD.encode(text)).into_bytes())
}

/// Writes the image of the clipboard to a file in a directory of the session.
pub(super) fn image(directory: &Path) -> Result<PathBuf, String> {
    for (program, arguments) in READERS {
        let output =
            Command::new(program).args(*arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let Ok(output) = output else { continue };
        if !output.status.success() || !output.stdout.starts_with(b"\x89PNG") {
            continue;
        }
        if output.stdout.len() > MAX_IMAGE {
            return Err("the image of the clipboard is too large".to_owned());
        }
        let name = format!("pasted-{}.png", uuid::Uuid::new_v4().simple());
        let path = directory.join(name);
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot write {}: {error}", directory.display()))?;
        std::fs::write(&path, &output.stdout)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        return Ok(path);
    }
    Err("there is no image on the clipboard, or no program that reads it (wl-paste, xclip, pngpaste)"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_out_encoded_and_within_the_limit() {
        assert_eq!(copy("hi\x1b").unwrap(), b"\x1b]52;c;aGkb\x07");
        assert!(copy(&"x".repeat(MAX_COPY + 1)).is_err());
    }
}
