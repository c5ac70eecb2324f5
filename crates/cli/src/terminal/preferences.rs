//! The user's settings of the terminal, and the history of prompts: two files in the home.

use std::path::{Path, PathBuf};

use hangar_portal::settings::ThemeChoice;
use hangar_terminal::history::History;
use hangar_terminal::keymap::Keymap;
use hangar_terminal::state::ViewOptions;
use hangar_terminal::status::StatusItem;
use hangar_terminal::theme::Theme;
use serde_json::{Map, Value};

use crate::appearance;
use crate::settings::Settings;

const FILE: &str = "terminal.json";
const HISTORY: &str = "prompt-history.jsonl";
/// Bytes of the history that are read at a start.
const MAX_HISTORY: u64 = 4 << 20;
/// Size at which the history file is cut to what is kept of it.
const FULL_HISTORY: u64 = 8 << 20;

pub(super) struct TerminalPreferences {
    home: PathBuf,
    values: Map<String, Value>,
}

impl TerminalPreferences {
    /// Reads the file. One that makes no sense counts as empty, and says so.
    pub(super) fn read(home: &Path) -> (Self, Option<String>) {
        let path = home.join(FILE);
        let (values, problem) = match std::fs::read_to_string(&path) {
            Ok(text) => match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(values) => (values, None),
                Err(error) => {
                    let problem = format!("{} is not read: {error}", path.display());
                    (Map::new(), Some(problem))
                }
            },
            Err(_) => (Map::new(), None),
        };
        (Self { home: home.to_owned(), values }, problem)
    }

    pub(super) fn keep(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.values.insert(key.to_owned(), value);
        let text = serde_json::to_string_pretty(&self.values).unwrap_or_default();
        let path = self.home.join(FILE);
        hangar_disk::replace(&path, text.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    pub(super) fn options(&self) -> ViewOptions {
        let usual = ViewOptions::default();
        let flag = |key: &str, usual: bool| self.values.get(key).and_then(Value::as_bool).unwrap_or(usual);
        let status = self
            .values
            .get("statusLine")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).filter_map(StatusItem::named).collect());
        ViewOptions {
            vim: flag("vim", usual.vim),
            reasoning: flag("reasoning", usual.reasoning),
            notify: flag("notify", usual.notify),
            screen_reader: flag("screenReader", usual.screen_reader),
            status: status.unwrap_or(usual.status),
            status_command: self.values.get("statusCommand").and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// The theme, and whether it follows the terminal's background.
    pub(super) fn theme(&self, settings: &Settings) -> (Theme, bool) {
        if settings.var("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return (Theme::none(), false);
        }
        match self.values.get("theme").and_then(Value::as_str) {
            Some("auto") => (Theme::ansi(), true),
            Some(name) => (Theme::named(name).unwrap_or_else(Theme::ansi), false),
            None => (configured(settings), false),
        }
    }

    /// Keys as the user changed them: `"keys": {"action": "ctrl+x"}`.
    pub(super) fn keymap(&self) -> Result<Keymap, String> {
        let keys = self.values.get("keys").and_then(Value::as_object);
        let changes: Vec<(String, String)> = keys
            .into_iter()
            .flatten()
            .filter_map(|(action, keys)| Some((action.clone(), keys.as_str()?.to_owned())))
            .collect();
        Keymap::from_config(&changes).map_err(|error| format!("{FILE}: {error}"))
    }
}

/// Theme of `[appearance]`. The colours of the terminal itself fit whatever the system has.
fn configured(settings: &Settings) -> Theme {
    match appearance::load(settings).theme {
        ThemeChoice::System => Theme::ansi(),
        ThemeChoice::Light => Theme::light(),
        ThemeChoice::Dark => Theme::dark(),
    }
}

/// The history of prompts on disk.
pub(super) struct HistoryFile(PathBuf);

impl HistoryFile {
    pub(super) fn of(home: &Path) -> Self {
        Self(home.join(HISTORY))
    }

    pub(super) fn read(&self) -> History {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let read = || -> std::io::Result<String> {
            let mut file = std::fs::File::open(&self.0)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(MAX_HISTORY)))?;
            let mut bytes = Vec::new();
            file.take(MAX_HISTORY).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        History::from_lines(&read().unwrap_or_default())
    }

    /// Adds a line; a file that has become too long is replaced by its end.
    pub(super) fn add(&self, line: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&self.0)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        if file.metadata()?.len() > FULL_HISTORY {
            let kept = self.read().to_lines();
            hangar_disk::replace(&self.0, kept.as_bytes())?;
        }
        Ok(())
    }
}
