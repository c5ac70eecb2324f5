//! Modes of the terminal that are switched on for a session and off after it.
//!
//! Order when the terminal is given back: the screen leaves its tail, [`leave`] switches the modes off, and the tty guard discards the
//! input that is still under way and restores the line settings. In another order, answers and pastes would reach the shell.

/// Way in which keys are reported that have no byte of their own, such as Shift+Enter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keyboard {
    /// As every terminal does.
    #[default]
    Legacy,
    /// Kitty's protocol, with ambiguous keys told apart.
    Kitty,
    /// xterm's `modifyOtherKeys`, for all keys that have a modifier.
    ModifyOtherKeys,
}

/// Shape of the cursor while the composer has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorShape {
    Block,
    Underline,
    Bar,
}

/// Modes that a session uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// Pasted text arrives between marks.
    pub paste: bool,
    pub keyboard: Keyboard,
    /// The terminal reports when it gains and loses the focus.
    pub focus: bool,
    /// Shape of the cursor; `None` leaves the user's.
    pub cursor: Option<CursorShape>,
    /// The title is saved and restored.
    pub title: bool,
    /// Progress in the task bar or tab (OSC 9;4) may be shown during the session.
    pub progress: bool,
}

const PASTE: Switch = Switch { on: b"\x1b[?2004h", off: b"\x1b[?2004l" };
const KITTY: Switch = Switch { on: b"\x1b[>1u", off: b"\x1b[<u" };
const MODIFY_OTHER_KEYS: Switch = Switch { on: b"\x1b[>4;2m", off: b"\x1b[>4m" };
const FOCUS: Switch = Switch { on: b"\x1b[?1004h", off: b"\x1b[?1004l" };
const TITLE: Switch = Switch { on: b"\x1b[22;2t", off: b"\x1b[23;2t" };
const PROGRESS: Switch = Switch { on: b"", off: b"\x1b]9;4;0\x1b\\" };
const BLOCK: Switch = Switch { on: b"\x1b[2 q", off: b"\x1b[0 q" };
const UNDERLINE: Switch = Switch { on: b"\x1b[4 q", off: b"\x1b[0 q" };
const BAR: Switch = Switch { on: b"\x1b[6 q", off: b"\x1b[0 q" };

/// One mode: the bytes that set it and those that restore what was before.
struct Switch {
    on: &'static [u8],
    off: &'static [u8],
}

impl Modes {
    fn switches(&self) -> impl DoubleEndedIterator<Item = &'static Switch> {
        let keyboard = match self.keyboard {
            Keyboard::Legacy => None,
            Keyboard::Kitty => Some(&KITTY),
            Keyboard::ModifyOtherKeys => Some(&MODIFY_OTHER_KEYS),
        };
        let cursor = self.cursor.map(|shape| match shape {
            CursorShape::Block => &BLOCK,
            CursorShape::Underline => &UNDERLINE,
            CursorShape::Bar => &BAR,
        });
        [
            self.title.then_some(&TITLE),
            self.progress.then_some(&PROGRESS),
            cursor,
            self.focus.then_some(&FOCUS),
            self.paste.then_some(&PASTE),
            keyboard,
        ]
        .into_iter()
        .flatten()
    }
}

/// Bytes that switch the modes on.
pub fn enter(modes: &Modes) -> Vec<u8> {
    modes.switches().flat_map(|switch| switch.on).copied().collect()
}

/// Bytes that restore the modes in the opposite order.
pub fn leave(modes: &Modes) -> Vec<u8> {
    modes.switches().rev().flat_map(|switch| switch.off).copied().collect()
}

/// Bytes that switch the reports of the focus on or off.
pub fn focus(on: bool) -> &'static [u8] {
    if on { FOCUS.on } else { FOCUS.off }
}

/// Bytes that show in the task bar or tab that work is under way, or no longer.
pub fn progress(on: bool) -> &'static [u8] {
    if on { b"\x1b]9;4;3\x1b\\" } else { PROGRESS.off }
}

/// Bytes that restore a terminal of which nothing else is known, as after a panic in the middle of a draw.
///
/// The alternate screen is left only if it is open: elsewhere the sequence would move the cursor to wherever it was saved last.
pub fn rescue(modes: &Modes, alternate: bool) -> Vec<u8> {
    // An unfinished sequence ends, updates are shown, lines wrap, the style ends, the cursor is seen.
    let mut bytes = b"\x1b\\\x1b[?2026l".to_vec();
    if alternate {
        bytes.extend_from_slice(b"\x1b[?1049l");
    }
    bytes.extend_from_slice(b"\x1b[?7h\x1b[m\x1b[?25h\r\n\x1b[J");
    bytes.extend(leave(modes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(modes: &Modes, on: &str, off: &str) {
        let readable = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace('\x1b', "^");
        assert_eq!((readable(enter(modes)), readable(leave(modes))), (on.to_owned(), off.to_owned()));
    }

    #[test]
    fn modes_are_restored_in_the_opposite_order() {
        check(&Modes::default(), "", "");
        let all = Modes {
            paste: true,
            keyboard: Keyboard::Kitty,
            focus: true,
            cursor: Some(CursorShape::Bar),
            title: true,
            progress: true,
        };
        check(&all, "^[22;2t^[6 q^[?1004h^[?2004h^[>1u", "^[<u^[?2004l^[?1004l^[0 q^]9;4;0^\\^[23;2t");
        let keyboard = Keyboard::ModifyOtherKeys;
        check(&Modes { keyboard, ..Modes::default() }, "^[>4;2m", "^[>4m");
    }

    #[test]
    fn a_rescue_leaves_the_alternate_screen_only_if_it_is_open() {
        for alternate in [false, true] {
            let bytes = rescue(&Modes { paste: true, ..Modes::default() }, alternate);
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(text.contains("\x1b[?1049l"), alternate);
            assert!(text.ends_with("\x1b[?2004l"));
        }
    }
}
