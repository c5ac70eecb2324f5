//! A tool call in one line: the action and its object. For an unknown tool, the first meaningful argument.

use serde_json::Value;

/// Characters of the object that are shown.
const OBJECT_LIMIT: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolWords {
    pub verb: String,
    pub object: String,
    /// Whether the object is code: a command, a path, a pattern.
    pub is_code: bool,
}

impl ToolWords {
    fn code(verb: &str, object: &str) -> Self {
        Self { verb: verb.to_owned(), object: shortened(object), is_code: true }
    }

    fn prose(verb: &str, object: &str) -> Self {
        Self { is_code: false, ..Self::code(verb, object) }
    }
}

/// A call of the tool `name` with these arguments, in words.
pub fn tool_words(name: &str, args: &Value) -> ToolWords {
    let word = |names: &[&str]| first_word(args, names);
    let path = || word(&["path", "file_path", "filePath", "filename", "file"]);
    match name.to_lowercase().as_str() {
        "bash" | "shell" | "local_shell" | "exec_command" | "run_command" | "powershell" => {
            ToolWords::code("Run", command(args).split('\n').next().unwrap_or_default())
        }
        "read_bash" | "write_bash" | "stop_bash" => {
            ToolWords::code(&name.replacen("_bash", " shell", 1), word(&["shellId", "sessionId"]))
        }
        "view" | "read" | "read_file" => ToolWords::code("Read", path()),
        "edit" | "str_replace_editor" | "multiedit" => ToolWords::code("Edit", path()),
        "create" | "write" | "write_file" => ToolWords::code("Write", path()),
        "apply_patch" => ToolWords::code("Patch", patch_path(args)),
        "grep" | "rg" | "search" => ToolWords::code("Search", word(&["pattern", "query"])),
        "glob" | "ls" | "list_directory" => ToolWords::code("List", word(&["pattern", "path"])),
        "web_fetch" | "fetch" | "webfetch" | "web_search" | "websearch" => {
            ToolWords::code("Fetch", word(&["url", "query"]))
        }
        "task" | "agent" => ToolWords::prose("Agent", word(&["description", "name"])),
        "ask_user" => ToolWords::prose("Ask", word(&["question", "message"])),
        "report_intent" => ToolWords::prose("Intends", word(&["intent"])),
        "exit_plan_mode" => ToolWords::prose("Plan", word(&["summary"])),
        "task_complete" => ToolWords::prose("Done", word(&["summary"])),
        "skill" => ToolWords::prose("Skill", word(&["skill", "name"])),
        _ => ToolWords::code(name, first_text(args)),
    }
}

fn shortened(object: &str) -> String {
    match object.char_indices().nth(OBJECT_LIMIT) {
        Some((end, _)) => format!("{}…", &object[..end]),
        None => object.to_owned(),
    }
}

/// The first of these arguments that is a text.
fn first_word<'a>(args: &'a Value, names: &[&str]) -> &'a str {
    let texts = names.iter().filter_map(|name| args.get(name)?.as_str());
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn first_text(args: &Value) -> &str {
    let values = args.as_object().into_iter().flat_map(serde_json::Map::values);
    values.filter_map(Value::as_str).find(|text| !text.is_empty()).unwrap_or_default()
}

/// Some agents pass a list of words.
fn command(args: &Value) -> String {
    match args.get("command") {
        Some(Value::Array(words)) => words.iter().map(word_of).collect::<Vec<_>>().join(" "),
        _ => first_word(args, &["command", "cmd"]).to_owned(),
    }
}

fn word_of(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A patch is text without a path of its own.
fn patch_path(args: &Value) -> &str {
    let patch = args.as_str().unwrap_or_else(|| first_word(args, &["input", "patch"]));
    let named = patch.split(['\n', '\r']).filter_map(|line| {
        let change = line.strip_prefix("*** ")?;
        ["Add", "Update", "Delete"].iter().find_map(|verb| change.strip_prefix(verb)?.strip_prefix(" File: "))
    });
    named.into_iter().find(|path| !path.is_empty()).unwrap_or_default()
}
