//! Text of one row with the letters that matched emphasised.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::gate;
use crate::row::{Span, Style};

/// End of a text that stays visible when it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Start,
    /// The end, which says more about a path.
    End,
}

/// Shows a text in at most so many columns. `matched` are indices of grapheme clusters.
pub fn emphasised(
    text: &str,
    matched: &[usize],
    columns: usize,
    keep: Keep,
    style: Style,
    strong: Style,
) -> Vec<Span> {
    let cells: Vec<_> = text
        .graphemes(true)
        .enumerate()
        .map(|(index, cluster)| {
            let shown = match cluster {
                "\n" | "\r\n" => "⏎".into(),
                "\t" => " ".into(),
                cluster => gate::visible(cluster),
            };
            let style = if matched.binary_search(&index).is_ok() { style.with(strong) } else { style };
            (shown.width(), shown, style)
        })
        .collect();
    let width = |cells: &[(usize, _, Style)]| cells.iter().map(|cell| cell.0).sum::<usize>();
    let (mut from, mut to) = (0, cells.len());
    let cut = width(&cells) > columns;
    if cut {
        let room = columns.saturating_sub(1);
        let mut left = width(&cells);
        while from < to && left > room {
            let dropped = match keep {
                Keep::Start => {
                    to -= 1;
                    to
                }
                Keep::End => {
                    from += 1;
                    from - 1
                }
            };
            left -= cells[dropped].0;
        }
    }
    let mut spans: Vec<Span> = Vec::new();
    let mut push = |text: &str, style: Style| match spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => spans.push(Span::new(text, style)),
    };
    let ellipsis = cut && columns > 0;
    if ellipsis && keep == Keep::End {
        push("…", style);
    }
    for (_, shown, style) in &cells[from..to] {
        push(shown, *style);
    }
    if ellipsis && keep == Keep::Start {
        push("…", style);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, matched: &[usize], columns: usize, keep: Keep, expected: &str) {
        let spans = emphasised(text, matched, columns, keep, Style::PLAIN, Style::BOLD);
        let shown: Vec<_> = spans
            .iter()
            .map(|span| if span.style.bold { format!("[{}]", span.text) } else { span.text.clone() })
            .collect();
        assert_eq!(shown.concat(), expected);
        assert!(spans.iter().map(|span| span.text.width()).sum::<usize>() <= columns);
    }

    #[test]
    fn a_long_text_is_cut_at_the_end_that_tells_less() {
        check("src/main.rs", &[4, 5], 20, Keep::End, "src/[ma]in.rs");
        check("src/main.rs", &[4, 5], 8, Keep::End, "…[ma]in.rs");
        check("src/main.rs", &[4, 5], 6, Keep::Start, "src/[m]…");
        check("漢字漢字", &[0], 4, Keep::Start, "[漢]…");
        check("漢字漢字", &[3], 4, Keep::End, "…[字]");
        check("ab", &[], 0, Keep::Start, "");
        check("ab", &[], 1, Keep::Start, "…");
        check("a\nb\tc\u{1b}[2J", &[], 20, Keep::Start, "a⏎b c␛[2J");
    }
}
