//! Status line: the session's directory, model, mode and context usage.

use serde_json::{Value, json};

use crate::completion::Completion;
use crate::effect::Effect;
use crate::format::{dollars, tokens};
use crate::gate;
use crate::row::{Row, Span, Style};
use crate::state::State;
use crate::view::COMPLETION_ROWS;

/// End of the status line before the first prompt.
const HINT: &str = " · / commands · ? help";

/// Item of the status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusItem {
    Mode,
    /// Name of the agent, if it is not Hangar's own.
    Agent,
    Model,
    Context,
    Cost,
    Directory,
    Branch,
    Title,
    /// First line that a command of the user prints.
    Command,
}

const NAMES: &[(&str, StatusItem)] = &[
    ("mode", StatusItem::Mode),
    ("agent", StatusItem::Agent),
    ("model", StatusItem::Model),
    ("context", StatusItem::Context),
    ("cost", StatusItem::Cost),
    ("directory", StatusItem::Directory),
    ("branch", StatusItem::Branch),
    ("title", StatusItem::Title),
    ("command", StatusItem::Command),
];

impl StatusItem {
    pub fn usual() -> Vec<Self> {
        vec![Self::Mode, Self::Agent, Self::Model, Self::Context, Self::Cost, Self::Directory, Self::Branch]
    }

    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, item)| *item)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, item)| *item == self).map_or("", |(name, _)| name)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }
}

impl State {
    /// The status line within a width. Items that do not fit are left out from its end.
    pub(crate) fn status_row(&self, columns: usize) -> Row {
        let mut row = Row::default();
        let mut width = 0;
        for item in &self.options.status {
            let Some(span) = self.status_span(*item) else { continue };
            let separator = if width == 0 { "" } else { " · " };
            let wide = Row::new(vec![Span::plain(separator), span.clone()]).width();
            if width > 0 && width + wide > columns {
                continue;
            }
            width += wide;
            row.push(Span::new(separator, self.theme.dim));
            row.push(span);
        }
        let is_new = !self.has_content() && self.composer.is_empty();
        let more = self.completions.open().map(Completion::total).filter(|total| *total > COMPLETION_ROWS);
        let hint = match more {
            Some(total) => format!(" · {COMPLETION_ROWS} of {total} · ↑↓ tab"),
            None if is_new => HINT.to_owned(),
            None => String::new(),
        };
        if width > 0 && width + hint.chars().count() <= columns {
            row.push(Span::new(hint, self.theme.dim));
        }
        row.clipped(columns)
    }

    fn status_span(&self, item: StatusItem) -> Option<Span> {
        let theme = &self.theme;
        let facts = self.facts.as_ref();
        let (model, effort) = self.model_and_effort();
        let dim = |text: String| Span::new(gate::visible(&text).into_owned(), theme.dim);
        match item {
            StatusItem::Mode => {
                let mode = self.mode();
                let style = match mode {
                    "plan" => theme.mode_plan,
                    "autopilot" => theme.mode_autopilot,
                    _ => return None,
                };
                Some(Span::new(mode.to_owned(), style.with(Style::BOLD)))
            }
            StatusItem::Agent => {
                Some(Span::new(gate::visible(facts?.agent.as_deref()?).into_owned(), Style::BOLD))
            }
            StatusItem::Model => Some(dim(match (model?, effort) {
                (model, Some(effort)) => format!("{model} ({effort})"),
                (model, None) => model.to_owned(),
            })),
            StatusItem::Context => {
                let used = self.transcript.context()?;
                let percent = used.tokens * 100 / used.limit.max(1);
                let text = format!("{percent}% of {}", tokens(used.limit));
                Some(Span::new(text, if percent >= 80 { theme.warning } else { theme.dim }))
            }
            StatusItem::Cost if self.told.cost > 0.0 => Some(dim(dollars(self.told.cost))),
            StatusItem::Cost => None,
            StatusItem::Directory => Some(dim(facts?.directory.clone())),
            StatusItem::Branch => Some(dim(facts?.branch.clone()?)),
            StatusItem::Title => Some(dim(self.transcript.title()?.to_owned())),
            StatusItem::Command => Some(dim(self.status_text.clone()?)),
        }
    }

    /// Has the user's command print its part of the status line, from the facts of the session as JSON.
    pub(crate) fn run_status_command(&mut self) {
        let Some(command) = self.options.status_command.clone() else { return };
        if self.facts.is_none() || !self.options.status.contains(&StatusItem::Command) {
            return;
        }
        // While it runs, the facts may change again.
        if std::mem::replace(&mut self.status_command_runs, true) {
            self.status_is_stale = true;
            return;
        }
        let input = self.status_facts();
        self.effect(Effect::StatusCommand { command, input });
    }

    /// Takes the line that the user's command printed.
    pub(crate) fn take_status_text(&mut self, text: Option<String>) {
        // Colours of the command would be a second voice in the line.
        let plain = |line: String| -> String {
            crate::ansi::spans(&line, &mut crate::ansi::SgrState::default())
                .into_iter()
                .map(|span| span.text)
                .collect()
        };
        self.status_text = text.map(plain).filter(|text| !text.is_empty());
        self.status_command_runs = false;
        if std::mem::take(&mut self.status_is_stale) {
            self.run_status_command();
        }
    }

    fn status_facts(&self) -> Value {
        let (model, effort) = self.model_and_effort();
        let facts = self.facts.as_ref();
        let context = self.transcript.context();
        json!({
            "session_id": facts.map(|facts| &facts.id),
            "session_name": self.transcript.title(),
            "cwd": facts.map(|facts| &facts.directory),
            "branch": facts.and_then(|facts| facts.branch.as_ref()),
            "agent": facts.and_then(|facts| facts.agent.as_ref()),
            "model": { "id": model, "effort": effort },
            "mode": self.mode(),
            "cost": { "total_cost_usd": self.told.cost },
            "context_window": {
                "used_tokens": context.map(|context| context.tokens),
                "context_window_size": context.map(|context| context.limit),
            },
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    pub(crate) fn mode(&self) -> &str {
        let known = self.transcript.mode().or_else(|| self.facts.as_ref().map(|facts| facts.mode.as_str()));
        known.filter(|mode| !mode.is_empty()).unwrap_or("interactive")
    }
}
