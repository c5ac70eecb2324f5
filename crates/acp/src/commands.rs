//! Slash commands of a session and skills that users may call, as clients receive them.

use hangar_engine::commands::TABLE;
use hangar_protocol::data::LoadedSkill;

use crate::schema::{AvailableCommand, CommandInput, Update};

/// The commands of every session, and the skills that this one has.
pub(crate) fn available(skills: &[LoadedSkill]) -> Update {
    let own = TABLE.iter().map(|command| AvailableCommand {
        name: command.name.to_owned(),
        description: command.description.to_owned(),
        input: command.takes.hint().map(|hint| CommandInput { hint }),
    });
    let free = |skill: &&LoadedSkill| hangar_engine::commands::find(&skill.name).is_none();
    let skills =
        skills.iter().filter(|skill| skill.user_invocable && skill.enabled).filter(free).map(|skill| {
            AvailableCommand {
                name: skill.name.clone(),
                description: skill.description.clone(),
                input: Some(CommandInput {
                    hint: skill.argument_hint.clone().unwrap_or_else(|| "prompt".to_owned()),
                }),
            }
        });
    Update::AvailableCommandsUpdate { available_commands: own.chain(skills).collect() }
}
