//! Expressions of Go templates: pipelines of commands.

use serde_json::Value;

use super::TemplateError;
use super::ast::{Expression, Member, Path, Root};
use super::cursor::Cursor;
use super::functions;

/// `$name :=` or `$name =` at the beginning of an action.
pub(super) fn assignment(cursor: &mut Cursor<'_>) -> Option<String> {
    let mut ahead = cursor.clone();
    if !ahead.eat("$") {
        return None;
    }
    let name = ahead.name(&[])?.to_owned();
    let found = ahead.eat(":=") || (ahead.eat("=") && !ahead.rest.starts_with('='));
    found.then(|| {
        *cursor = ahead;
        name
    })
}

/// Commands with `|` between them; each gets the result before it as its last argument.
pub(super) fn pipeline(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    let mut value = command(cursor, None)?;
    while cursor.eat("|") {
        value = command(cursor, Some(value))?;
    }
    Ok(value)
}

fn command(cursor: &mut Cursor<'_>, piped: Option<Expression>) -> Result<Expression, TemplateError> {
    cursor.skip_space();
    let line = cursor.line;
    let word = cursor.word();
    let is_function = cursor.rest.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !matches!(word, "true" | "false" | "nil");
    if !is_function {
        let value = operand(cursor)?;
        return match piped {
            None => Ok(value),
            Some(_) => Err(TemplateError::new(line, "only a function can follow `|`")),
        };
    }
    cursor.advance(word.len());
    if !functions::is_go_function(word) {
        return Err(TemplateError::new(line, format!("the function `{word}` is not defined")));
    }
    let mut arguments = Vec::new();
    loop {
        cursor.skip_space();
        if cursor.rest.is_empty() || cursor.rest.starts_with(['|', ')']) {
            break;
        }
        arguments.push(operand(cursor)?);
    }
    arguments.extend(piped);
    Ok(Expression::Call { name: word.to_owned(), arguments, line })
}

fn operand(cursor: &mut Cursor<'_>) -> Result<Expression, TemplateError> {
    cursor.skip_space();
    let line = cursor.line;
    match cursor.peek() {
        Some('.') => {
            let mut members = members(cursor);
            if members.is_empty() {
                cursor.advance(1);
                members = Vec::new();
            }
            Ok(Expression::Path(Path { root: Root::Dot, members, line }))
        }
        Some('$') => {
            cursor.advance(1);
            let root = match cursor.name(&[]) {
                Some(name) => Root::Variable(name.to_owned()),
                None => Root::Top,
            };
            Ok(Expression::Path(Path { root, members: members(cursor), line }))
        }
        Some('(') => {
            cursor.advance(1);
            let value = pipeline(cursor)?;
            if !cursor.eat(")") {
                return Err(cursor.error("a `(` has no `)`"));
            }
            let members = members(cursor);
            Ok(match members.is_empty() {
                true => value,
                false => Expression::Members { of: Box::new(value), members, line },
            })
        }
        Some('"') => Ok(Expression::Literal(Value::String(cursor.quoted(true)?))),
        Some('`') => Ok(Expression::Literal(Value::String(cursor.quoted(false)?))),
        Some(c) if c.is_alphabetic() || c == '_' => {
            let word = cursor.word();
            cursor.advance(word.len());
            match word {
                "true" => Ok(Expression::Literal(Value::Bool(true))),
                "false" => Ok(Expression::Literal(Value::Bool(false))),
                "nil" => Ok(Expression::Literal(Value::Null)),
                // A function without arguments.
                _ if functions::is_go_function(word) => {
                    Ok(Expression::Call { name: word.to_owned(), arguments: Vec::new(), line })
                }
                _ => Err(TemplateError::new(line, format!("the function `{word}` is not defined"))),
            }
        }
        _ => cursor.number().map(Expression::Literal).ok_or_else(|| {
            let found = cursor.rest.split_whitespace().next().unwrap_or("the end of the action");
            cursor.error(format!("`{found}` is not expected here"))
        }),
    }
}

fn members(cursor: &mut Cursor<'_>) -> Vec<Member> {
    let mut members = Vec::new();
    loop {
        let mut ahead = cursor.clone();
        if !ahead.rest.starts_with('.') {
            return members;
        }
        ahead.advance(1);
        let Some(name) = ahead.name(&[]) else { return members };
        members.push(Member::Name(name.to_owned()));
        *cursor = ahead;
    }
}
