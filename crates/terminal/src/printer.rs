//! Printer of the main screen: commits the rows of each block once, in order, when nothing can change them any more.
//!
//! A streamed text is committed row by row. A block that is not final holds back those after it; their current state is
//! shown in the tail.

use std::collections::BTreeSet;

use hangar_transcript::{Block, BlockBody, Lane, LaneId, Transcript};

use crate::blocks::{self, Detail, Rendering};
use crate::markdown::MarkdownStream;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap;

/// Calls that are remembered as printed while they ran.
const MAX_PASSED: usize = 64;

#[derive(Default)]
pub struct Printer {
    /// First block that is not committed in full.
    next: usize,
    open: Option<OpenText>,
    /// Kind of the last block that gave a row.
    last: Option<Kind>,
    /// Calls that were printed while they ran, because something came after them.
    passed: BTreeSet<String>,
}

/// Text of the model that is being committed.
struct OpenText {
    stream: MarkdownStream,
    /// Bytes of the text that the stream has, counted from its beginning.
    fed: usize,
    /// Whether a row was committed.
    begun: bool,
}

/// Kind of a block, as far as the space between blocks depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Prose,
    Tool,
    Notice,
}

impl Printer {
    /// Takes the rows that are final by now. The blocks before `settled` are complete, because the work that they
    /// belong to has ended. Calls that `passes` names hold nothing back: they run beside the agent's work.
    pub fn take(
        &mut self,
        transcript: &mut Transcript,
        look: Rendering<'_>,
        settled: usize,
        passes: impl Fn(&str) -> bool,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        while let Some(block) = transcript.main().get(self.next) {
            let beside = block.as_tool().filter(|tool| passes(&tool.call));
            if let Some(tool) = beside {
                if self.next + 1 == transcript.main().end() {
                    break;
                }
                if self.passed.len() == MAX_PASSED {
                    self.passed.pop_first();
                }
                self.passed.insert(tool.call.clone());
            }
            let settled = self.next < settled || beside.is_some();
            if let BlockBody::Text(text) = &block.body {
                let is_final = !text.open || settled;
                self.stream(&text.text, text.text.cut(), is_final, look, &mut rows);
                if !is_final {
                    break;
                }
                self.open = None;
            } else {
                if !settled && transcript.main().is_open(self.next) {
                    break;
                }
                let made = blocks::rows(block, Rendering { detail: Detail::Brief, ..look });
                if !made.is_empty() {
                    self.space(kind(block), &mut rows);
                    rows.extend(made);
                }
            }
            self.next += 1;
        }
        transcript.forget_before(LaneId::MAIN, self.next);
        rows
    }

    /// Rows of the work in progress, for the tail: the end of the open text, and running calls.
    pub fn live(
        &self,
        lane: &Lane,
        seconds: impl Fn(&str) -> Option<u64>,
        columns: usize,
        theme: &Theme,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for index in self.next..lane.end() {
            let Some(block) = lane.get(index) else { continue };
            match &block.body {
                BlockBody::Text(text) if index == self.next => {
                    if let Some(open) = &self.open {
                        rows.extend(open.stream.open_row(columns));
                    } else if let Some(line) = text.text.lines().next_back() {
                        rows.push(wrap::tail(&[Span::plain(crate::gate::visible(line))], columns));
                    }
                }
                BlockBody::Reasoning(text) => {
                    let said = text.text.trim_end().lines().next_back().unwrap_or_default();
                    let spans = [Span::new(crate::gate::visible(said), theme.dim.with(Style::ITALIC))];
                    rows.push(wrap::tail(&spans, columns));
                }
                BlockBody::Tool(tool) => {
                    rows.extend(blocks::live_tool(tool, seconds(&block.at), columns, theme));
                }
                // A held notice shows the operation in progress: a summary is being made.
                BlockBody::Notice(notice) if index == self.next => {
                    let spans = [Span::new(crate::gate::visible(&notice.text), theme.dim)];
                    rows.push(wrap::tail(&spans, columns));
                }
                BlockBody::User(_) | BlockBody::Text(_) | BlockBody::Ask(_) | BlockBody::Notice(_) => {}
            }
        }
        rows
    }

    /// Whether a call was printed before it had ended. True only the first time.
    pub fn has_passed(&mut self, call: &str) -> bool {
        self.passed.remove(call)
    }

    /// Whether a text is committed in part.
    pub fn is_streaming(&self) -> bool {
        self.open.is_some()
    }

    /// Whether a block is not committed in full.
    pub fn is_behind(&self, lane: &Lane) -> bool {
        self.next < lane.end()
    }

    /// Drops the work in progress: the view shows another session.
    pub fn reset(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }

    /// Skips the content of the lane so far.
    pub fn skip_to(&mut self, index: usize) {
        self.next = index;
        self.open = None;
    }

    fn stream(&mut self, text: &str, cut: usize, is_final: bool, look: Rendering<'_>, rows: &mut Vec<Row>) {
        let open = self.open.get_or_insert_with(|| OpenText {
            stream: MarkdownStream::new(*look.theme),
            fed: 0,
            begun: false,
        });
        let from = open.fed.saturating_sub(cut);
        // The final text may differ from the pieces; printed rows stay.
        if let Some(piece) = text.get(from..).filter(|piece| !piece.is_empty()) {
            open.stream.push(piece);
            open.fed = cut + text.len();
        }
        if is_final {
            open.stream.finish();
        }
        let made = open.stream.take_rows(look.columns);
        if made.is_empty() {
            return;
        }
        let begins = !std::mem::replace(&mut open.begun, true);
        if begins {
            self.space(Kind::Prose, rows);
        }
        rows.extend(made);
    }

    /// The empty row before a notice that is no block, if there is to be one. None inside an answer that is being printed.
    pub fn space_before_notice(&mut self) -> Option<Row> {
        self.space_before(Kind::Notice)
    }

    /// The same, before prose.
    pub fn space_before_prose(&mut self) -> Option<Row> {
        self.space_before(Kind::Prose)
    }

    fn space_before(&mut self, kind: Kind) -> Option<Row> {
        if self.is_streaming() {
            return None;
        }
        let mut rows = Vec::new();
        self.space(kind, &mut rows);
        rows.pop()
    }

    /// An empty row between blocks, unless both are calls or notices.
    fn space(&mut self, kind: Kind, rows: &mut Vec<Row>) {
        let close =
            matches!((self.last, kind), (Some(Kind::Notice), Kind::Notice) | (Some(Kind::Tool), Kind::Tool));
        if self.last.is_some() && !close {
            rows.push(Row::default());
        }
        self.last = Some(kind);
    }
}

fn kind(block: &Block) -> Kind {
    match &block.body {
        BlockBody::User(_) => Kind::User,
        BlockBody::Text(_) | BlockBody::Reasoning(_) | BlockBody::Ask(_) => Kind::Prose,
        BlockBody::Tool(_) => Kind::Tool,
        BlockBody::Notice(_) => Kind::Notice,
    }
}
