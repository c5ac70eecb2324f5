//! `/context`: what fills the model's window, as a bar with a legend.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::format::tokens;
use crate::gate;
use crate::row::{Row, Span, Style};
use crate::state::State;
use crate::theme::Theme;

/// Cells of the bar.
const CELLS: u64 = 40;

/// A share of the window.
struct Share {
    name: &'static str,
    tokens: u64,
    /// Told apart by its form too, for terminals without colours.
    cell: &'static str,
    style: Style,
}

impl State {
    pub(crate) fn open_context(&mut self) {
        self.call("session.metadata.contextInfo", json!({}), Purpose::ContextInfo);
    }

    /// Asks in words: agents of other programs know no more, and some models have no tokenizer.
    pub(crate) fn tell_context(&mut self) {
        self.call("session.commands.invoke", json!({ "name": "context" }), Purpose::Context);
    }

    pub(crate) fn show_context(&mut self, answer: &Value) {
        match rows(&answer["contextInfo"], &self.theme) {
            Some(rows) => self.print(rows),
            None => self.tell_context(),
        }
    }
}

fn rows(info: &Value, theme: &Theme) -> Option<Vec<Row>> {
    let count = |key: &str| info[key].as_u64().unwrap_or(0);
    let limit = Some(count("promptTokenLimit")).filter(|limit| *limit > 0)?;
    let used = count("totalTokens");
    let share = |name: &'static str, tokens: u64, cell: &'static str, style: Style| Share {
        name,
        tokens,
        cell,
        style,
    };
    let shares = [
        share("system prompt", count("systemTokens"), "█", theme.accent),
        share("tools", count("toolDefinitionsTokens"), "▓", theme.code),
        share("conversation", count("conversationTokens"), "▒", theme.warning),
        share("free", limit.saturating_sub(used), "·", theme.dim),
    ];
    let percent = |tokens: u64| tokens.saturating_mul(100) / limit;
    let model = gate::visible(info["modelName"].as_str().unwrap_or_default()).into_owned();
    let mut rows = vec![Row::new(vec![
        Span::new("∙ ", theme.dim),
        Span::plain(format!("{model}: {} of {} tokens ({}%)", tokens(used), tokens(limit), percent(used))),
    ])];
    let mut bar = Row::new(vec![Span::plain("  ")]);
    for (share, cells) in shares.iter().zip(cells(&shares, limit.max(used))) {
        bar.push(Span::new(share.cell.repeat(cells), share.style));
    }
    rows.push(bar);
    for share in &shares {
        rows.push(Row::new(vec![
            Span::new(format!("  {} ", share.cell), share.style),
            Span::plain(format!(
                "{:<14}{:>7} {:>4}%",
                share.name,
                tokens(share.tokens),
                percent(share.tokens)
            )),
        ]));
    }
    let threshold = count("compactionThreshold");
    if threshold > 0 {
        let told = format!("  at {} the conversation is compacted", tokens(threshold));
        rows.push(Row::styled(told, theme.dim));
    }
    Some(rows)
}

/// Cells of each share: at least one for a share that is not empty, the rest for the last one, which is free.
fn cells(shares: &[Share], whole: u64) -> Vec<usize> {
    let mut left = CELLS;
    let mut cells = Vec::with_capacity(shares.len());
    for (at, share) in shares.iter().enumerate() {
        let is_last = at + 1 == shares.len();
        let wanted = match (is_last, share.tokens) {
            (true, _) => left,
            (false, 0) => 0,
            (false, tokens) => (tokens.saturating_mul(CELLS) / whole.max(1)).max(1),
        };
        let taken = wanted.min(left);
        left -= taken;
        cells.push(usize::try_from(taken).unwrap_or(0));
    }
    cells
}
