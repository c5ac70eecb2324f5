//! View of one sub-agent: its transcript in the pager, which follows it while it works.

use hangar_protocol::Event;
use hangar_transcript::{AgentState, BlockBody, Lane, Transcript};
use serde_json::Value;

use crate::ansi::{self, SgrState};
use crate::blocks::{self, Detail, Rendering};
use crate::effect::Effect;
use crate::gate;
use crate::overlay::{Overlay, Pager};
use crate::row::Row;
use crate::state::State;

/// The sub-agent whose transcript is shown.
#[derive(Default)]
pub(crate) struct AgentView {
    /// Sub-agent whose transcript is being read from the log.
    pub(crate) awaited: Option<String>,
    watched: Option<String>,
    /// Whether the shown one has moved on since.
    moved: bool,
}

impl State {
    /// Opens the transcript of a sub-agent: of a running one as it is known here, else from the log, since the blocks of
    /// finished agents are dropped once they are printed.
    pub(crate) fn show_agent(&mut self, id: &str) {
        let runs = |agent: &hangar_transcript::AgentInfo| agent.state == AgentState::Running;
        let is_running = self.transcript.agents().any(|(known, _, agent)| known == id && runs(agent));
        let lane = self.transcript.agent(id).filter(|lane| is_running && lane.blocks().next().is_some());
        if lane.is_none() {
            self.agent_view.awaited = Some(id.to_owned());
            return self.effect(Effect::ReadTranscript);
        }
        let rows = lane.map(|lane| self.agent_rows(lane)).unwrap_or_default();
        self.open_agent(&title(&self.transcript, id), rows);
        self.agent_view.watched = Some(id.to_owned());
    }

    /// Shows an agent of a transcript that was read from the log.
    pub(crate) fn page_agent(&mut self, id: &str, transcript: &Transcript) {
        let lane = transcript.agent(id);
        let rows = lane.map(|lane| self.agent_rows(lane)).unwrap_or_default();
        if rows.is_empty() {
            return self.say("nothing is known of that task yet");
        }
        self.open_agent(&title(transcript, id), rows);
        self.agent_view.watched = Some(id.to_owned());
    }

    /// Shows the output of a command in the background, its end first.
    pub(crate) fn show_command_output(&mut self, answer: &Value) {
        let output = answer["progress"]["recentOutput"].as_str().unwrap_or_default();
        if output.trim().is_empty() {
            return self.say("the command has printed nothing so far");
        }
        let mut state = SgrState::default();
        let rows: Vec<Row> =
            gate::lines(output).map(|line| Row::new(ansi::spans(line, &mut state)).unwrapped()).collect();
        if self.options.screen_reader {
            return self.print(rows);
        }
        let pager = Pager::new("Output", rows, self.columns).at_end(self.rows);
        self.overlay = Some(Overlay::Pager(Box::new(pager)));
    }

    fn open_agent(&mut self, title: &str, rows: Vec<Row>) {
        if self.options.screen_reader {
            return self.print(rows);
        }
        let pager = Pager::new(title, rows, self.columns).at_end(self.rows);
        self.overlay = Some(Overlay::Pager(Box::new(pager)));
    }

    /// Notes that the view of an agent is out of date.
    pub(crate) fn follow_agent(&mut self, event: &Event) {
        if self.agent_view.watched.is_some()
            && event.agent_id().map(|id| &id.0) == self.agent_view.watched.as_ref()
        {
            self.agent_view.moved = true;
        }
    }

    /// Brings the view of an agent up to date, once for each frame.
    pub(crate) fn refresh_agent(&mut self) {
        if self.overlay.is_none() {
            self.agent_view.watched = None;
        }
        if !std::mem::take(&mut self.agent_view.moved) {
            return;
        }
        let lane = self.agent_view.watched.as_ref().and_then(|id| self.transcript.agent(id));
        let rows = lane.map(|lane| self.agent_rows(lane)).unwrap_or_default();
        if let Some(Overlay::Pager(pager)) = self.overlay.as_mut().filter(|_| !rows.is_empty()) {
            pager.replace(rows, self.rows);
        }
    }

    fn agent_rows(&self, lane: &Lane) -> Vec<Row> {
        let look = Rendering { detail: Detail::Full, reasoning: true, ..self.look() };
        let mut rows = Vec::new();
        for (_, block) in lane.blocks() {
            if matches!(block.body, BlockBody::Ask(_)) {
                continue;
            }
            rows.extend(blocks::rows(block, look));
            rows.push(Row::default());
        }
        rows
    }
}

/// Title of the page of an agent: its task in a few words, if the transcript knows it.
fn title(transcript: &Transcript, id: &str) -> String {
    let info = transcript.agents().find(|(known, ..)| *known == id).map(|(_, _, agent)| agent);
    match info.and_then(|agent| agent.description.lines().next()).map(str::trim) {
        None | Some("") => "Sub-agent".to_owned(),
        Some(task) => format!("Sub-agent: {}", gate::visible(task)),
    }
}
