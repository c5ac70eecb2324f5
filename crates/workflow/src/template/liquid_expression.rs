//! Expressions of Liquid: values with filters, and conditions.

use serde_json::Value;

use super::TemplateError;
use super::ast::{Expression, Member, Path, Root};
use super::cursor::Cursor;
use super::functions;

const COMPARISONS: &[&str] = &["==", "!=", "<>", "<=", ">=", "<", ">"];

/// A value with its filters.
pub(super) fn filtered(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    let mut value = operand(cursor)?;
    while cursor.eat("|") {
        cursor.skip_space();
        let line = cursor.line;
        let name = cursor.name(&[]).ok_or_else(|| cursor.error("a filter is expected after `|`"))?;
        if !functions::is_liquid_filter(name) {
            return Err(TemplateError::new(line, format!("the filter `{name}` is not defined")));
        }
        let mut arguments = vec![value];
        if cursor.eat(":") {
            loop {
                arguments.push(operand(cursor)?);
                if !cursor.eat(",") {
                    break;
                }
            }
        }
        value = Expression::Call { name: name.to_owned(), arguments, line };
    }
    Ok(value)
}

/// Comparisons joined by `and` and `or`, from right to left as Liquid does.
pub(super) fn condition(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    let left = comparison(cursor)?;
    let line = cursor.line;
    for word in ["and", "or"] {
        if cursor.eat_word(word) {
            let right = condition(cursor)?;
            return Ok(Expression::Call { name: word.to_owned(), arguments: vec![left, right], line });
        }
    }
    Ok(left)
}

fn comparison(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    let left = operand(cursor)?;
    let line = cursor.line;
    let operator = COMPARISONS.iter().find(|operator| cursor.eat(operator)).copied();
    let operator = operator.or_else(|| cursor.eat_word("contains").then_some("contains"));
    let Some(operator) = operator else { return Ok(left) };
    let operator = if operator == "<>" { "!=" } else { operator };
    let right = operand(cursor)?;
    Ok(Expression::Call { name: operator.to_owned(), arguments: vec![left, right], line })
}

pub(super) fn operand(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    cursor.skip_space();
    let line = cursor.line;
    match cursor.peek() {
        Some('"' | '\'') => Ok(Expression::Literal(Value::String(cursor.quoted(false)?))),
        Some('(') => {
            cursor.advance(1);
            let from = operand(cursor)?;
            if !cursor.eat("..") {
                return Err(cursor.error("a range is written `(1..5)`"));
            }
            let to = operand(cursor)?;
            if !cursor.eat(")") {
                return Err(cursor.error("a range is written `(1..5)`"));
            }
            Ok(Expression::Call { name: "..".to_owned(), arguments: vec![from, to], line })
        }
        Some(c) if c.is_alphabetic() || c == '_' => {
            let name = cursor.name(&['-']).unwrap_or_default();
            let literal = match name {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                "nil" | "null" => Some(Value::Null),
                "empty" | "blank" => Some(Value::String(String::new())),
                _ => None,
            };
            if let Some(literal) = literal {
                return Ok(Expression::Literal(literal));
            }
            let members = members(cursor)?;
            Ok(Expression::Path(Path { root: Root::Variable(name.to_owned()), members, line }))
        }
        _ => cursor.number().map(Expression::Literal).ok_or_else(|| {
            let found = cursor.rest.split_whitespace().next().unwrap_or("the end of the tag");
            cursor.error(format!("`{found}` is not expected here"))
        }),
    }
}

fn members(cursor: &mut Cursor<'_>) -> Result<Vec<Member>, TemplateError> {
    let mut members = Vec::new();
    loop {
        if cursor.rest.starts_with('.') && !cursor.rest.starts_with("..") {
            cursor.advance(1);
            let name = cursor.name(&['-']).ok_or_else(|| cursor.error("a name is expected after `.`"))?;
            members.push(Member::Name(name.to_owned()));
        } else if cursor.rest.starts_with('[') {
            cursor.advance(1);
            members.push(Member::Index(operand(cursor)?));
            if !cursor.eat("]") {
                return Err(cursor.error("a `[` has no `]`"));
            }
        } else {
            return Ok(members);
        }
    }
}
