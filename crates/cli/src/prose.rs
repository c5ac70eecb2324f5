//! The answer as text, while it is being written. Pure: says what to print of each piece, so that an answer which is cut
//! off and asked for again stands on stdout once, and anything else that is printed meanwhile has lines of its own.

/// How many line breaks end a paragraph.
const PARAGRAPH: &str = "\n\n";

#[derive(Debug, Default)]
pub(crate) struct Prose {
    /// Line breaks that stdout ends with; what is printed first needs none before it.
    breaks: Option<usize>,
    /// What was printed of an answer that is not whole yet.
    shown: String,
    /// The answer being written, by its id, and how much of `shown` it has said as well.
    writing: Option<(String, usize)>,
    /// Said if the answer goes another way than the one that was cut off.
    excuse: Option<String>,
}

impl Prose {
    /// A piece of an answer.
    pub(crate) fn piece(&mut self, id: &str, piece: &str) -> String {
        let said = match &self.writing {
            Some((writing, said)) if writing == id => *said,
            _ => 0,
        };
        // A second attempt writes first what the first one wrote. That stands there already.
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

    /// The answer is whole: `content` is what counts, whatever came in pieces.
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

    /// No more comes of this answer: it is whole, or was given up.
    pub(crate) fn end(&mut self) -> String {
        self.shown.clear();
        self.writing = None;
        self.excuse = None;
        self.paragraph()
    }

    /// The answer was cut off and is asked for again. `note` is for the reader, who needs it only if the answer changes.
    pub(crate) fn again(&mut self, note: &str) -> String {
        if self.shown.is_empty() {
            return self.aside(note);
        }
        self.excuse = Some(note.to_owned());
        String::new()
    }

    /// A paragraph about something else.
    pub(crate) fn aside(&mut self, text: &str) -> String {
        let before = self.paragraph();
        self.breaks = Some(0);
        format!("{before}{text}{}", self.paragraph())
    }

    /// The answer goes on.
    fn more(&mut self, text: &str) -> String {
        self.shown.push_str(text);
        let ending = text.len() - text.trim_end_matches('\n').len();
        let before = if ending == text.len() { self.breaks.unwrap_or_default() } else { 0 };
        self.breaks = Some(before + ending);
        text.to_owned()
    }

    /// The answer turned out to be another one.
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

    /// Lines `id: piece`, `= whole answer`, `! asked again`, `# aside`, `.` given up; `|` is a line break in them.
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
