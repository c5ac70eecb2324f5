//! Scanner for open inline Markdown, character by character.
//!
//! It follows the delimiters of code, emphasis, links and HTML closely enough to say where a paragraph may be cut into segments that
//! are parsed on their own. It depends only on the characters it has seen, so a cut is the same however the text arrived.

/// Most delimiters that are followed at once; more are taken for text.
const DEEPEST: usize = 64;

/// Delimiters that are open after the characters so far.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    /// Number of backticks that opened the code that is open.
    code: Option<usize>,
    /// Backticks in the run that is being read.
    ticks: usize,
    /// Run of `*`, `_` or `~` that is being read, with the character before it.
    run: Option<(char, usize, char)>,
    emphasis: Vec<(char, usize)>,
    brackets: usize,
    /// Depth of parentheses in the target of a link.
    target: usize,
    tag: bool,
    before: char,
    escaped: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            code: None,
            ticks: 0,
            run: None,
            emphasis: Vec::new(),
            brackets: 0,
            target: 0,
            tag: false,
            before: ' ',
            escaped: false,
        }
    }
}

impl Scan {
    pub(super) fn push(&mut self, c: char) {
        let before = std::mem::replace(&mut self.before, c);
        let escaped = std::mem::take(&mut self.escaped);
        if c == '`' && !escaped {
            self.end_run(c);
            self.ticks += 1;
            return;
        }
        self.end_ticks();
        if self.code.is_some() {
            return;
        }
        if matches!(c, '*' | '_' | '~') && !escaped && self.target == 0 && !self.tag {
            match &mut self.run {
                Some((delimiter, length, _)) if *delimiter == c => *length += 1,
                _ => {
                    self.end_run(c);
                    self.run = Some((c, 1, before));
                }
            }
            return;
        }
        self.end_run(c);
        if escaped {
            return;
        }
        match c {
            '\\' => self.escaped = true,
            '[' => self.brackets += 1,
            ']' => self.brackets = self.brackets.saturating_sub(1),
            '(' if before == ']' || self.target > 0 => self.target += 1,
            ')' => self.target = self.target.saturating_sub(1),
            '>' => self.tag = false,
            c if before == '<' && (c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) => {
                self.tag = true;
            }
            _ => {}
        }
    }

    fn end_ticks(&mut self) {
        let ticks = std::mem::take(&mut self.ticks);
        match self.code {
            _ if ticks == 0 => {}
            Some(open) if open == ticks => self.code = None,
            Some(_) => {}
            None => self.code = Some(ticks),
        }
    }

    /// Ends a run of delimiters before `next`: it closes what it can, else it opens.
    fn end_run(&mut self, next: char) {
        let Some((delimiter, mut length, before)) = self.run.take() else { return };
        let punctuation = |c: char| c.is_ascii_punctuation();
        let left =
            !next.is_whitespace() && (!punctuation(next) || before.is_whitespace() || punctuation(before));
        let right =
            !before.is_whitespace() && (!punctuation(before) || next.is_whitespace() || punctuation(next));
        let word = delimiter == '_';
        let opens = left && (!word || !right || punctuation(before));
        let closes = right && (!word || !left || punctuation(next));
        if closes {
            while length > 0
                && let Some(at) = self.emphasis.iter().rposition(|(open, _)| *open == delimiter)
            {
                let used = self.emphasis.get(at).map_or(0, |(_, open)| length.min(*open));
                length -= used;
                match self.emphasis.get_mut(at) {
                    Some((_, open)) if *open > used => {
                        *open -= used;
                        self.emphasis.truncate(at + 1);
                    }
                    _ => self.emphasis.truncate(at),
                }
            }
        }
        if opens && length > 0 && self.emphasis.len() < DEEPEST {
            self.emphasis.push((delimiter, length));
        }
    }

    /// Whether the next character is in code.
    pub(super) fn in_code(&self) -> bool {
        self.code.is_some()
    }

    /// Whether nothing is open.
    pub(super) fn closed(&self) -> bool {
        self.code.is_none()
            && self.ticks == 0
            && self.run.is_none()
            && self.emphasis.is_empty()
            && self.brackets == 0
            && self.target == 0
            && !self.tag
            && !self.escaped
            && self.before != ']'
            && self.before != '<'
    }

    /// Delimiters that would close what is open, to show text before its end has come.
    pub(super) fn closers(mut self) -> String {
        self.end_ticks();
        if let Some(ticks) = self.code {
            return "`".repeat(ticks);
        }
        self.emphasis.iter().rev().map(|(delimiter, length)| delimiter.to_string().repeat(*length)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> bool {
        let mut scan = Scan::default();
        format!("{text} ").chars().for_each(|c| scan.push(c));
        !scan.closed()
    }

    #[test]
    fn delimiters_that_wait_for_their_end_are_open() {
        for text in
            ["**a", "*a **b**", "`a", "``a `", "[a", "[a](b", "<a href", "_a", "~~a", "***a**", "**a *b**c"]
        {
            assert!(open(text), "{text}");
        }
    }

    #[test]
    fn delimiters_without_a_meaning_are_not_open() {
        for text in [
            "**a**",
            "a * b",
            "snake_case_name",
            "`a*b`",
            "``a ` b``",
            "[a](b (c) *d)",
            "[a] b",
            "1 < 2",
            "\\*a",
            "\\`a",
            "***a***",
            "**a *b* c**",
            "_a_",
            "<b>",
            "a**",
            "~~a~~",
            "*a***b**",
        ] {
            assert!(!open(text), "{text}");
        }
    }
}
