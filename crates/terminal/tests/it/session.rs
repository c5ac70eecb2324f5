//! A view with its writer and a terminal emulator, driven input by input.

use avt::{ScreenKind, Terminal};
use hangar_protocol::Event;
use hangar_terminal::effect::{CallId, Effect};
use hangar_terminal::gate::mark;
use hangar_terminal::input::{Input, SessionFacts};
use hangar_terminal::screen::{ColorDepth, Screen, ScreenCaps};
use hangar_terminal::state::State;
use serde_json::{Value, json};

/// Requests that every session sends and no test is about.
const QUIET: &[&str] = &["session.commands.list", "session.queue.pendingItems"];
/// Bytes of the parameters of a request that the log shows.
const SHOWN_PARAMS: usize = 200;

pub(crate) struct Session {
    pub(crate) state: State,
    pub(crate) screen: Screen,
    pub(crate) terminal: Terminal,
    pub(crate) now: u64,
    /// Requests without an answer.
    calls: Vec<(CallId, String)>,
    /// Effects, one line each.
    pub(crate) log: Vec<String>,
    /// Bytes of the last draw.
    pub(crate) last: Vec<u8>,
    /// Lines of the shell and rows that were committed and printed.
    pub(crate) committed: Vec<String>,
    /// Rows of the tail, as they are shown.
    pub(crate) tail: Vec<String>,
    /// Rows that an overlay holds back.
    held: Vec<String>,
    /// Effects of the last input.
    pub(crate) effects: usize,
    events: u64,
}

pub(crate) fn facts() -> SessionFacts {
    SessionFacts {
        id: "s1".to_owned(),
        directory: "~/project".to_owned(),
        branch: Some("main".to_owned()),
        model: Some("scripted".to_owned()),
        mode: "interactive".to_owned(),
        ..SessionFacts::default()
    }
}

impl Session {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self::below(columns, rows, 1)
    }

    /// A session below lines of a shell.
    pub(crate) fn below(columns: usize, rows: usize, shell: usize) -> Self {
        let caps =
            ScreenCaps { color: ColorDepth::Rgb, sync: true, reflow: true, title: true, alternate: true };
        let mut terminal = Terminal::with_scrollback(columns, rows, None).unwrap();
        let lines = vec!["$ hangar".to_owned(); shell];
        for line in &lines {
            terminal.feed(format!("{line}\r\n"));
        }
        let mut session = Self {
            state: State::new(columns, rows, 0),
            screen: Screen::new(columns, rows, caps),
            terminal,
            now: 0,
            calls: Vec::new(),
            log: Vec::new(),
            last: Vec::new(),
            committed: lines,
            held: Vec::new(),
            tail: Vec::new(),
            effects: 0,
            events: 0,
        };
        session.draw();
        session
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.take(input);
        self.draw();
    }

    /// Takes an input without a draw.
    pub(crate) fn take(&mut self, input: Input) {
        let effects = self.state.update(input, self.now);
        self.effects = effects.len();
        for effect in effects {
            self.note(effect);
        }
    }

    fn note(&mut self, effect: Effect) {
        let line = match effect {
            Effect::Call { call, method, params } => {
                self.calls.push((call, method.to_owned()));
                if QUIET.contains(&method) {
                    return;
                }
                let mut params = params.to_string();
                if params.len() > SHOWN_PARAMS {
                    params.truncate(params.floor_char_boundary(SHOWN_PARAMS));
                    params.push('…');
                }
                format!("{method} {params}")
            }
            Effect::ListSessions { call } => {
                self.calls.push((call, "sessions".to_owned()));
                "ListSessions".to_owned()
            }
            Effect::Program { call, arguments } => {
                self.calls.push((call, "program".to_owned()));
                format!("hangar {}", arguments.join(" "))
            }
            Effect::Worktree { call, branch, uncommitted } => {
                self.calls.push((call, "worktree".to_owned()));
                format!("Worktree {branch:?} {uncommitted:?}")
            }
            Effect::CollectLogs { call, path } => {
                self.calls.push((call, "logs".to_owned()));
                format!("CollectLogs {path:?}")
            }
            Effect::Remember(_) => return,
            other => format!("{other:?}"),
        };
        self.log.push(line);
    }

    /// Draws as the loop does.
    pub(crate) fn draw(&mut self) {
        let frame = self.state.frame();
        let overlay = frame.overlay.iter().flatten();
        for row in frame.commit.iter().chain(&frame.tail).chain(overlay) {
            let text = row.text();
            assert_eq!(text.chars().find(|c| is_obeyed(*c)), None, "{text:?} is not only text");
        }
        self.held.extend(frame.commit.iter().map(hangar_terminal::row::Row::text));
        if frame.overlay.is_none() {
            self.committed.append(&mut self.held);
        }
        let tail = if frame.overlay.is_some() { &[][..] } else { &frame.tail };
        self.tail = tail.iter().map(|row| row.clipped(self.screen.columns()).text()).collect();
        self.last = self.screen.draw(&frame);
        self.terminal.feed(std::str::from_utf8(&self.last).unwrap());
    }

    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        self.terminal.resize(columns, rows);
        self.screen.resize(columns, rows);
        self.give(Input::Resize { columns, rows });
    }

    /// Lets time pass; ticks come when the view asks for them.
    pub(crate) fn wait(&mut self, time: u64) {
        let until = self.now + time;
        while let Some(due) = self.state.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.give(Input::Tick);
            assert!(
                self.state.due().is_none_or(|next| next > self.now),
                "the view asks for a tick that is past"
            );
        }
        self.now = until;
    }

    pub(crate) fn ready(&mut self) {
        self.give(Input::Ready(facts()));
        self.reply("session.commands.list", Ok(commands()));
    }

    /// An event of a kind with its data, of the main agent or another.
    pub(crate) fn event(&mut self, kind: &str, agent: Option<&str>, data: Value) {
        let event = self.make_event(kind, agent, data);
        self.give(Input::Event(Box::new(event)));
    }

    pub(crate) fn make_event(&mut self, kind: &str, agent: Option<&str>, data: Value) -> Event {
        self.events += 1;
        let mut event = json!({
            "type": kind,
            "data": data,
            "id": format!("e{}", self.events),
            "timestamp": "2026-11-17T12:00:00.000Z",
            "parentId": null,
        });
        if let Some(agent) = agent {
            event["agentId"] = json!(agent);
        }
        Event::parse(&event.to_string()).unwrap()
    }

    /// Answers the oldest request of a method.
    pub(crate) fn reply(&mut self, method: &str, result: Result<Value, String>) {
        let at = self.calls.iter().position(|(_, known)| known == method);
        let at = at.unwrap_or_else(|| panic!("{method} was not called; waiting: {:?}", self.calls));
        let (call, _) = self.calls.remove(at);
        self.give(Input::Reply { call, result });
    }

    pub(crate) fn awaits(&self, method: &str) -> bool {
        self.calls.iter().any(|(_, known)| known == method)
    }

    /// Methods of the requests without an answer, oldest first.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.calls.iter().map(|(_, method)| method.clone()).collect()
    }

    /// Scrollback and screen, with the cursor as `▮`, then what was asked for.
    pub(crate) fn picture(&self) -> String {
        let mut text = self.screen_text();
        if !self.log.is_empty() {
            text.push_str("---\n");
            for line in &self.log {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    pub(crate) fn is_overlay(&self) -> bool {
        self.terminal.active_screen_kind() == ScreenKind::Alternate
    }

    pub(crate) fn screen_text(&self) -> String {
        let cursor = self.terminal.cursor();
        let screen = self.terminal.screen();
        let above = screen.all_lines().count() - self.terminal.size().1;
        let mut rows: Vec<String> =
            screen.all_lines().map(|line| line.text().trim_end().to_owned()).collect();
        if cursor.visible {
            put_cursor(&mut rows[above + cursor.row], cursor.col);
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows.join("\n") + "\n"
    }
}

/// Whether a terminal would obey a character, or show other text than there is. The composer keeps further characters that take
/// no room, since they are edited there.
pub(crate) fn is_obeyed(c: char) -> bool {
    let deceives = matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e00ff}');
    assert!(!deceives || mark(c).is_some(), "the gate knows {c:?}");
    c.is_control() || deceives
}

/// Puts the mark of the cursor at a column of a row, whose characters may be wide.
fn put_cursor(row: &mut String, column: usize) {
    use unicode_width::UnicodeWidthChar as _;
    let mut at = 0;
    let mut made = String::new();
    let mut placed = false;
    for c in row.chars() {
        if at >= column && !placed && c.width() != Some(0) {
            made.push('▮');
            placed = true;
        }
        made.push(c);
        at += c.width().unwrap_or(0);
    }
    if !placed {
        made.push_str(&" ".repeat(column.saturating_sub(at)));
        made.push('▮');
    }
    *row = made;
}

/// Commands of a session, as an engine lists them.
fn commands() -> Value {
    json!({ "commands": [
        { "name": "compact", "aliases": [], "description": "Sums the conversation up", "allowDuringAgentExecution": false },
        { "name": "plan", "aliases": [], "description": "Plans first", "allowDuringAgentExecution": true },
        { "name": "mcp", "aliases": [], "description": "MCP servers", "allowDuringAgentExecution": true,
          "input": { "hint": "list", "choices": [
              { "name": "list", "description": "all of them" }, { "name": "show", "description": "one of them" },
          ] } },
        { "name": "model", "aliases": [], "description": "Model", "allowDuringAgentExecution": true },
        { "name": "cwd", "aliases": ["cd"], "description": "Directory", "allowDuringAgentExecution": false },
        { "name": "context", "aliases": [], "description": "Context", "allowDuringAgentExecution": true },
    ] })
}
