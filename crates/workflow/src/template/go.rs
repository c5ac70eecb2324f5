//! Templates in the language of Go's `text/template`.

use super::TemplateError;
use super::ast::{For, Node};
use super::cursor::Cursor;
use super::go_expression::{assignment, pipeline};

/// Deepest nesting of blocks.
const MAX_DEPTH: usize = 64;

enum Piece<'a> {
    Text(&'a str),
    Action { inner: &'a str, line: usize },
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, TemplateError> {
    let pieces = pieces(text)?;
    let mut parser = Parser { pieces: pieces.into_iter().peekable(), last_line: 1 };
    let (nodes, end) = parser.block(0)?;
    match end {
        BlockEnd::EndOfText => Ok(nodes),
        BlockEnd::Closed(line) => Err(TemplateError::new(line, "`{{ end }}` closes nothing")),
        BlockEnd::Else { line, .. } => {
            Err(TemplateError::new(line, "`{{ else }}` belongs to no `if`, `with` or `range`"))
        }
    }
}

/// Splits a text into actions and the text between them, trimmed where an action says so.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut cursor = Cursor::new(text, 1);
    let mut pieces = Vec::new();
    let mut trim_left = false;
    loop {
        let open = cursor.rest.find("{{");
        let raw = cursor.advance(open.unwrap_or(cursor.rest.len()));
        let mut between = if trim_left { raw.trim_start() } else { raw };
        let Some(_) = open else {
            pieces.push(Piece::Text(between));
            return Ok(pieces);
        };
        cursor.advance(2);
        let line = cursor.line;
        if cursor.rest.starts_with("- ") || cursor.rest.starts_with("-\n") {
            cursor.advance(2);
            between = between.trim_end();
        }
        pieces.push(Piece::Text(between));
        let inner = match cursor.rest.trim_start().starts_with("/*") {
            true => {
                let end = cursor.rest.find("*/");
                let end = end.ok_or_else(|| TemplateError::new(line, "a comment has no end"))?;
                let comment = cursor.advance(end + 2);
                trim_left = close(&mut cursor, line)?.1;
                let _ = comment;
                continue;
            }
            false => {
                let (inner, trimmed) = close(&mut cursor, line)?;
                trim_left = trimmed;
                inner
            }
        };
        pieces.push(Piece::Action { inner, line });
    }
}

/// The rest of an action up to its end, and whether the text after it is trimmed. Quoted braces do not end it.
fn close<'a>(cursor: &mut Cursor<'a>, line: usize) -> Result<(&'a str, bool), TemplateError> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in cursor.rest.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '}') if cursor.rest[at..].starts_with("}}") => {
                let inner = cursor.advance(at);
                cursor.advance(2);
                let trimmed = inner.strip_suffix('-').filter(|inner| inner.ends_with(char::is_whitespace));
                return Ok((trimmed.unwrap_or(inner), trimmed.is_some()));
            }
            (None, _) => {}
        }
    }
    Err(TemplateError::new(line, "an action `{{` has no end `}}`"))
}

struct Parser<'a> {
    pieces: std::iter::Peekable<std::vec::IntoIter<Piece<'a>>>,
    last_line: usize,
}

/// End of a block.
enum BlockEnd<'a> {
    EndOfText,
    Closed(usize),
    Else { rest: Cursor<'a>, line: usize },
}

impl<'a> Parser<'a> {
    fn block(&mut self, depth: usize) -> Result<(Vec<Node>, BlockEnd<'a>), TemplateError> {
        if depth > MAX_DEPTH {
            return Err(TemplateError::new(self.last_line, "blocks are nested too deeply"));
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let (inner, line) = match piece {
                Piece::Text("") => continue,
                Piece::Text(text) => {
                    nodes.push(Node::Text(text.to_owned()));
                    continue;
                }
                Piece::Action { inner, line } => (inner, line),
            };
            self.last_line = line;
            let mut cursor = Cursor::new(inner, line);
            match cursor.word() {
                "end" => return Ok((nodes, BlockEnd::Closed(line))),
                "else" => {
                    cursor.eat_word("else");
                    return Ok((nodes, BlockEnd::Else { rest: cursor, line }));
                }
                "if" => {
                    cursor.eat_word("if");
                    nodes.push(self.conditional(cursor, line, depth)?);
                }
                "with" => {
                    cursor.eat_word("with");
                    nodes.push(self.with(cursor, line, depth)?);
                }
                "range" => {
                    cursor.eat_word("range");
                    nodes.push(self.range(cursor, line, depth)?);
                }
                "break" => nodes.push(Node::Break),
                "continue" => nodes.push(Node::Continue),
                word @ ("define" | "template" | "block") => {
                    return Err(TemplateError::new(
                        line,
                        format!("`{word}` is not supported; a prompt is one template"),
                    ));
                }
                _ => nodes.push(statement(cursor, line)?),
            }
        }
        Ok((nodes, BlockEnd::EndOfText))
    }

    /// A body up to its `end`, with the part after `else`.
    fn body(
        &mut self,
        line: usize,
        depth: usize,
        what: &str,
    ) -> Result<(Vec<Node>, Vec<Node>), TemplateError> {
        let unclosed = || TemplateError::new(line, format!("`{{{{ {what} }}}}` has no `{{{{ end }}}}`"));
        let (body, end) = self.block(depth + 1)?;
        match end {
            BlockEnd::EndOfText => Err(unclosed()),
            BlockEnd::Closed(_) => Ok((body, Vec::new())),
            BlockEnd::Else { mut rest, line: at } => {
                if rest.eat_word("if") {
                    let chained = self.conditional(rest, at, depth + 1)?;
                    return Ok((body, vec![chained]));
                }
                if rest.eat_word("with") {
                    let chained = self.with(rest, at, depth + 1)?;
                    return Ok((body, vec![chained]));
                }
                if !rest.is_done() {
                    return Err(rest.error("`else` is followed by something that is no `if`"));
                }
                let (otherwise, end) = self.block(depth + 1)?;
                match end {
                    BlockEnd::Closed(_) => Ok((body, otherwise)),
                    BlockEnd::EndOfText | BlockEnd::Else { .. } => Err(unclosed()),
                }
            }
        }
    }

    fn conditional(
        &mut self,
        mut cursor: Cursor<'a>,
        line: usize,
        depth: usize,
    ) -> Result<Node, TemplateError> {
        let condition = whole(&mut cursor)?;
        let (body, otherwise) = self.body(line, depth, "if")?;
        Ok(Node::If { branches: vec![(condition, body)], otherwise })
    }

    fn with(&mut self, mut cursor: Cursor<'a>, line: usize, depth: usize) -> Result<Node, TemplateError> {
        let value = whole(&mut cursor)?;
        let (body, otherwise) = self.body(line, depth, "with")?;
        Ok(Node::With { value, body, otherwise })
    }

    fn range(&mut self, mut cursor: Cursor<'a>, line: usize, depth: usize) -> Result<Node, TemplateError> {
        let mut names = Vec::new();
        let mut ahead = cursor.clone();
        while ahead.eat("$") {
            names.push(ahead.name(&[]).unwrap_or_default().to_owned());
            if !ahead.eat(",") {
                break;
            }
        }
        match !names.is_empty() && ahead.eat(":=") {
            true => cursor = ahead,
            false => names.clear(),
        }
        let source = whole(&mut cursor)?;
        let (body, otherwise) = self.body(line, depth, "range")?;
        let item = names.pop();
        let index = names.pop();
        let looped =
            For { index, item, source, reversed: false, limit: None, offset: None, body, otherwise, line };
        Ok(Node::For(Box::new(looped)))
    }
}

fn whole(cursor: &mut Cursor<'_>) -> Result<super::ast::Expression, TemplateError> {
    let value = pipeline(cursor)?;
    match cursor.is_done() {
        true => Ok(value),
        false => Err(cursor.error(format!("`{}` is not expected here", cursor.rest.trim()))),
    }
}

fn statement(mut cursor: Cursor<'_>, line: usize) -> Result<Node, TemplateError> {
    if let Some(name) = assignment(&mut cursor) {
        let value = whole(&mut cursor)?;
        return Ok(Node::Assign { name, value });
    }
    if cursor.is_done() {
        return Err(TemplateError::new(line, "the action `{{ }}` is empty"));
    }
    let value = whole(&mut cursor)?;
    Ok(Node::Output { value, line })
}
