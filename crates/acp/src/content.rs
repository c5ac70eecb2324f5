//! A prompt of the protocol as a prompt of a session.

use hangar_agent::session::Prompt;
use hangar_protocol::data::Attachment;

use crate::schema::{ContentBlock, Resource};

/// Texts become one text, a line each. Images are shown to the model; other files that it cannot be shown are named.
pub(crate) fn prompt(blocks: Vec<ContentBlock>) -> Prompt {
    let mut texts = Vec::new();
    let mut attachments = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text } => texts.push(text),
            ContentBlock::Image { data, mime_type } => attachments.push(image(data, mime_type, None)),
            ContentBlock::Resource { resource } => match embedded(resource) {
                Embedded::Text(text) => texts.push(text),
                Embedded::Image(attachment) => attachments.push(attachment),
            },
            ContentBlock::ResourceLink { uri } => texts.push(format!("[Resource link: {uri}]")),
            ContentBlock::Other => {}
        }
    }
    Prompt { attachments, ..Prompt::user(texts.join("\n")) }
}

enum Embedded {
    Text(String),
    Image(Attachment),
}

fn embedded(resource: Resource) -> Embedded {
    let Resource { uri, mime_type, text, blob } = resource;
    match (text, blob, mime_type) {
        (Some(text), ..) => Embedded::Text(format!("<resource uri=\"{uri}\">\n{text}\n</resource>")),
        (None, Some(data), Some(mime_type)) if mime_type.starts_with("image/") => {
            let name = uri.rsplit('/').next().unwrap_or(&uri).to_owned();
            Embedded::Image(image(data, mime_type, Some(name)))
        }
        (None, ..) => Embedded::Text(format!("[Resource that cannot be shown: {uri}]")),
    }
}

fn image(data: String, mime_type: String, display_name: Option<String>) -> Attachment {
    Attachment::Blob { data: Some(data), mime_type, display_name }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(blocks: Value, expect: Expect) {
        let prompt = prompt(serde_json::from_value(blocks).unwrap());
        let attached = serde_json::to_string(&prompt.attachments).unwrap();
        expect.assert_eq(&format!("{}\n{attached}", prompt.text));
    }

    #[test]
    fn texts_and_links_become_one_text() {
        check(
            json!([{"type": "text", "text": "one"}, {"type": "resource_link", "uri": "file:///a", "name": "a"}]),
            expect![[r#"
                one
                [Resource link: file:///a]
                []"#]],
        );
    }

    #[test]
    fn embedded_text_is_part_of_the_prompt_and_embedded_images_are_shown() {
        check(
            json!([
                {"type": "resource", "resource": {"uri": "file:///n.md", "text": "hello"}},
                {"type": "resource", "resource": {"uri": "file:///d/i.png", "mimeType": "image/png", "blob": "AA=="}},
                {"type": "image", "mimeType": "image/gif", "data": "BB=="},
                {"type": "resource", "resource": {"uri": "file:///x.zip", "blob": "AA=="}},
            ]),
            expect![[r#"
                <resource uri="file:///n.md">
                hello
                </resource>
                [Resource that cannot be shown: file:///x.zip]
                [{"type":"blob","data":"AA==","mimeType":"image/png","displayName":"i.png"},{"type":"blob","data":"BB==","mimeType":"image/gif"}]"#]],
        );
    }

    #[test]
    fn kinds_that_are_not_known_are_left_out() {
        check(
            json!([{"type": "audio", "data": "AA", "mimeType": "audio/wav"}, {"type": "later"}]),
            expect![[r#"

                []"#]],
        );
    }
}
