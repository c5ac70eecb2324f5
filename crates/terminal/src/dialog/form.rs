//! Form of an MCP server or a client: one field per property of its schema.

mod lines;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::body::DialogBody;
use super::choice::answer;
use super::{BodyPart, ChoiceDialog, Dialog, DialogChoice, DialogEnd, DialogReply, DialogView};
use crate::arming::Arming;
use crate::composer::{FieldView, TextField};
use crate::gate;
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;

const METHOD: &str = "session.ui.handlePendingElicitation";
/// Fields of a form. The protocol's forms are flat and small.
const MAX_FIELDS: usize = 64;
/// Rows that are always there: title and hint.
const FRAME: usize = 2;
/// Rows of the message over the fields that are shown at once.
const MESSAGE_ROWS: usize = 10;

pub struct FormDialog {
    pub(super) request_id: String,
    pub(super) arming: Arming,
    title: String,
    message: DialogBody,
    fields: Vec<Field>,
    at: usize,
    /// Problem of the last attempt to send.
    problem: Option<String>,
    /// First row of the message that is shown.
    scroll: usize,
    columns: usize,
    /// Rows of the screen that the dialog may take.
    height: usize,
}

struct Field {
    name: String,
    title: String,
    required: bool,
    kind: FieldKind,
}

enum FieldKind {
    Text(TextField),
    Number { field: TextField, integer: bool },
    Flag(bool),
    One { options: Vec<(Value, String)>, chosen: Option<usize> },
    Many { options: Vec<(Value, String)>, chosen: BTreeSet<usize>, at: usize },
}

impl FormDialog {
    /// Dialog of an `elicitation.requested` event, from its data.
    pub fn of(data: &Value, now: u64) -> Dialog {
        let id = data["requestId"].as_str().unwrap_or_default().to_owned();
        let message = data["message"].as_str().unwrap_or_default().to_owned();
        let title = match data["elicitationSource"].as_str() {
            Some(server) => format!("{server} asks"),
            None => "A form".to_owned(),
        };
        if data["mode"] == "url" {
            let url = data["url"].as_str().unwrap_or_default().to_owned();
            let parts = vec![BodyPart::Text(message), BodyPart::Code(url)];
            let choices = vec![
                DialogChoice::new("I opened it", finished(&id, "accept", None)),
                DialogChoice::new("Decline", finished(&id, "decline", None)),
            ];
            let cancel = finished(&id, "cancel", None);
            return Dialog::Choice(Box::new(ChoiceDialog::new(Some(id), title, parts, choices, cancel, now)));
        }
        Dialog::Form(Box::new(Self {
            request_id: id,
            arming: Arming::new(now),
            title,
            message: DialogBody::new(vec![BodyPart::Text(message)]),
            fields: fields(&data["requestedSchema"]),
            at: 0,
            problem: None,
            scroll: 0,
            columns: 80,
            height: usize::MAX,
        }))
    }

    pub(super) fn layout(&mut self, columns: usize, rows: usize, theme: &Theme) {
        self.columns = columns.max(1);
        self.height = rows;
        self.message.layout(self.columns, theme);
        self.scroll_by(0);
    }

    /// Rows of the message, and fields, that are on the screen at once.
    fn shape(&self) -> (usize, usize) {
        let message = self.message.rows().len();
        let room = self.height.saturating_sub(FRAME + usize::from(self.problem.is_some())).max(1);
        if message <= MESSAGE_ROWS && message + self.fields.len() <= room {
            return (message, self.fields.len());
        }
        // A row shows how much more of the message there is. The edited field is always visible.
        let fields =
            self.fields.len().min(room.saturating_sub(message.min(MESSAGE_ROWS) + 1).max(room.div_ceil(2)));
        let message = message.min(MESSAGE_ROWS).min(room.saturating_sub(fields + 1));
        (message, fields)
    }

    fn scroll_by(&mut self, rows: isize) {
        let last = self.message.rows().len().saturating_sub(self.shape().0);
        self.scroll = self.scroll.saturating_add_signed(rows).min(last);
    }

    pub(super) fn key(&mut self, key: Key, keymap: &Keymap) -> DialogEnd {
        self.problem = None;
        match key.code {
            KeyCode::Esc => return DialogEnd::Answered(finished(&self.request_id, "cancel", None)),
            KeyCode::Char('c') if key.ctrl => {
                return DialogEnd::Answered(finished(&self.request_id, "cancel", None));
            }
            KeyCode::Char('d') if key.ctrl => {
                return DialogEnd::Answered(finished(&self.request_id, "decline", None));
            }
            KeyCode::PageUp => self.scroll_by(-isize::try_from(self.shape().0).unwrap_or(1)),
            KeyCode::PageDown => self.scroll_by(isize::try_from(self.shape().0).unwrap_or(1)),
            KeyCode::Up | KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1).min(self.fields.len().saturating_sub(1)),
            KeyCode::Enter if self.at + 1 < self.fields.len() => self.at += 1,
            KeyCode::Enter => return self.send(),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.key(key, keymap);
                }
            }
        }
        DialogEnd::Open
    }

    pub(super) fn paste(&mut self, text: &str) {
        let field = self.fields.get_mut(self.at).map(|field| &mut field.kind);
        if let Some(FieldKind::Text(field) | FieldKind::Number { field, .. }) = field {
            field.insert(text);
        }
    }

    fn send(&mut self) -> DialogEnd {
        let mut content = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            match field.value() {
                Ok(Some(value)) => {
                    content.insert(field.name.clone(), value);
                }
                Ok(None) if field.required => {
                    self.problem = Some(format!("{} is needed", field.title));
                    self.at = at;
                    return DialogEnd::Open;
                }
                Ok(None) => {}
                Err(problem) => {
                    self.problem = Some(format!("{}: {problem}", field.title));
                    self.at = at;
                    return DialogEnd::Open;
                }
            }
        }
        DialogEnd::Answered(finished(&self.request_id, "accept", Some(Value::Object(content))))
    }

    pub(super) fn view(&self, now: u64, theme: &Theme) -> DialogView {
        let mut rows =
            vec![Row::styled(gate::visible(&self.title), theme.accent.bold()).clipped(self.columns)];
        let message = self.message.rows();
        let (shown, fields) = self.shape();
        rows.extend(message.iter().skip(self.scroll).take(shown).cloned());
        if shown < message.len() {
            let more = message.len() - shown;
            rows.push(
                Row::styled(format!("  … {more} more rows (pgup, pgdn)"), theme.dim).clipped(self.columns),
            );
        }
        let mut cursor = None;
        let first = (self.at + 1).saturating_sub(fields);
        for (at, field) in self.fields.iter().enumerate().skip(first).take(fields) {
            let is_current = at == self.at;
            let mark = if is_current { "❯ " } else { "  " };
            let need = if field.required { " *" } else { "" };
            let label = format!("{}{need}: ", gate::visible(&field.title));
            let mut row = Row::new(vec![
                Span::new(mark, theme.accent),
                Span::new(label, if is_current { Style::BOLD } else { Style::PLAIN }),
            ]);
            let before = row.width();
            match &field.kind {
                FieldKind::Text(text) | FieldKind::Number { field: text, .. } => {
                    let FieldView { row: shown, cursor: column } =
                        text.view(self.columns.saturating_sub(before), Style::PLAIN);
                    if is_current {
                        cursor = Some((rows.len(), before + column));
                    }
                    row.spans.extend(shown.spans);
                }
                kind => row.push(Span::new(kind.shown(is_current), theme.code)),
            }
            rows.push(row.clipped(self.columns));
        }
        if let Some(problem) = &self.problem {
            rows.push(Row::styled(gate::visible(problem), theme.error).clipped(self.columns));
        }
        let mut arming = self.arming;
        let hint = match arming.is_armed(now) {
            true => "enter goes on and sends; ←→ or space choose; ctrl+d declines; esc cancels",
            false => "…",
        };
        rows.push(Row::styled(hint, theme.dim).clipped(self.columns));
        DialogView { rows, cursor }
    }
}

fn finished(id: &str, action: &str, content: Option<Value>) -> DialogReply {
    let mut result = json!({ "action": action });
    if let Some(content) = content {
        result["content"] = content;
    }
    answer(METHOD, id, "result", result)
}

fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let made = properties.iter().take(MAX_FIELDS).map(|(name, property)| Field {
        name: name.clone(),
        title: property["title"].as_str().unwrap_or(name).to_owned(),
        required: required.contains(&name.as_str()),
        kind: kind(property),
    });
    made.collect()
}

fn kind(property: &Value) -> FieldKind {
    let default = &property["default"];
    if let Some(options) = options(property) {
        let chosen = options.iter().position(|(value, _)| value == default);
        return FieldKind::One { options, chosen };
    }
    match property["type"].as_str() {
        Some("boolean") => FieldKind::Flag(default.as_bool().unwrap_or(false)),
        Some(kind @ ("number" | "integer")) => {
            let start = if default.is_null() { String::new() } else { default.to_string() };
            FieldKind::Number { field: TextField::new(&start), integer: kind == "integer" }
        }
        Some("array") => {
            let options = options(&property["items"]).unwrap_or_default();
            let wanted = default.as_array().cloned().unwrap_or_default();
            let chosen = options.iter().enumerate().filter(|(_, (value, _))| wanted.contains(value));
            let chosen = chosen.map(|(at, _)| at).collect();
            FieldKind::Many { options, chosen, at: 0 }
        }
        _ => FieldKind::Text(TextField::new(default.as_str().unwrap_or_default())),
    }
}

/// Values of a choice, with their labels.
fn options(schema: &Value) -> Option<Vec<(Value, String)>> {
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let entry = |one: &Value| {
            let value = one["const"].clone();
            let label = one["title"].as_str().map_or_else(|| shown(&value), str::to_owned);
            (value, label)
        };
        return Some(titled.iter().map(entry).collect());
    }
    let values = schema["enum"].as_array()?;
    let names = schema["enumNames"].as_array();
    let label = |at: usize, value: &Value| {
        let name = names.and_then(|names| names.get(at)).and_then(Value::as_str);
        name.map_or_else(|| shown(value), str::to_owned)
    };
    Some(values.iter().enumerate().map(|(at, value)| (value.clone(), label(at, value))).collect())
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Field {
    fn key(&mut self, key: Key, keymap: &Keymap) {
        let forward = matches!(key.code, KeyCode::Right | KeyCode::Char(' '));
        let back = key.code == KeyCode::Left;
        match &mut self.kind {
            FieldKind::Text(field) | FieldKind::Number { field, .. } => {
                field.key(key, keymap);
            }
            FieldKind::Flag(flag) => match key.code {
                KeyCode::Char('y') => *flag = true,
                KeyCode::Char('n') => *flag = false,
                _ if forward || back => *flag = !*flag,
                _ => {}
            },
            FieldKind::One { options, chosen } if !options.is_empty() => {
                let count = options.len();
                if forward {
                    *chosen = Some(chosen.map_or(0, |at| (at + 1) % count));
                } else if back {
                    *chosen = Some(chosen.map_or(count - 1, |at| (at + count - 1) % count));
                }
            }
            FieldKind::Many { options, chosen, at } if !options.is_empty() => match key.code {
                KeyCode::Left => *at = at.saturating_sub(1),
                KeyCode::Right => *at = (*at + 1).min(options.len() - 1),
                KeyCode::Char(' ') if chosen.contains(at) => {
                    chosen.remove(at);
                }
                KeyCode::Char(' ') => {
                    chosen.insert(*at);
                }
                _ => {}
            },
            FieldKind::One { .. } | FieldKind::Many { .. } => {}
        }
    }

    /// The value, `None` if it is empty, or an error.
    fn value(&self) -> Result<Option<Value>, String> {
        Ok(match &self.kind {
            FieldKind::Text(field) if field.text().is_empty() => None,
            FieldKind::Text(field) => Some(json!(field.text())),
            FieldKind::Number { field, .. } if field.text().trim().is_empty() => None,
            FieldKind::Number { field, integer: true } => {
                let number: i64 =
                    field.text().trim().parse().map_err(|_| "a whole number is needed".to_owned())?;
                Some(json!(number))
            }
            FieldKind::Number { field, integer: false } => {
                let number: f64 = field.text().trim().parse().map_err(|_| "a number is needed".to_owned())?;
                if !number.is_finite() {
                    return Err("a number is needed".to_owned());
                }
                Some(json!(number))
            }
            FieldKind::Flag(flag) => Some(json!(flag)),
            FieldKind::One { options, chosen } => {
                chosen.and_then(|at| options.get(at)).map(|(value, _)| value.clone())
            }
            FieldKind::Many { options, chosen, .. } => Some(
                chosen.iter().filter_map(|at| options.get(*at)).map(|(value, _)| value.clone()).collect(),
            ),
        })
    }
}

impl FieldKind {
    fn shown(&self, is_current: bool) -> String {
        match self {
            Self::Text(field) | Self::Number { field, .. } => field.text().to_owned(),
            Self::Flag(true) => "[x] yes".to_owned(),
            Self::Flag(false) => "[ ] no".to_owned(),
            Self::One { options, chosen } => match chosen.and_then(|at| options.get(at)) {
                Some((_, label)) => format!("‹ {} ›", gate::visible(label)),
                None => format!("‹ choose one of {} ›", options.len()),
            },
            Self::Many { options, chosen, at } => {
                let shown = options.iter().enumerate().map(|(index, (_, label))| {
                    let mark = if chosen.contains(&index) { "[x]" } else { "[ ]" };
                    let here = if is_current && index == *at { ">" } else { " " };
                    format!("{here}{mark} {}", gate::visible(label))
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }
}
