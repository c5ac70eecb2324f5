//! Blocks of a transcript as rows: briefly on the main screen, in full in the pager.

mod spilled;
mod tool;

use hangar_transcript::{
    AskBlock, AskKind, Block, BlockBody, NoticeBlock, NoticeLevel, UserBlock, VerdictOutcome,
};
use unicode_width::UnicodeWidthStr as _;

use crate::gate;
use crate::markdown::MarkdownStream;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::wrap;

pub use tool::{header as tool_header, live as live_tool};

/// Widest prose, whatever the screen: longer rows are hard to read.
pub const PROSE_COLUMNS: usize = 120;
/// Rows of a prompt that the main screen repeats.
const PROMPT_ROWS: usize = 40;

/// Amount of a block that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Brief,
    Full,
}

/// Settings of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Rendering<'a> {
    pub columns: usize,
    pub detail: Detail,
    /// Whether the model's reasoning is shown.
    pub reasoning: bool,
    pub theme: &'a Theme,
}

/// Rows of a block that is final. None for one that is not shown.
pub fn rows(block: &Block, look: Rendering<'_>) -> Vec<Row> {
    match &block.body {
        BlockBody::User(user) => user_rows(user, look),
        BlockBody::Text(text) => markdown(&text.text, look),
        BlockBody::Reasoning(text) if look.reasoning || look.detail == Detail::Full => {
            reasoning(&text.text, look)
        }
        BlockBody::Reasoning(_) => Vec::new(),
        BlockBody::Tool(tool) => tool::rows(tool, look),
        BlockBody::Ask(ask) => ask_rows(ask, look),
        BlockBody::Notice(notice) => notice_rows(notice, look),
    }
}

/// Rows of a Markdown text, all at once.
pub fn markdown(text: &str, look: Rendering<'_>) -> Vec<Row> {
    MarkdownStream::render(text, look.columns, *look.theme)
}

/// Rows of plain text, wrapped, with a mark before the first row and blanks of the same width before the others.
pub fn marked(mark: &str, text: &str, mark_style: Style, style: Style, columns: usize) -> Vec<Row> {
    let first = [Span::new(mark, mark_style)];
    let indent = [Span::plain(" ".repeat(first[0].text.chars().count()))];
    let mut rows = Vec::new();
    for line in gate::lines(text) {
        let before: &[Span] = if rows.is_empty() { &first } else { &indent };
        let spans = [Span::new(gate::visible(line), style)];
        rows.extend(wrap(&spans, columns, before, &indent));
    }
    rows
}

fn user_rows(user: &UserBlock, look: Rendering<'_>) -> Vec<Row> {
    // Messages of Hangar or an agent in the user's place are not shown as if the user had typed them.
    if user.source.as_deref().is_some_and(|source| source.starts_with("system")) {
        return marked("∙ ", &user.text, look.theme.dim, look.theme.dim, look.columns.min(PROSE_COLUMNS));
    }
    let theme = look.theme;
    let mut rows = marked(
        "❯ ",
        user.text.trim_end(),
        theme.user_prompt,
        theme.user_prompt,
        look.columns.min(PROSE_COLUMNS),
    );
    if look.detail == Detail::Brief && rows.len() > PROMPT_ROWS {
        let more = rows.len() - PROMPT_ROWS;
        rows.truncate(PROMPT_ROWS);
        rows.push(Row::styled(format!("  … {more} more rows"), theme.dim));
    }
    for name in &user.attachments {
        rows.push(Row::styled(format!("  + {}", gate::visible(name)), theme.dim));
    }
    rows
}

fn reasoning(text: &str, look: Rendering<'_>) -> Vec<Row> {
    let style = look.theme.dim.with(Style::ITALIC);
    marked("∴ ", text.trim(), look.theme.dim, style, look.columns.min(PROSE_COLUMNS))
}

fn ask_rows(ask: &AskBlock, look: Rendering<'_>) -> Vec<Row> {
    let theme = look.theme;
    match ask.ask {
        // The call shows its outcome.
        AskKind::Permission => Vec::new(),
        AskKind::Question if ask.call.is_some() && ask.outcome.is_some() => Vec::new(),
        AskKind::Question | AskKind::Elicitation => {
            let key = if ask.ask == AskKind::Question { "question" } else { "message" };
            let question = ask.data[key].as_str().unwrap_or("a question");
            let mut rows =
                marked("? ", question, theme.accent, Style::PLAIN, look.columns.min(PROSE_COLUMNS));
            let answer = match (ask.outcome, ask.detail.as_deref()) {
                (Some(VerdictOutcome::Answered | VerdictOutcome::Approved), Some(detail)) => {
                    detail.to_owned()
                }
                (Some(VerdictOutcome::Answered | VerdictOutcome::Approved), None) => "answered".to_owned(),
                (Some(VerdictOutcome::Denied), _) => "declined".to_owned(),
                (Some(VerdictOutcome::Cancelled) | None, _) => "not answered".to_owned(),
            };
            rows.extend(marked("  → ", &answer, theme.dim, theme.dim, look.columns.min(PROSE_COLUMNS)));
            rows
        }
        AskKind::Plan => {
            let verdict = match (ask.outcome, ask.detail.as_deref()) {
                (Some(VerdictOutcome::Approved), _) => "Plan approved".to_owned(),
                (_, Some(feedback)) => format!("Plan not approved: {feedback}"),
                _ => "Plan not approved".to_owned(),
            };
            let mut rows = Vec::new();
            if let Some(plan) = ask.data["planContent"].as_str() {
                rows.extend(markdown(plan, look));
            }
            rows.extend(marked("∙ ", &verdict, theme.accent, Style::PLAIN, look.columns.min(PROSE_COLUMNS)));
            rows
        }
    }
}

/// Elements around notices that the model is given too.
const MODEL_ELEMENTS: [(&str, &str); 2] =
    [("<system_notification>", "</system_notification>"), ("<system_reminder>", "</system_reminder>")];
/// Words with which the part of such a notice begins that tells the model what to do.
const MODEL_ADVICE: [&str; 2] = [" Use read_agent with agent_id ", " Follow them there:"];

/// Text of a notice. Of one that the model is given, a person is told what happened; the pager has all of it.
fn shown_notice(text: &str, detail: Detail) -> &str {
    let inner = MODEL_ELEMENTS
        .iter()
        .find_map(|(start, end)| text.strip_prefix(start)?.strip_suffix(end))
        .map(str::trim);
    match (inner, detail) {
        (None, _) => text,
        (Some(inner), Detail::Full) => inner,
        (Some(inner), Detail::Brief) => {
            let line = inner.lines().next().unwrap_or_default();
            let end = MODEL_ADVICE.iter().filter_map(|advice| line.find(advice)).min();
            &line[..end.unwrap_or(line.len())]
        }
    }
}

fn notice_rows(notice: &NoticeBlock, look: Rendering<'_>) -> Vec<Row> {
    let theme = look.theme;
    let (mark, mark_style, style) = match notice.level {
        NoticeLevel::Info => ("∙ ", theme.dim, theme.dim),
        NoticeLevel::Good => ("✓ ", theme.tool_ok, Style::PLAIN),
        NoticeLevel::Warning => ("! ", theme.warning, theme.warning),
        NoticeLevel::Error => ("✗ ", theme.error, theme.error),
    };
    let columns = look.columns.min(PROSE_COLUMNS);
    let text = notice.text.trim();
    let mut rows = marked(mark, shown_notice(text, look.detail), mark_style, style, columns);
    if let Some(detail) = &notice.detail {
        let shown = match look.detail {
            Detail::Full => detail.as_str(),
            Detail::Brief => detail.lines().next().unwrap_or_default(),
        };
        let joined = Span::new(format!(" · {}", gate::visible(shown)), theme.dim);
        match rows.as_mut_slice() {
            // A short detail is on the row of its notice.
            [row] if !shown.contains('\n') && row.width() + joined.text.width() <= columns => {
                row.push(joined);
            }
            _ => rows.extend(marked("  ", shown, theme.dim, theme.dim, columns)),
        }
    }
    rows
}
