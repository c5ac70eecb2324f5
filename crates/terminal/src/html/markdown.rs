//! Markdown of models as HTML. Markup in it is shown as text, and links go to the web only.

use std::fmt::Write as _;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::escaped;

pub(super) fn write(text: &str, out: &mut String) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer { out, in_head: false, aligned: Vec::new(), column: 0, links: Vec::new() };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
}

struct Writer<'a> {
    out: &'a mut String,
    in_head: bool,
    aligned: Vec<Alignment>,
    column: usize,
    /// Whether each open link or image is an element.
    links: Vec<bool>,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.out.push_str(&escaped(&text));
            }
            Event::Code(code) | Event::InlineMath(code) | Event::DisplayMath(code) => {
                let _ = write!(self.out, "<code>{}</code>", escaped(&code));
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => {
                let _ = write!(self.out, "[{}]", escaped(&name));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            // The page has a heading of its own.
            Tag::Heading { level, .. } => {
                let _ = write!(self.out, "<h{}>", (level as usize + 1).min(6));
            }
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>\n"),
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.out.push_str("<pre><code>");
            }
            Tag::List(None) => self.out.push_str("<ul>\n"),
            Tag::List(Some(first)) => {
                let _ = writeln!(self.out, "<ol start=\"{first}\">");
            }
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(aligned) => {
                self.aligned = aligned;
                self.out.push_str("<table>\n");
            }
            Tag::TableHead => {
                (self.in_head, self.column) = (true, 0);
                self.out.push_str("<tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let name = if self.in_head { "th" } else { "td" };
                let style = match self.aligned.get(self.column) {
                    Some(Alignment::Center) => " style=\"text-align:center\"",
                    Some(Alignment::Right) => " style=\"text-align:right\"",
                    Some(Alignment::Left | Alignment::None) | None => "",
                };
                self.column += 1;
                let _ = write!(self.out, "<{name}{style}>");
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            // A picture would be loaded from wherever the author says: its address is shown instead.
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let is_web =
                    ["https://", "http://", "mailto:"].iter().any(|start| dest_url.starts_with(start));
                match is_web {
                    true => {
                        let address = escaped(&dest_url);
                        let _ = write!(self.out, "<a rel=\"noreferrer\" href=\"{address}\">");
                    }
                    false => {
                        let _ = write!(self.out, "<code>{}</code> ", escaped(&dest_url));
                    }
                }
                self.links.push(is_web);
            }
            Tag::HtmlBlock => self.out.push_str("<pre>"),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.out.push_str("</p>\n"),
            TagEnd::Heading(level) => {
                let _ = writeln!(self.out, "</h{}>", (level as usize + 1).min(6));
            }
            TagEnd::BlockQuote(_) => self.out.push_str("</blockquote>\n"),
            TagEnd::CodeBlock => self.out.push_str("</code></pre>\n"),
            TagEnd::List(true) => self.out.push_str("</ol>\n"),
            TagEnd::List(false) => self.out.push_str("</ul>\n"),
            TagEnd::Item => self.out.push_str("</li>\n"),
            TagEnd::Table => self.out.push_str("</table>\n"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.push_str("</tr>\n");
            }
            TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => self.out.push_str(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => {
                if self.links.pop() == Some(true) {
                    self.out.push_str("</a>");
                }
            }
            TagEnd::HtmlBlock => self.out.push_str("</pre>\n"),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }
}
