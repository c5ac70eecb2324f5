//! Checks the variables of a template before it is rendered: which of them no prompt will ever have.

use std::collections::BTreeMap;

use super::ast::{Expression, Member, Node, Path, Root};
use super::{Language, Template};
use crate::problem::check;

/// Static type of a value, as far as it is known.
#[derive(Debug, Clone)]
enum Shape {
    Any,
    Scalar,
    List(Box<Shape>),
    Map(BTreeMap<&'static str, Shape>),
}

/// A variable that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    pub line: usize,
    pub message: String,
}

fn map<const N: usize>(fields: [(&'static str, Shape); N]) -> Shape {
    Shape::Map(fields.into())
}

fn scalars<const N: usize>(names: [&'static str; N]) -> BTreeMap<&'static str, Shape> {
    names.into_iter().map(|name| (name, Shape::Scalar)).collect()
}

/// Variables that a prompt can refer to.
fn context() -> Shape {
    let mut issue = scalars([
        "id",
        "identifier",
        "display_id",
        "title",
        "description",
        "priority",
        "state",
        "branch_name",
        "url",
        "assignee",
        "assignee_id",
        "issue_type",
        "created_at",
        "updated_at",
        "dispatchable",
    ]);
    let list = |fields: BTreeMap<&'static str, Shape>| Shape::List(Box::new(Shape::Map(fields)));
    issue.insert("labels", Shape::List(Box::new(Shape::Scalar)));
    issue.insert("parent", Shape::Map(scalars(["id", "identifier"])));
    issue.insert("comments", list(scalars(["id", "author", "body", "created_at"])));
    issue.insert("blocked_by", list(scalars(["id", "identifier", "state"])));
    issue.insert("native_ref", Shape::Any);
    let mut ci = scalars(["status", "log_excerpt", "failing_count", "ref"]);
    ci.insert("check_runs", list(scalars(["name", "status", "conclusion", "details_url"])));
    map([
        ("issue", Shape::Map(issue)),
        ("attempt", Shape::Scalar),
        ("run", Shape::Map(scalars(["turn_number", "max_turns", "is_continuation", "stage", "candidate"]))),
        ("ci_failure", Shape::Map(ci)),
        ("review_comments", list(scalars(["id", "file", "start_line", "end_line", "reviewer", "body"]))),
    ])
}

/// Variables and fields of a template that do not exist.
pub fn check(template: &Template) -> Vec<Finding> {
    let mut checker = Checker {
        language: template.language,
        top: context(),
        dot: vec![context()],
        variables: Vec::new(),
        findings: Vec::new(),
    };
    checker.nodes(&template.nodes);
    checker.findings
}

struct Checker {
    language: Language,
    top: Shape,
    dot: Vec<Shape>,
    variables: Vec<(String, Shape)>,
    findings: Vec<Finding>,
}

impl Checker {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Text(_) | Node::Break | Node::Continue => {}
                Node::Output { value, .. } => drop(self.shape(value)),
                Node::If { branches, otherwise } => {
                    for (condition, body) in branches {
                        self.shape(condition);
                        self.nodes(body);
                    }
                    self.nodes(otherwise);
                }
                Node::With { value, body, otherwise } => {
                    let shape = self.shape(value);
                    self.dot.push(shape);
                    self.nodes(body);
                    self.dot.pop();
                    self.nodes(otherwise);
                }
                Node::For(looped) => {
                    let item = match self.shape(&looped.source) {
                        Shape::List(item) => *item,
                        Shape::Any | Shape::Scalar | Shape::Map(_) => Shape::Any,
                    };
                    let before = self.variables.len();
                    self.variables.extend(looped.index.iter().map(|name| (name.clone(), Shape::Scalar)));
                    self.variables.extend(looped.item.iter().map(|name| (name.clone(), item.clone())));
                    self.variables.push(("forloop".to_owned(), Shape::Any));
                    self.dot.push(item);
                    self.nodes(&looped.body);
                    self.dot.pop();
                    self.variables.truncate(before);
                    self.nodes(&looped.otherwise);
                }
                Node::Assign { name, value } => {
                    let shape = self.shape(value);
                    self.variables.push((name.clone(), shape));
                }
                Node::Capture { name, body } => {
                    self.nodes(body);
                    self.variables.push((name.clone(), Shape::Scalar));
                }
            }
        }
    }

    fn shape(&mut self, expression: &Expression) -> Shape {
        match expression {
            Expression::Literal(_) => Shape::Scalar,
            Expression::Path(path) => self.path(path),
            Expression::Members { of, .. } => {
                self.shape(of);
                Shape::Any
            }
            Expression::Call { name, arguments, .. } => {
                // A default makes a missing value harmless.
                let skipped = usize::from(name == "default" && self.language == Language::Liquid);
                for argument in arguments.iter().skip(skipped) {
                    self.shape(argument);
                }
                Shape::Any
            }
        }
    }

    fn path(&mut self, path: &Path) -> Shape {
        let (mut shape, mut shown, mut is_top) = match &path.root {
            Root::Dot => (self.dot.last().cloned().unwrap_or(Shape::Any), String::new(), self.dot.len() == 1),
            Root::Top => (self.top.clone(), "$".to_owned(), true),
            Root::Variable(name) => {
                let local = self.variables.iter().rev().find(|(known, _)| known == name);
                match (local, &self.top) {
                    (Some((_, shape)), _) => (shape.clone(), name.clone(), false),
                    (None, Shape::Map(fields)) if self.language == Language::Liquid => {
                        match fields.get(&**name) {
                            Some(shape) => (shape.clone(), name.clone(), false),
                            None => return self.missing(check::UNKNOWN_VARIABLE, path.line, name),
                        }
                    }
                    (None, _) => {
                        return self.missing(check::UNKNOWN_VARIABLE, path.line, &format!("${name}"));
                    }
                }
            }
        };
        for member in &path.members {
            let name = match member {
                Member::Name(name) => name,
                Member::Index(_) => return Shape::Any,
            };
            shown = format!("{shown}.{name}");
            shape = match shape {
                Shape::Any => Shape::Any,
                Shape::Map(fields) => match fields.get(&**name) {
                    Some(shape) => shape.clone(),
                    None => {
                        let code = if is_top { check::UNKNOWN_VARIABLE } else { check::UNKNOWN_FIELD };
                        return self.missing(code, path.line, &shown);
                    }
                },
                Shape::List(_) | Shape::Scalar
                    if self.language == Language::Liquid && matches!(&**name, "size" | "first" | "last") =>
                {
                    Shape::Any
                }
                Shape::List(_) | Shape::Scalar => {
                    return self.missing(check::UNKNOWN_FIELD, path.line, &shown);
                }
            };
            is_top = false;
        }
        shape
    }

    fn missing(&mut self, check: &'static str, line: usize, name: &str) -> Shape {
        let message = format!("`{name}` does not exist, so the prompt cannot be rendered");
        self.findings.push(Finding { check, line, message });
        Shape::Any
    }
}
