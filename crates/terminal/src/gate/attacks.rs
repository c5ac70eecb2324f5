//! Corpus of text that attacks terminals, for the tests of everything that shows text.

/// Attacks: a name and the text.
pub(crate) const ATTACKS: &[(&str, &str)] = &[
    ("title", "a\u{1b}]0;owned\u{7}b"),
    ("clipboard", "a\u{1b}]52;c;cm0gLXJmIC8=\u{1b}\\b"),
    ("link", "\u{1b}]8;;https://evil.example\u{1b}\\https://good.example\u{1b}]8;;\u{1b}\\"),
    ("clear", "\u{1b}[2J\u{1b}[3J\u{1b}[H"),
    ("cursor", "safe\u{1b}[1A\u{1b}[2Kevil"),
    ("alternate screen and mouse", "\u{1b}[?1049h\u{1b}[?1003h"),
    ("device control", "\u{1b}Pq#0;2;0;0;0\u{1b}\\"),
    ("application command", "\u{1b}_Gf=100;AAAA\u{1b}\\"),
    ("privacy and start of string", "\u{1b}^x\u{1b}\\\u{1b}Xx\u{1b}\\"),
    ("report", "\u{1b}[6n\u{1b}[c\u{1b}[>q\u{5}"),
    ("reset", "\u{1b}c\u{1b}[!p"),
    ("charset", "\u{e}\u{f}\u{1b}(0\u{1b})B"),
    ("8-bit sequences", "\u{9b}31m\u{9d}0;t\u{9c}\u{90}q\u{9c}\u{9f}x\u{9c}\u{85}\u{84}"),
    ("return", "rm -rf x\recho safe"),
    ("backspaces", "evil\u{8}\u{8}\u{8}\u{8}safe"),
    ("delete, bell, null, feeds", "\u{7f}\u{7}\0\u{b}\u{c}\n"),
    ("bidi override", "access \u{202e}\u{2066}// admin\u{2069} \u{2066}begin"),
    ("bidi marks", "\u{200e}a\u{200f}b\u{61c}c\u{202a}d\u{202b}e\u{202c}f\u{202d}g\u{2067}h\u{2068}"),
    ("zero width", "pass\u{200b}word\u{2060}\u{feff}\u{ad}\u{180e}"),
    ("joiners", "ab\u{200d}c\u{200c}d\u{200d}"),
    ("line separators", "a\u{2028}b\u{2029}c"),
    ("tags", "hi\u{e0001}\u{e0068}\u{e0069}\u{e0020}\u{e0074}\u{e0068}\u{e007f}!"),
    ("selectors", "x\u{fe0f}\u{fe00}\u{e0100}\u{e0101}\u{e0102}\u{e0103}\u{e0104}y"),
    ("fillers", "\u{3164}\u{115f}\u{ffa0}"),
];

/// First character of a shown text that a terminal would interpret or hide.
pub(crate) fn obeyed(shown: &str) -> Option<char> {
    shown.chars().find(|c| c.is_control() || super::mark(*c).is_some())
}
