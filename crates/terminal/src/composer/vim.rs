//! Commands of vim for the composer: normal and insert mode.

mod keys;
mod motion;

use std::ops::Range;

use motion::{Find, Motion, MotionSpan};

use super::buffer::{Buffer, TEXT_LIMIT};
use super::text;
use super::undo::Kind;

/// Largest count that a command takes.
const COUNT_LIMIT: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VimMode {
    Normal,
    Insert,
}

/// Result of a key for a caller that also has bindings of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VimOutcome {
    Handled,
    /// The key is not one of vim's in this mode.
    Pass,
    AtTop,
    AtBottom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// Command that waits for the key after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Find { back: bool, till: bool },
    Replace,
    G,
}

/// Text that was deleted or yanked.
#[derive(Debug, Clone, Default)]
struct Register {
    text: String,
    lines: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Vim {
    mode: VimMode,
    count: Option<usize>,
    operator: Option<(Operator, usize)>,
    wait: Option<Wait>,
    find: Option<Find>,
    register: Register,
}

impl Vim {
    fn new() -> Self {
        Self {
            mode: VimMode::Insert,
            count: None,
            operator: None,
            wait: None,
            find: None,
            register: Register::default(),
        }
    }

    /// Starts over with a new draft, as vim's prompt does: in insert mode.
    pub(super) fn start_draft(&mut self, buffer: &mut Buffer) {
        self.clear();
        if self.register.text.contains(text::is_part) {
            self.register = Register::default();
        }
        self.insert(buffer);
    }

    fn insert(&mut self, buffer: &mut Buffer) {
        self.mode = VimMode::Insert;
        buffer.undo.hold();
    }

    fn clear(&mut self) {
        self.count = None;
        self.operator = None;
        self.wait = None;
    }

    fn is_waiting(&self) -> bool {
        self.count.is_some() || self.operator.is_some() || self.wait.is_some()
    }

    /// Count of the command, which clears it. Counts before and after an operator multiply.
    fn take_count(&mut self) -> usize {
        let before = self.operator.map_or(1, |(_, count)| count);
        (self.count.take().unwrap_or(1) * before).clamp(1, COUNT_LIMIT)
    }

    fn add_digit(&mut self, char: char) -> bool {
        let Some(digit) = char.to_digit(10).filter(|digit| *digit > 0 || self.count.is_some()) else {
            return false;
        };
        self.count = Some((self.count.unwrap_or(0) * 10 + digit as usize).min(COUNT_LIMIT));
        true
    }

    fn char(&mut self, buffer: &mut Buffer, char: char) {
        if let Some(wait) = self.wait.take() {
            self.waited(buffer, wait, char);
        } else if self.add_digit(char) {
            return;
        } else if let Some(motion) = self.motion(buffer, char) {
            self.apply(buffer, motion);
        } else if let Some((operator, _)) = self.operator {
            let doubled = matches!(
                (operator, char),
                (Operator::Delete, 'd') | (Operator::Change, 'c') | (Operator::Yank, 'y')
            );
            if doubled {
                self.lines(buffer);
            } else if self.begin_wait(char) {
                return;
            }
        } else if self.begin_wait(char) || self.begin_operator(char) {
            return;
        } else {
            self.command(buffer, char);
        }
        if self.wait.is_none() {
            self.clear();
        }
    }

    fn begin_wait(&mut self, char: char) -> bool {
        self.wait = match char {
            'f' => Some(Wait::Find { back: false, till: false }),
            'F' => Some(Wait::Find { back: true, till: false }),
            't' => Some(Wait::Find { back: false, till: true }),
            'T' => Some(Wait::Find { back: true, till: true }),
            'g' => Some(Wait::G),
            'r' if self.operator.is_none() => Some(Wait::Replace),
            _ => None,
        };
        self.wait.is_some()
    }

    fn begin_operator(&mut self, char: char) -> bool {
        let operator = match char {
            'd' => Operator::Delete,
            'c' => Operator::Change,
            'y' => Operator::Yank,
            _ => return false,
        };
        self.operator = Some((operator, self.count.take().unwrap_or(1)));
        true
    }

    fn waited(&mut self, buffer: &mut Buffer, wait: Wait, char: char) {
        match wait {
            Wait::Find { back, till } => {
                let find = Find { char, back, till };
                self.find = Some(find);
                let count = self.take_count();
                if let Some(motion) = find.motion(buffer.text(), buffer.cursor(), count, false) {
                    self.apply(buffer, motion);
                }
            }
            Wait::G if char == 'g' => {
                let line = self.take_count() - 1;
                let to = motion::lines_down(buffer.text(), 0, line);
                self.apply(buffer, Motion { to, span: MotionSpan::Lines });
            }
            Wait::G => {}
            Wait::Replace => {
                let count = self.take_count();
                let at = buffer.cursor();
                let end = text::line_end(buffer.text(), at);
                let mut to = at;
                for _ in 0..count {
                    if to >= end {
                        return;
                    }
                    to = text::next(buffer.text(), to);
                }
                if !text::is_part(char) {
                    let with: String = std::iter::repeat_n(char, count).collect();
                    buffer.replace(at..to, &with, Kind::Whole);
                    buffer.go(text::prev(buffer.text(), buffer.cursor()));
                }
            }
        }
    }

    fn motion(&mut self, buffer: &Buffer, char: char) -> Option<Motion> {
        let (text, at) = (buffer.text(), buffer.cursor());
        let (start, end) = (text::line_start(text, at), text::line_end(text, at));
        let changing = matches!(self.operator, Some((Operator::Change, _)));
        let exclusive = |to| Some(Motion { to, span: MotionSpan::Exclusive });
        match char {
            'h' => exclusive(motion::repeat(self.take_count(), at, |at| text::prev(text, at).max(start))),
            'l' | ' ' => exclusive(motion::repeat(self.take_count(), at, |at| text::next(text, at).min(end))),
            'j' if self.operator.is_some() => {
                Some(Motion { to: motion::lines_down(text, at, self.take_count()), span: MotionSpan::Lines })
            }
            'k' if self.operator.is_some() => {
                Some(Motion { to: motion::lines_up(text, at, self.take_count()), span: MotionSpan::Lines })
            }
            // `cw` on a word changes the word and leaves the blank behind it.
            'w' if changing && text::class(text, at) != text::WordClass::Blank => {
                let last = motion::repeat(self.take_count() - 1, at, |at| motion::word(text, at));
                exclusive(motion::run_end(text, last))
            }
            'w' => {
                let to = motion::repeat(self.take_count(), at, |at| motion::word(text, at));
                // `dw` on the last word of a line leaves the line break.
                exclusive(if self.operator.is_some() { to.min(end.max(at)) } else { to })
            }
            'b' => exclusive(motion::repeat(self.take_count(), at, |at| motion::word_back(text, at))),
            'e' => {
                let to = motion::repeat(self.take_count(), at, |at| motion::word_end(text, at));
                Some(Motion { to, span: MotionSpan::Inclusive })
            }
            '0' => exclusive(start),
            '^' | '_' => exclusive(motion::first_nonblank(text, at)),
            '$' => exclusive(text::line_end(text, motion::lines_down(text, at, self.take_count() - 1))),
            'G' => {
                let to = match self.count.take() {
                    Some(line) => motion::lines_down(text, 0, line.saturating_sub(1)),
                    None => text::line_start(text, text.len()),
                };
                Some(Motion { to, span: MotionSpan::Lines })
            }
            ';' => self.find?.motion(text, at, self.take_count(), true),
            ',' => self.find?.reversed().motion(text, at, self.take_count(), true),
            _ => None,
        }
    }

    /// Moves the cursor, or runs the operator that waits over the range of the motion.
    fn apply(&mut self, buffer: &mut Buffer, motion: Motion) {
        let (text, at) = (buffer.text(), buffer.cursor());
        let Some((operator, _)) = self.operator.take() else {
            let to = if motion.span == MotionSpan::Lines {
                motion::first_nonblank(text, motion.to)
            } else {
                motion.to
            };
            buffer.go(to);
            return;
        };
        let (start, end) = (at.min(motion.to), at.max(motion.to));
        match motion.span {
            MotionSpan::Exclusive => self.operate(buffer, operator, start..end),
            MotionSpan::Inclusive => {
                let end = text::next(text, end);
                self.operate(buffer, operator, start..end);
            }
            MotionSpan::Lines => {
                let range = text::line_start(text, start)..text::line_end(text, end);
                self.operate_lines(buffer, operator, range);
            }
        }
    }

    fn operate(&mut self, buffer: &mut Buffer, operator: Operator, range: Range<usize>) {
        self.register = Register { text: buffer.text()[range.clone()].to_owned(), lines: false };
        match operator {
            Operator::Yank => buffer.go(range.start),
            Operator::Delete => {
                buffer.remove(range, Kind::Whole);
            }
            Operator::Change => {
                self.insert(buffer);
                buffer.remove(range, Kind::Whole);
            }
        }
    }

    /// Runs an operator on whole lines, given without the last line break.
    fn operate_lines(&mut self, buffer: &mut Buffer, operator: Operator, range: Range<usize>) {
        self.register = Register { text: buffer.text()[range.clone()].to_owned(), lines: true };
        match operator {
            Operator::Yank => {}
            Operator::Change => {
                self.insert(buffer);
                buffer.remove(range, Kind::Whole);
            }
            Operator::Delete => {
                let text = buffer.text();
                let with_break = if range.end < text.len() {
                    range.start..range.end + 1
                } else {
                    range.start.saturating_sub(1)..range.end
                };
                buffer.remove(with_break, Kind::Whole);
                buffer.go(motion::first_nonblank(buffer.text(), buffer.cursor()));
            }
        }
    }

    /// Runs the operator that waits on lines from the cursor's: `dd`, `cc`, `yy`.
    fn lines(&mut self, buffer: &mut Buffer) {
        let count = self.take_count();
        let Some((operator, _)) = self.operator.take() else { return };
        let (text, at) = (buffer.text(), buffer.cursor());
        let last = motion::lines_down(text, at, count - 1);
        let range = text::line_start(text, at)..text::line_end(text, last);
        self.operate_lines(buffer, operator, range);
    }

    /// Runs a command that is one key.
    fn command(&mut self, buffer: &mut Buffer, char: char) {
        let (text, at) = (buffer.text(), buffer.cursor());
        let (start, end) = (text::line_start(text, at), text::line_end(text, at));
        match char {
            'i' => self.insert(buffer),
            'a' => {
                buffer.go(text::next(text, at).min(end));
                self.insert(buffer);
            }
            'I' => {
                buffer.go(motion::first_nonblank(text, at));
                self.insert(buffer);
            }
            'A' => {
                buffer.go(end);
                self.insert(buffer);
            }
            'o' => {
                self.insert(buffer);
                buffer.replace(end..end, "\n", Kind::Whole);
            }
            'O' => {
                self.insert(buffer);
                buffer.replace(start..start, "\n", Kind::Whole);
                buffer.go(start);
            }
            'x' => self.shortcut(buffer, Operator::Delete, 'l'),
            'X' => self.shortcut(buffer, Operator::Delete, 'h'),
            'D' => self.shortcut(buffer, Operator::Delete, '$'),
            'C' => self.shortcut(buffer, Operator::Change, '$'),
            's' => self.shortcut(buffer, Operator::Change, 'l'),
            'S' => self.shortcut(buffer, Operator::Change, 'c'),
            'Y' => self.shortcut(buffer, Operator::Yank, 'y'),
            'p' => self.put(buffer, true),
            'P' => self.put(buffer, false),
            'u' => {
                for _ in 0..self.take_count() {
                    if !buffer.undo() {
                        break;
                    }
                }
            }
            '~' => {
                let to = motion::repeat(self.take_count(), at, |at| text::next(text, at).min(end));
                let swapped: String = text[at..to].chars().flat_map(swapped_case).collect();
                buffer.replace(at..to, &swapped, Kind::Whole);
            }
            _ => {}
        }
    }

    /// Runs an operator with a motion, or with itself for lines.
    fn shortcut(&mut self, buffer: &mut Buffer, operator: Operator, motion: char) {
        self.operator = Some((operator, 1));
        match self.motion(buffer, motion) {
            Some(motion) => self.apply(buffer, motion),
            None => self.lines(buffer),
        }
    }

    fn put(&mut self, buffer: &mut Buffer, after: bool) {
        let count = self.take_count();
        let Register { text: put, lines } = &self.register;
        if (put.is_empty() && !lines) || (put.len() + 1) * count > TEXT_LIMIT {
            return;
        }
        let (text, at) = (buffer.text(), buffer.cursor());
        let (start, end) = (text::line_start(text, at), text::line_end(text, at));
        if *lines {
            let put = vec![put.as_str(); count].join("\n");
            let (at, put, line) =
                if after { (end, format!("\n{put}"), end + 1) } else { (start, format!("{put}\n"), start) };
            if buffer.replace(at..at, &put, Kind::Whole) {
                buffer.go(motion::first_nonblank(buffer.text(), line));
            }
        } else {
            let at = if after { text::next(text, at).min(end) } else { at };
            if buffer.replace(at..at, &put.repeat(count), Kind::Whole) {
                buffer.go(text::prev(buffer.text(), buffer.cursor()));
            }
        }
    }
}

fn swapped_case(char: char) -> Vec<char> {
    if char.is_uppercase() { char.to_lowercase().collect() } else { char.to_uppercase().collect() }
}
