//! Texts that a recording replaces with names: directories that another machine does not have, and secrets.

use hangar_agent::model::{ModelError, ModelEvent};

/// Values that are written as `${name}`, and put back when the recording is replayed.
#[derive(Debug, Clone, Default)]
pub struct RecordedNames(Vec<(String, String)>);

impl RecordedNames {
    /// Pairs of a value and its name. Of two values, one inside the other, the longer is replaced first.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .filter(|(value, _)| !value.is_empty())
            .map(|(value, name)| (value, format!("${{{name}}}")))
            .collect();
        pairs.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(pairs)
    }

    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (value, name)| text.replace(value, name))
    }

    pub(super) fn show(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (value, name)| text.replace(name, value))
    }

    pub(super) fn hide_error(&self, mut error: ModelError) -> ModelError {
        each_error_text(&mut error, |text| *text = self.hide(text));
        error
    }

    pub(super) fn show_error(&self, mut error: ModelError) -> ModelError {
        each_error_text(&mut error, |text| *text = self.show(text));
        error
    }

    pub(super) fn show_event(&self, mut event: ModelEvent) -> ModelEvent {
        each_text(&mut event, |text| *text = self.show(text));
        event
    }

    /// Hides values in the events of an answer. Pieces that hold one only together become a single piece.
    pub(super) fn hide_events(&self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let mut hidden = Vec::with_capacity(events.len());
        let mut events = events.into_iter().peekable();
        while let Some(first) = events.next() {
            let mut run = vec![first];
            while let Some(next) = events.next_if(|next| continues(&run[0], next)) {
                run.push(next);
            }
            let joined = self.hide(&run.iter().map(delta).collect::<String>());
            for event in &mut run {
                each_text(event, |text| *text = self.hide(text));
            }
            if joined != run.iter().map(delta).collect::<String>() {
                run.truncate(1);
                each_text(&mut run[0], |text| text.clone_from(&joined));
            }
            hidden.append(&mut run);
        }
        hidden
    }
}

/// Whether `next` continues the text of `event`.
fn continues(event: &ModelEvent, next: &ModelEvent) -> bool {
    match (event, next) {
        (ModelEvent::Text(_), ModelEvent::Text(_)) | (ModelEvent::Reasoning(_), ModelEvent::Reasoning(_)) => {
            true
        }
        (ModelEvent::ToolInput { call_id, .. }, ModelEvent::ToolInput { call_id: next, .. }) => {
            call_id == next
        }
        _ => false,
    }
}

fn delta(event: &ModelEvent) -> &str {
    match event {
        ModelEvent::Text(delta) | ModelEvent::Reasoning(delta) | ModelEvent::ToolInput { delta, .. } => delta,
        ModelEvent::Notice(_) | ModelEvent::Finished(_) => "",
    }
}

fn each_text(event: &mut ModelEvent, mut change: impl FnMut(&mut String)) {
    match event {
        ModelEvent::Text(delta) | ModelEvent::Reasoning(delta) | ModelEvent::ToolInput { delta, .. } => {
            change(delta);
        }
        ModelEvent::Notice(_) => {}
        ModelEvent::Finished(reply) => {
            // Signed items cannot be changed, and a recording is not sent to a vendor.
            reply.turn.native = None;
            change(&mut reply.turn.text);
            if let Some(reasoning) = &mut reply.turn.reasoning {
                change(&mut reasoning.text);
            }
            for call in &mut reply.turn.tool_calls {
                change(&mut call.input);
            }
        }
    }
}

fn each_error_text(error: &mut ModelError, mut change: impl FnMut(&mut String)) {
    change(&mut error.message);
    if let Some(body) = &mut error.body {
        change(body);
    }
}
