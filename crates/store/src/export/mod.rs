//! A session as a document for people to read.

mod prose;
mod totals;

use std::io::{self, Write};

use hangar_protocol::data::{AssistantMessage, SessionStart, ToolComplete, ToolStart, UserMessage};
use hangar_protocol::{Body, Event};

use self::prose::{code, contained, fenced, one_line, quoted};
use self::totals::TotalsTable;
use crate::StoreError;

/// A longer argument or result is cut; the log has all of it.
const SHOWN_BYTES: usize = 32 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] StoreError),
    #[error("writing the transcript")]
    Write(#[from] io::Error),
}

/// Writes a transcript in Markdown: prompts, answers, reasoning (folded), tool calls with their results, errors and
/// totals. Needs no more memory than the largest event and the calls that are under way.
pub fn export_markdown(
    events: impl IntoIterator<Item = Result<Event, StoreError>>,
    out: &mut impl Write,
) -> Result<(), ExportError> {
    let mut transcript =
        Transcript { out, started: Vec::new(), totals: TotalsTable::default(), has_title: false };
    for event in events {
        transcript.event(&event?)?;
    }
    transcript.finish()?;
    Ok(())
}

struct Transcript<'a, W> {
    out: &'a mut W,
    /// Tool calls without a result yet.
    started: Vec<ToolStart>,
    totals: TotalsTable,
    has_title: bool,
}

impl<W: Write> Transcript<'_, W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.totals.count(event);
        if !self.has_title {
            self.has_title = true;
            match event.body() {
                Body::SessionStart(start) => return self.title(start),
                _ => writeln!(self.out, "# Session\n")?,
            }
        }
        let agent = event.agent_id().map(|agent| agent.0.as_str());
        match event.body() {
            Body::UserMessage(message) => self.prompt(event, message),
            Body::AssistantMessage(message) => self.answer(agent, message),
            Body::ToolStart(start) => {
                self.started.push(start.clone());
                Ok(())
            }
            Body::ToolComplete(complete) => self.tool(agent, complete),
            Body::SessionError(error) => {
                let status = error.status_code.map(|status| format!(", status {status}")).unwrap_or_default();
                self.remark(&format!("Error ({}{status})", error.error_type), &error.message)
            }
            Body::SessionWarning(warning) => self.remark("Warning", &warning.message),
            Body::Abort(abort) => self.remark("Stopped", &abort.reason),
            Body::SessionResume(resume) => self.remark("Resumed", &resume.resume_time),
            Body::ModelChange(change) => self.remark("Model", &change.new_model),
            Body::TaskComplete(task) => {
                self.remark("Task complete", task.summary.as_deref().unwrap_or_default())
            }
            Body::SubagentStarted(started) => self.remark("Sub-agent started", &started.agent_display_name),
            Body::SubagentFailed(failed) => self.remark("Sub-agent failed", &failed.error),
            _ => Ok(()),
        }
    }

    fn title(&mut self, start: &SessionStart) -> io::Result<()> {
        writeln!(self.out, "# Session {}\n", one_line(&start.session_id))?;
        let context = start.context.as_ref();
        let facts = [
            ("Started", Some(start.start_time.as_str())),
            ("Model", start.selected_model.as_deref()),
            ("Directory", context.map(|context| context.cwd.as_str())),
            ("Repository", context.and_then(|context| context.repository.as_deref())),
            ("Branch", context.and_then(|context| context.branch.as_deref())),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                writeln!(self.out, "- {name}: {}", code(value))?;
            }
        }
        writeln!(self.out)
    }

    fn prompt(&mut self, event: &Event, message: &UserMessage) -> io::Result<()> {
        let source = match (&message.source, event.agent_id()) {
            (_, Some(agent)) => format!("Prompt for agent {}", one_line(&agent.0)),
            (Some(source), None) => format!("Prompt ({})", one_line(source)),
            (None, None) => "Prompt".to_owned(),
        };
        writeln!(self.out, "## {source}\n\n{}", quoted(&message.content))
    }

    fn answer(&mut self, agent: Option<&str>, message: &AssistantMessage) -> io::Result<()> {
        if let Some(reasoning) = message.reasoning_text.as_deref().filter(|text| !text.trim().is_empty()) {
            let text = quoted(reasoning);
            writeln!(self.out, "<details>\n<summary>Reasoning</summary>\n\n{text}\n</details>\n")?;
        }
        if message.content.trim().is_empty() {
            return Ok(());
        }
        match agent {
            Some(agent) => writeln!(self.out, "## Answer of agent {}\n", one_line(agent))?,
            None => writeln!(self.out, "## Answer\n")?,
        }
        writeln!(self.out, "{}", contained(&message.content))
    }

    fn tool(&mut self, agent: Option<&str>, complete: &ToolComplete) -> io::Result<()> {
        let started = self.started.iter().position(|start| start.tool_call_id == complete.tool_call_id);
        match started.map(|at| self.started.remove(at)) {
            Some(start) => self.call(agent, &start)?,
            None => writeln!(self.out, "### Tool result\n")?,
        }
        if let Some(error) = &complete.error {
            let kind = error.code.as_deref().unwrap_or("failure");
            writeln!(
                self.out,
                "Failed ({}):\n\n{}",
                one_line(kind),
                fenced("", shown(&error.message).as_ref())
            )?;
        }
        if let Some(result) = &complete.result {
            let diff = result.detailed_content.as_deref().filter(|text| text.starts_with("diff --git"));
            let (language, text) = diff.map_or(("", result.content.as_str()), |diff| ("diff", diff));
            writeln!(self.out, "{}", fenced(language, shown(text).as_ref()))?;
        }
        Ok(())
    }

    fn call(&mut self, agent: Option<&str>, start: &ToolStart) -> io::Result<()> {
        let of_agent = agent.map(|agent| format!(" of agent {}", one_line(agent))).unwrap_or_default();
        writeln!(self.out, "### Tool {}{of_agent}\n", code(&start.tool_name))?;
        let (language, text) = match start.arguments.get("command").and_then(serde_json::Value::as_str) {
            Some(command) => ("sh", command.to_owned()),
            None => match &start.arguments {
                serde_json::Value::String(text) => ("", text.clone()),
                arguments => ("json", serde_json::to_string_pretty(arguments)?),
            },
        };
        writeln!(self.out, "{}", fenced(language, shown(&text).as_ref()))
    }

    fn remark(&mut self, what: &str, text: &str) -> io::Result<()> {
        let text = one_line(text);
        let colon = if text.is_empty() { "" } else { ": " };
        writeln!(self.out, "**{}**{colon}{text}\n", one_line(what))
    }

    fn finish(mut self) -> io::Result<()> {
        for start in std::mem::take(&mut self.started) {
            self.call(None, &start)?;
            self.remark("No result was recorded", "")?;
        }
        self.totals.write(self.out)
    }
}

/// The start of a text that is too long to be read anyway, with a note.
fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= SHOWN_BYTES {
        return text.into();
    }
    let end = text.floor_char_boundary(SHOWN_BYTES);
    format!("{}\n... {} more bytes are in the session's log", &text[..end], text.len() - end).into()
}
