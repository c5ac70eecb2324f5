//! Tree of a template. Both languages have the same one; they differ in what is true and how values are printed.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Text(String),
    Output {
        value: Expression,
        line: usize,
    },
    If {
        branches: Vec<(Expression, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    /// Go's `with`: the body sees the value as `.`.
    With {
        value: Expression,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    For(Box<For>),
    Assign {
        name: String,
        value: Expression,
    },
    Capture {
        name: String,
        body: Vec<Node>,
    },
    Break,
    Continue,
}

/// A loop over the items of a list or the entries of a map.
#[derive(Debug, Clone)]
pub(super) struct For {
    /// Variable of the index or key.
    pub(super) index: Option<String>,
    /// Variable of the item. Without one, the item is `.`.
    pub(super) item: Option<String>,
    pub(super) source: Expression,
    pub(super) reversed: bool,
    pub(super) limit: Option<Expression>,
    pub(super) offset: Option<Expression>,
    pub(super) body: Vec<Node>,
    pub(super) otherwise: Vec<Node>,
    pub(super) line: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Expression {
    Literal(Value),
    Path(Path),
    /// Members of the value of another expression.
    Members {
        of: Box<Expression>,
        members: Vec<Member>,
        line: usize,
    },
    /// A function, a filter or an operator. A filter has its input as the first argument.
    Call {
        name: String,
        arguments: Vec<Expression>,
        line: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) members: Vec<Member>,
    pub(super) line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// Go's `.`.
    Dot,
    /// Go's `$`.
    Top,
    Variable(String),
}

#[derive(Debug, Clone)]
pub(super) enum Member {
    Name(String),
    Index(Expression),
}
