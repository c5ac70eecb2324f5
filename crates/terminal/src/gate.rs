//! Gate for untrusted text: everything that a terminal would interpret or hide becomes a visible mark.
//!
//! Text of models, tools, files, paths and titles passes here before it becomes a [`crate::row::Span`]. The gate knows nothing of
//! colours; [`crate::ansi`] keeps those of tool output and sends the rest through here.
//!
//! - C0 controls and DEL become their control pictures (`␛`, `␇`, `␍`), C1 controls, bidi controls and other invisible characters
//!   their number (`<U+202E>`). A long run of invisible characters is shown by its start and its length.
//! - Joiners and variation selectors stay where a cluster needs them: in emoji, and between letters of Arabic and Indic scripts.
//! - Tabs become blanks up to the next multiple of [`TAB`] columns.
//! - A base has at most [`MARKS`] combining marks.

#[cfg(test)]
pub(crate) mod attacks;

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Distance between tab stops in columns.
pub const TAB: usize = 8;

/// Number of combining marks that one base may have.
pub const MARKS: usize = 8;

/// Number of invisible characters in a row that are shown one by one.
const SHOWN: usize = 4;

/// One line of text that is safe for the screen. A newline in it is shown as `␊`: [`lines`] splits first.
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_from(text, 0)
}

/// One line of text that starts at a column, which its tabs depend on.
pub fn visible_from(text: &str, column: usize) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut gate = Gate::new(column);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        gate.push(c, chars.peek().copied());
    }
    let out = gate.finish();
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Lines of a text, which end in `\n` or `\r\n`.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
}

/// Visible mark of a character that must not reach the terminal; none for one that may.
///
/// Joiners, variation selectors and combining marks depend on their neighbours, so [`visible`] decides about them.
pub fn mark(c: char) -> Option<String> {
    match kind(c) {
        Kind::Control => Some(picture(c).to_string()),
        Kind::Tab => Some(" ".to_owned()),
        Kind::Hidden => Some(number(c)),
        Kind::Plain | Kind::Combining | Kind::Joiner | Kind::Selector => None,
    }
}

enum Kind {
    Plain,
    Tab,
    /// C0 or DEL.
    Control,
    /// C1, bidi controls and everything else that takes no space and changes how text reads.
    Hidden,
    Joiner,
    Selector,
    Combining,
}

fn kind(c: char) -> Kind {
    match c {
        ' '..='~' => Kind::Plain,
        '\t' => Kind::Tab,
        '\0'..='\u{1f}' | '\u{7f}' => Kind::Control,
        '\u{200c}' | '\u{200d}' => Kind::Joiner,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::Selector,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Kind::Hidden,
        _ if c.width() == Some(0) => Kind::Combining,
        _ => Kind::Plain,
    }
}

fn picture(c: char) -> char {
    match c {
        '\u{7f}' => '\u{2421}',
        c => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
    }
}

fn number(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

fn emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

fn ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Letters that take other shapes beside a joiner.
fn joining(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{dff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// State of the gate within a line.
struct Gate {
    out: String,
    /// Column at which `out[measured..]` starts.
    column: usize,
    measured: usize,
    before: Option<char>,
    /// Combining marks since the last base.
    marks: usize,
    /// Invisible characters since the last visible one.
    hidden: usize,
}

impl Gate {
    fn new(column: usize) -> Self {
        Self { out: String::new(), column, measured: 0, before: None, marks: 0, hidden: 0 }
    }

    fn push(&mut self, c: char, next: Option<char>) {
        let before = self.before.replace(c);
        match kind(c) {
            Kind::Hidden => return self.hide(c),
            Kind::Joiner if !joins(before, c, next) => return self.hide(c),
            Kind::Selector if !selects(before, c) => return self.hide(c),
            Kind::Joiner | Kind::Selector => {
                self.end_hidden();
                self.out.push(c);
                return;
            }
            Kind::Combining => return self.combine(c),
            Kind::Plain | Kind::Tab | Kind::Control => {}
        }
        self.end_hidden();
        self.end_marks();
        match c {
            '\t' => self.tab(),
            c if c.is_control() => self.out.push(picture(c)),
            c => self.out.push(c),
        }
    }

    fn hide(&mut self, c: char) {
        self.end_marks();
        self.hidden += 1;
        if self.hidden <= SHOWN {
            self.out.push_str(&number(c));
        }
    }

    fn combine(&mut self, c: char) {
        if self.out.is_empty() || self.hidden > 0 {
            // Without a base of its own the mark would change the cell before this text.
            self.end_hidden();
            self.out.push('\u{25cc}');
        }
        self.marks += 1;
        if self.marks <= MARKS {
            self.out.push(c);
        }
    }

    fn end_hidden(&mut self) {
        if self.hidden > SHOWN {
            let _ = write!(self.out, "<+{}>", self.hidden - SHOWN);
        }
        self.hidden = 0;
    }

    fn end_marks(&mut self) {
        if self.marks > MARKS {
            let _ = write!(self.out, "<+{}>", self.marks - MARKS);
        }
        self.marks = 0;
    }

    fn tab(&mut self) {
        self.column += self.out.get(self.measured..).map_or(0, UnicodeWidthStr::width);
        let blanks = TAB - self.column % TAB;
        self.out.extend(std::iter::repeat_n(' ', blanks));
        self.column += blanks;
        self.measured = self.out.len();
    }

    fn finish(mut self) -> String {
        self.end_hidden();
        self.end_marks();
        self.out
    }
}

fn joins(before: Option<char>, joiner: char, next: Option<char>) -> bool {
    let (Some(before), Some(next)) = (before, next) else { return false };
    let in_emoji = joiner == '\u{200d}' && (emoji(before) || before == '\u{fe0f}') && emoji(next);
    in_emoji || joining(before) && joining(next)
}

fn selects(before: Option<char>, selector: char) -> bool {
    let Some(before) = before else { return false };
    match selector {
        '\u{fe0e}' | '\u{fe0f}' => emoji(before) || keycap(before),
        _ => ideograph(before),
    }
}

#[cfg(test)]
mod tests {
    use super::attacks::{ATTACKS, obeyed};
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&visible(text));
    }

    #[test]
    fn attacks_become_marks() {
        let shown: String =
            ATTACKS.iter().map(|(name, text)| format!("{name}: {}\n", visible(text))).collect();
        expect![[r#"
            title: a␛]0;owned␇b
            clipboard: a␛]52;c;cm0gLXJmIC8=␛\b
            link: ␛]8;;https://evil.example␛\https://good.example␛]8;;␛\
            clear: ␛[2J␛[3J␛[H
            cursor: safe␛[1A␛[2Kevil
            alternate screen and mouse: ␛[?1049h␛[?1003h
            device control: ␛Pq#0;2;0;0;0␛\
            application command: ␛_Gf=100;AAAA␛\
            privacy and start of string: ␛^x␛\␛Xx␛\
            report: ␛[6n␛[c␛[>q␅
            reset: ␛c␛[!p
            charset: ␎␏␛(0␛)B
            8-bit sequences: <U+009B>31m<U+009D>0;t<U+009C><U+0090>q<U+009C><U+009F>x<U+009C><U+0085><U+0084>
            return: rm -rf x␍echo safe
            backspaces: evil␈␈␈␈safe
            delete, bell, null, feeds: ␡␇␀␋␌␊
            bidi override: access <U+202E><U+2066>// admin<U+2069> <U+2066>begin
            bidi marks: <U+200E>a<U+200F>b<U+061C>c<U+202A>d<U+202B>e<U+202C>f<U+202D>g<U+2067>h<U+2068>
            zero width: pass<U+200B>word<U+2060><U+FEFF><U+00AD><U+180E>
            joiners: ab<U+200D>c<U+200C>d<U+200D>
            line separators: a<U+2028>b<U+2029>c
            tags: hi<U+E0001><U+E0068><U+E0069><U+E0020><+3>!
            selectors: x<U+FE0F><U+FE00><U+E0100><U+E0101><+3>y
            fillers: <U+3164><U+115F><U+FFA0>
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn no_attack_leaves_a_character_that_a_terminal_obeys() {
        for (name, text) in ATTACKS {
            assert_eq!(obeyed(&visible(text)), None, "{name}");
        }
    }

    #[test]
    fn plain_text_is_not_copied() {
        for text in ["", "plain ~ text", "größer 漢字 👩‍👩‍👧 ✔️ क्‍ष"] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn clusters_of_emoji_and_scripts_that_join_stay_whole() {
        check("👩‍🚀 👍🏽 1️⃣ ❤️‍🔥 می‌خواهم", expect!["👩‍🚀 👍🏽 1️⃣ ❤️‍🔥 می‌خواهم"]);
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        check("\ta\t漢字\tb12345678\tc", expect!["        a       漢字    b12345678       c"]);
        assert_eq!(visible_from("\ta", 6), "  a");
    }

    #[test]
    fn combining_marks_are_bounded() {
        check(&format!("e{}o", "\u{301}".repeat(20)), expect!["é́́́́́́́<+12>o"]);
        check("\u{301}a", expect!["◌́a"]);
    }

    #[test]
    fn a_flood_of_invisible_characters_is_counted() {
        check(&format!("a{}b", "\u{200b}".repeat(1000)), expect!["a<U+200B><U+200B><U+200B><U+200B><+996>b"]);
    }

    #[test]
    fn lines_end_in_both_newlines_and_a_lone_return_is_visible() {
        let shown: Vec<_> = lines("a\r\nb\rc\nd").map(visible).collect();
        assert_eq!(shown, ["a", "b␍c", "d"]);
    }
}
