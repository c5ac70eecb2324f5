//! Classes of characters for the splitting rules: roughly, the Unicode general category.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// `Lu`, `Lt`.
    Upper,
    /// `Ll`.
    Lower,
    /// `Lm`, `Lo`.
    Caseless,
    /// `M`.
    Mark,
    /// `N`.
    Number,
    Space,
    Other,
}

// `RANGES`, written by the build script: sorted, without overlap.
include!(concat!(env!("OUT_DIR"), "/classes.rs"));

impl Class {
    pub(super) fn of(character: char) -> Self {
        match character {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Number,
            _ if character.is_whitespace() => Self::Space,
            '\0'..='\x7f' => Self::Other,
            _ => {
                let after = RANGES.partition_point(|(start, ..)| *start <= character);
                match after.checked_sub(1).map(|at| RANGES[at]) {
                    Some((_, end, class)) if character <= end => class,
                    _ => Self::Other,
                }
            }
        }
    }

    pub(super) fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Caseless)
    }

    /// Whether it may be in the leading, upper-case part of a word.
    pub(super) fn leads(self) -> bool {
        matches!(self, Self::Upper | Self::Caseless | Self::Mark)
    }

    /// Whether it may be in the trailing, lower-case part of a word.
    pub(super) fn trails(self) -> bool {
        matches!(self, Self::Lower | Self::Caseless | Self::Mark)
    }
}
