//! Templates in Liquid.

use super::TemplateError;
use super::ast::{Expression, For, Node};
use super::cursor::Cursor;
use super::liquid_expression::{condition, filtered, operand};

/// Deepest nesting of blocks.
const MAX_DEPTH: usize = 64;

enum Piece<'a> {
    Text(&'a str),
    Output { inner: &'a str, line: usize },
    Tag { inner: &'a str, line: usize },
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, TemplateError> {
    let pieces = pieces(text)?;
    let mut parser = Parser { pieces: pieces.into_iter() };
    let (nodes, end) = parser.block(&[], 0, 1)?;
    debug_assert!(end.is_none());
    Ok(nodes)
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut cursor = Cursor::new(text, 1);
    let mut pieces = Vec::new();
    let mut trim_left = false;
    loop {
        let open = [cursor.rest.find("{{"), cursor.rest.find("{%")].into_iter().flatten().min();
        let raw = cursor.advance(open.unwrap_or(cursor.rest.len()));
        let mut between = if trim_left { raw.trim_start() } else { raw };
        if open.is_none() {
            pieces.push(Piece::Text(between));
            return Ok(pieces);
        }
        let is_tag = cursor.rest.starts_with("{%");
        let line = cursor.line;
        cursor.advance(2);
        if cursor.rest.starts_with('-') {
            cursor.advance(1);
            between = between.trim_end();
        }
        pieces.push(Piece::Text(between));
        let close = if is_tag { "%}" } else { "}}" };
        let end = end_of(cursor.rest, close);
        let end = end.ok_or_else(|| TemplateError::new(line, format!("a tag has no end `{close}`")))?;
        let inner = cursor.advance(end);
        cursor.advance(2);
        trim_left = inner.ends_with('-');
        let inner = inner.strip_suffix('-').unwrap_or(inner);
        match is_tag {
            true if inner.trim() == "raw" => {
                let (text, trimmed) = raw_text(&mut cursor, line)?;
                pieces.push(Piece::Text(text));
                trim_left = trimmed;
            }
            true => pieces.push(Piece::Tag { inner, line }),
            false => pieces.push(Piece::Output { inner, line }),
        }
    }
}

/// Position of a closing mark outside of quotes.
fn end_of(text: &str, close: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, _) if text[at..].starts_with(close) => return Some(at),
            (None, _) => {}
        }
    }
    // An apostrophe in a comment opens no quote.
    text.find(close)
}

/// Text up to `{% endraw %}`, and whether the text after it is trimmed.
fn raw_text<'a>(cursor: &mut Cursor<'a>, line: usize) -> Result<(&'a str, bool), TemplateError> {
    let mut from = 0;
    while let Some(found) = cursor.rest[from..].find("{%") {
        let tag = &cursor.rest[from + found + 2..];
        if let Some(end) = tag.find("%}")
            && tag[..end].trim_matches('-').trim() == "endraw"
        {
            let trimmed = tag[..end].ends_with('-');
            let text = cursor.advance(from + found);
            cursor.advance(2 + end + 2);
            return Ok((text, trimmed));
        }
        from += found + 2;
    }
    Err(TemplateError::new(line, "`{% raw %}` has no `{% endraw %}`"))
}

struct Parser<'a> {
    pieces: std::vec::IntoIter<Piece<'a>>,
}

/// Tag that ended a block.
struct EndTag<'a> {
    name: &'a str,
    rest: Cursor<'a>,
    line: usize,
}

impl<'a> Parser<'a> {
    /// Nodes up to one of the tags in `ends`, or up to the end of the text if there are none.
    fn block(
        &mut self,
        ends: &[&str],
        depth: usize,
        opened: usize,
    ) -> Result<(Vec<Node>, Option<EndTag<'a>>), TemplateError> {
        if depth > MAX_DEPTH {
            return Err(TemplateError::new(opened, "blocks are nested too deeply"));
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            match piece {
                Piece::Text("") => {}
                Piece::Text(text) => nodes.push(Node::Text(text.to_owned())),
                Piece::Output { inner, line } => {
                    let mut cursor = Cursor::new(inner, line);
                    let value = filtered(&mut cursor)?;
                    done(&mut cursor)?;
                    nodes.push(Node::Output { value, line });
                }
                Piece::Tag { inner, line } => {
                    let mut rest = Cursor::new(inner, line);
                    let name = rest.word();
                    rest.skip_space();
                    rest.advance(name.len());
                    if ends.contains(&name) {
                        return Ok((nodes, Some(EndTag { name, rest, line })));
                    }
                    nodes.extend(self.tag(name, rest, line, depth)?);
                }
            }
        }
        match ends.last() {
            None => Ok((nodes, None)),
            Some(end) => Err(TemplateError::new(opened, format!("a tag has no `{{% {end} %}}`"))),
        }
    }

    /// A block that must end with a tag.
    fn inner(
        &mut self,
        ends: &[&str],
        depth: usize,
        opened: usize,
    ) -> Result<(Vec<Node>, EndTag<'a>), TemplateError> {
        let (nodes, end) = self.block(ends, depth + 1, opened)?;
        let end = end.ok_or_else(|| TemplateError::new(opened, "a tag has no end"))?;
        Ok((nodes, end))
    }

    fn tag(
        &mut self,
        name: &str,
        mut rest: Cursor<'a>,
        line: usize,
        depth: usize,
    ) -> Result<Option<Node>, TemplateError> {
        Ok(Some(match name {
            "if" => self.conditional(rest, line, depth, "endif", false)?,
            "unless" => self.conditional(rest, line, depth, "endunless", true)?,
            "case" => self.case(rest, line, depth)?,
            "for" => self.looped(rest, line, depth)?,
            "assign" => {
                let name = variable(&mut rest)?;
                if !rest.eat("=") {
                    return Err(rest.error("`assign` needs `name = value`"));
                }
                let value = filtered(&mut rest)?;
                done(&mut rest)?;
                Node::Assign { name, value }
            }
            "capture" => {
                let name = variable(&mut rest)?;
                let (body, _) = self.inner(&["endcapture"], depth, line)?;
                Node::Capture { name, body }
            }
            "comment" => {
                self.inner(&["endcomment"], depth, line)?;
                return Ok(None);
            }
            "break" => Node::Break,
            "continue" => Node::Continue,
            "" if rest.rest.trim_start().starts_with('#') => return Ok(None),
            other => return Err(TemplateError::new(line, format!("the tag `{other}` is not known"))),
        }))
    }

    fn conditional(
        &mut self,
        mut rest: Cursor<'a>,
        line: usize,
        depth: usize,
        end: &str,
        negated: bool,
    ) -> Result<Node, TemplateError> {
        let mut wanted = condition(&mut rest)?;
        done(&mut rest)?;
        if negated {
            wanted = Expression::Call { name: "not".to_owned(), arguments: vec![wanted], line };
        }
        let mut branches = Vec::new();
        loop {
            let (body, tag) = self.inner(&["elsif", "else", end], depth, line)?;
            branches.push((wanted, body));
            match tag.name {
                "elsif" => {
                    let mut rest = tag.rest;
                    wanted = condition(&mut rest)?;
                    done(&mut rest)?;
                }
                "else" => {
                    let (otherwise, _) = self.inner(&[end], depth, tag.line)?;
                    return Ok(Node::If { branches, otherwise });
                }
                _ => return Ok(Node::If { branches, otherwise: Vec::new() }),
            }
        }
    }

    fn case(&mut self, mut rest: Cursor<'a>, line: usize, depth: usize) -> Result<Node, TemplateError> {
        let subject = operand(&mut rest)?;
        done(&mut rest)?;
        let (_, mut tag) = self.inner(&["when", "else", "endcase"], depth, line)?;
        let mut branches = Vec::new();
        loop {
            match tag.name {
                "when" => {
                    let mut rest = tag.rest;
                    let mut wanted: Option<Expression> = None;
                    loop {
                        let arguments = vec![subject.clone(), operand(&mut rest)?];
                        let equal = Expression::Call { name: "==".to_owned(), arguments, line: tag.line };
                        wanted = Some(match wanted {
                            None => equal,
                            Some(before) => Expression::Call {
                                name: "or".to_owned(),
                                arguments: vec![before, equal],
                                line: tag.line,
                            },
                        });
                        if !(rest.eat(",") || rest.eat_word("or")) {
                            break;
                        }
                    }
                    done(&mut rest)?;
                    let (body, next) = self.inner(&["when", "else", "endcase"], depth, line)?;
                    branches.extend(wanted.map(|wanted| (wanted, body)));
                    tag = next;
                }
                "else" => {
                    let (otherwise, _) = self.inner(&["endcase"], depth, line)?;
                    return Ok(Node::If { branches, otherwise });
                }
                _ => return Ok(Node::If { branches, otherwise: Vec::new() }),
            }
        }
    }

    fn looped(&mut self, mut rest: Cursor<'a>, line: usize, depth: usize) -> Result<Node, TemplateError> {
        let item = variable(&mut rest)?;
        if !rest.eat_word("in") {
            return Err(rest.error("`for` needs `name in list`"));
        }
        let source = operand(&mut rest)?;
        let (mut reversed, mut limit, mut offset) = (false, None, None);
        while !rest.is_done() {
            let word = rest.word();
            match word {
                "reversed" => {
                    rest.eat_word("reversed");
                    reversed = true;
                }
                "limit" | "offset" => {
                    rest.eat_word(word);
                    if !rest.eat(":") {
                        return Err(rest.error(format!("`{word}` needs `{word}:number`")));
                    }
                    let value = Some(operand(&mut rest)?);
                    if word == "limit" { limit = value } else { offset = value }
                }
                _ => return Err(rest.error(format!("`{}` is not expected here", rest.rest.trim()))),
            }
        }
        let (body, tag) = self.inner(&["else", "endfor"], depth, line)?;
        let otherwise = match tag.name {
            "else" => self.inner(&["endfor"], depth, tag.line)?.0,
            _ => Vec::new(),
        };
        let looped =
            For { index: None, item: Some(item), source, reversed, limit, offset, body, otherwise, line };
        Ok(Node::For(Box::new(looped)))
    }
}

fn variable(rest: &mut Cursor<'_>) -> Result<String, TemplateError> {
    rest.skip_space();
    rest.name(&['-']).map(str::to_owned).ok_or_else(|| rest.error("a name of a variable is expected"))
}

fn done(cursor: &mut Cursor<'_>) -> Result<(), TemplateError> {
    match cursor.is_done() {
        true => Ok(()),
        false => Err(cursor.error(format!("`{}` is not expected here", cursor.rest.trim()))),
    }
}
