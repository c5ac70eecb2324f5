//! Inline Markdown of one segment of a paragraph as styled text.
//!
//! Nothing in the source is hidden: links show their target, images their URL, HTML its tags.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::gate;
use crate::row::Style;
use crate::theme::Theme;
use crate::wrap::Text;

/// Characters that mean something to inline Markdown.
const SPECIAL: &[char] = &['*', '_', '`', '~', '[', ']', '<', '>', '&', '\\', '!'];

/// Stands before the text that is parsed, so that nothing in it starts a list, a heading or another block.
const GUARD: &str = "x ";

/// Styled text of a segment, which has no newlines.
pub(super) fn inline(text: &str, base: Style, theme: &Theme) -> Text {
    let mut out = Text::default();
    if !text.contains(SPECIAL) {
        out.push(&gate::visible(text), base);
        return out;
    }
    let source = format!("{GUARD}{text}");
    let mut inline = Inline { out, theme, styles: vec![base], targets: Vec::new(), skip: GUARD.len() };
    for event in Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH) {
        inline.event(event);
    }
    inline.out
}

struct Inline<'t> {
    out: Text,
    theme: &'t Theme,
    styles: Vec<Style>,
    /// Links and images that are open: their address and where their text starts.
    targets: Vec<(String, usize)>,
    /// Bytes of the guard that are still to be dropped.
    skip: usize,
}

impl Inline<'_> {
    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => {
                let skipped = self.skip.min(text.len());
                self.skip -= skipped;
                self.out.push(&gate::visible(text.get(skipped..).unwrap_or_default()), self.style());
            }
            Event::Code(code) => {
                let style = self.style().with(self.theme.code);
                self.out.push_whole(&gate::visible(&code), style);
            }
            Event::InlineHtml(tag) | Event::Html(tag) => self.html(&tag),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::SoftBreak | Event::HardBreak => self.out.push(" ", self.style()),
            // The options that give these events are off.
            Event::FootnoteReference(_)
            | Event::TaskListMarker(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Rule => {}
        }
    }

    fn html(&mut self, tag: &str) {
        let name: String = tag.chars().filter(|c| !c.is_whitespace()).collect();
        if matches!(name.to_ascii_lowercase().as_str(), "<br>" | "<br/>") {
            self.out.push("\n", self.style());
        } else {
            let style = self.style().with(self.theme.dim);
            self.out.push(&gate::visible(tag), style);
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let over = match tag {
            Tag::Emphasis => Style::ITALIC,
            Tag::Strong => Style::BOLD,
            Tag::Strikethrough => Style { strike: true, ..Style::PLAIN },
            Tag::Link { dest_url, .. } => {
                self.targets.push((dest_url.into_string(), self.out.text().len()));
                self.theme.link
            }
            Tag::Image { dest_url, .. } => {
                self.targets.push((dest_url.into_string(), self.out.text().len()));
                self.out.push("[image: ", self.style());
                Style::PLAIN
            }
            _ => return,
        };
        self.styles.push(self.style().with(over));
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                let Some((target, start)) = self.targets.pop() else { return };
                let shown = self.out.text().get(start..).unwrap_or_default();
                let target = gate::visible(&target);
                if shown == target || target.strip_prefix("mailto:") == Some(shown) {
                    return;
                }
                let separator = if shown.is_empty() { "" } else { " " };
                let style = self.style();
                self.out.push(separator, style);
                self.out.push_whole(&format!("({target})"), style.with(self.theme.dim));
            }
            TagEnd::Image => {
                self.styles.pop();
                let Some((target, _)) = self.targets.pop() else { return };
                let style = self.style();
                self.out.push("] ", style);
                self.out.push_whole(&gate::visible(&target), style.with(self.theme.dim));
            }
            _ => {}
        }
    }
}
