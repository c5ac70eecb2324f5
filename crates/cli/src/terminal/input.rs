//! Bytes of a terminal as keys, pastes and answers.
//!
//! Our own decoder, since that of crossterm 0.29 knows no OSC sequences: the answer to a question for the background colour would
//! reach the composer as Alt+] and typed text. It also takes an escape byte at the end of a read for the key Esc, so that a key whose
//! bytes arrive in two reads falls apart. Here only time decides: [`Decoder::flush`] is called when nothing follows.

use hangar_terminal::key::{Key, KeyCode};

/// Longest paste. More is cut: no prompt can hold it.
const PASTE_LIMIT: usize = 16 * 1024 * 1024;
/// Longest escape sequence; a longer one is dropped.
const SEQUENCE_LIMIT: usize = 512;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Something that came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Key(Key),
    /// Pasted text, and whether its end was cut off.
    Paste {
        text: String,
        cut: bool,
    },
    Focus {
        gained: bool,
    },
    /// Background colour of the terminal, as the answer to [`ASK_BACKGROUND`].
    Background {
        red: u8,
        green: u8,
        blue: u8,
    },
}

/// Sequence that asks for the background colour.
pub(crate) const ASK_BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";

/// Reader of the terminal's bytes, which may be split anywhere.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Paste>,
}

#[derive(Debug, Default)]
struct Paste {
    bytes: Vec<u8>,
    cut: bool,
}

/// Result of reading one thing from the front of the bytes.
enum Parsed {
    /// So many bytes are something, or nothing that matters.
    Whole(usize, Option<Input>),
    /// The bytes are the beginning of something.
    Part,
}

impl Decoder {
    /// Whether bytes wait that may be a key by themselves or the beginning of a longer sequence.
    pub(crate) fn undecided(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Whether a paste has begun and not ended.
    pub(crate) fn pasting(&self) -> bool {
        self.paste.is_some()
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.pending.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        loop {
            if self.paste.is_some() {
                match self.feed_paste() {
                    Some(input) => inputs.push(input),
                    None => return inputs,
                }
            } else if self.pending.starts_with(PASTE_BEGIN) {
                self.pending.drain(..PASTE_BEGIN.len());
                self.paste = Some(Paste::default());
            } else {
                match parse(&self.pending) {
                    Parsed::Whole(length, input) => {
                        self.pending.drain(..length);
                        inputs.extend(input);
                    }
                    Parsed::Part if self.pending.len() > SEQUENCE_LIMIT => self.pending.clear(),
                    Parsed::Part => return inputs,
                }
            }
        }
    }

    /// Takes what waits as it is, since nothing has followed for a while: an escape byte was the key.
    pub(crate) fn flush(&mut self) -> Vec<Input> {
        if let Some(mut paste) = self.paste.take() {
            paste.push(&std::mem::take(&mut self.pending));
            return vec![paste.end()];
        }
        let waiting = std::mem::take(&mut self.pending);
        match waiting.as_slice() {
            [] => Vec::new(),
            [0x1b] => vec![Input::Key(Key::plain(KeyCode::Esc))],
            [0x1b, 0x1b] => vec![Input::Key(Key::plain(KeyCode::Esc)); 2],
            // The beginnings of sequences are also keys with Alt. A longer beginning is a broken sequence.
            [0x1b, byte] if byte.is_ascii_graphic() => vec![Input::Key(Key::alt(char::from(*byte)))],
            _ => Vec::new(),
        }
    }

    /// Moves bytes into the paste, and returns it if it has ended.
    fn feed_paste(&mut self) -> Option<Input> {
        let mut paste = self.paste.take()?;
        if let Some(end) = position(&self.pending, PASTE_END) {
            paste.push(&self.pending[..end]);
            self.pending.drain(..end + PASTE_END.len());
            return Some(paste.end());
        }
        // The last bytes may be the beginning of the end.
        let sure = self.pending.len().saturating_sub(PASTE_END.len() - 1);
        paste.push(&self.pending[..sure]);
        self.pending.drain(..sure);
        self.paste = Some(paste);
        None
    }
}

impl Paste {
    fn push(&mut self, bytes: &[u8]) {
        let room = PASTE_LIMIT - self.bytes.len();
        self.cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The text. Terminals send carriage returns for line ends.
    fn end(self) -> Input {
        let text = String::from_utf8_lossy(&self.bytes).replace("\r\n", "\n").replace('\r', "\n");
        Input::Paste { text, cut: self.cut }
    }
}

fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn parse(bytes: &[u8]) -> Parsed {
    match bytes {
        [] | [0x1b] | [0x1b, 0x1b] => Parsed::Part,
        [0x1b, b'[', ..] => parse_csi(bytes),
        [0x1b, b'O', ..] => parse_ss3(bytes),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', ..] => parse_string(bytes),
        // Some terminals send Alt with a function key as an escape byte before its sequence.
        [0x1b, rest @ ..] if matches!(rest, [0x1b, b'[' | b'O', ..]) => match parse(rest) {
            // Before a paste, a report or an answer it was the key: on a slow line they arrive together.
            Parsed::Whole(length, input) if is_told(&rest[..length], input.as_ref()) => {
                Parsed::Whole(1, Some(Input::Key(Key::plain(KeyCode::Esc))))
            }
            parsed => with_alt(parsed),
        },
        [0x1b, 0x1b, ..] => Parsed::Whole(1, Some(Input::Key(Key::plain(KeyCode::Esc)))),
        [0x1b, rest @ ..] => with_alt(parse(rest)),
        [byte @ (0x00..=0x1f | 0x7f), ..] => Parsed::Whole(1, Some(Input::Key(control(*byte)))),
        _ => parse_char(bytes),
    }
}

/// Whether the terminal sends a sequence by itself, rather than for a key: the beginning of a paste, a report, or an answer.
fn is_told(sequence: &[u8], input: Option<&Input>) -> bool {
    match input {
        Some(input) => !matches!(input, Input::Key(_)),
        None => {
            sequence == PASTE_BEGIN
                || matches!(
                    sequence,
                    [0x1b, b'[', b'<' | b'?' | b'>', ..] | [0x1b, b'[', b'0'..=b'9', .., b'R']
                )
        }
    }
}

fn with_alt(parsed: Parsed) -> Parsed {
    match parsed {
        Parsed::Whole(length, Some(Input::Key(key))) => {
            Parsed::Whole(length + 1, Some(Input::Key(Key { alt: true, ..key }.normalised())))
        }
        Parsed::Whole(length, input) => Parsed::Whole(length + 1, input),
        Parsed::Part => Parsed::Part,
    }
}

fn control(byte: u8) -> Key {
    match byte {
        b'\r' => Key::plain(KeyCode::Enter),
        b'\t' => Key::plain(KeyCode::Tab),
        0x7f => Key::plain(KeyCode::Backspace),
        0x00 => Key::ctrl(' '),
        0x01..=0x1a => Key::ctrl(char::from(byte - 1 + b'a')),
        _ => Key::ctrl(char::from(byte + 0x40)),
    }
}

/// One character of UTF-8. A byte that is none becomes the replacement character.
fn parse_char(bytes: &[u8]) -> Parsed {
    let head = &bytes[..bytes.len().min(4)];
    let typed = |char| Some(Input::Key(Key::char(char).normalised()));
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => match error.error_len() {
            Some(length) => return Parsed::Whole(length, typed(char::REPLACEMENT_CHARACTER)),
            None => return Parsed::Part,
        },
    };
    match valid.chars().next() {
        Some(char) => Parsed::Whole(char.len_utf8(), typed(char)),
        None => Parsed::Part,
    }
}

fn parse_ss3(bytes: &[u8]) -> Parsed {
    let Some(last) = bytes.get(2) else { return Parsed::Part };
    let code = match last {
        b'M' => Some(KeyCode::Enter),
        last => named(*last),
    };
    Parsed::Whole(3, code.map(|code| Input::Key(Key::plain(code))))
}

/// Control string: OSC, DCS, APC, PM or SOS. It ends with ST, or with BEL as many terminals send it.
fn parse_string(bytes: &[u8]) -> Parsed {
    for (index, byte) in bytes.iter().enumerate().skip(2) {
        let length = match (byte, bytes.get(index + 1)) {
            (0x07, _) => index + 1,
            (0x1b, Some(b'\\')) => index + 2,
            (0x1b, None) => return Parsed::Part,
            // Another sequence begins: this one is incomplete.
            (0x1b, Some(_)) => index,
            _ => continue,
        };
        let answer = (bytes[1] == b']').then(|| background(&bytes[2..index])).flatten();
        return Parsed::Whole(length, answer);
    }
    Parsed::Part
}

/// The answer `11;rgb:RR/GG/BB`, with one to four digits for each part.
fn background(body: &[u8]) -> Option<Input> {
    let body = std::str::from_utf8(body).ok()?;
    let color = body.strip_prefix("11;")?;
    let parts =
        color.strip_prefix("rgb:").or_else(|| Some(color.strip_prefix("rgba:")?.rsplit_once('/')?.0))?;
    let mut parts = parts.split('/').map(|part| {
        let max = 16u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        let value = u32::from_str_radix(part, 16).ok()?;
        u8::try_from((value * 255).checked_div(max)?).ok()
    });
    let mut next = || parts.next().flatten();
    let input = Input::Background { red: next()?, green: next()?, blue: next()? };
    parts.next().is_none().then_some(input)
}

fn parse_csi(bytes: &[u8]) -> Parsed {
    // The Linux console has F1 to F5 as `ESC [ [ A`.
    if bytes.get(2) == Some(&b'[') {
        return match bytes.get(3) {
            None => Parsed::Part,
            Some(last @ b'A'..=b'E') => {
                Parsed::Whole(4, Some(Input::Key(Key::plain(KeyCode::F(last - b'A' + 1)))))
            }
            Some(_) => Parsed::Whole(3, None),
        };
    }
    let Some(end) = bytes.iter().skip(2).position(|byte| !(0x20..=0x3f).contains(byte)).map(|end| end + 2)
    else {
        return Parsed::Part;
    };
    let last = bytes[end];
    if !(0x40..=0x7e).contains(&last) {
        // Not a sequence; whatever broke it off is read by itself.
        return Parsed::Whole(end, None);
    }
    let input = std::str::from_utf8(&bytes[2..end]).ok().and_then(|parameters| csi(parameters, last));
    Parsed::Whole(end + 1, input)
}

/// Meaning of a whole CSI sequence. Reports and mouse events have none.
fn csi(parameters: &str, last: u8) -> Option<Input> {
    if parameters.starts_with(['?', '<', '>', '=']) {
        return None;
    }
    let mut fields = parameters.split(';').map(|field| field.split(':'));
    let mut number = || -> (Option<u32>, Option<u32>) {
        let mut parts = fields.next().into_iter().flatten().map(|part| part.parse().ok());
        (parts.next().flatten(), parts.next().flatten())
    };
    let (first, (second, kind), (third, _)) = (number().0, number(), number());
    // Kitty's protocol marks the release of a key with 3.
    if kind == Some(3) {
        return None;
    }
    let code = match last {
        b'I' | b'O' if parameters.is_empty() => return Some(Input::Focus { gained: last == b'I' }),
        b'Z' => Some(KeyCode::BackTab),
        b'u' => code_point(first?),
        b'~' if first == Some(27) => code_point(third?),
        b'~' => numbered(first?),
        // A cursor report ends like F3.
        b'R' if first != Some(1) => None,
        last => named(last),
    };
    let modifiers = second.unwrap_or(1).saturating_sub(1);
    let key =
        Key { code: code?, shift: modifiers & 1 != 0, alt: modifiers & 2 != 0, ctrl: modifiers & 4 != 0 };
    Some(Input::Key(key.normalised()))
}

fn named(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(function(number, 10)?),
        17..=21 => KeyCode::F(function(number, 11)?),
        23..=24 => KeyCode::F(function(number, 12)?),
        _ => return None,
    })
}

fn function(number: u32, less: u32) -> Option<u8> {
    u8::try_from(number - less).ok()
}

/// Key of a code point of kitty's protocol or of `modifyOtherKeys`.
fn code_point(number: u32) -> Option<KeyCode> {
    const KEYPAD: [char; 15] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.', '/', '*', '-', '+'];
    const KEYPAD_FIRST: u32 = 57399;
    Some(match number {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        KEYPAD_FIRST..=57413 => KeyCode::Char(*KEYPAD.get(usize::try_from(number - KEYPAD_FIRST).ok()?)?),
        // Kitty's other keys (media, modifiers alone) are in the private use area.
        57344..=63743 => return None,
        number => KeyCode::Char(char::from_u32(number).filter(|char| !char.is_control())?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(inputs: Vec<Input>) -> String {
        let show = |input| match input {
            Input::Key(key) => key.to_string(),
            Input::Paste { text, cut } => format!("paste {text:?}{}", if cut { " cut" } else { "" }),
            Input::Focus { gained } => format!("focus {gained}"),
            Input::Background { red, green, blue } => format!("background {red} {green} {blue}"),
        };
        inputs.into_iter().map(show).collect::<Vec<_>>().join(", ")
    }

    /// Decodes bytes at once, and one by one: both must give the same.
    fn check(bytes: &[u8], expected: &str) {
        let mut whole = Decoder::default();
        let mut inputs = whole.feed(bytes);
        inputs.extend(whole.flush());
        assert_eq!(show(inputs), expected, "{:?}", String::from_utf8_lossy(bytes));
        let mut split = Decoder::default();
        let mut inputs: Vec<Input> = bytes.iter().flat_map(|byte| split.feed(&[*byte])).collect();
        inputs.extend(split.flush());
        assert_eq!(show(inputs), expected, "{:?} in single bytes", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn keys_of_every_terminal() {
        for (bytes, expected) in [
            (&b"aZ"[..], "a, Z"),
            ("é漢😀".as_bytes(), "é, 漢, 😀"),
            (b"\r\n\t\x7f\x08", "enter, ctrl+j, tab, backspace, ctrl+h"),
            (b"\x03\x00\x1f", "ctrl+c, ctrl+space, ctrl+_"),
            (b"\x1b", "esc"),
            (b"\x1b\x1b", "esc, esc"),
            (b"\x1bb\x1b\r\x1b[\x7f", "alt+b, alt+enter, backspace"),
            (b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;2D", "up, down, ctrl+right, shift+left"),
            (b"\x1b[H\x1b[4~\x1b[5;3~\x1b[3~", "home, end, alt+pageup, delete"),
            (b"\x1bOP\x1b[15~\x1b[24;2~\x1b[[C\x1b[1;2R", "f1, f5, shift+f12, f3, shift+f3"),
            (b"\x1b[Z", "shift+tab"),
            (b"\x1b\x1b[A", "alt+up"),
            // Shift+Enter, Ctrl+C and Esc by kitty's protocol, with a release that is not asked for; then by xterm's.
            (b"\x1b[13;2u\x1b[99;5u\x1b[27u\x1b[97;1:3u", "shift+enter, ctrl+c, esc"),
            (b"\x1b[57414u\x1b[57400u\x1b[57416u\x1b[57441u", "enter, 1, comma"),
            (b"\x1b[27;2;13~\x1b[27;5;105~", "shift+enter, ctrl+i"),
        ] {
            check(bytes, expected);
        }
    }

    #[test]
    fn answers_and_reports_are_never_typed() {
        for (bytes, expected) in [
            (&b"a\x1b]11;rgb:1e1e/ffff/0000\x1b\\b"[..], "a, background 30 255 0, b"),
            (b"\x1b]11;rgb:1e/ff/00\x07", "background 30 255 0"),
            (b"\x1b]11;rgba:0/f/8/f\x07", "background 0 255 136"),
            (b"\x1b]11;nonsense\x07x", "x"),
            (b"\x1b[?62;4c\x1b[24;80R\x1b[<0;3;4Mx", "x"),
            (b"\x1bP1+r544e\x1b\\x", "x"),
            // Behind Esc, on a slow line.
            (b"\x1b\x1b[?62;4c\x1b\x1b[24;80R\x1b\x1b[<0;3;4M\x1b\x1b[>0;276;0cx", "esc, esc, esc, esc, x"),
            // Keys that are not known: Alt with Shift and an arrow, or with End, as rxvt sends them; one that is let go.
            (b"\x1b\x1b[a\x1b\x1b[c\x1b\x1b[8$\x1b\x1b[1;1:3Ax", "x"),
            (b"\x1b[I\x1b[O", "focus true, focus false"),
            // An incomplete sequence is dropped alone.
            (b"\x1b[1;\x1b[A", "up"),
            (b"\x1b]11;rgb\x1b[A", "up"),
            (b"\xff\xc3(x", "\u{fffd}, \u{fffd}, (, x"),
        ] {
            check(bytes, expected);
        }
    }

    #[test]
    fn pastes_are_whole_whatever_is_in_them() {
        check(
            b"\x1b[200~one\r\ntwo\rthree\x1b[A\x03\x1b[201~x",
            "paste \"one\\ntwo\\nthree\\u{1b}[A\\u{3}\", x",
        );
        // A terminal that never ends its paste.
        check(b"\x1b\x1b[200~one\rtwo\x1b[201~\x1b\x1b[Ix", "esc, paste \"one\\ntwo\", esc, focus true, x");
        check(b"\x1b[200~lost", "paste \"lost\"");
    }

    #[test]
    fn pastes_are_bounded() {
        let mut decoder = Decoder::default();
        decoder.feed(PASTE_BEGIN);
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..17 {
            assert_eq!(decoder.feed(&block), []);
        }
        let Some(Input::Paste { text, cut }) = decoder.feed(PASTE_END).pop() else { panic!("no paste") };
        assert_eq!((text.len(), cut), (PASTE_LIMIT, true));
        assert_eq!(show(decoder.feed(b"a")), "a");
    }

    #[test]
    fn sequences_are_bounded() {
        let mut decoder = Decoder::default();
        decoder.feed(b"\x1b]");
        decoder.feed(&vec![b'x'; 2 * SEQUENCE_LIMIT]);
        assert!(!decoder.undecided());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn where_reads_are_split_does_not_matter(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    &b"\x1b"[..], b"[", b"]11;", b"rgb:1/2/3", b"\x07", b"\x1b\\", b"A", b"1;5", b"~", b"u", b"200~", b"O",
                    b"\x1b[201~", b"\xc3", b"\xa9", b"\r", b"x", b"\x1b[200~",
                ]),
                0..20,
            ),
            split in 0..100usize,
        ) {
            let bytes = parts.concat();
            let (left, right) = bytes.split_at(split.min(bytes.len()));
            let mut whole = Decoder::default();
            let mut expected = whole.feed(&bytes);
            expected.extend(whole.flush());
            let mut decoder = Decoder::default();
            let mut inputs = decoder.feed(left);
            inputs.extend(decoder.feed(right));
            inputs.extend(decoder.flush());
            prop_assert_eq!(inputs, expected);
        }
    }
}
