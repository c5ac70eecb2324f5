//! Word wrapping of styled text by display width.
//!
//! [`Text`] is a paragraph: one string with the styles of its parts. It breaks at blanks and between wide characters; a part that is
//! marked whole (inline code) and a word (a URL) are broken only if they are wider than the row. Wrapping is greedy, so that the rows
//! before the last one do not depend on text that comes later: [`Text::take`] gives those and keeps the rest.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

use crate::row::{Row, Span, Style};

/// Stands for a character that is wider than the screen.
const TOO_WIDE: &str = "\u{fffd}";

/// Rows of spans at a width. A newline in a span ends its row; blanks at the ends of rows are dropped.
pub fn wrap(spans: &[Span], columns: usize, first_indent: &[Span], next_indent: &[Span]) -> Vec<Row> {
    let mut text = Text::default();
    for span in spans {
        text.push(&span.text, span.style);
    }
    text.rows(columns, first_indent, next_indent)
}

/// The end of a text's last line in one row; a cut one starts with `…`.
pub fn tail(spans: &[Span], columns: usize) -> Row {
    let spans = last_line(spans);
    if width(&spans) <= columns {
        return Row::new(spans);
    }
    let mut left = columns.saturating_sub(1);
    let mut kept = Vec::new();
    'spans: for span in spans.iter().rev() {
        let mut from = span.text.len();
        for (at, cluster) in span.text.grapheme_indices(true).rev() {
            if cluster.width() > left {
                push_kept(&mut kept, span, from);
                break 'spans;
            }
            left -= cluster.width();
            from = at;
        }
        push_kept(&mut kept, span, from);
    }
    kept.reverse();
    let mut row = Row::new(kept);
    if columns > 0 {
        let style = row.spans.first().map_or(Style::PLAIN, |span| span.style);
        row = row.after(Span::new("…", style));
    }
    row
}

/// Spans of the last line that is not empty.
fn last_line(spans: &[Span]) -> Vec<Span> {
    let mut line = Vec::new();
    for span in spans.iter().rev() {
        let text = if line.is_empty() { span.text.trim_end_matches('\n') } else { &span.text };
        let start = text.rfind('\n').map_or(0, |at| at + 1);
        if let Some(part) = text.get(start..)
            && !part.is_empty()
        {
            line.push(Span::new(part, span.style));
        }
        if start > 0 {
            break;
        }
    }
    line.reverse();
    line
}

fn push_kept(kept: &mut Vec<Span>, span: &Span, from: usize) {
    if let Some(text) = span.text.get(from..)
        && !text.is_empty()
    {
        kept.push(Span::new(text, span.style));
    }
}

/// Part of a text with one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    end: usize,
    style: Style,
    /// Whether the blanks inside are kept together.
    whole: bool,
}

/// Text with styles, before it is wrapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    text: String,
    runs: Vec<Run>,
}

impl Text {
    pub fn push(&mut self, text: &str, style: Style) {
        self.push_run(text, style, false);
    }

    /// Adds text whose blanks are no places for a break, unless it is wider than a row.
    pub fn push_whole(&mut self, text: &str, style: Style) {
        self.push_run(text, style, true);
    }

    fn push_run(&mut self, text: &str, style: Style, whole: bool) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(run) if run.style == style && run.whole == whole => run.end = end,
            _ => self.runs.push(Run { end, style, whole }),
        }
    }

    /// Adds another text at the end.
    pub fn append(&mut self, other: &Self) {
        let mut start = 0;
        for run in &other.runs {
            if let Some(part) = other.text.get(start..run.end) {
                self.push_run(part, run.style, run.whole);
            }
            start = run.end;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn spans(&self) -> Vec<Span> {
        self.spans_of(0, self.text.len())
    }

    /// Width of the widest line.
    pub fn width(&self) -> usize {
        self.text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0)
    }

    /// All rows of the text; one empty row for an empty text.
    pub fn rows(&self, columns: usize, first_indent: &[Span], next_indent: &[Span]) -> Vec<Row> {
        let mut rows = self.cut(columns, first_indent, next_indent, true).0;
        if rows.is_empty() {
            rows.push(indented(&clip(first_indent, columns), Vec::new()));
        }
        rows
    }

    /// Removes and returns the rows that no text after this one can change: all but the last.
    pub fn take(&mut self, columns: usize, first_indent: &[Span], next_indent: &[Span]) -> Vec<Row> {
        // No character has more columns than bytes, so a text this short cannot fill a row.
        let indent = width(first_indent).max(width(next_indent));
        if self.text.len() + indent <= columns && !self.text.contains('\n') {
            return Vec::new();
        }
        let (rows, end) = self.cut(columns, first_indent, next_indent, false);
        self.text.drain(..end);
        self.runs.retain_mut(|run| {
            let kept = run.end > end;
            run.end = run.end.saturating_sub(end);
            kept
        });
        rows
    }

    fn cut(&self, columns: usize, first: &[Span], next: &[Span], with_last: bool) -> (Vec<Row>, usize) {
        let columns = columns.max(1);
        let (first, next) = (clip(first, columns), clip(next, columns));
        let clusters = self.clusters();
        let mut rows = Vec::new();
        let mut at = 0;
        while at < clusters.len() {
            let indent = if rows.is_empty() { &first } else { &next };
            let room = columns.saturating_sub(width(indent)).max(1);
            let line = line(&clusters, at, room);
            if line.last && !with_last {
                break;
            }
            let spans = self.spans_between(&clusters, at, line.end, room);
            rows.push(indented(indent, spans));
            at = line.next;
        }
        let end = clusters.get(at).map_or(self.text.len(), |cluster| cluster.start);
        (rows, end)
    }

    fn clusters(&self) -> Vec<Cluster> {
        let mut clusters = Vec::new();
        let mut start = 0;
        for run in &self.runs {
            let part = self.text.get(start..run.end).unwrap_or_default();
            clusters.extend(part.grapheme_indices(true).map(|(at, cluster)| Cluster {
                start: start + at,
                width: cluster.width(),
                kind: kind(cluster, run.whole),
            }));
            start = run.end;
        }
        clusters
    }

    fn spans_between(&self, clusters: &[Cluster], from: usize, to: usize, room: usize) -> Vec<Span> {
        let Some(first) = clusters.get(from) else { return Vec::new() };
        let end = clusters.get(to).map_or(self.text.len(), |cluster| cluster.start);
        let mut spans = self.spans_of(first.start, end);
        if to == from + 1
            && first.width > room
            && let Some(span) = spans.first_mut()
        {
            TOO_WIDE.clone_into(&mut span.text);
        }
        spans
    }

    fn spans_of(&self, from: usize, to: usize) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let first = self.runs.partition_point(|run| run.end <= from);
        let mut start = from;
        for run in self.runs.iter().skip(first) {
            let end = run.end.min(to);
            if let Some(part) = self.text.get(start..end)
                && !part.is_empty()
            {
                match spans.last_mut() {
                    Some(span) if span.style == run.style => span.text.push_str(part),
                    _ => spans.push(Span::new(part, run.style)),
                }
            }
            if run.end >= to {
                break;
            }
            start = end;
        }
        spans
    }
}

#[derive(Debug, Clone, Copy)]
struct Cluster {
    start: usize,
    width: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    /// A blank; a weak one is inside a part that is kept whole.
    Blank {
        weak: bool,
    },
    Newline,
    /// A wide character, before and after which a row may end.
    Wide,
    /// A wide character that does not start a row, like `。`.
    Closing,
    /// A wide character that does not end a row, like `「`.
    Opening,
}

fn kind(cluster: &str, whole: bool) -> Kind {
    if cluster == " " {
        // A blank with a combining mark is a letter: it can be seen.
        return Kind::Blank { weak: whole };
    }
    match cluster.chars().next() {
        Some('\n') => Kind::Newline,
        Some(_) if whole => Kind::Letter,
        Some(
            '、' | '。' | '，' | '．' | '：' | '；' | '！' | '？' | '」' | '』' | '）' | '］' | '｝' | '】'
            | '》' | '〉' | '〕' | '・' | 'ー' | '々' | '…',
        ) => Kind::Closing,
        Some('「' | '『' | '（' | '［' | '｛' | '【' | '《' | '〈' | '〔') => Kind::Opening,
        Some(
            '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff01}'..='\u{ff60}',
        )
        | Some('\u{20000}'..='\u{3ffff}') => Kind::Wide,
        _ => Kind::Letter,
    }
}

/// Whether a row may end between two clusters without a blank.
fn breakable(before: Kind, after: Kind) -> bool {
    match (before, after) {
        (Kind::Blank { .. } | Kind::Newline | Kind::Opening, _) => false,
        (_, Kind::Blank { .. } | Kind::Newline | Kind::Closing) => false,
        (Kind::Letter, Kind::Letter) => false,
        (Kind::Wide | Kind::Closing | Kind::Letter, Kind::Wide | Kind::Opening | Kind::Letter) => true,
    }
}

/// End of a row: the cluster after its last one, and the first of the next row.
#[derive(Debug, Clone, Copy)]
struct Line {
    end: usize,
    next: usize,
    /// Whether the text ended before the row was full.
    last: bool,
}

fn line(clusters: &[Cluster], from: usize, room: usize) -> Line {
    let mut used = 0;
    let mut strong: Option<Line> = None;
    let mut weak: Option<Line> = None;
    // End of the clusters that are not trailing blanks.
    let mut content = from;
    let mut before = None;
    for (at, cluster) in clusters.iter().enumerate().skip(from) {
        match cluster.kind {
            Kind::Newline => return Line { end: content, next: at + 1, last: false },
            Kind::Blank { .. } => {}
            kind => {
                if let Some(Kind::Blank { weak: is_weak }) = before
                    && content > from
                {
                    let place = Line { end: content, next: at, last: false };
                    *(if is_weak { &mut weak } else { &mut strong }) = Some(place);
                } else if before.is_some_and(|before| breakable(before, kind)) {
                    strong = Some(Line { end: at, next: at, last: false });
                }
                if used + cluster.width > room {
                    let forced = at.max(from + 1);
                    return strong.or(weak).unwrap_or(Line { end: forced, next: forced, last: false });
                }
                content = at + 1;
            }
        }
        used += cluster.width;
        before = Some(cluster.kind);
    }
    Line { end: content, next: clusters.len(), last: true }
}

fn width(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.text.width()).sum()
}

/// An indent that leaves at least half of the columns to the text.
pub(crate) fn clip(indent: &[Span], columns: usize) -> Vec<Span> {
    let mut left = columns / 2;
    let mut clipped = Vec::new();
    for span in indent {
        let mut text = String::new();
        for cluster in span.text.graphemes(true) {
            if cluster.width() > left {
                clipped.push(Span::new(text, span.style));
                return clipped;
            }
            left -= cluster.width();
            text.push_str(cluster);
        }
        clipped.push(Span::new(text, span.style));
    }
    clipped
}

/// A row with an indent; one without text loses the blanks at the end of its indent.
fn indented(indent: &[Span], spans: Vec<Span>) -> Row {
    let mut row = Row::new(indent.to_vec());
    row.spans.extend(spans);
    while let Some(last) = row.spans.last_mut() {
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            break;
        }
        row.spans.pop();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn check(text: &str, columns: usize, expected: Expect) {
        let rows = parse(text).rows(columns, &[Span::plain("- ")], &[Span::plain("  ")]);
        let shown: String = rows.iter().map(|row| format!("{}|\n", row.text())).collect();
        expected.assert_eq(&shown);
    }

    /// A text whose parts between backticks are whole.
    fn parse(text: &str) -> Text {
        let mut parsed = Text::default();
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 { parsed.push_whole(part, Style::BOLD) } else { parsed.push(part, Style::PLAIN) }
        }
        parsed
    }

    #[test]
    fn words_move_to_the_next_row_and_blanks_at_the_end_go() {
        check(
            "the quick  brown fox   jumps ",
            12,
            expect![[r#"
            - the quick|
              brown fox|
              jumps|
        "#]],
        );
    }

    #[test]
    fn code_and_urls_stay_whole_unless_they_are_wider_than_a_row() {
        check(
            "see `cargo test -p x` and https://a.example/b-c?d=e ok",
            26,
            expect![[r#"
            - see cargo test -p x and|
              https://a.example/b-c?d=|
              e ok|
        "#]],
        );
        check(
            "run `cargo test --workspace` or abcdefghijklmnop",
            12,
            expect![[r#"
            - run|
              cargo test|
              --workspac|
              e or|
              abcdefghij|
              klmnop|
        "#]],
        );
    }

    #[test]
    fn wide_text_breaks_between_characters_but_not_before_a_full_stop() {
        check(
            "日本語の文章です。改行「する」",
            10,
            expect![[r#"
            - 日本語の|
              文章で|
              す。改行|
              「する」|
        "#]],
        );
    }

    #[test]
    fn one_column_is_enough_for_progress() {
        check(
            "a bc 漢",
            1,
            expect![[r#"
            a|
            b|
            c|
            �|
        "#]],
        );
    }

    #[test]
    fn newlines_end_rows_and_an_empty_text_is_one_row() {
        check(
            "a\n\n  b\n",
            10,
            expect![[r#"
            - a|
            |
                b|
        "#]],
        );
        check(
            "",
            10,
            expect![[r#"
            -|
        "#]],
        );
    }

    #[test]
    fn a_span_keeps_its_style_over_rows() {
        let rows = wrap(&[Span::plain("aa "), Span::new("bb cc", Style::BOLD)], 5, &[], &[]);
        assert_eq!(
            rows,
            [
                Row::new(vec![Span::plain("aa "), Span::new("bb", Style::BOLD)]),
                Row::new(vec![Span::new("cc", Style::BOLD)])
            ]
        );
    }

    #[test]
    fn the_tail_shows_the_end() {
        let spans = [Span::plain("abc"), Span::new("漢字", Style::BOLD)];
        let shown: Vec<_> = (0..=8).map(|columns| tail(&spans, columns).text()).collect();
        expect![[r#"
            [
                "",
                "…",
                "…",
                "…字",
                "…字",
                "…漢字",
                "…c漢字",
                "abc漢字",
                "abc漢字",
            ]
        "#]]
        .assert_debug_eq(&shown);
    }

    #[test]
    fn the_tail_is_of_the_last_line() {
        let spans = [Span::plain("a\nb"), Span::new("c", Style::BOLD), Span::plain("\n")];
        assert_eq!(tail(&spans, 9), Row::new(vec![Span::plain("b"), Span::new("c", Style::BOLD)]));
        assert_eq!(tail(&[Span::plain("\n")], 9), Row::default());
    }

    proptest! {
        #[test]
        fn rows_fit_and_no_letter_is_lost(text in "[a-d `漢。\n\u{301}]{0,60}", columns in 2usize..12) {
            let parsed = parse(&text);
            let rows = parsed.rows(columns, &[], &[]);
            let fits = rows.iter().all(|row| row.width() <= columns);
            prop_assert!(fits, "{rows:?}");
            let letters = |text: &str| text.chars().filter(|c| !" \n".contains(*c)).collect::<String>();
            let shown: String = rows.iter().map(Row::text).collect();
            prop_assert_eq!(letters(&shown), letters(&parsed.text));
        }

        #[test]
        fn rows_taken_early_are_the_rows_of_the_whole(words in prop::collection::vec("[a-c漢。`]{1,9}", 0..20), columns in 1usize..12) {
            let parts: Vec<_> = words.iter().map(|word| parse(&format!("{word} "))).collect();
            let (mut whole, mut open, mut rows) = (Text::default(), Text::default(), Vec::new());
            let next = [Span::plain("  ")];
            for part in &parts {
                whole.append(part);
                open.append(part);
                let first: &[Span] = if rows.is_empty() { &[] } else { &next };
                let taken = open.take(columns, first, &next);
                rows.extend(taken);
            }
            let first: &[Span] = if rows.is_empty() { &[] } else { &next };
            rows.extend(open.rows(columns, first, &next));
            prop_assert_eq!(rows, whole.rows(columns, &[], &next));
        }
    }
}
