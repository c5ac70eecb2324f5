//! Keys as a person presses them, independent of the library that reads them from the terminal.

use std::fmt;

/// Key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    Char(char),
    Enter,
    Tab,
    BackTab,
    Esc,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
    Insert,
}

/// Names of the keys that are no character, as users write them. The first name of a key is the one that is shown.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("del", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdn", KeyCode::PageDown),
    ("insert", KeyCode::Insert),
    ("space", KeyCode::Char(' ')),
    ("plus", KeyCode::Char('+')),
    ("comma", KeyCode::Char(',')),
];

/// Key with its modifiers, in one form for each press: see [`Key::normalised`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Key {
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    pub const fn char(char: char) -> Self {
        Self::plain(KeyCode::Char(char))
    }

    pub const fn ctrl(char: char) -> Self {
        Self { ctrl: true, ..Self::char(char) }
    }

    pub const fn alt(char: char) -> Self {
        Self { alt: true, ..Self::char(char) }
    }

    /// The same key press in the canonical form that the rest of the program compares.
    ///
    /// Terminals disagree: `A` comes as `A`, as shift with `a` or as shift with `A`, and shift with Tab has a code of its own. A
    /// character says by itself whether shift was held, except together with ctrl, where terminals send either case.
    #[must_use]
    pub fn normalised(self) -> Self {
        let mut key = self;
        match key.code {
            KeyCode::Tab if key.shift => {
                key.code = KeyCode::BackTab;
                key.shift = false;
            }
            KeyCode::BackTab => key.shift = false,
            KeyCode::Char(char) if key.ctrl => {
                key.shift &= char.is_alphabetic();
                key.code = KeyCode::Char(one(char.to_lowercase(), char));
            }
            KeyCode::Char(char) => {
                if key.shift {
                    key.code = KeyCode::Char(one(char.to_uppercase(), char));
                }
                key.shift = false;
            }
            _ => {}
        }
        key
    }

    /// Character that the key types, if it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(char) if !self.ctrl && !self.alt && !char.is_control() => Some(char),
            _ => None,
        }
    }

    /// Reads one key, such as `ctrl+c`, `shift+enter`, `a` or `f5`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "`{text}` is not a key; write a character or a name such as `enter`, with `ctrl+`, `alt+` or `shift+` before it"
            )
        };
        let mut key = Self::char(' ');
        let mut rest = text;
        while let Some((modifier, after)) = rest.split_once('+').filter(|(_, after)| !after.is_empty()) {
            match modifier.to_ascii_lowercase().as_str() {
                "ctrl" | "control" => key.ctrl = true,
                "alt" | "meta" | "option" => key.alt = true,
                "shift" => key.shift = true,
                _ => return Err(unknown()),
            }
            rest = after;
        }
        key.code = code(rest).ok_or_else(unknown)?;
        Ok(key.normalised())
    }

    /// Reads keys that are pressed one after the other, separated by blanks.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        text.split_whitespace().map(Self::parse).collect()
    }
}

/// Character of a case mapping, if it is a single one: a key stays a key.
fn one(mut mapped: impl Iterator<Item = char>, otherwise: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(char), None) => char,
        _ => otherwise,
    }
}

fn code(text: &str) -> Option<KeyCode> {
    let mut chars = text.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return (!char.is_control()).then_some(KeyCode::Char(char));
    }
    let name = text.to_ascii_lowercase();
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    let number = name.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&number).then_some(KeyCode::F(number))
}

impl fmt::Display for KeyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F(number) => write!(f, "f{number}"),
            code => match (NAMES.iter().find(|(_, known)| known == code), code) {
                (Some((name, _)), _) => f.write_str(name),
                (None, Self::Char(char)) => write!(f, "{char}"),
                (None, _) => Ok(()),
            },
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl+")?;
        }
        if self.alt {
            f.write_str("alt+")?;
        }
        if self.code == KeyCode::BackTab {
            return f.write_str("shift+tab");
        }
        if self.shift {
            f.write_str("shift+")?;
        }
        write!(f, "{}", self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_as_it_is_written() {
        for text in [
            "a",
            "A",
            "ctrl+c",
            "shift+enter",
            "shift+tab",
            "alt+enter",
            "ctrl+alt+delete",
            "ctrl+home",
            "f12",
            "esc",
            "space",
            "plus",
            "ctrl+plus",
            "ctrl+_",
            "ctrl+-",
            "ctrl+/",
            "alt+shift+left",
            "ctrl+shift+z",
            "pageup",
            "ß",
            "漢",
        ] {
            assert_eq!(Key::parse(text).map(|key| key.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn one_press_has_one_form() {
        for (text, same) in [
            ("shift+a", "A"),
            ("ctrl+C", "ctrl+c"),
            ("ctrl+shift+C", "ctrl+shift+c"),
            ("shift+BackTab", "shift+tab"),
            ("backtab", "shift+tab"),
            ("Control+X", "ctrl+x"),
            ("meta+B", "alt+B"),
            ("shift+?", "?"),
            ("ctrl+shift+_", "ctrl+_"),
            ("shift+ß", "ß"),
            ("+", "plus"),
            ("ctrl++", "ctrl+plus"),
            ("pgdn", "pagedown"),
            ("return", "enter"),
        ] {
            assert_eq!(Key::parse(text).map(|key| key.to_string()), Ok(same.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_sequence_is_separated_by_blanks() {
        let keys = Key::parse_all(" ctrl+x  e ").unwrap();
        assert_eq!(keys, [Key::ctrl('x'), Key::char('e')]);
    }

    #[test]
    fn an_unknown_key_is_named() {
        for text in ["hyper+a", "f0", "f25", "entre", "ctrl+", "", "ctrl+ab"] {
            let error = Key::parse(text).unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is not a key; ")), "{error}");
        }
    }

    #[test]
    fn only_characters_without_ctrl_and_alt_are_typed() {
        for (text, typed) in
            [("a", Some('a')), ("shift+a", Some('A')), ("ctrl+a", None), ("alt+a", None), ("enter", None)]
        {
            assert_eq!(Key::parse(text).unwrap().typed(), typed, "{text}");
        }
    }
}
