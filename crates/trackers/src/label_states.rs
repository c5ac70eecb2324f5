//! States of issues in forges, which know only open and closed: the state is the one of the labels that the workflow names as a
//! state, or else `open` or `closed`.

use hangar_workflow::config::TrackerConfig;

pub(crate) struct LabelStates {
    /// Labels that are states.
    states: Vec<String>,
    terminal: Vec<String>,
}

impl LabelStates {
    pub(crate) fn new(config: &TrackerConfig) -> Self {
        let named = config.active_states.iter().chain(&config.terminal_states).chain(&config.handoff_state);
        Self { states: named.cloned().collect(), terminal: config.terminal_states.clone() }
    }

    pub(crate) fn is_terminal(&self, state: &str) -> bool {
        self.terminal.iter().any(|known| known.eq_ignore_ascii_case(state))
    }

    /// State of an issue by its labels, which are in lower case.
    pub(crate) fn state_of(&self, labels: &[String], is_closed: bool) -> String {
        let named = self.states.iter().find(|known| labels.contains(&known.to_lowercase()));
        // A closed issue is over, whichever label was left on it.
        self.known(named.map(String::as_str), is_closed)
    }

    /// State of an issue whose state is known otherwise, such as by a board.
    pub(crate) fn known(&self, state: Option<&str>, is_closed: bool) -> String {
        match state {
            Some(state) if !is_closed || self.is_terminal(state) => state.to_owned(),
            _ if is_closed => self.terminal.first().cloned().unwrap_or_else(|| "closed".to_owned()),
            _ => "open".to_owned(),
        }
    }

    /// Whether a label is a state other than the given one.
    pub(crate) fn is_other(&self, label: &str, state: &str) -> bool {
        let is_label = |known: &String| known.to_lowercase() == label.to_lowercase();
        self.states.iter().any(is_label) && label.to_lowercase() != state.to_lowercase()
    }
}
