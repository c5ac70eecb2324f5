//! Access requests of the shell tools.

use hangar_agent::tool::AccessRequest;
use hangar_protocol::permission::{PermissionRequest, PossibleUrl, ShellRequest};

use super::analysis::{Analysis, LineContext, analyze, is_plain};
use super::registry::Registry;
use super::tracked::{ShellInput, Tracked};

pub(super) fn of_command(
    registry: &Registry,
    command: &str,
    description: &str,
    call_id: &str,
) -> AccessRequest {
    let mut analysis = read(registry, command);
    if registry.options.confinement.is_none() && !is_plain(command) {
        // Nothing would keep the command to what it seems to do.
        analysis.commands.iter_mut().for_each(|command| command.read_only = false);
    }
    request(analysis, command, description, call_id)
}

/// Writing to a command takes what starting it took. A shell runs what is written to it.
pub(super) fn of_input(
    registry: &Registry,
    shell: &Tracked,
    inputs: &[ShellInput],
    call_id: &str,
) -> AccessRequest {
    let mut analysis = read(registry, &shell.command);
    let written: String = inputs
        .iter()
        .map(|input| match input {
            ShellInput::Text(text) => text.as_str(),
            ShellInput::End => "",
        })
        .collect();
    let is_shell =
        |identifier: &str| matches!(identifier, "bash" | "sh" | "dash" | "zsh" | "ksh" | "ssh" | "sudo");
    if analysis.is_opaque || analysis.commands.iter().any(|command| is_shell(&command.identifier)) {
        let typed = read(registry, &written);
        analysis.commands.extend(typed.commands);
        analysis.possible_paths.extend(typed.possible_paths);
        analysis.possible_urls.extend(typed.possible_urls);
        analysis.reads.extend(typed.reads);
        analysis.writes.extend(typed.writes);
        analysis.has_write_redirection |= typed.has_write_redirection;
        analysis.is_opaque |= typed.is_opaque;
        analysis.runs_unread |= typed.runs_unread;
    }
    let description = format!("Write to: {}", shell.description);
    request(analysis, &written, &description, call_id)
}

fn read(registry: &Registry, command: &str) -> Analysis {
    analyze(command, LineContext { cwd: &registry.options.cwd, env: registry.env() })
}

fn request(analysis: Analysis, command: &str, description: &str, call_id: &str) -> AccessRequest {
    let shell = ShellRequest {
        tool_call_id: Some(call_id.to_owned()),
        full_command_text: command.to_owned(),
        intention: description.to_owned(),
        commands: analysis.commands,
        possible_paths: analysis.possible_paths,
        possible_urls: analysis.possible_urls.into_iter().map(|url| PossibleUrl { url }).collect(),
        has_write_file_redirection: analysis.has_write_redirection,
        can_offer_session_approval: analysis.can_offer_session_approval,
        warning: None,
        opaque: analysis.is_opaque,
        runs_unread: analysis.runs_unread,
    };
    AccessRequest { request: PermissionRequest::Shell(shell), reads: analysis.reads, writes: analysis.writes }
}
