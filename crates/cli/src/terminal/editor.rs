//! The user's editor on the draft.

use std::process::Command;

use crate::settings::Settings;

/// Opens the editor and returns the text as it was left. The terminal must have been given back.
pub(super) fn edit(settings: &Settings, text: &str) -> Result<String, String> {
    let editor = settings.var("VISUAL").or_else(|| settings.var("EDITOR")).unwrap_or("vi");
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let directory = private_dir(settings)?;
    let path = directory.join("PROMPT.md");
    let run = || -> std::io::Result<String> {
        std::fs::write(&path, text)?;
        let status = Command::new(program).args(words).arg(&path).status()?;
        if !status.success() {
            return Err(std::io::Error::other(format!("{program} ended with {status}")));
        }
        std::fs::read_to_string(&path)
    };
    let edited =
        run().map_err(|error| format!("the draft was not edited: {error}; set EDITOR to your editor"));
    // The draft is in the composer either way.
    let _ = std::fs::remove_dir_all(&directory);
    edited
}

/// A directory of our own for the draft, which nobody else reads.
fn private_dir(settings: &Settings) -> Result<std::path::PathBuf, String> {
    use std::os::unix::fs::DirBuilderExt as _;
    let path = settings.home.join("tmp").join(uuid::Uuid::new_v4().simple().to_string());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    Ok(path)
}
