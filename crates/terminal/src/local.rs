//! Commands that the terminal carries out, and the choices made in its pickers.

use hangar_protocol::Event;
use hangar_transcript::Transcript;
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::blocks::{self, Detail, Rendering};
use crate::calls::Purpose;
use crate::commands::{self, LocalCommand};
use crate::effect::{Effect, ExitKind, ExportFormat, SessionTarget};
use crate::overlay::{Overlay, Pager, Pick};
use crate::program::Reload;
use crate::row::{Row, Span, Style};
use crate::screens::{self, DiffView};
use crate::state::State;
use crate::status::StatusItem;
use crate::theme::Theme;

/// Widest column of names in the help.
const NAME_COLUMNS: usize = 24;
/// The same where there is room.
const WIDE_NAME_COLUMNS: usize = 32;
/// Columns from which on there is.
const WIDE: usize = 80;

/// Signs at the start of a prompt or of a word, for the help.
const SIGNS: [(&str, &str); 3] = [
    ("@", "name a file or a folder"),
    ("!", "run a command in your shell"),
    ("/", "run a command of Hangar"),
];

/// Changes of this version and those before.
const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");

impl State {
    /// Carries a slash command out. False if there is none of that name.
    pub(crate) fn command(&mut self, name: &str, argument: &str) -> bool {
        if let Some(local) = commands::find(name) {
            self.local(local, name, argument);
            return true;
        }
        if name.eq_ignore_ascii_case("mcp") && self.run_mcp_command(argument) {
            return true;
        }
        let known = self.known.session_commands.iter().find(|entry| {
            entry.name.eq_ignore_ascii_case(name)
                || entry.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        });
        let Some(entry) = known else {
            if self.is_opening() {
                self.defer(format!("/{name} {argument}").trim_end().to_owned());
                return true;
            }
            let nearest = commands::nearest(name, &self.known.commands)
                .map(|near| format!("; /{near} is"))
                .unwrap_or_default();
            self.print_error(&format!("/{name} is not a command{nearest}. /help lists them."));
            return true;
        };
        if self.is_working() && !entry.meanwhile {
            let name = entry.name.clone();
            self.composer.set(format!("/{name} {argument}").trim_end());
            self.say(format!("/{name} waits until the agent is done: press enter then"));
            return true;
        }
        let params = json!({ "name": entry.name, "input": argument });
        self.call("session.commands.invoke", params, Purpose::Command);
        true
    }

    fn local(&mut self, command: LocalCommand, name: &str, argument: &str) {
        match command {
            LocalCommand::Absent(sentence) => self.print_text(sentence),
            LocalCommand::Help => self.open_help(),
            LocalCommand::Exit => self.leave(),
            LocalCommand::Changelog => self.open_changelog(),
            LocalCommand::CollectLogs => self.collect_logs(argument),
            LocalCommand::Limits => self.limit(argument),
            LocalCommand::Schedule { recurring } => self.schedule(recurring, argument),
            LocalCommand::Program(command) => self.run_program_command(command, argument),
            LocalCommand::Raw => match self.told.last_answer.clone() {
                Some(answer) => self.print_output(&answer),
                None => self.say("there is no answer yet"),
            },
            LocalCommand::Refine => self.refine(argument),
            LocalCommand::Extensions => self.run_extensions_command(argument),
            LocalCommand::Restart if self.is_working() => {
                self.say("the agent works; stop it with esc esc first");
            }
            LocalCommand::Restart => self.effect(Effect::Restart),
            LocalCommand::Worktree(uncommitted) => self.make_worktree(uncommitted, argument),
            LocalCommand::Detach => self.effect(Effect::Exit(ExitKind::Detach)),
            LocalCommand::Clear | LocalCommand::New => self.effect(Effect::Open(SessionTarget::New)),
            LocalCommand::Resume if !argument.is_empty() => {
                self.effect(Effect::Open(SessionTarget::Resume(argument.to_owned())));
            }
            LocalCommand::Resume => self.open_sessions(),
            LocalCommand::Fork => self.fork(argument),
            LocalCommand::Model if argument.is_empty() => {
                self.load(screens::MODELS);
                self.call("models.list", json!({}), Purpose::Models);
            }
            LocalCommand::Model => {
                let params = json!({ "name": "model", "input": argument });
                self.call("session.commands.invoke", params, Purpose::Command);
            }
            LocalCommand::Context => self.open_context(),
            LocalCommand::Agent | LocalCommand::Subagents => {
                self.load(screens::AGENTS);
                let params = json!({ "includeBuiltInAgents": command == LocalCommand::Subagents });
                self.call("session.agent.list", params, Purpose::Agents);
            }
            LocalCommand::Ask if argument.is_empty() => self.print_text(&format!("Usage: /{name} QUESTION")),
            LocalCommand::Ask => {
                self.say("asking aside …");
                self.call("session.ui.ephemeralQuery", json!({ "question": argument }), Purpose::Aside);
            }
            LocalCommand::Copy => self.copy(),
            LocalCommand::Diff => {
                self.diff_view = DiffView { of_branch: argument == "branch", ..DiffView::default() };
                self.open_diff();
            }
            LocalCommand::Export => self.export(argument),
            LocalCommand::Hooks => self.call("hooks.discover", json!({}), Purpose::Hooks),
            LocalCommand::Instructions => {
                self.call("session.instructions.getSources", json!({}), Purpose::Text("Instructions"));
            }
            LocalCommand::Login => self.effect(Effect::Login),
            LocalCommand::Logout => self.effect(Effect::Logout),
            LocalCommand::Plugin if argument.is_empty() => {
                self.call("session.plugins.list", json!({}), Purpose::Plugins);
            }
            LocalCommand::Plugin => self.run_words("plugin", argument, Reload::Plugins),
            LocalCommand::Notify => self.toggle_notices(),
            LocalCommand::Reasoning => self.toggle_reasoning(),
            LocalCommand::Rewind => self.open_rewind(),
            LocalCommand::Search => {
                self.sought = Some(argument.to_owned()).filter(|sought| !sought.is_empty());
                self.open_transcript();
            }
            LocalCommand::Settings => self.show_settings(),
            LocalCommand::StatusLine => self.set_status_line(argument),
            LocalCommand::Tasks => self.open_tasks(),
            LocalCommand::Theme if argument.is_empty() => {
                let current = if self.theme_follows { "auto" } else { self.theme.name };
                self.overlay = Some(Overlay::Picker(Box::new(screens::themes(current))));
            }
            LocalCommand::Theme => self.set_theme(argument),
            LocalCommand::Usage => self.call("session.usage.getMetrics", json!({}), Purpose::Usage),
            LocalCommand::Version => self.print_text(concat!("Hangar ", env!("CARGO_PKG_VERSION"))),
            LocalCommand::Vim => self.toggle_vim(),
        }
    }

    fn fork(&mut self, name: &str) {
        let id = self.facts.as_ref().map(|facts| facts.id.clone()).unwrap_or_default();
        let mut params = json!({ "sessionId": id });
        if !name.is_empty() {
            params["name"] = json!(name);
        }
        self.call("sessions.fork", params, Purpose::Fork);
    }

    fn toggle_notices(&mut self) {
        self.options.notify = !self.options.notify;
        let on = self.options.notify;
        self.effect(Effect::Keep { key: "notify", value: json!(on) });
        self.print_text(if on { "Notifications are on." } else { "Notifications are off." });
    }

    fn toggle_vim(&mut self) {
        self.options.vim = !self.options.vim;
        let on = self.options.vim;
        self.composer.set_vim(on);
        self.effect(Effect::Keep { key: "vim", value: json!(on) });
        self.print_text(if on { "Vim keys are on; /vim switches them off." } else { "Vim keys are off." });
    }

    pub(crate) fn toggle_reasoning(&mut self) {
        self.options.reasoning = !self.options.reasoning;
        let on = self.options.reasoning;
        self.effect(Effect::Keep { key: "reasoning", value: json!(on) });
        self.say(if on { "reasoning is shown" } else { "reasoning is hidden" });
    }

    fn set_theme(&mut self, name: &str) {
        if name == "auto" {
            self.theme_follows = true;
        } else if let Some(theme) = Theme::named(name) {
            self.theme = theme;
            self.theme_follows = false;
        } else {
            let names = Theme::names().join(", ");
            return self.print_error(&format!("`{name}` is not a theme: choose auto, {names}"));
        }
        self.effect(Effect::Keep { key: "theme", value: json!(name) });
        self.effect(Effect::Redraw);
    }

    fn set_status_line(&mut self, argument: &str) {
        if argument.is_empty() {
            let shown: Vec<&str> = self.options.status.iter().map(|item| item.name()).collect();
            let all: Vec<&str> = StatusItem::names().collect();
            return self.print_text(&format!(
                "The status line shows: {}.\nChoose with /statusline and names of: {}.\n/statusline command COMMAND adds what a \
                 command prints.",
                shown.join(", "),
                all.join(", ")
            ));
        }
        if let Some(command) = argument.strip_prefix("command ").map(str::trim) {
            return self.set_status_command(command);
        }
        let names = argument.split([' ', ',']).filter(|name| !name.is_empty());
        let mut items = Vec::new();
        for name in names {
            match StatusItem::named(name) {
                Some(item) => items.push(item),
                None => {
                    let all: Vec<&str> = StatusItem::names().collect();
                    return self
                        .print_error(&format!("`{name}` is not an item: choose of {}", all.join(", ")));
                }
            }
        }
        let names: Vec<&str> = items.iter().map(|item| item.name()).collect();
        self.effect(Effect::Keep { key: "statusLine", value: json!(names) });
        self.options.status = items;
        self.run_status_command();
    }

    /// Adds the output of a command to the status line.
    fn set_status_command(&mut self, command: &str) {
        self.effect(Effect::Keep { key: "statusCommand", value: json!(command) });
        self.options.status_command = Some(command.to_owned());
        if !self.options.status.contains(&StatusItem::Command) {
            self.options.status.push(StatusItem::Command);
            let names: Vec<&str> = self.options.status.iter().map(|item| item.name()).collect();
            self.effect(Effect::Keep { key: "statusLine", value: json!(names) });
        }
        self.run_status_command();
    }

    fn show_settings(&mut self) {
        let on = |flag: bool| if flag { "on" } else { "off" };
        let theme = if self.theme_follows { "auto" } else { self.theme.name };
        let status: Vec<&str> = self.options.status.iter().map(|item| item.name()).collect();
        let text = format!(
            "theme: {theme} (/theme)\nvim keys: {} (/vim)\nreasoning: {} (ctrl+t)\nnotifications: {} (/notify)\nstatus line: {} \
             (/statusline)",
            on(self.options.vim),
            on(self.options.reasoning),
            on(self.options.notify),
            status.join(", ")
        );
        self.print_text(&text);
    }

    fn export(&mut self, argument: &str) {
        let (first, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        let (format, path) = match first {
            "html" => (ExportFormat::Html, rest),
            "md" | "markdown" | "file" => (ExportFormat::Markdown, rest),
            "gist" | "link" => return self.print_text("Hangar publishes nothing; /export writes a file."),
            _ if argument.ends_with(".html") => (ExportFormat::Html, argument),
            _ => (ExportFormat::Markdown, argument),
        };
        let path = Some(path.trim()).filter(|path| !path.is_empty()).map(str::to_owned);
        self.effect(Effect::Export { path, format });
    }

    pub(crate) fn open_diff(&mut self) {
        let mode = if self.diff_view.of_branch { "branch" } else { "unstaged" };
        let mut params = json!({ "mode": mode });
        if self.diff_view.ignores_blanks {
            params["ignoreWhitespace"] = json!(true);
        }
        self.call("session.workspaces.diff", params, Purpose::Diff);
    }

    fn open_changelog(&mut self) {
        let rows = blocks::markdown(CHANGELOG, self.look());
        self.page("Changelog", rows);
    }

    /// Collects the logs in a directory: the one that is named, or a new one in the session's directory.
    fn collect_logs(&mut self, argument: &str) {
        if let Some(call) = self.expect(Purpose::Logs) {
            let path = Some(argument).filter(|path| !path.is_empty()).map(str::to_owned);
            self.effect(Effect::CollectLogs { call, path });
        }
    }

    fn copy(&mut self) {
        let last = self.told.last_answer.clone();
        match last {
            Some(text) => {
                self.effect(Effect::Copy(text));
                self.say("the last answer is on the clipboard");
            }
            None => self.say("there is no answer yet"),
        }
    }

    pub(crate) fn open_rewind(&mut self) {
        self.load(screens::REWIND);
        self.call("session.history.listRewindPoints", json!({}), Purpose::RewindPoints);
    }

    pub(crate) fn open_tasks(&mut self) {
        self.load(screens::TASKS);
        self.call("session.tasks.list", json!({}), Purpose::Tasks);
    }

    /// Lets the user pick the session to start with. Without a choice, a new one is created.
    pub fn ask_session(&mut self) {
        self.is_choosing = true;
        self.open_sessions();
    }

    /// Opens the picker of sessions.
    pub(crate) fn open_sessions(&mut self) {
        self.load(screens::SESSIONS);
        if let Some(call) = self.expect(Purpose::Sessions) {
            self.effect(Effect::ListSessions { call });
        }
    }

    pub(crate) fn open_transcript(&mut self) {
        self.effect(Effect::ReadTranscript);
    }

    /// Shows the whole transcript in the pager, from the events of its log.
    pub(crate) fn show_transcript(&mut self, events: &[Event], older: u64) {
        let mut transcript = Transcript::new();
        for event in events {
            transcript.apply(event);
        }
        if let Some(id) = self.agent_view.awaited.take() {
            return self.page_agent(&id, &transcript);
        }
        let mut rows = Vec::new();
        let look = Rendering { detail: Detail::Full, reasoning: true, ..self.look() };
        if older > 0 {
            rows.push(Row::styled("… older events are left out: /export writes them all", self.theme.dim));
        }
        for (_, block) in transcript.main().blocks() {
            let mut made = blocks::rows(block, look);
            if block.rewound {
                made.iter_mut().flat_map(|row| &mut row.spans).for_each(|span| span.style = self.theme.dim);
            }
            if !made.is_empty() {
                rows.extend(made);
                rows.push(Row::default());
            }
        }
        if self.options.screen_reader {
            return self.print(rows);
        }
        let mut pager = Pager::new("Transcript", rows, self.columns).at_end(self.rows);
        if let Some(sought) = self.sought.take() {
            pager.seek(&sought, self.rows);
        }
        self.overlay = Some(Overlay::Pager(Box::new(pager)));
    }

    /// Keys first: they cannot be listed while they are typed, as commands are.
    pub(crate) fn open_help(&mut self) {
        let theme = &self.theme;
        let mut entries = Vec::new();
        for (sign, about) in SIGNS {
            entries.push((sign.to_owned(), about.to_owned(), String::new()));
        }
        // Keys of Copilot that have no meaning here are in the documentation.
        for help in self.keys.map.rows().into_iter().filter(|help| !help.about.starts_with("no: ")) {
            let when = if help.when.is_empty() { String::new() } else { format!(" ({})", help.when) };
            entries.push((help.keys, help.about.to_owned(), when));
        }
        let mut rows = vec![Row::styled("Keys", theme.heading)];
        rows.extend(listed(&entries, self.columns, theme));
        let commands: Vec<_> = self
            .known
            .commands
            .iter()
            .map(|entry| {
                let aliases = match entry.aliases.is_empty() {
                    true => String::new(),
                    false => format!(" (also /{})", entry.aliases.join(", /")),
                };
                let description = crate::gate::visible(&entry.description).into_owned();
                (format!("/{}", entry.name), description, aliases)
            })
            .collect();
        rows.push(Row::default());
        rows.push(Row::styled("Commands", theme.heading));
        rows.extend(listed(&commands, self.columns, theme));
        rows.push(Row::default());
        rows.push(Row::styled("docs/terminal.md has more.", Style::DIM));
        self.page("Help", rows);
    }

    /// Handles the choice made in a picker, by the picker's title.
    pub(crate) fn picked(&mut self, pick: &Pick) {
        let Some(Overlay::Picker(picker)) = self.overlay.take() else { return };
        match picker.title() {
            screens::MODELS => {
                let mut params = json!({ "modelId": pick.id });
                if let Some(effort) = &pick.variant {
                    params["reasoningEffort"] = json!(effort);
                }
                self.call("session.model.switchTo", params, Purpose::Nothing);
            }
            screens::AGENTS if pick.id.is_empty() => {
                self.call("session.agent.deselect", json!({}), Purpose::Nothing);
            }
            screens::AGENTS => {
                self.call("session.agent.select", json!({ "name": pick.id }), Purpose::Nothing);
            }
            screens::SESSIONS if pick.key == Some('x') => {
                let params = json!({ "sessionIds": [pick.id] });
                self.call("sessions.bulkDelete", params, Purpose::Nothing);
                self.open_sessions();
            }
            screens::SESSIONS => self.effect(Effect::Open(SessionTarget::Resume(pick.id.clone()))),
            screens::REWIND => {
                let prompt = self.prompt_of(&pick.id);
                self.load(screens::REWIND_HOW);
                let purpose = Purpose::RewindPreview { event_id: pick.id.clone(), prompt };
                self.call("session.history.previewRewind", json!({ "eventId": pick.id }), purpose);
            }
            screens::REWIND_HOW => {
                let Some((mode, event_id)) = pick.id.split_once(' ') else { return };
                let prompt = self.prompt_of(event_id);
                let params = json!({ "eventId": event_id, "mode": mode });
                self.call("session.history.rewind", params, Purpose::Rewound(prompt));
            }
            screens::TASKS if pick.key == Some('x') => {
                let id = pick.id.strip_prefix(screens::COMMAND).unwrap_or(&pick.id);
                self.call("session.tasks.cancel", json!({ "id": id }), Purpose::Nothing);
            }
            screens::TASKS if pick.key == Some('b') => {
                self.call("session.tasks.promoteToBackground", json!({ "id": pick.id }), Purpose::Nothing);
            }
            screens::TASKS => match pick.id.strip_prefix(screens::COMMAND) {
                Some(id) => {
                    self.call("session.tasks.getProgress", json!({ "id": id }), Purpose::CommandOutput);
                }
                None => self.show_agent(&pick.id),
            },
            screens::THEMES => self.set_theme(&pick.id),
            _ => {}
        }
    }

    fn prompt_of(&self, event_id: &str) -> String {
        self.told
            .prompts
            .iter()
            .find(|(id, _)| id == event_id)
            .map(|(_, text)| text.clone())
            .unwrap_or_default()
    }
}

/// Names with what they do, in two columns.
fn listed(entries: &[(String, String, String)], columns: usize, theme: &Theme) -> Vec<Row> {
    let most = if columns >= WIDE { WIDE_NAME_COLUMNS } else { NAME_COLUMNS };
    let fits = entries.iter().map(|(name, ..)| name.width()).filter(|width| *width <= most);
    let width = fits.max().unwrap_or(0) + 2;
    let rows = entries.iter().map(|(name, about, note)| {
        let blanks = width.saturating_sub(name.width()).max(2);
        Row::new(vec![
            Span::new(name, theme.code),
            Span::plain(" ".repeat(blanks)),
            Span::plain(about),
            Span::new(note, theme.dim),
        ])
        .hanging(width)
    });
    rows.collect()
}
