//! Items of a polled log: responses, some of which are parts of a streamed text.

/// Item of a log.
pub(crate) trait PollItem: Clone {
    fn piece(&self) -> TextPart<'_>;

    /// Appends the next delta of the same text.
    fn join(&mut self, next: &Self);

    /// Approximate size in bytes.
    fn weight(&self) -> usize;

    /// Notice that replaces items that were dropped before they were read.
    fn dropped() -> Self;
}

/// Part of an item in a streamed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPart<'a> {
    /// None: the item is no part of a text.
    Whole,
    Start(TextId<'a>),
    Delta(TextId<'a>),
    /// Repeats all the deltas.
    End(TextId<'a>),
}

/// Identity of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextId<'a> {
    Reasoning(&'a str),
    Message(&'a str),
}
