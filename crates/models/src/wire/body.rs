//! The body of a request, as text.

use hangar_agent::model::ModelRequest;
use hangar_agent::tool::ToolSpec;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

/// Upper bound of the JSON around a tool's name, description and schema.
const PER_TOOL: usize = 128;
/// Initial capacity beside tools and system prompt.
const REST: usize = 4 << 10;

/// The text of a request: its fields, the conversation under the wire's name for it, and the tools. Tools are
/// serialised in place: a session may have hundreds, and all of them are in every request.
pub(super) fn write_body(
    request: &ModelRequest,
    fields: &Map<String, Value>,
    (name, conversation): (&str, &impl Serialize),
    tools: &[impl Serialize],
) -> Vec<u8> {
    let size = |tool: &ToolSpec| tool.name.len() + tool.description.len() + tool.input.size() + PER_TOOL;
    let expected = REST + request.system.len() + request.tools.iter().map(|tool| size(tool)).sum::<usize>();
    let mut text = Vec::with_capacity(expected);
    let written = serde_json::Serializer::new(&mut text).serialize_map(None).and_then(|mut map| {
        for (name, value) in fields {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(name, conversation)?;
        if !tools.is_empty() {
            map.serialize_entry("tools", tools)?;
        }
        map.end()
    });
    // Values and tool descriptions always serialise, and writing to memory cannot fail.
    debug_assert!(written.is_ok());
    text
}
