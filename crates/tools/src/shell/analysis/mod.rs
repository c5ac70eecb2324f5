//! Analysis of a command line by a shell parser, before anything runs.
//!
//! The answer errs to one side: what cannot be read is never taken for harmless. A command counts as read-only only if
//! its program is in the table of [`programs`], its flags are known not to write or run anything, and every file it
//! names could be resolved.

mod ansi;
mod git;
mod links;
mod paths;
mod programs;
mod sed;
mod variables;
mod visitor;
mod words;
mod wrappers;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use brush_parser::ast::Program;
use brush_parser::{ParserOptions, Token, TokenizerOptions};
use hangar_protocol::permission::ShellCommand;

use visitor::Visitor;

/// Bytes of a command line that are read. Longer ones carry data, and are left unread.
const TEXT_LIMIT: usize = 64 * 1024;

/// Brackets and keywords that can open something, for which the calling thread has stack enough.
const SHALLOW: usize = 24;

/// Brackets and keywords that can open something, at all. Every level costs the parser up to 30 KB of stack.
const OPENER_LIMIT: usize = 2_000;

/// The stack for texts that are not shallow. It is only used as far as it is needed.
const DEEP_STACK: usize = 256 * 1024 * 1024;

/// Parentheses in a text with two in a row. The parser tries both meanings of `((`, which doubles its work with every
/// pair of parentheses inside.
const AMBIGUOUS_LIMIT: usize = 12;

/// Context of a command line.
#[derive(Debug, Clone, Copy)]
pub struct LineContext<'a> {
    /// Absolute.
    pub cwd: &'a Path,
    pub env: &'a BTreeMap<OsString, OsString>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, also those in substitutions, functions and behind `sudo` or `xargs`.
    pub commands: Vec<ShellCommand>,
    /// Arguments and targets that look like paths, as written.
    pub possible_paths: Vec<String>,
    pub possible_urls: Vec<String>,
    /// Paths that appear in the line: absolute, links resolved.
    pub reads: Vec<PathBuf>,
    /// Targets of redirections: absolute, links resolved.
    pub writes: Vec<PathBuf>,
    /// Output goes to a file, and not only to another descriptor or a device.
    pub has_write_redirection: bool,
    /// An approval of these commands for a whole session would mean what it seems to.
    pub can_offer_session_approval: bool,
    /// Something could not be read, so the lists may lack something.
    pub is_opaque: bool,
    /// Something runs commands that are not read as such: a script, the input of a shell, code of another language.
    pub runs_unread: bool,
}

impl Analysis {
    fn unread(text: &str) -> Self {
        let command = ShellCommand { identifier: shorten(text), read_only: false };
        Self { commands: vec![command], is_opaque: true, ..Self::default() }
    }
}

/// Reads a command line.
pub fn analyze(text: &str, scope: LineContext<'_>) -> Analysis {
    let openers = openers(text);
    if text.len() > TEXT_LIMIT || openers > OPENER_LIMIT {
        return Analysis::unread(text);
    }
    if openers <= SHALLOW {
        return read(text, scope);
    }
    std::thread::scope(|threads| {
        let reading =
            std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(threads, || read(text, scope));
        match reading.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(analysis)) => analysis,
            // Out of threads, or out of step with the parser: then it was not read.
            Ok(Err(_)) | Err(_) => Analysis::unread(text),
        }
    })
}

fn read(text: &str, scope: LineContext<'_>) -> Analysis {
    match parse(text) {
        Some(program) => Visitor::read(&program, text, scope),
        None => Analysis::unread(text),
    }
}

/// The program of a text; `None` if it is none or not safe to parse.
fn parse(text: &str) -> Option<Program> {
    // In a calculation `#` begins no comment, but the tokenizer thinks so and leaves out what follows.
    let may_calculate = text.contains("((") || text.contains("$[");
    if may_calculate && text.split_whitespace().any(|word| word.starts_with('#')) {
        return None;
    }
    let mut here_documents = text.match_indices("<<").map(|(at, _)| &text[at + 2..]);
    if here_documents.any(|rest| !rest.starts_with('<') && expands_on_the_same_line(rest)) {
        return None;
    }
    let options = ParserOptions::default();
    let tokens = brush_parser::uncached_tokenize_str(text, &TokenizerOptions::default()).ok()?;
    let is_opening = |token: &Token| matches!(token, Token::Operator(operator, _) if operator == "(");
    let is_ambiguous = tokens.windows(2).any(|pair| pair.iter().all(is_opening));
    if is_ambiguous && tokens.iter().filter(|token| is_opening(token)).count() > AMBIGUOUS_LIMIT {
        return None;
    }
    brush_parser::Parser::new(text.as_bytes(), &options).parse_program().ok()
}

/// Whether something is expanded between the start of a here-document and the end of its line. The tokenizer gets the
/// words of a substitution there out of order.
fn expands_on_the_same_line(text: &str) -> bool {
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('\n', None) => return false,
            ('\\', None | Some('"')) => drop(rest.next()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('`', None | Some('"')) => return true,
            ('$', None | Some('"')) if matches!(rest.peek(), Some('(' | '{' | '[')) => return true,
            ('<' | '>', None) if rest.peek() == Some(&'(') => return true,
            _ => {}
        }
    }
    false
}

/// Programs without an option that writes, runs something or takes the name of a file.
const PLAIN: [&str; 17] = [
    "basename", "cat", "dirname", "echo", "false", "head", "id", "ls", "nproc", "pwd", "stat", "true",
    "uname", "wc", "which", "whoami", "uptime",
];

/// Whether a line is one of a few programs with literal arguments: all that is believed where no sandbox stands behind
/// the analysis.
pub fn is_plain(text: &str) -> bool {
    let is_literal = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, ' ' | '/' | '.' | '_' | '-' | ',' | ':' | '@' | '%' | '+')
    };
    let mut words = text.split_whitespace();
    text.chars().all(is_literal)
        && words.next().is_some_and(|program| PLAIN.contains(&program))
        && words
            .all(|word| !word.starts_with('-') || word[1..].chars().all(|flag| flag.is_ascii_alphanumeric()))
}

/// Upper bound of the nesting in a text; quotes are not looked at.
fn openers(text: &str) -> usize {
    let brackets = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'[' | b'`')).count();
    let keywords = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            matches!(
                *word,
                "if" | "elif" | "case" | "for" | "while" | "until" | "select" | "function" | "coproc"
            )
        })
        .count();
    brackets + keywords
}

/// A text short enough for a list that people read.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
