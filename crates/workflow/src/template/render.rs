//! Renders a tree with values.

use serde_json::{Value, json};

use super::ast::{Expression, For, Member, Node, Path, Root};
use super::{Language, MAX_OUTPUT, TemplateError, functions};

/// Most passes of all loops of one rendering.
const MAX_PASSES: usize = 100_000;

pub(super) fn render(language: Language, nodes: &[Node], context: &Value) -> Result<String, TemplateError> {
    let mut renderer = Renderer {
        language,
        context,
        dot: vec![context.clone()],
        variables: Vec::new(),
        out: String::new(),
        passes: 0,
    };
    renderer.nodes(nodes)?;
    Ok(renderer.out)
}

struct Renderer<'a> {
    language: Language,
    context: &'a Value,
    /// Values of Go's `.`, the innermost last.
    dot: Vec<Value>,
    variables: Vec<(String, Value)>,
    out: String,
    passes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

impl Renderer<'_> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<Flow, TemplateError> {
        for node in nodes {
            match self.node(node)? {
                Flow::On => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    /// Nodes with variables of their own.
    fn scoped(&mut self, nodes: &[Node]) -> Result<Flow, TemplateError> {
        let before = self.variables.len();
        let flow = self.nodes(nodes);
        // Variables that Liquid assigns in a block outlive it.
        if self.language == Language::Go {
            self.variables.truncate(before);
        }
        flow
    }

    fn node(&mut self, node: &Node) -> Result<Flow, TemplateError> {
        match node {
            Node::Text(text) => self.write(text, 0)?,
            Node::Output { value, line } => {
                let value = self.value(value)?;
                self.write(&self.language.print(&value), *line)?;
            }
            Node::If { branches, otherwise } => {
                for (condition, body) in branches {
                    let value = self.value(condition)?;
                    if self.language.is_true(&value) {
                        return self.scoped(body);
                    }
                }
                return self.scoped(otherwise);
            }
            Node::With { value, body, otherwise } => {
                let value = self.value(value)?;
                if !self.language.is_true(&value) {
                    return self.scoped(otherwise);
                }
                self.dot.push(value);
                let flow = self.scoped(body);
                self.dot.pop();
                return flow;
            }
            Node::For(looped) => self.looped(looped)?,
            Node::Assign { name, value } => {
                let value = self.value(value)?;
                self.assign(name, value);
            }
            Node::Capture { name, body } => {
                let before = std::mem::take(&mut self.out);
                let flow = self.nodes(body);
                let captured = std::mem::replace(&mut self.out, before);
                self.assign(name, Value::String(captured));
                return flow;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn write(&mut self, text: &str, line: usize) -> Result<(), TemplateError> {
        if self.out.len() + text.len() > MAX_OUTPUT {
            return Err(TemplateError::new(line, format!("the text is longer than {MAX_OUTPUT} bytes")));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn assign(&mut self, name: &str, value: Value) {
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.variables.push((name.to_owned(), value)),
        }
    }

    fn looped(&mut self, looped: &For) -> Result<(), TemplateError> {
        let source = self.value(&looped.source)?;
        let mut items: Vec<(Value, Value)> = match source {
            Value::Array(items) => {
                items.into_iter().enumerate().map(|(at, item)| (Value::from(at), item)).collect()
            }
            Value::Object(map) => map.into_iter().map(|(key, item)| (Value::String(key), item)).collect(),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(TemplateError::new(looped.line, "only a list or a map can be looped over"));
            }
        };
        let mut bound = |bound: &Option<Expression>| match bound {
            Some(bound) => Ok(self.value(bound)?.as_u64().map(|bound| bound as usize)),
            None => Ok(None),
        };
        let offset = bound(&looped.offset)?.unwrap_or(0);
        let limit = bound(&looped.limit)?.unwrap_or(usize::MAX);
        items = items.into_iter().skip(offset).take(limit).collect();
        if looped.reversed {
            items.reverse();
        }
        if items.is_empty() {
            return self.scoped(&looped.otherwise).map(drop);
        }
        let count = items.len();
        for (at, (index, item)) in items.into_iter().enumerate() {
            self.passes += 1;
            if self.passes > MAX_PASSES {
                return Err(TemplateError::new(looped.line, "the loops make too many passes"));
            }
            let before = self.variables.len();
            if let Some(name) = &looped.index {
                self.variables.push((name.clone(), index));
            }
            if let Some(name) = &looped.item {
                self.variables.push((name.clone(), item.clone()));
            }
            if self.language == Language::Liquid {
                let state = json!({
                    "index": at + 1, "index0": at, "rindex": count - at, "rindex0": count - at - 1,
                    "first": at == 0, "last": at + 1 == count, "length": count,
                });
                self.variables.push(("forloop".to_owned(), state));
            }
            self.dot.push(item);
            let flow = self.nodes(&looped.body);
            self.dot.pop();
            self.variables.truncate(before);
            if flow? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    fn value(&mut self, expression: &Expression) -> Result<Value, TemplateError> {
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Path(path) => self.path(path),
            Expression::Members { of, members, line } => {
                let value = self.value(of)?;
                self.members(value, members, *line, "the value")
            }
            Expression::Call { name, arguments, line } => self.call(name, arguments, *line),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Expression], line: usize) -> Result<Value, TemplateError> {
        if matches!(name, "and" | "or") {
            return self.connected(name == "and", arguments, line);
        }
        // A value that may be missing is why this filter exists.
        if name == "default" && self.language == Language::Liquid {
            let input = arguments.first().and_then(|input| self.value(input).ok()).unwrap_or(Value::Null);
            let rest: Result<Vec<Value>, _> = arguments.iter().skip(1).map(|one| self.value(one)).collect();
            let all: Vec<Value> = std::iter::once(input).chain(rest?).collect();
            return functions::liquid(name, &all).map_err(|why| TemplateError::new(line, why));
        }
        let values: Result<Vec<Value>, _> = arguments.iter().map(|argument| self.value(argument)).collect();
        let values = values?;
        if name == ".." {
            let bound = |at: usize| values.get(at).and_then(Value::as_i64).unwrap_or(0);
            let numbers = (bound(0)..=bound(1)).take(MAX_PASSES).map(Value::from);
            return Ok(Value::Array(numbers.collect()));
        }
        let result = match self.language {
            Language::Go => functions::go(name, &values),
            Language::Liquid => functions::liquid(name, &values),
        };
        result.map_err(|why| TemplateError::new(line, why))
    }

    /// The first argument that decides, or the last.
    fn connected(
        &mut self,
        all: bool,
        arguments: &[Expression],
        line: usize,
    ) -> Result<Value, TemplateError> {
        let mut last = None;
        for argument in arguments {
            let value = self.value(argument)?;
            if self.language.is_true(&value) != all {
                return Ok(value);
            }
            last = Some(value);
        }
        last.ok_or_else(|| TemplateError::new(line, "`and` and `or` need arguments"))
    }

    fn path(&mut self, path: &Path) -> Result<Value, TemplateError> {
        let (start, name) = match &path.root {
            Root::Dot => (self.dot.last().cloned().unwrap_or(Value::Null), String::new()),
            Root::Top => (self.context.clone(), "$".to_owned()),
            Root::Variable(name) => {
                let local = self.variables.iter().rev().find(|(known, _)| known == name);
                let found = match (local, self.language) {
                    (Some((_, value)), _) => Some(value.clone()),
                    (None, Language::Liquid) => self.context.get(name).cloned(),
                    (None, Language::Go) => None,
                };
                let shown = if self.language == Language::Go { format!("${name}") } else { name.clone() };
                let missing =
                    || TemplateError::new(path.line, format!("the variable `{shown}` does not exist"));
                (found.ok_or_else(missing)?, shown)
            }
        };
        self.members(start, &path.members, path.line, &name)
    }

    fn members(
        &mut self,
        start: Value,
        members: &[Member],
        line: usize,
        name: &str,
    ) -> Result<Value, TemplateError> {
        let mut value = start;
        let mut shown = name.to_owned();
        for member in members {
            let key = match member {
                Member::Name(name) => Value::String(name.clone()),
                Member::Index(index) => self.value(index)?,
            };
            shown = match (&key, shown.is_empty(), self.language) {
                (Value::String(key), true, Language::Liquid) => key.clone(),
                (key, _, _) => format!("{shown}.{}", self.language.print(key)),
            };
            let found = match (&value, &key) {
                (Value::Object(map), Value::String(name)) => map.get(name).cloned(),
                (Value::Array(items), Value::Number(at)) => {
                    let at = at.as_i64().unwrap_or(-1);
                    let at = if at < 0 {
                        items.len().checked_sub(at.unsigned_abs() as usize)
                    } else {
                        Some(at as usize)
                    };
                    at.and_then(|at| items.get(at)).cloned()
                }
                (_, Value::String(name)) if self.language == Language::Liquid => liquid_member(&value, name),
                _ => None,
            };
            value = found.ok_or_else(|| TemplateError::new(line, format!("`{shown}` does not exist")))?;
        }
        Ok(value)
    }
}

/// Members that Liquid gives to lists and texts.
fn liquid_member(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Array(_) | Value::String(_), "size" | "first" | "last") => {
            functions::liquid(name, std::slice::from_ref(value)).ok()
        }
        _ => None,
    }
}
