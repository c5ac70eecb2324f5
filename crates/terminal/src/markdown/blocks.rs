//! Parser of blocks, line by line: the containers (quotes, list items) that are open, and the leaf in them that is being written.
//!
//! [`Blocks::place`] classifies a line without changing anything; [`Blocks::line`] acts on it. A line that the next one
//! may turn into a heading or the header of a table is held until that line is known.

use super::block::MarkdownBlock;
use super::container::{Container, enter, indent, mark, open};
use super::inline::inline;
use super::line::{self, CODE_INDENT, Cursor, Fence};
use super::paragraph::Paragraph;
use super::table::Table;
use crate::gate;
use crate::highlight::Highlighter;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::Text;

/// Deepest nesting of quotes and lists; marks beyond it are text.
const DEEPEST: usize = 12;

/// Longest line in bytes that an underline makes a heading.
const LONGEST_UNDERLINED: usize = 120;

enum Leaf {
    None,
    Paragraph(Box<Paragraph>),
    Fenced {
        fence: Fence,
        indent: usize,
        highlighter: Box<Highlighter>,
    },
    /// Code by indentation, with the number of blank lines that are code if more follows.
    Indented {
        blanks: usize,
    },
    Html,
    Table(Box<Table>),
}

/// Meaning of a line after the marks of its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Blank,
    Text,
    FencedText,
    FencedEnd,
    Fence {
        fence: Fence,
        indent: usize,
    },
    Heading {
        level: usize,
        text: String,
    },
    Underline {
        level: usize,
    },
    /// The line below the header of a table, or one of its rows.
    TableStart(Box<Table>),
    TableRow,
    Rule,
    Indented,
    Html,
}

/// Place of a line in the tree of blocks.
pub(super) struct LinePlace<'l> {
    /// Number of open containers that the line is in.
    matched: usize,
    new: Vec<Container>,
    kind: Kind,
    cursor: Cursor<'l>,
}

impl LinePlace<'_> {
    /// Whether the line is text of a paragraph that cannot be part of a table.
    pub(super) fn is_prose(&self) -> bool {
        self.kind == Kind::Text && !self.cursor.text().contains('|')
    }
}

pub(super) struct Blocks {
    theme: Theme,
    containers: Vec<Container>,
    leaf: Leaf,
    /// Line of a paragraph that waits for the line below it.
    held: Option<String>,
    /// Whether a blank line came after the last block.
    blank: bool,
    /// Whether the last block wants a gap after it; none before the first block.
    last: Option<bool>,
    /// Number of containers that are open since the last block.
    common: usize,
    pub(super) settled: Vec<MarkdownBlock>,
}

impl Blocks {
    pub(super) fn new(theme: Theme) -> Self {
        Self {
            theme,
            containers: Vec::new(),
            leaf: Leaf::None,
            held: None,
            blank: false,
            last: None,
            common: 0,
            settled: Vec::new(),
        }
    }

    /// Place of a line, or of its start.
    pub(super) fn place<'l>(&self, line: &'l str) -> LinePlace<'l> {
        let mut cursor = Cursor::new(line);
        let matched = self.containers.iter().take_while(|container| enter(container, &mut cursor)).count();
        let all = matched == self.containers.len();
        let mut new = Vec::new();
        if let Leaf::Fenced { fence, .. } = &self.leaf
            && all
        {
            let end = cursor.indent() < CODE_INDENT && line::closes(fence, cursor.text());
            return LinePlace {
                matched,
                new,
                kind: if end { Kind::FencedEnd } else { Kind::FencedText },
                cursor,
            };
        }
        let mut kind = self.kind(&cursor, all, self.has_text());
        while kind == Kind::Text && cursor.indent() < CODE_INDENT && matched + new.len() < DEEPEST {
            let interrupts = self.has_text() && all && new.is_empty();
            let Some(container) = open(&mut cursor, interrupts) else { break };
            new.push(container);
            kind = self.kind(&cursor, false, false);
        }
        LinePlace { matched, new, kind, cursor }
    }

    /// Whether a paragraph is open.
    fn has_text(&self) -> bool {
        self.held.is_some() || matches!(self.leaf, Leaf::Paragraph(_))
    }

    /// Meaning of a line without regard to new containers. `inside` means that it is in the container of the open leaf,
    /// `goes_on` that text would belong to the open paragraph.
    fn kind(&self, cursor: &Cursor<'_>, inside: bool, goes_on: bool) -> Kind {
        let text = cursor.text();
        let indent = cursor.indent();
        if cursor.is_blank() {
            return Kind::Blank;
        }
        if inside && matches!(self.leaf, Leaf::Html) {
            return Kind::Html;
        }
        if indent >= CODE_INDENT {
            return if goes_on { Kind::Text } else { Kind::Indented };
        }
        if inside && let Some(held) = &self.held {
            if matches!(self.leaf, Leaf::None)
                && held.len() <= LONGEST_UNDERLINED
                && let Some(level) = line::underline(text)
            {
                return Kind::Underline { level };
            }
            if held.contains('|')
                && let Some(table) = Table::start(held, text, &self.theme)
            {
                return Kind::TableStart(Box::new(table));
            }
        }
        if let Some(fence) = line::fence(text) {
            return Kind::Fence { fence, indent };
        }
        if let Some((level, text)) = line::heading(text) {
            return Kind::Heading { level, text: text.to_owned() };
        }
        if line::is_rule(text.trim_end()) {
            return Kind::Rule;
        }
        if line::is_html(text) {
            return Kind::Html;
        }
        if inside && matches!(self.leaf, Leaf::Table(_)) && text.contains('|') && line::item(text).is_none() {
            return Kind::TableRow;
        }
        Kind::Text
    }

    /// Takes a whole line.
    pub(super) fn line(&mut self, line: &str) {
        let place = self.place(line);
        let text = place.cursor.text();
        if place.kind == Kind::Text {
            self.text_starts(&place);
            if !matches!(self.leaf, Leaf::Paragraph(_)) || text.contains('|') {
                self.held = Some(text.to_owned());
            } else {
                self.feed(text);
                self.end_line();
            }
        } else {
            self.other(place);
        }
    }

    /// Takes the start of a line of prose; [`Blocks::feed`] and [`Blocks::end_line`] take the rest of it.
    pub(super) fn start(&mut self, place: &LinePlace<'_>) {
        self.text_starts(place);
        self.paragraph();
        self.feed(place.cursor.text());
    }

    pub(super) fn feed(&mut self, part: &str) {
        if let Leaf::Paragraph(paragraph) = &mut self.leaf {
            paragraph.feed(part);
        }
    }

    pub(super) fn end_line(&mut self) {
        if let Leaf::Paragraph(paragraph) = &mut self.leaf {
            paragraph.end_line();
        }
    }

    /// Prepares for a line of text, which continues the open paragraph or starts another.
    fn text_starts(&mut self, place: &LinePlace<'_>) {
        let goes_on = self.has_text() && place.new.is_empty();
        self.release();
        if !goes_on {
            self.close_to(place.matched);
            self.containers.extend(place.new.iter().cloned());
        }
    }

    /// Adds a held line to its paragraph: the line below it does not change it.
    pub(super) fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.paragraph();
            self.feed(&held);
            self.end_line();
        }
    }

    fn paragraph(&mut self) {
        if matches!(self.leaf, Leaf::Paragraph(_)) {
            return;
        }
        self.begin(false);
        let (first, next) = self.indents();
        self.leaf = Leaf::Paragraph(Box::new(Paragraph::new(&self.theme, first, next)));
    }

    /// Takes a line that is not text.
    fn other(&mut self, place: LinePlace<'_>) {
        let LinePlace { matched, new, kind, cursor } = place;
        let inside = matched == self.containers.len() && new.is_empty();
        match (&kind, &mut self.leaf) {
            (Kind::FencedText, Leaf::Fenced { .. }) => return self.fenced(cursor),
            (Kind::FencedEnd, _) => {
                self.leaf = Leaf::None;
                return;
            }
            (Kind::TableRow, Leaf::Table(table)) => {
                table.push(cursor.text());
                if table.is_full() {
                    let part = table.split();
                    self.table(part);
                }
                return;
            }
            (Kind::Indented, Leaf::Indented { .. }) if inside => return self.indented(cursor),
            (Kind::Html, Leaf::Html) if inside => return self.html(&cursor),
            (Kind::Blank, Leaf::Indented { blanks }) if inside => {
                *blanks += 1;
                self.blank = true;
                return;
            }
            (Kind::Underline { .. } | Kind::TableStart(_), _) => {}
            _ => self.release(),
        }
        let held = self.held.take();
        self.close_to(matched);
        // An item whose text starts in the next line is no blank line.
        self.blank |= kind == Kind::Blank && new.is_empty();
        self.containers.extend(new);
        match kind {
            Kind::Blank => {}
            Kind::Heading { level, text } => self.heading(level, &text),
            Kind::Underline { level } => self.heading(level, &held.unwrap_or_default()),
            Kind::TableStart(table) => {
                self.begin(true);
                self.leaf = Leaf::Table(table);
            }
            Kind::Rule => {
                self.begin(true);
                let (first, _) = self.indents();
                self.settled.push(MarkdownBlock::Rule { first, style: self.theme.border });
            }
            Kind::Fence { fence, indent } => self.open_fence(fence, indent),
            Kind::Indented => {
                self.begin(true);
                self.show_marks();
                self.leaf = Leaf::Indented { blanks: 0 };
                self.indented(cursor);
            }
            Kind::Html => {
                self.begin(false);
                self.leaf = Leaf::Html;
                self.html(&cursor);
            }
            Kind::Text | Kind::FencedText | Kind::FencedEnd | Kind::TableRow => {}
        }
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.begin(true);
        let underline = level == 1;
        let style = self.theme.text.with(self.theme.heading).with(Style { underline, ..Style::PLAIN });
        let (first, next) = self.indents();
        let text = inline(text.trim(), style, &self.theme);
        self.settled.push(MarkdownBlock::Prose { first, next, text });
    }

    fn open_fence(&mut self, fence: Fence, indent: usize) {
        self.begin(true);
        self.show_marks();
        if !fence.info.is_empty() {
            let mut text = Text::default();
            text.push(&gate::visible(&fence.info), self.theme.dim);
            self.settled.push(MarkdownBlock::Prose { first: Vec::new(), next: Vec::new(), text });
        }
        let highlighter = Box::new(Highlighter::for_language(&fence.info, &self.theme));
        self.leaf = Leaf::Fenced { fence, indent, highlighter };
    }

    fn fenced(&mut self, mut cursor: Cursor<'_>) {
        if let Leaf::Fenced { indent, highlighter, .. } = &mut self.leaf {
            cursor.skip(*indent);
            let spans = highlighter.line(&gate::visible(&cursor.exact()));
            self.settled.push(MarkdownBlock::Code(spans));
        }
    }

    fn indented(&mut self, mut cursor: Cursor<'_>) {
        if let Leaf::Indented { blanks } = &mut self.leaf {
            let blanks = std::mem::take(blanks);
            self.settled.extend(std::iter::repeat_n(MarkdownBlock::Code(Vec::new()), blanks));
        }
        self.blank = false;
        cursor.skip(CODE_INDENT);
        let code = cursor.exact();
        self.settled.push(MarkdownBlock::Code(vec![Span::new(gate::visible(&code), self.theme.text)]));
    }

    fn html(&mut self, cursor: &Cursor<'_>) {
        let (first, next) = self.indents();
        let mut text = Text::default();
        text.push(&gate::visible(&cursor.exact()), self.theme.dim);
        self.settled.push(MarkdownBlock::Prose { first, next, text });
    }

    fn table(&mut self, table: Table) {
        let (first, next) = self.indents();
        self.settled.push(MarkdownBlock::Table { first, next, table: Box::new(table) });
    }

    fn close_leaf(&mut self) {
        match std::mem::replace(&mut self.leaf, Leaf::None) {
            Leaf::Paragraph(paragraph) => {
                if let Some((first, next, text)) = paragraph.finish() {
                    self.settled.push(MarkdownBlock::Prose { first, next, text });
                }
            }
            Leaf::Table(table) if !table.is_spent() => self.table(*table),
            Leaf::Table(_) | Leaf::None | Leaf::Fenced { .. } | Leaf::Indented { .. } | Leaf::Html => {}
        }
    }

    /// Closes the leaf and all containers but the first ones.
    fn close_to(&mut self, depth: usize) {
        self.close_leaf();
        if depth < self.containers.len() {
            let unshown = |container: &Container| matches!(container, Container::Item { shown: false, .. });
            if self.containers.iter().skip(depth).any(unshown) {
                self.begin(false);
                self.show_marks();
            }
            self.containers.truncate(depth);
            self.common = self.common.min(depth);
        }
    }

    /// Ends the text.
    pub(super) fn finish(&mut self) {
        self.release();
        self.close_to(0);
        self.blank = true;
    }

    /// Starts a block, with a gap before it if the source or one of the two blocks asks for it.
    fn begin(&mut self, spaced: bool) {
        if let Some(last) = self.last.replace(spaced)
            && (self.blank || last || spaced)
        {
            let bars =
                self.containers.iter().take(self.common).map(|container| indent(container, &self.theme));
            self.settled.push(MarkdownBlock::Gap(bars.collect()));
        }
        self.blank = false;
        self.common = self.containers.len();
    }

    /// Shows the marks of items that no row has shown, before code that has no indent.
    fn show_marks(&mut self) {
        if self.containers.iter().any(|container| matches!(container, Container::Item { shown: false, .. })) {
            let (first, next) = self.indents();
            self.settled.push(MarkdownBlock::Prose { first, next, text: Text::default() });
        }
    }

    /// Indents of the first row of a block, which shows new marks, and of its other rows.
    fn indents(&mut self) -> (Vec<Span>, Vec<Span>) {
        let first = self.first_indent();
        for container in &mut self.containers {
            if let Container::Item { shown, .. } = container {
                *shown = true;
            }
        }
        (first, self.containers.iter().map(|container| indent(container, &self.theme)).collect())
    }

    fn first_indent(&self) -> Vec<Span> {
        self.containers.iter().map(|container| mark(container, &self.theme)).collect()
    }

    /// Removes and returns the rows of the open paragraph that no later text can change.
    pub(super) fn open_rows(&mut self, columns: usize) -> Vec<Row> {
        match &mut self.leaf {
            Leaf::Paragraph(paragraph) => paragraph.take_rows(columns),
            _ => Vec::new(),
        }
    }

    /// Paragraph that is being written.
    pub(super) fn open(&self) -> Option<&Paragraph> {
        match &self.leaf {
            Leaf::Paragraph(paragraph) => Some(paragraph),
            _ => None,
        }
    }

    /// Line that is held, with the indent that it would have as the start of a paragraph.
    pub(super) fn held(&self) -> Option<(Vec<Span>, &str)> {
        self.held.as_deref().map(|held| (self.first_indent(), held))
    }

    /// Look of a line that is being written.
    pub(super) fn preview<'l>(&self, line: &'l str) -> Preview<'l> {
        let place = self.place(line);
        let marks = place.new.iter().map(|container| mark(container, &self.theme));
        let around =
            self.containers.iter().take(place.matched).map(|container| indent(container, &self.theme));
        let indent = around.chain(marks).collect();
        let text = place.cursor.text();
        match place.kind {
            Kind::Text if self.has_text() && place.new.is_empty() => Preview::More(text),
            Kind::Text | Kind::Blank => {
                Preview::New { indent, text: text.to_owned(), style: self.theme.text }
            }
            Kind::Heading { text, .. } => Preview::New { indent, text, style: self.theme.heading },
            _ => Preview::Exact,
        }
    }
}

/// Look of a line that is being written.
pub(super) enum Preview<'l> {
    /// It continues the open paragraph.
    More(&'l str),
    /// It starts another block of prose.
    New { indent: Vec<Span>, text: String, style: Style },
    /// It is shown verbatim.
    Exact,
}
