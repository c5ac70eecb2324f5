//! A form in plain lines, for terminals that only print and those that are read aloud: one field after the other, then the
//! question whether it is sent. An empty line, which a terminal may send by itself, fills and sends nothing.

use super::{Field, FieldKind, FormDialog, finished};
use crate::composer::TextField;
use crate::dialog::DialogEnd;
use crate::gate;
use crate::row::Row;
use crate::theme::Theme;

/// Line that leaves a field as it is.
const KEEP: &str = "-";
const CANCEL: &str = "/cancel";

impl FormDialog {
    /// Takes a line: the value of the field that was asked for, or the number of an answer once all were.
    pub fn line(&mut self, line: &str) -> DialogEnd {
        self.problem = None;
        let line = line.trim();
        if line == CANCEL {
            return DialogEnd::Answered(finished(&self.request_id, "cancel", None));
        }
        let Some(field) = self.fields.get_mut(self.at) else {
            match line.trim_end_matches('.') {
                "1" => return self.send(),
                "2" => self.at = 0,
                "3" => return DialogEnd::Answered(finished(&self.request_id, "decline", None)),
                _ => {}
            }
            return DialogEnd::Open;
        };
        if line.is_empty() {
            return DialogEnd::Open;
        }
        let filled = if line == KEEP { Ok(()) } else { field.fill(line) };
        match filled.and_then(|()| field.value()) {
            Ok(None) if field.required => self.problem = Some(format!("{} is needed", field.title)),
            Ok(_) => self.at += 1,
            Err(problem) => self.problem = Some(format!("{}: {problem}", field.title)),
        }
        DialogEnd::Open
    }

    /// Rows where nothing can be redrawn: the field that is asked for, or all of them before they are sent.
    pub fn plain(&self, theme: &Theme) -> Vec<Row> {
        let mut rows = Vec::new();
        if self.at == 0 {
            rows.push(Row::styled(gate::visible(&self.title), theme.accent));
            rows.extend(self.message.rows().iter().cloned().map(super::super::body::apart));
        }
        if let Some(problem) = &self.problem {
            rows.push(Row::styled(gate::visible(problem), theme.error));
        }
        let Some(field) = self.fields.get(self.at) else {
            let told = |field: &Field| format!("{}: {}", gate::visible(&field.title), field.told());
            rows.extend(self.fields.iter().map(told).map(Row::plain));
            rows.extend(["1. Send", "2. Change it", "3. Decline"].map(Row::plain));
            rows.push(Row::styled(
                "a number, then enter; an empty line asks again; /cancel cancels",
                theme.dim,
            ));
            return rows;
        };
        let need = if field.required { ", required" } else { "" };
        rows.push(Row::plain(format!(
            "Field {} of {}: {}{need}, now {}",
            self.at + 1,
            self.fields.len(),
            gate::visible(&field.title),
            field.told()
        )));
        rows.extend(field.options().iter().enumerate().map(|(at, (_, label))| {
            Row::plain(format!("{}. {}", at + 1, gate::visible(label).replace('\n', " ")))
        }));
        let way = match &field.kind {
            FieldKind::Text(_) => "the next line is the text",
            FieldKind::Number { .. } => "the next line is the number",
            FieldKind::Flag(_) => "yes or no",
            FieldKind::One { .. } => "a number, then enter",
            FieldKind::Many { .. } => "numbers, then enter; 0 for none",
        };
        let hint = format!("{way}; {KEEP} leaves it; an empty line asks again; {CANCEL} cancels");
        rows.push(Row::styled(hint, theme.dim));
        rows
    }
}

impl Field {
    fn options(&self) -> &[(serde_json::Value, String)] {
        match &self.kind {
            FieldKind::One { options, .. } | FieldKind::Many { options, .. } => options,
            FieldKind::Text(_) | FieldKind::Number { .. } | FieldKind::Flag(_) => &[],
        }
    }

    /// Value of the field, for people.
    fn told(&self) -> String {
        let told = match &self.kind {
            FieldKind::Text(field) | FieldKind::Number { field, .. } => field.text().to_owned(),
            FieldKind::Flag(true) => "yes".to_owned(),
            FieldKind::Flag(false) => "no".to_owned(),
            FieldKind::One { options, chosen } => {
                chosen.and_then(|at| options.get(at)).map_or(String::new(), |(_, label)| label.clone())
            }
            FieldKind::Many { options, chosen, .. } => {
                let labels = chosen.iter().filter_map(|at| options.get(*at)).map(|(_, label)| label.as_str());
                labels.collect::<Vec<_>>().join(", ")
            }
        };
        if told.is_empty() { "empty".to_owned() } else { gate::visible(&told).replace('\n', " ") }
    }

    /// Takes the value that a line gives, or says why it cannot.
    fn fill(&mut self, line: &str) -> Result<(), String> {
        match &mut self.kind {
            FieldKind::Text(field) | FieldKind::Number { field, .. } => *field = TextField::new(line),
            FieldKind::Flag(flag) => match line.to_lowercase().as_str() {
                "yes" | "y" | "true" => *flag = true,
                "no" | "n" | "false" => *flag = false,
                _ => return Err("yes or no is needed".to_owned()),
            },
            FieldKind::One { options, chosen } => match option(options, line) {
                Some(at) => *chosen = Some(at),
                None => return Err("a number of the list is needed".to_owned()),
            },
            FieldKind::Many { chosen, .. } if line == "0" => chosen.clear(),
            FieldKind::Many { options, chosen, .. } => {
                let words = line.split([',', ' ']).filter(|word| !word.is_empty());
                match words.map(|word| option(options, word)).collect() {
                    Some(wanted) => *chosen = wanted,
                    None => return Err("numbers of the list are needed".to_owned()),
                }
            }
        }
        Ok(())
    }
}

/// The option that a number or a name means.
fn option(options: &[(serde_json::Value, String)], text: &str) -> Option<usize> {
    let number = text.trim_end_matches('.').parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let number = number.filter(|at| *at < options.len());
    number.or_else(|| options.iter().position(|(_, label)| label.eq_ignore_ascii_case(text)))
}
