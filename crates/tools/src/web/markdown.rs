//! A web page as Markdown, good enough to read.

use reqwest::Url;

use super::html::{HtmlTag, HtmlToken, Tokens, decode};

/// Lists, quotations and emphasis inside their own kind that are shown as such. A page may nest a million tags, and the
/// work for each must not grow with those around it.
const DEPTH_LIMIT: usize = 16;

/// The text of a page. Links are resolved against `base`.
pub(crate) fn from_html(html: &str, base: &Url) -> String {
    let mut page = MarkdownPage {
        base,
        text: String::new(),
        space_due: false,
        preformatted: false,
        marks: Vec::new(),
        link: None,
        lists: Vec::new(),
        quotes: 0,
        row: None,
    };
    for token in Tokens::new(html) {
        match token {
            HtmlToken::Text(text) => page.push_text(&decode(text)),
            HtmlToken::Open(tag) => page.open(&tag),
            HtmlToken::Close(name) => page.close(&name),
        }
    }
    page.text.truncate(page.text.trim_end().len());
    page.text
}

struct MarkdownPage<'a> {
    base: &'a Url,
    text: String,
    /// Space was met, and is written if more text follows on the line.
    space_due: bool,
    preformatted: bool,
    /// Where open emphasis began, with its mark.
    marks: Vec<(usize, &'static str)>,
    /// Where the text of the open link began, with where it leads.
    link: Option<(usize, String)>,
    lists: Vec<List>,
    quotes: usize,
    row: Option<Row>,
}

enum List {
    Bullets,
    Numbers(usize),
}

struct Row {
    cells: usize,
    is_head: bool,
}

impl MarkdownPage<'_> {
    fn push_text(&mut self, text: &str) {
        if self.preformatted {
            self.text.push_str(text);
            return;
        }
        for word in text.split_inclusive(char::is_whitespace) {
            let bare = word.trim_end();
            if !bare.is_empty() {
                self.flush_space();
                self.text.push_str(bare);
            }
            self.space_due |= bare.len() < word.len();
        }
    }

    fn open(&mut self, tag: &HtmlTag<'_>) {
        match tag.name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.start_block();
                let level = usize::from(tag.name.as_bytes()[1] - b'0');
                self.push_start(&format!("{} ", "#".repeat(level)));
            }
            "b" | "strong" => self.open_mark("**"),
            "i" | "em" => self.open_mark("*"),
            "code" if !self.preformatted => self.open_mark("`"),
            "pre" => {
                self.start_block();
                self.push_start("```\n");
                self.preformatted = true;
            }
            "a" => {
                // A link inside a link ends it, as in a browser.
                self.close_link();
                self.flush_space();
                let target = tag.attribute("href").and_then(|href| self.link_target(&href));
                self.link = target.map(|target| (self.text.len(), target));
            }
            "img" => {
                let alt = tag.attribute("alt").unwrap_or_default();
                if let Some(target) = tag.attribute("src").and_then(|src| self.link_target(&src))
                    && !alt.trim().is_empty()
                {
                    self.push_start(&format!("![{}]({target})", alt.trim()));
                }
            }
            "br" => self.start_line(),
            "hr" => {
                self.start_block();
                self.push_start("---");
                self.start_block();
            }
            "ul" | "ol" => {
                if self.lists.is_empty() {
                    self.start_block();
                }
                if self.lists.len() < DEPTH_LIMIT {
                    self.lists.push(if tag.name == "ol" { List::Numbers(0) } else { List::Bullets });
                }
            }
            "li" => self.open_item(),
            "blockquote" => {
                self.start_block();
                self.quotes = (self.quotes + 1).min(DEPTH_LIMIT);
            }
            "tr" => {
                self.start_line();
                self.row = Some(Row { cells: 0, is_head: false });
            }
            "td" | "th" => {
                if let Some(row) = &mut self.row {
                    row.cells += 1;
                    row.is_head |= tag.name == "th";
                    self.push_start("| ");
                }
            }
            name if is_block(name) => self.start_block(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "b" | "strong" => self.close_mark("**"),
            "i" | "em" => self.close_mark("*"),
            "code" if !self.preformatted => self.close_mark("`"),
            "pre" if self.preformatted => {
                self.preformatted = false;
                self.text.truncate(self.text.trim_end_matches([' ', '\n', '\r']).len());
                self.text.push_str("\n```");
                self.start_block();
            }
            "a" => self.close_link(),
            "ul" | "ol" => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.start_block();
                }
            }
            "li" => self.start_line(),
            "blockquote" => {
                self.start_block();
                self.quotes = self.quotes.saturating_sub(1);
            }
            "td" | "th" => self.space_due = true,
            "tr" => self.close_row(),
            name if is_block(name) => self.start_block(),
            _ => {}
        }
    }

    fn open_item(&mut self) {
        self.start_line();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        let mark = match self.lists.last_mut() {
            Some(List::Numbers(number)) => {
                *number += 1;
                format!("{indent}{number}. ")
            }
            Some(List::Bullets) | None => format!("{indent}- "),
        };
        self.push_start(&mark);
    }

    fn close_row(&mut self) {
        let Some(row) = self.row.take().filter(|row| row.cells > 0) else { return };
        self.space_due = false;
        self.text.push_str(" |");
        if row.is_head {
            self.start_line();
            self.push_start(&format!("|{}", " --- |".repeat(row.cells)));
        }
        self.start_line();
    }

    fn open_mark(&mut self, mark: &'static str) {
        self.flush_space();
        if self.marks.len() == DEPTH_LIMIT {
            return;
        }
        self.marks.push((self.text.len(), mark));
        self.text.push_str(mark);
    }

    fn close_mark(&mut self, mark: &str) {
        // Closing tags without an opening one, or out of order, are common.
        let Some(index) = self.marks.iter().rposition(|(_, open)| *open == mark) else { return };
        let (start, _) = self.marks.remove(index);
        if self.text.len() == start + mark.len() {
            self.text.truncate(start);
        } else if self.text.len() > start {
            self.text.push_str(mark);
        }
    }

    fn close_link(&mut self) {
        let Some((start, target)) = self.link.take() else { return };
        // A link around nothing, or around a whole block, is shown as what it is around.
        let Some(label) = self.text.get(start..).filter(|label| !label.trim().is_empty()) else { return };
        if label.contains('\n') {
            return;
        }
        let label = format!("[{}]({target})", label.trim());
        self.text.truncate(start);
        self.text.push_str(&label);
    }

    fn link_target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let target = self.base.join(href).ok()?;
        matches!(target.scheme(), "http" | "https" | "mailto").then(|| target.to_string())
    }

    /// Writes something that must stand apart from the word before it.
    fn push_start(&mut self, text: &str) {
        self.flush_space();
        self.text.push_str(text);
    }

    fn flush_space(&mut self) {
        if self.is_at_line_start() {
            self.space_due = false;
            self.text.push_str(&"> ".repeat(self.quotes));
        } else if std::mem::take(&mut self.space_due) && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn is_at_line_start(&self) -> bool {
        self.text.is_empty() || self.text.ends_with('\n')
    }

    fn start_line(&mut self) {
        self.space_due = false;
        if !self.preformatted {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        if !self.is_at_line_start() {
            self.text.push('\n');
        }
    }

    fn start_block(&mut self) {
        if self.preformatted || self.row.is_some() {
            // Blocks inside a cell stay in their line.
            self.space_due = true;
            return;
        }
        // The first paragraph of an item goes on behind its mark.
        let after_mark = !self.lists.is_empty() && self.text.ends_with(' ');
        if after_mark {
            return;
        }
        self.start_line();
        if !self.text.is_empty() && !self.text.ends_with("\n\n") && self.lists.is_empty() {
            self.text.push('\n');
        }
    }
}

fn is_block(name: &str) -> bool {
    const BLOCKS: [&str; 22] = [
        "address",
        "article",
        "aside",
        "body",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "main",
        "nav",
        "p",
        "section",
        "summary",
        "table",
        "title",
        "caption",
    ];
    BLOCKS.contains(&name)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn base() -> Url {
        Url::parse("https://x.example/dir/page").unwrap()
    }

    fn check(html: &str, expected: &Expect) {
        expected.assert_eq(&from_html(html, &base()));
    }

    #[test]
    fn a_page_is_readable() {
        check(
            "<!DOCTYPE html><html><head><title>My Title</title><style>x{}</style><script>if(a<b)alert('</p>')</script>\
             </head><body><!-- no --><h1>Head &amp; One</h1><p>Para <b>bold</b> and <a href='/rel'>a link</a>.<br>\
             Next   line</p><img src=x.png alt='a pic'></body></html>",
            &expect![[r#"
                My Title

                # Head & One

                Para **bold** and [a link](https://x.example/rel).
                Next line

                ![a pic](https://x.example/dir/x.png)"#]],
        );
    }

    #[test]
    fn lists_keep_their_levels() {
        check(
            "<ul><li>one</li><li><p>two</p><ol><li>first<li>second</ol></li></ul>after",
            &expect![[r#"
                - one
                - two
                  1. first
                  2. second

                after"#]],
        );
    }

    #[test]
    fn code_keeps_its_space() {
        check(
            "<p>Use <code>f()</code>:</p><pre><code>fn f() {\n    g();\n}\n</code></pre><p>Done</p>",
            &expect![[r#"
                Use `f()`:

                ```
                fn f() {
                    g();
                }
                ```

                Done"#]],
        );
    }

    #[test]
    fn tables_and_quotations_are_marked() {
        check(
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td><p>2</p></td></tr></table>\
             <blockquote><p>said</p><p>more</p></blockquote>end",
            &expect![[r#"
                | A | B |
                | --- | --- |
                | 1 | 2 |

                > said

                > more

                end"#]],
        );
    }

    #[test]
    fn broken_pages_are_read_as_far_as_they_go() {
        check("a < b && c > d &bogus; &#x41;&#66;", &expect!["a < b && c > d &bogus; AB"]);
        check(
            "<b>open <i>both</b> closed</i> <a href='javascript:x'>js</a> <a>none</a>",
            &expect![["**open *both** closed* js none"]],
        );
        check("</p></b></ul></a><p", &expect![[""]]);
        check("<script>never closed", &expect![[""]]);
        check("<a href=\"x>text</a> more", &expect!["[text](https://x.example/dir/x) more"]);
        check("<p>é<b></b>ü</p>", &expect!["éü"]);
    }

    #[test]
    fn a_link_inside_a_link_ends_it() {
        check(
            "<a href=/a>one <a href=/b>two</a> three</a>",
            &expect!["[one](https://x.example/a) [two](https://x.example/b) three"],
        );
    }

    #[test]
    fn a_page_of_nothing_but_nested_tags_is_read() {
        for tag in ["b", "i", "a href=x", "ul", "li", "blockquote", "table", "tr", "td", "pre", "div", "p"] {
            let name = tag.split(' ').next().unwrap();
            for close in [name, "i"] {
                let html = format!(
                    "{}{}{}",
                    format!("<{tag}>").repeat(100_000),
                    "x".repeat(1 << 20),
                    format!("</{close}>").repeat(100_000)
                );
                let text = from_html(&html, &base());
                assert!(text.contains("xxx") && text.len() < 20 << 20, "{tag} {}", text.len());
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(html in "([<>/&;=\"' a-z\n]|<p>|<pre>|</pre>|<li>|<td>|<tr>|<a href=é>|</a>|<b>|</b>|é){0,60}") {
            from_html(&html, &base());
        }
    }
}
