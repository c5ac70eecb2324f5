//! Undo history of a text: groups of changes, bounded in number and size.

/// Groups that can be undone.
const GROUP_LIMIT: usize = 1000;
/// Bytes of text that the history holds. The oldest groups are dropped above it.
const BYTE_LIMIT: usize = 4 * 1024 * 1024;

/// Replacement of one range of the text.
#[derive(Debug, Clone)]
pub(super) struct UndoChange {
    pub(super) at: usize,
    pub(super) removed: String,
    pub(super) inserted: String,
}

impl UndoChange {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }
}

/// Kind of a change, which decides whether it continues the group before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Characters that are typed one after the other. A new word starts a new group.
    Typing,
    /// Characters that are deleted one after the other.
    Deleting,
    /// Everything else, which is undone by itself.
    Whole,
}

/// Changes that are undone together.
#[derive(Debug, Clone)]
pub(super) struct UndoGroup {
    pub(super) changes: Vec<UndoChange>,
    pub(super) before: usize,
    pub(super) after: usize,
    kind: Kind,
}

impl UndoGroup {
    fn bytes(&self) -> usize {
        self.changes.iter().map(UndoChange::bytes).sum()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Undo {
    done: Vec<UndoGroup>,
    undone: Vec<UndoGroup>,
    bytes: usize,
    /// Whether the next change starts a new group, whatever its kind.
    closed: bool,
    /// Whether all changes go to the newest group: a command or an insertion of vim is undone as one.
    held: bool,
}

impl Undo {
    pub(super) fn record(&mut self, change: UndoChange, kind: Kind, before: usize, after: usize) {
        self.bytes -= self.undone.drain(..).map(|group| group.bytes()).sum::<usize>();
        self.bytes += change.bytes();
        let closed = std::mem::take(&mut self.closed);
        match self.done.last_mut() {
            Some(group) if !closed && (self.held || continues(group, &change, kind, before)) => {
                group.after = after;
                join(&mut group.changes, change);
            }
            _ => self.done.push(UndoGroup { changes: vec![change], before, after, kind }),
        }
        let mut drop = self.done.len().saturating_sub(GROUP_LIMIT);
        let mut over = self.bytes.saturating_sub(BYTE_LIMIT);
        while over > 0 && drop + 1 < self.done.len() {
            over = over.saturating_sub(self.done[drop].bytes());
            drop += 1;
        }
        self.bytes -= self.done.drain(..drop).map(|group| group.bytes()).sum::<usize>();
    }

    /// Ends the group that is open, so that the next change starts another.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Starts a group that takes all changes until [`Undo::release`].
    pub(super) fn hold(&mut self) {
        if !self.held {
            self.closed = true;
        }
        self.held = true;
    }

    pub(super) fn release(&mut self) {
        self.held = false;
        self.closed = true;
    }

    /// The newest group, which the caller reverts.
    pub(super) fn undo(&mut self) -> Option<&UndoGroup> {
        let group = self.done.pop()?;
        self.closed = true;
        self.undone.push(group);
        self.undone.last()
    }

    /// The group that was undone last, which the caller applies again.
    pub(super) fn redo(&mut self) -> Option<&UndoGroup> {
        let group = self.undone.pop()?;
        self.closed = true;
        self.done.push(group);
        self.done.last()
    }
}

fn continues(group: &UndoGroup, change: &UndoChange, kind: Kind, before: usize) -> bool {
    if group.kind != kind || group.after != before {
        return false;
    }
    match kind {
        Kind::Whole => false,
        Kind::Deleting => true,
        Kind::Typing => {
            let last = group.changes.last().and_then(|change| change.inserted.chars().next_back());
            let blank = |char: Option<char>| char.is_some_and(char::is_whitespace);
            let starts_word = blank(last) && !blank(change.inserted.chars().next());
            !starts_word && last != Some('\n')
        }
    }
}

/// Adds a change to a group, as part of the last one where the two touch.
fn join(changes: &mut Vec<UndoChange>, change: UndoChange) {
    match changes.last_mut() {
        Some(last)
            if change.removed.is_empty()
                && last.removed.is_empty()
                && change.at == last.at + last.inserted.len() =>
        {
            last.inserted.push_str(&change.inserted);
        }
        _ => changes.push(change),
    }
}
