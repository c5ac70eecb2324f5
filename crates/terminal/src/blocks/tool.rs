//! A tool call as rows: a title with the action and its object, then the result.

use hangar_transcript::{AgentInfo, AgentState, ToolBlock, ToolState, VerdictOutcome, tool_words};

use super::spilled::Spilled;
use super::{Detail, PROSE_COLUMNS, Rendering, marked};
use crate::ansi::{self, SgrState};
use crate::diff;
use crate::gate;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::{self, wrap};

/// Lines of output on the main screen, at its start and at its end. The pager shows all.
pub(super) const HEAD_LINES: usize = 2;
pub(super) const TAIL_LINES: usize = 4;
/// Rows of a diff on the main screen.
const DIFF_ROWS: usize = 24;
/// Rows of anything in the pager.
const FULL_ROWS: usize = 20_000;
/// Bytes of one line of output; a longer one is cut.
const LINE_LIMIT: usize = 4_000;
/// Start of the last line of a command's output, for the model.
const EXITED: &str = "<exited with exit code ";
/// Calls whose output is mostly for the model, not for people.
const QUIET: &[&str] = &["view", "read", "read_file", "grep", "rg", "glob", "ls", "search", "list_directory"];

/// Verbs whose object is the path of a file.
const FILES: &[&str] = &["Read", "Edit", "Write", "Patch"];

/// The row that names a call.
pub fn header(tool: &ToolBlock, theme: &Theme) -> Row {
    let words = tool_words(&tool.name, &tool.args);
    let (mark, style) = match (tool.state, tool.asking) {
        (_, true) => ("?", theme.warning),
        (ToolState::Ok, _) => ("●", theme.tool_ok),
        (ToolState::Failed, _) => ("●", theme.tool_failed),
        (ToolState::Running | ToolState::Writing, _) => ("●", theme.tool_running),
        (ToolState::Queued, _) => ("○", theme.dim),
    };
    let object = gate::visible(words.object.lines().next().unwrap_or_default()).into_owned();
    let mut row = Row::new(vec![
        Span::new(format!("{mark} "), style),
        Span::new(gate::visible(&words.verb).into_owned(), Style::BOLD),
    ]);
    if !object.is_empty() {
        let object_style = if words.is_code { theme.code } else { Style::PLAIN };
        row.push(Span::new(format!(" {object}"), object_style));
    }
    let command = tool.args.get("command").and_then(|command| command.as_str()).unwrap_or_default();
    let hidden = command.trim_end().lines().count().saturating_sub(1);
    if hidden > 0 {
        let lines = if hidden == 1 { "line" } else { "lines" };
        row.push(Span::new(format!(" … +{hidden} {lines}"), theme.dim));
    }
    row
}

/// Rows of a call that has ended.
pub(super) fn rows(tool: &ToolBlock, look: Rendering<'_>) -> Vec<Row> {
    let theme = look.theme;
    let words = tool_words(&tool.name, &tool.args);
    let mut first = header(tool, theme);
    if let Some(code) = tool.exit_code.filter(|code| *code != 0) {
        first.push(Span::new(format!("  exit code {code}"), theme.error));
    }
    let columns = look.columns.max(1);
    // A command is one line, so that a copy of it has no breaks; a question is prose.
    let mut rows = match words.is_code {
        true => vec![first.unwrapped()],
        false => wrap(&first.spans, columns, &[], &[Span::plain("  ")]),
    };
    if look.detail == Detail::Full {
        rows.extend(arguments(tool, look));
    }
    let refusal = tool.verdict.as_ref().and_then(|verdict| match verdict.outcome {
        VerdictOutcome::Approved | VerdictOutcome::Answered => None,
        VerdictOutcome::Denied => Some(("not allowed", verdict.detail.as_deref())),
        VerdictOutcome::Cancelled => Some(("not answered", verdict.detail.as_deref())),
    });
    if let Some((word, why)) = refusal {
        let told = why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
        rows.extend(marked("  └ ", &told, theme.dim, theme.warning, look.columns.min(PROSE_COLUMNS)));
        return rows;
    }
    if let Some(agent) = &tool.agent {
        rows.push(agent_row(agent, theme).clipped(look.columns.max(1)));
    }
    match (&tool.diff, &tool.error) {
        (Some(text), _) => {
            let most = if look.detail == Detail::Full { FULL_ROWS } else { DIFF_ROWS };
            rows.extend(match words.object.is_empty() {
                true => diff::rows(text, theme, most),
                false => diff::inline_rows(text, theme, most),
            });
        }
        (None, Some(error)) if tool.output.trim().is_empty() => {
            rows.extend(marked("  └ ", error, theme.dim, theme.error, look.columns.min(PROSE_COLUMNS)));
        }
        (None, _) if tool.agent.is_some() && look.detail == Detail::Brief => {}
        (None, _) => rows.extend(output(tool, look)),
    }
    for picture in &tool.pictures {
        let told =
            format!("  [image: {}, {} KB]", gate::visible(&picture.mime_type), picture.bytes.div_ceil(1024));
        rows.push(Row::styled(told, theme.dim));
    }
    rows
}

/// Rows of a call that runs, for the tail: its name and the last line of its output, within a width.
pub fn live(tool: &ToolBlock, seconds: Option<u64>, columns: usize, theme: &Theme) -> Vec<Row> {
    let took =
        seconds.filter(|seconds| *seconds >= 2).map(|seconds| format!("  {seconds}s")).unwrap_or_default();
    let mut first = live_header(tool, columns.saturating_sub(took.len()), theme);
    first.push(Span::new(took, theme.dim));
    let mut rows = vec![first.clipped(columns)];
    let said = tool.progress.as_deref().or_else(|| tool.output.trim_end().lines().next_back());
    if let Some(line) = said.filter(|line| !line.trim().is_empty()) {
        let mut state = SgrState::default();
        let mut row = Row::new(ansi::spans(bounded(line), &mut state));
        row = row.after(Span::new("  └ ", theme.dim));
        rows.push(row.clipped(columns));
    }
    rows
}

/// The row that names a call, within a width. Of a path that does not fit the end is shown, which is the file's name.
fn live_header(tool: &ToolBlock, columns: usize, theme: &Theme) -> Row {
    let mut row = header(tool, theme);
    let names_file = FILES.contains(&tool_words(&tool.name, &tool.args).verb.as_str());
    if names_file
        && row.width() > columns
        && let Some(path) = row.spans.pop()
    {
        let room = columns.saturating_sub(row.width() + 1);
        row.push(Span::plain(" "));
        row.spans.extend(wrap::tail(&[Span::new(path.text.trim_start(), path.style)], room).spans);
    }
    row.clipped(columns)
}

fn agent_row(agent: &AgentInfo, theme: &Theme) -> Row {
    let mut told = vec![match agent.state {
        AgentState::Running if agent.background => "works in the background".to_owned(),
        AgentState::Running => "works".to_owned(),
        AgentState::Ok => "done".to_owned(),
        AgentState::Failed => {
            format!("failed: {}", gate::visible(agent.error.as_deref().unwrap_or("no reason")))
        }
    }];
    if let Some(tools) = agent.tools {
        told.push(if tools == 1 { "1 tool call".to_owned() } else { format!("{tools} tool calls") });
    }
    if let Some(tokens) = agent.tokens {
        told.push(format!("{} tokens", crate::format::tokens(u64::try_from(tokens).unwrap_or(0))));
    }
    if let Some(ms) = agent.ms {
        told.push(crate::format::duration(u64::try_from(ms).unwrap_or(0)));
    }
    if let Some(model) = &agent.model {
        told.push(gate::visible(model).into_owned());
    }
    let style = if agent.state == AgentState::Failed { theme.error } else { theme.dim };
    Row::new(vec![Span::new("  └ ", theme.dim), Span::new(told.join(" · "), style)])
}

/// Arguments of a call, for the pager.
fn arguments(tool: &ToolBlock, look: Rendering<'_>) -> Vec<Row> {
    let text = match tool.args.get("command").and_then(|command| command.as_str()) {
        Some(command) => command.to_owned(),
        None if tool.args.is_null() => return Vec::new(),
        None => serde_json::to_string_pretty(&tool.args).unwrap_or_default(),
    };
    let lines = gate::lines(&text).take(FULL_ROWS);
    lines
        .map(|line| {
            let shown = gate::visible(bounded(line)).into_owned();
            Row::new(vec![Span::new("  │ ", look.theme.dim), Span::new(shown, look.theme.dim)]).unwrapped()
        })
        .collect()
}

fn output(tool: &ToolBlock, look: Rendering<'_>) -> Vec<Row> {
    let theme = look.theme;
    let brief = look.detail == Detail::Brief;
    let mut text = tool.output.trim_end();
    if brief {
        // The mark and the first row already show how the command ended.
        let last = text.rfind('\n').map_or(0, |at| at + 1);
        let code = text[last..].strip_prefix(EXITED);
        if code.is_some_and(|code| tool.exit_code.is_some() || code == "0>") {
            text = &text[..last];
        }
        text = text.trim_end().trim_start_matches(['\r', '\n']);
    }
    if text.is_empty() {
        return Vec::new();
    }
    if brief && let Some(spilled) = Spilled::read(text) {
        return spilled.rows(theme);
    }
    if brief && tool.state == ToolState::Ok && QUIET.contains(&tool.name.to_lowercase().as_str()) {
        let lines = text.lines().count();
        let told = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        return vec![Row::new(vec![Span::new("  └ ", theme.dim), Span::new(told, theme.dim)])];
    }
    let lines: Vec<&str> = gate::lines(text).collect();
    let hidden = match brief && lines.len() > HEAD_LINES + TAIL_LINES + 1 {
        true => lines.len() - HEAD_LINES - TAIL_LINES,
        false => 0,
    };
    let mut state = SgrState::default();
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate().take(FULL_ROWS) {
        if hidden > 0 && at == HEAD_LINES {
            rows.push(Row::styled(format!("    … {hidden} lines (ctrl+o shows all)"), theme.dim));
        }
        // Colours carry over from lines that are not shown.
        let spans = ansi::spans(bounded(line), &mut state);
        if hidden > 0 && (HEAD_LINES..HEAD_LINES + hidden).contains(&at) {
            continue;
        }
        let mark = if rows.is_empty() { "  └ " } else { "    " };
        let mut row = Row::new(vec![Span::new(mark, theme.dim)]);
        row.spans.extend(spans);
        rows.push(row.unwrapped());
    }
    if let Some(more) = lines.len().checked_sub(FULL_ROWS + 1) {
        let told = format!("    … {} more lines: /export writes them all", more + 1);
        rows.push(Row::styled(told, theme.dim));
    }
    rows
}

pub(super) fn bounded(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE_LIMIT)]
}
