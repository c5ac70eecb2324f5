//! Pickers and pages made from answers of the session.

use serde_json::Value;

use crate::calls::item;
use crate::diff;
use crate::format::{ago, dollars, duration, plural, tokens};
use crate::gate;
use crate::overlay::{PickItem, Picker};
use crate::row::{Row, Span, Style};
use crate::theme::Theme;

/// Rows of a page.
const PAGE_ROWS: usize = 20_000;

/// Titles of pickers, which identify the picker of a choice.
pub(crate) const MODELS: &str = "Models";
pub(crate) const AGENTS: &str = "Agents";
pub(crate) const SESSIONS: &str = "Sessions";
pub(crate) const REWIND: &str = "Go back to";
pub(crate) const REWIND_HOW: &str = "Go back";
pub(crate) const TASKS: &str = "Tasks";
pub(crate) const THEMES: &str = "Colours";

/// Mark before the ids of commands among the tasks.
pub(crate) const COMMAND: &str = "command ";

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Models of the session, with efforts, window and price.
pub(crate) fn models(answer: &Value, (current, effort): (Option<&str>, Option<&str>)) -> Picker {
    let listed = answer["models"].as_array().into_iter().flatten();
    let items: Vec<PickItem> = listed
        .map(|model| {
            let id = text(model, "id");
            let mut detail = Vec::new();
            if Some(id) == current {
                detail.push("current".to_owned());
            }
            let name = text(model, "name");
            if !name.is_empty() && name != id {
                detail.push(name.to_owned());
            }
            if let Some(window) = model["capabilities"]["limits"]["max_context_window_tokens"].as_u64() {
                detail.push(format!("{} context", tokens(window)));
            }
            detail.extend(price(&model["billing"]["tokenPrices"]));
            if let Some(multiplier) = model["billing"]["multiplier"].as_f64() {
                detail.push(format!("{multiplier}x"));
            }
            let efforts = model["supportedReasoningEfforts"].as_array().into_iter().flatten();
            let efforts: Vec<String> = efforts.filter_map(Value::as_str).map(str::to_owned).collect();
            let usual =
                effort.filter(|_| Some(id) == current).or_else(|| model["defaultReasoningEffort"].as_str());
            let variant = efforts.iter().position(|known| Some(known.as_str()) == usual).unwrap_or(0);
            PickItem { variants: efforts, variant, ..item(id, id, detail.join(" · ")) }
        })
        .collect();
    Picker::new(MODELS, items).selecting(current.unwrap_or_default())
}

/// Price of a million tokens of a prompt and of an answer, from prices of a batch in credits of a cent.
fn price(prices: &Value) -> Option<String> {
    let batch = prices["batchSize"].as_f64().filter(|size| *size > 0.0)?;
    let million = |name: &str| prices[name].as_f64().map(|credits| dollars(credits / 100.0 * (1e6 / batch)));
    Some(format!("{} in, {} out per million", million("inputPrice")?, million("outputPrice")?))
}

/// The model of the session alone, with the reason for which no others are listed.
pub(crate) fn unlisted_models(reason: &str, current: (Option<&str>, Option<&str>)) -> Picker {
    let listed = current.0.map(|id| serde_json::json!([{ "id": id }])).unwrap_or_default();
    let mut picker = models(&serde_json::json!({ "models": listed }), current);
    picker.note(reason);
    picker
}

pub(crate) fn agents(answer: &Value) -> Picker {
    let listed = answer["agents"].as_array().into_iter().flatten();
    let mut items = vec![item("", "Hangar", "the usual agent")];
    items.extend(listed.map(|agent| {
        let model = agent["model"].as_str().map(|model| format!("{model} · ")).unwrap_or_default();
        let id = agent["id"].as_str().unwrap_or_else(|| text(agent, "name"));
        item(id, text(agent, "displayName"), format!("{model}{}", text(agent, "description")))
    }));
    Picker::new(AGENTS, items)
}

/// Sessions of all agents on this machine, as the loop lists them.
pub(crate) fn sessions(answer: &Value) -> Picker {
    let listed = answer["sessions"].as_array().into_iter().flatten();
    let items = listed.map(|session| {
        let mut detail = vec![format!("{} ago", ago(session["age"].as_u64().unwrap_or(0)))];
        for key in ["agent", "state", "directory"] {
            if let Some(value) = session[key].as_str().filter(|value| !value.is_empty()) {
                detail.push(value.to_owned());
            }
        }
        let name = session["name"].as_str().unwrap_or_else(|| text(session, "id"));
        item(text(session, "id"), name, detail.join(" · "))
    });
    Picker::new(SESSIONS, items.collect()).with_keys(&[('x', "deletes")]).careful_with('x')
}

/// Prompts to which a session can be rewound, the last first.
pub(crate) fn rewind_points(answer: &Value) -> Picker {
    let points = answer["points"].as_array().into_iter().flatten().rev();
    let items = points.map(|point| {
        let prompt = text(point, "userMessage");
        let files = point["fileCount"].as_u64().unwrap_or(0);
        let detail = match files {
            0 => "no files edited since".to_owned(),
            1 => "1 file edited since".to_owned(),
            files => format!("{files} files edited since"),
        };
        let line = prompt.lines().next().unwrap_or_default();
        item(text(point, "eventId"), line, detail)
    });
    let mut picker = Picker::new(REWIND, items.collect());
    picker.say(match answer["unavailableReason"].as_str() {
        Some("session-busy") => "the agent works; stop it with esc esc first",
        _ => "there is no earlier prompt",
    });
    picker
}

/// Ways to go back to a prompt, with the files that would change.
pub(crate) fn rewind_modes(answer: &Value, event_id: &str, prompt: &str) -> Picker {
    let files = answer["files"].as_array().cloned().unwrap_or_default();
    let line = prompt.lines().next().unwrap_or_default();
    let mut items =
        vec![item(&format!("conversation {event_id}"), "the conversation only", format!("before: {line}"))];
    if answer["available"].as_bool().unwrap_or(false) && !files.is_empty() {
        let detail = match files.len() {
            1 => "1 file, listed below".to_owned(),
            files => format!("{files} files, listed below"),
        };
        items.push(item(
            &format!("conversation-and-files {event_id}"),
            "the conversation and the files",
            detail,
        ));
        items.extend(files.iter().map(|file| {
            let undo = match text(file, "changeType") {
                "created" => "is deleted",
                "deleted" => "comes back",
                _ => "is changed back",
            };
            let lines = format!(
                "{undo} (edits of +{} −{} lines)",
                file["linesAdded"].as_u64().unwrap_or(0),
                file["linesRemoved"].as_u64().unwrap_or(0)
            );
            let path = item("", format!("    {}", text(file, "path")), lines);
            PickItem { is_note: true, ..path }
        }));
    }
    let untracked = "changes by shell commands are not recorded and stay";
    items.push(PickItem { is_note: true, ..item("", format!("    {untracked}"), "") });
    Picker::new(REWIND_HOW, items)
}

/// Sentences about the files that a rewind left as they are. The server reports some of them in its error.
pub(crate) fn left_files(answer: &Value) -> Vec<String> {
    let told = answer["error"].as_str().unwrap_or_default();
    let left = answer["skippedFiles"].as_array().into_iter().flatten();
    let left = left.filter(|file| !told.contains(text(file, "path")));
    left.map(|file| {
        let why = match text(file, "reason") {
            "user-modified" => "somebody changed it since",
            _ => "its content before that prompt is not known",
        };
        format!("{} was left as it is: {why}.", text(file, "path"))
    })
    .collect()
}

/// Sub-agents and background commands.
pub(crate) fn tasks(answer: &Value) -> Picker {
    let listed = answer["tasks"].as_array().into_iter().flatten();
    let items = listed.map(|task| {
        let what = task["displayName"].as_str().or_else(|| task["command"].as_str()).unwrap_or("task");
        let mut detail = vec![text(task, "status").to_owned()];
        for key in ["description", "resolvedModel", "error"] {
            if let Some(value) = task[key].as_str().filter(|value| !value.is_empty()) {
                detail.push(value.to_owned());
            }
        }
        let id = text(task, "id");
        let id = if task["type"] == "shell" { format!("{COMMAND}{id}") } else { id.to_owned() };
        item(&id, what.lines().next().unwrap_or_default(), detail.join(" · "))
    });
    let mut picker =
        Picker::new(TASKS, items.collect()).with_keys(&[('x', "stops"), ('b', "moves to the background")]);
    picker.say("no sub-agents and no background commands");
    picker
}

pub(crate) fn themes(current: &str) -> Picker {
    let about = |name: &str| match name {
        "ansi" => "the 16 colours of your terminal",
        "dark" => "for a dark background",
        "light" => "for a light background",
        _ => "bold and underlined, no colours",
    };
    let items = Theme::names().iter().map(|name| item(name, *name, about(name)));
    let automatic = item("auto", "auto", "dark or light by the terminal's background");
    Picker::new(THEMES, std::iter::once(automatic).chain(items).collect()).selecting(current)
}

/// Letters of the page of changes, beside those that comment.
pub(crate) const DIFF_KEYS: &[(char, &str)] = &[('b', "branch"), ('w', "blanks")];

/// Changes that the page shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiffView {
    /// All changes since the branch began, not only those that are not committed.
    pub(crate) of_branch: bool,
    pub(crate) ignores_blanks: bool,
}

/// Page of changes: its rows, the place of each, and the rows that name a file.
pub(crate) struct DiffPage {
    pub(crate) rows: Vec<Row>,
    pub(crate) places: Vec<Option<String>>,
    pub(crate) files: Vec<usize>,
}

/// Title of the page of changes.
pub(crate) fn diff_title(answer: &Value, view: DiffView) -> String {
    let mut title = match (answer["baseBranch"].as_str(), view.of_branch) {
        (Some(base), _) => format!("Changes since {base}"),
        (None, true) => "Changes in the working tree (this branch has no base)".to_owned(),
        (None, false) => "Changes in the working tree".to_owned(),
    };
    if view.ignores_blanks {
        title.push_str(", without changes of blanks");
    }
    title
}

/// Rows of a diff of the working tree, with the place of each.
pub(crate) fn diff(answer: &Value, theme: &Theme) -> DiffPage {
    let whole = answer["diff"].as_str().map(str::to_owned);
    let parts = answer["changes"].as_array().into_iter().flatten();
    let parts: Vec<&str> = parts.filter_map(|change| change["diff"].as_str()).collect();
    let text = whole.unwrap_or_else(|| parts.join("\n"));
    match text.trim().is_empty() {
        true => {
            DiffPage { rows: vec![Row::plain("Nothing has changed.")], places: Vec::new(), files: Vec::new() }
        }
        false => DiffPage {
            rows: diff::rows(&text, theme, PAGE_ROWS),
            places: diff::places(&text, PAGE_ROWS),
            files: diff::files(&text, PAGE_ROWS),
        },
    }
}

/// Hooks of the session: the event of each, the command that it runs, and its file.
pub(crate) fn hooks(answer: &Value, theme: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    for hook in answer["hooks"].as_array().into_iter().flatten().take(PAGE_ROWS) {
        let visible = |key: &str| gate::visible(text(hook, key)).into_owned();
        let mut first = Row::styled(visible("hookType"), theme.heading);
        if let Some(matcher) = hook["matcher"].as_str() {
            first.push(Span::new(format!("  {}", gate::visible(matcher)), theme.code));
        }
        let state = match (hook["trusted"].as_bool(), hook["enabled"].as_bool()) {
            (Some(false), _) => Some("not run: the directory is not trusted"),
            (_, Some(false)) => Some("not run: hooks are switched off"),
            _ => None,
        };
        if let Some(state) = state {
            first.push(Span::new(format!("  {state}"), theme.warning));
        }
        rows.push(first);
        let action = gate::lines(text(hook, "action")).map(|line| format!("  {}", gate::visible(line)));
        rows.extend(action.map(Row::plain));
        let origin = match text(hook, "origin") {
            "policy" => "of this machine",
            "repository" => "of the project",
            "plugin" => "of a plugin",
            _ => "yours",
        };
        rows.push(Row::styled(format!("  {} ({origin})", visible("source")), theme.dim));
    }
    for problem in answer["errors"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        rows.push(Row::styled(gate::visible(problem).into_owned(), theme.warning));
    }
    if rows.is_empty() {
        let told = "There are none. They are configured in .github/hooks/*.json of a project, or in hooks/ of the home.";
        rows.push(Row::styled(told, Style::DIM));
    }
    rows
}

/// A count with its noun: `1 request`.
fn counted(noun: &str, count: &Value) -> String {
    let count = count.as_u64().unwrap_or(0);
    format!("{count} {}", plural(noun, usize::try_from(count).unwrap_or(usize::MAX)))
}

/// Usage of a session, by model.
pub(crate) fn usage(answer: &Value, cost: f64) -> String {
    let mut lines = Vec::new();
    let changes = &answer["codeChanges"];
    for (model, metrics) in answer["modelMetrics"].as_object().into_iter().flatten() {
        let usage = &metrics["usage"];
        let count = |key: &str| tokens(usage[key].as_u64().unwrap_or(0));
        lines.push(format!(
            "{model}: {}, {} tokens in ({} from cache), {} out",
            counted("request", &metrics["requests"]["count"]),
            count("inputTokens"),
            count("cacheReadTokens"),
            count("outputTokens"),
        ));
    }
    if lines.is_empty() {
        lines.push("No model was asked yet.".to_owned());
    }
    lines.push(format!(
        "{}, {} of model time, +{} −{} lines, {}",
        counted("prompt", &answer["totalUserRequests"]),
        duration(answer["totalApiDurationMs"].as_u64().unwrap_or(0)),
        changes["linesAdded"].as_u64().unwrap_or(0),
        changes["linesRemoved"].as_u64().unwrap_or(0),
        dollars(cost),
    ));
    lines.join("\n")
}

/// A list of anything as a page: one row per entry, its first texts.
pub(crate) fn document(answer: &Value) -> Vec<Row> {
    let lists = answer.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_array());
    let mut rows = Vec::new();
    for entry in lists.flatten().take(PAGE_ROWS) {
        let texts: Vec<String> = match entry {
            Value::Object(fields) => fields
                .values()
                .filter_map(Value::as_str)
                .map(|text| gate::visible(text).into_owned())
                .collect(),
            Value::String(text) => vec![gate::visible(text).into_owned()],
            other => vec![other.to_string()],
        };
        rows.push(Row::plain(texts.join("  ").replace('\n', " ")));
    }
    if rows.is_empty() {
        rows.push(Row::styled("There are none.", Style::DIM));
    }
    rows
}

/// Plugins with what each brings, from the answer to `session.plugins.list`.
pub(crate) fn plugins(answer: &Value) -> String {
    let plugins: Vec<&Value> = answer["plugins"].as_array().into_iter().flatten().collect();
    let mut lines: Vec<String> = plugins.iter().flat_map(|plugin| plugin_lines(plugin)).collect();
    if lines.is_empty() {
        lines.push("No plugin is loaded.".to_owned());
    }
    lines.push(
        "`hangar plugin` installs and updates plugins for later sessions; --plugin-dir DIR loads one for this session."
            .to_owned(),
    );
    lines.join("\n")
}

fn plugin_lines(plugin: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![format!("{} ({})", text(&plugin["name"]), text(&plugin["path"]))];
    for (kind, word) in
        [("agents", "agents"), ("skills", "skills"), ("commands", "commands"), ("mcpServers", "MCP servers")]
    {
        let names: Vec<String> = plugin[kind].as_array().into_iter().flatten().map(text).collect();
        if !names.is_empty() {
            lines.push(format!("  {word}: {}", names.join(", ")));
        }
    }
    if plugin["hooks"] == true {
        lines.push("  hooks".to_owned());
    }
    if lines.len() == 1 {
        lines.push("  brings nothing".to_owned());
    }
    lines
}
