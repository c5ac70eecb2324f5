//! Texts for the attachments of a prompt, in the forms of the reference.

use hangar_protocol::data::Attachment;

/// Text before the prompt: selections of an editor.
pub(crate) fn before(attachments: &[Attachment]) -> String {
    let mut out = String::new();
    for attachment in attachments {
        let Attachment::Selection { display_name, text, selection, .. } = attachment else { continue };
        let place = match selection {
            None => String::new(),
            Some(at) if at.start.line == at.end.line => format!(" (line {})", at.start.line + 1),
            Some(at) => format!(" (lines {}-{})", at.start.line + 1, at.end.line + 1),
        };
        out.push_str(&format!(
            "<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to \
             their request.\nFile: {display_name}{place}\n```\n{text}\n```\n</ide_selection>\n\n"
        ));
    }
    out
}

/// Text after the prompt: files and folders by name, and references.
pub(crate) fn after(attachments: &[Attachment]) -> String {
    let files = attachments.iter().filter_map(|attachment| match attachment {
        Attachment::File { path, facts, .. } | Attachment::Directory { path, facts, .. } => {
            Some(facts.as_ref().map_or_else(|| format!("* {path}"), |facts| format!("* {path} ({facts})")))
        }
        _ => None,
    });
    let references = attachments.iter().filter_map(|attachment| match attachment {
        Attachment::GithubReference { number, reference_type, state, title, url } => {
            Some(format!("#{number} - {title} [{reference_type}] [{state}] ({url})"))
        }
        _ => None,
    });
    let contexts = attachments.iter().filter_map(|attachment| match attachment {
        Attachment::ExtensionContext { extension_id, title, payload, .. } => {
            Some(format!("{title} (from the extension {extension_id}): {payload}"))
        }
        _ => None,
    });
    block("tagged_files", files)
        + &block("github_references", references)
        + &block("extension_context", contexts)
}

fn block(tag: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n\n\n\n<{tag}>\n{}\n</{tag}>", lines.join("\n"))
}
