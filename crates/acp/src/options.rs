//! Options of a session that a client may set: its mode and its permission policy.

use hangar_agent::permissions::Policy;
use hangar_protocol::data::Mode;
use serde_json::{Value, json};

/// A mode by the name that the protocol has for it.
pub(crate) fn mode_id(mode: Mode) -> &'static str {
    match mode {
        Mode::Interactive => "https://agentclientprotocol.com/protocol/session-modes#agent",
        Mode::Plan => "https://agentclientprotocol.com/protocol/session-modes#plan",
        Mode::Autopilot => "https://agentclientprotocol.com/protocol/session-modes#autopilot",
    }
}

const MODES: [(Mode, &str, &str); 3] = [
    (Mode::Interactive, "Agent", "Default agent mode for conversational interactions"),
    (Mode::Plan, "Plan", "Plan mode for creating and executing multi-step plans"),
    (Mode::Autopilot, "Autopilot", "Works alone, with all permissions, until the task is complete"),
];

pub(crate) fn parse_mode(id: &str) -> Result<Mode, String> {
    let known = MODES.iter().find(|(mode, ..)| mode_id(*mode) == id);
    known.map(|(mode, ..)| *mode).ok_or_else(|| {
        let ids: Vec<&str> = MODES.iter().map(|(mode, ..)| mode_id(*mode)).collect();
        format!("Invalid mode '{id}'. Supported values: {}.", ids.join(", "))
    })
}

pub(crate) fn modes(current: Mode) -> Value {
    let available: Vec<Value> = MODES
        .iter()
        .map(|(mode, name, description)| json!({ "id": mode_id(*mode), "name": name, "description": description }))
        .collect();
    json!({ "availableModes": available, "currentModeId": mode_id(current) })
}

/// All options with their current values.
pub(crate) fn config(mode: Mode, policy: &Policy) -> Value {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(mode, name, description)| {
            json!({ "value": mode_id(*mode), "name": name, "description": description })
        })
        .collect();
    json!([
        {
            "type": "select",
            "id": "mode",
            "name": "Mode",
            "category": "mode",
            "description": "How the agent works: in conversation, planning first, or alone until it is done.",
            "currentValue": mode_id(mode),
            "options": modes,
        },
        {
            "type": "select",
            "id": "allow_all",
            "name": "Allow All",
            "category": "permissions",
            "description": "Whether tools, paths and URLs are used without asking.",
            "currentValue": if policy.allows_all() { "on" } else { "off" },
            "options": [
                { "value": "on", "name": "On", "description": "Automatically approve all tool, path, and URL requests" },
                { "value": "off", "name": "Off", "description": "Require approval for tool, path, and URL requests" },
            ],
        },
    ])
}
