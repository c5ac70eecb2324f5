//! The view: rows to commit, the tail below them, or an overlay over both.

use crate::completion::CompletionStyles;
use crate::composer::ComposerStyles;
use crate::format::duration;
use crate::gate;
use crate::row::{Row, Span, Style};
use crate::screen::Frame;
use crate::search_prompt::SearchStyles;
use crate::state::{QueuedItem, SPINNER_TIME, State};
use crate::wrap::wrap;

/// Width of tail rows while text streams. A terminal that is made narrower wraps longer rows before it reports so, and
/// a wrapped row cannot be erased.
const STREAMING_COLUMNS: usize = 39;
/// Row limit of the composer; beyond it, it scrolls.
const COMPOSER_ROWS: usize = 12;
/// Row limit of the work in progress.
const LIVE_ROWS: usize = 10;
/// Rows of the queue and of completions.
const QUEUE_ROWS: usize = 3;
pub(crate) const COMPLETION_ROWS: usize = 8;
const SEARCH_ROWS: usize = 6;
/// Rows of a passing word.
const NOTE_ROWS: usize = 4;
const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];

impl State {
    /// The next frame. Its committed rows are returned only once.
    pub fn frame(&mut self) -> Frame {
        let commit = self.take_rows();
        self.refresh_agent();
        if let Some(overlay) = &self.overlay {
            let (rows, cursor) = overlay.view(self.columns, self.rows, &self.theme);
            return Frame { commit, tail: Vec::new(), cursor, overlay: Some(rows), title: self.title() };
        }
        let (tail, cursor) = self.tail();
        Frame { commit, tail, cursor, overlay: None, title: self.title() }
    }

    /// Rows that are final and were not printed yet.
    pub(crate) fn take_rows(&mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.printed.pending);
        let look = crate::blocks::Rendering {
            columns: self.columns,
            detail: crate::blocks::Detail::Brief,
            reasoning: self.options.reasoning,
            theme: &self.theme,
        };
        let shells = &self.shells;
        let passes = |call: &str| shells.is_running(call);
        rows.extend(self.printed.printer.take(&mut self.transcript, look, self.printed.settled, passes));
        // Between two blocks, never inside an answer that is being printed.
        if !self.printed.printer.is_streaming() {
            rows.extend(self.shells.take_late());
        }
        rows
    }

    /// Rows below the committed ones, and the cursor in them.
    fn tail(&self) -> (Vec<Row>, Option<(usize, usize)>) {
        let working = self.is_working();
        let narrow = self.draft_columns();
        let mut rows = Vec::new();
        let mut live = self.live_rows(narrow);
        let most = LIVE_ROWS.min(self.rows.saturating_sub(6).max(1));
        if live.len() > most {
            live.drain(..live.len() - most);
        }
        rows.extend(live);
        if working || self.runs_shell() {
            rows.push(self.spinner(narrow));
        }
        if let Some(dialog) = self.questions.dialogs.front() {
            let view = dialog.view(self.now, &self.theme);
            // An answer may open the session, which sends them.
            if !self.outbox.unsent.is_empty() {
                rows.extend(self.queue_rows(narrow));
            }
            rows.push(Row::default());
            let before = rows.len();
            rows.extend(view.rows);
            let cursor = view.cursor.map(|(row, column)| (before + row, column));
            return self.bounded(rows, cursor);
        }
        rows.extend(self.queue_rows(narrow));
        rows.push(Row::default());
        let (composer, cursor) = self.composer_rows();
        let before = rows.len();
        rows.extend(composer);
        let cursor = Some((before + cursor.0, cursor.1));
        let last = self.last_rows(narrow);
        if let Some(completion) = self.completions.open() {
            let styles = CompletionStyles {
                label: self.theme.text,
                detail: self.theme.dim,
                matched: self.theme.accent.with(Style::BOLD),
                selected: self.theme.selection,
            };
            // The draft stays on the screen: it is what is being completed.
            let room = self.rows.saturating_sub(1 + rows.len() - before + last.len());
            rows.extend(completion.view(narrow, COMPLETION_ROWS.min(room), &styles));
        }
        rows.extend(last);
        self.bounded(rows, cursor)
    }

    /// Width of the rows of the tail but dialogs, and so of the draft.
    pub(crate) fn draft_columns(&self) -> usize {
        let streams = self.is_working() || self.runs_shell();
        if streams { self.columns.min(STREAMING_COLUMNS) } else { self.columns }
    }

    /// The tail within the screen: its upper rows are cut.
    fn bounded(
        &self,
        mut rows: Vec<Row>,
        cursor: Option<(usize, usize)>,
    ) -> (Vec<Row>, Option<(usize, usize)>) {
        let most = self.rows.saturating_sub(1).max(1);
        let over = rows.len().saturating_sub(most);
        rows.drain(..over);
        (rows, cursor.map(|(row, column)| (row.saturating_sub(over), column)))
    }

    fn live_rows(&self, columns: usize) -> Vec<Row> {
        if !self.printed.printer.is_behind(self.transcript.main()) || self.lost.is_some() {
            return Vec::new();
        }
        let since = self.turn.since.or(self.shells.since());
        let seconds = |_: &str| since.map(|since| self.now.saturating_sub(since) / 1_000);
        self.printed.printer.live(self.transcript.main(), seconds, columns, &self.theme)
    }

    fn spinner(&self, columns: usize) -> Row {
        let frame = SPINNER[usize::try_from(self.now / SPINNER_TIME).unwrap_or(0) % SPINNER.len()];
        let works = self.is_working();
        let word = match (self.questions.dialogs.is_empty(), works) {
            (false, _) => "waiting for you",
            (true, true) => "working",
            (true, false) => "running a command",
        };
        let mut told = word.to_owned();
        let took =
            self.turn.since.or(self.shells.since()).map_or(0, |since| self.now.saturating_sub(since) / 1_000);
        if took > 0 {
            told.push_str(&format!(" {}", duration(took * 1_000)));
        }
        let agents = self.running_agents();
        match agents {
            0 => {}
            1 => told.push_str(" · 1 agent"),
            agents => told.push_str(&format!(" · {agents} agents")),
        }
        told.push_str(if works && !self.runs_shell() { " · esc esc stops" } else { " · esc stops" });
        Row::new(vec![Span::new(format!("{frame} "), self.theme.accent), Span::new(told, self.theme.dim)])
            .clipped(columns)
    }

    fn running_agents(&self) -> usize {
        let agents = self.transcript.agents();
        agents.filter(|(_, _, agent)| agent.state == hangar_transcript::AgentState::Running).count()
    }

    fn queue_rows(&self, columns: usize) -> Vec<Row> {
        let word = |item: &QueuedItem| if item.id.is_some() { "next" } else { "steers" };
        let queue = self.outbox.queue.iter().map(|item| (word(item), &item.text));
        let unsent = self.outbox.unsent.iter().map(|prompt| ("next", &prompt.text));
        let shown = queue.chain(unsent).take(QUEUE_ROWS).map(|(word, text)| {
            let line = text.lines().next().unwrap_or_default();
            Row::styled(format!("  {word}: {}", gate::visible(line)), self.theme.dim).clipped(columns)
        });
        let mut rows: Vec<Row> = shown.collect();
        let more = (self.outbox.queue.len() + self.outbox.unsent.len()).saturating_sub(QUEUE_ROWS);
        if more > 0 {
            rows.push(Row::styled(format!("  … {more} more"), self.theme.dim));
        }
        rows
    }

    fn composer_rows(&self) -> (Vec<Row>, (usize, usize)) {
        let theme = &self.theme;
        if let Some(search) = &self.search {
            let styles = SearchStyles {
                label: theme.dim,
                text: theme.text,
                matched: theme.accent.with(Style::BOLD),
                selected: theme.selection,
            };
            let view = search.view(self.draft_columns(), SEARCH_ROWS, &styles);
            return (view.rows, view.cursor);
        }
        let styles = ComposerStyles {
            prompt: theme.user_prompt,
            shell: theme.warning,
            text: Style::PLAIN,
            placeholder: theme.accent,
            mark: theme.dim,
            more: theme.dim,
        };
        let most = COMPOSER_ROWS.min(self.rows.saturating_sub(3).max(1));
        let view = self.composer.view(self.draft_columns(), most, &styles);
        (view.rows, view.cursor)
    }

    /// The last rows: a transient message in full, or the status line.
    fn last_rows(&self, columns: usize) -> Vec<Row> {
        if self.keys.leaving_until.is_none()
            && let Some((note, _)) = &self.note
        {
            let note = [Span::new(gate::visible(note), self.theme.accent)];
            let mut rows = wrap(&note, columns, &[], &[]);
            rows.truncate(NOTE_ROWS);
            return rows;
        }
        vec![self.last_row(columns)]
    }

    fn last_row(&self, columns: usize) -> Row {
        if self.keys.leaving_until.is_some() {
            return Row::styled("press it again to leave", self.theme.warning).clipped(columns);
        }
        if self.facts.is_none() && self.lost.is_none() {
            let word = if self.outbox.unsent.is_empty() && self.outbox.deferred.is_empty() {
                "opening the session …"
            } else {
                "opening the session; your prompt is sent then …"
            };
            return Row::styled(word, self.theme.dim).clipped(columns);
        }
        let mut row = self.status_row(columns);
        if let Some(label) = self.composer.mode_label() {
            row = row.after(Span::new(format!("{label}  "), self.theme.accent)).clipped(columns);
        }
        row
    }

    fn title(&self) -> Option<String> {
        let facts = self.facts.as_ref()?;
        let name = self.transcript.title().unwrap_or(&facts.directory);
        let mark = match (self.questions.dialogs.is_empty(), self.is_working()) {
            (false, _) => "? ",
            (true, true) => "● ",
            (true, false) => "",
        };
        Some(gate::visible(&format!("{mark}{name} – hangar")).replace('\n', " "))
    }
}
