//! The answer as text, while it streams. Pure: returns the text to print for each delta, so that an answer that was cut off
//! and requested again is on stdout once, and everything else has lines of its own.

/// Line breaks that end a paragraph.
const PARAGRAPH: &str = "\n\n";

#[derive(Debug, Default)]
pub(crate) struct Prose {
    /// Line breaks at the end of stdout. The first text needs none before it.
    breaks: Option<usize>,
    /// Printed part of an answer that is not complete yet.
    shown: String,
    /// Id of the streaming answer, and how much of `shown` it has repeated.
    writing: Option<(String, usize)>,
    /// Note that is printed if the answer differs from the one that was cut off.
    excuse: Option<String>,
}

impl Prose {
    /// Takes a delta of an answer.
    pub(crate) fn piece(&mut self, id: &str, piece: &str) -> String {
        let said = match &self.writing {
            Some((writing, said)) if writing == id => *said,
            _ => 0,
        };
        // A second attempt first repeats the text of the first one, which is printed already.
        let (out, said) = match self.shown[said..].strip_prefix(piece) {
            Some(_) => (String::new(), said + piece.len()),
            None => {
                let out = match piece.strip_prefix(&self.shown[said..]) {
                    Some(news) => self.more(news),
                    None => self.instead(&format!("{}{piece}", &self.shown[..said])),
                };
                (out, self.shown.len())
            }
        };
        self.writing = Some((id.to_owned(), said));
        out
    }

    /// Takes a complete answer. `content` counts, whatever the deltas said.
    pub(crate) fn whole(&mut self, content: &str) -> String {
        let content = content.trim_end_matches('\n');
        let mut out = String::new();
        if !content.is_empty() && self.shown.trim_end_matches('\n') != content {
            out = match content.strip_prefix(self.shown.as_str()) {
                Some(rest) => self.more(rest),
                None => self.instead(content),
            };
        }
        out.push_str(&self.end());
        out
    }

    /// Ends an answer that is complete or was abandoned.
    pub(crate) fn end(&mut self) -> String {
        self.shown.clear();
        self.writing = None;
        self.excuse = None;
        self.paragraph()
    }

    /// Takes note that the answer was cut off and is requested again. `note` is printed only if the new answer differs.
    pub(crate) fn again(&mut self, note: &str) -> String {
        if self.shown.is_empty() {
            return self.aside(note);
        }
        self.excuse = Some(note.to_owned());
        String::new()
    }

    /// Prints a paragraph that is not part of the answer.
    pub(crate) fn aside(&mut self, text: &str) -> String {
        let before = self.paragraph();
        self.breaks = Some(0);
        format!("{before}{text}{}", self.paragraph())
    }

    /// Continues the answer.
    fn more(&mut self, text: &str) -> String {
        self.shown.push_str(text);
        let ending = text.len() - text.trim_end_matches('\n').len();
        let before = if ending == text.len() { self.breaks.unwrap_or_default() } else { 0 };
        self.breaks = Some(before + ending);
        text.to_owned()
    }

    /// Starts over, because the answer differs from the printed one.
    fn instead(&mut self, text: &str) -> String {
        let excuse = self.excuse.take().map(|note| self.aside(&note)).unwrap_or_default();
        let before = self.paragraph();
        self.shown.clear();
        format!("{excuse}{before}{}", self.more(text))
    }

    /// The line breaks that end the paragraph on stdout, if one is open.
    fn paragraph(&mut self) -> String {
        let breaks = self.breaks.unwrap_or(PARAGRAPH.len());
        self.breaks = self.breaks.map(|breaks| breaks.max(PARAGRAPH.len()));
        PARAGRAPH.chars().skip(breaks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Prose;

    /// Takes lines `id: delta`, `= complete answer`, `! requested again`, `# aside` and `.` for abandoned, with `|` as line break.
    #[track_caller]
    fn check(script: &str, expected: &str) {
        let mut prose = Prose::default();
        let mut out = String::new();
        for line in script.lines() {
            let line = line.trim_start().replace('|', "\n");
            let said = match line.split_at(1) {
                (".", _) => prose.end(),
                ("=", text) => prose.whole(&text[1..]),
                ("!", text) => prose.again(&text[1..]),
                ("#", text) => prose.aside(&text[1..]),
                (id, text) => prose.piece(id, &text[2..]),
            };
            out.push_str(&said);
        }
        assert_eq!(out.replace('\n', "|"), expected, "{script}");
    }

    #[test]
    fn an_answer_without_pieces_is_a_paragraph() {
        check("= one|\n= two||||", "one||two||");
    }

    #[test]
    fn pieces_are_printed_as_they_come_and_once() {
        check("a: po\na: ng\n= pong", "pong||");
    }

    #[test]
    fn what_did_not_come_in_pieces_is_added() {
        check("a: po\n= pong", "pong||");
    }

    #[test]
    fn a_paragraph_ends_with_one_empty_line_however_its_pieces_end() {
        check(
            "a: one|\n= one|\nb: two||\n= two||\nc: three|\nc: ||\n= three\n= four",
            "one||two||three|||four||",
        );
    }

    #[test]
    fn a_second_attempt_goes_on_where_the_first_was_cut() {
        check(
            "a: tok0 \na: tok1 \n! again\nb: tok0 \nb: tok1 \nb: tok2\n= tok0 tok1 tok2",
            "tok0 tok1 tok2||",
        );
    }

    #[test]
    fn a_second_attempt_that_says_something_else_is_told_apart() {
        check("a: yes, I\n! again\nb: yes, \nb: you\n= yes, you", "yes, I||again||yes, you||");
        check("a: yes\nb: no\n= no", "yes||no||");
    }

    #[test]
    fn a_note_about_an_answer_that_has_not_begun_is_told_at_once() {
        check("! again\na: pong\n= pong", "again||pong||");
    }

    #[test]
    fn an_answer_that_is_given_up_keeps_what_was_shown() {
        check("a: half\n.\n= next", "half||next||");
        check(".", "");
    }

    #[test]
    fn the_whole_answer_counts_when_pieces_said_something_else() {
        check("a: secr\n= [redacted]", "secr||[redacted]||");
    }

    #[test]
    fn an_answer_of_calls_alone_prints_nothing() {
        check("= \n# * bash\n= done", "* bash||done||");
        check("a: let me see\n= \n# * bash", "let me see||* bash||");
    }

    #[test]
    fn asides_do_not_break_into_a_line() {
        check("a: po\n# * bash\na: ng\n= pong", "po||* bash||ng||");
    }
}
