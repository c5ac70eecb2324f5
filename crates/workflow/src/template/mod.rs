//! Prompt templates in two languages, Go's `text/template` and Liquid, parsed into one tree and rendered strictly: a
//! variable or a filter that does not exist is an error, never an empty string.

mod ast;
mod cursor;
mod functions;
mod go;
mod go_expression;
mod liquid;
mod liquid_expression;
mod render;
pub mod shape;
mod value;

use serde_json::Value;

use ast::Node;

/// Longest rendered text, in bytes.
pub const MAX_OUTPUT: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Go,
    Liquid,
}

/// A parsed template.
#[derive(Debug, Clone)]
pub struct Template {
    language: Language,
    nodes: Vec<Node>,
    /// Lines before the first one, in the file that it is part of.
    offset: usize,
}

/// Error of a template, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TemplateError {
    pub line: usize,
    pub message: String,
}

impl TemplateError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl Template {
    /// Parses a text. Without a language, its first tag says which one it is.
    pub fn parse(text: &str, language: Option<Language>) -> Result<Self, TemplateError> {
        let language = language.unwrap_or_else(|| Language::of(text));
        let nodes = match language {
            Language::Go => go::parse(text)?,
            Language::Liquid => liquid::parse(text)?,
        };
        Ok(Self { language, nodes, offset: 0 })
    }

    pub fn language(&self) -> Language {
        self.language
    }

    /// The same template as part of a file, after `lines` others.
    pub fn shifted(self, lines: usize) -> Self {
        Self { offset: lines, ..self }
    }

    /// Renders the text. The lines of errors are those of the file.
    pub fn render(&self, context: &Value) -> Result<String, TemplateError> {
        render::render(self.language, &self.nodes, context)
            .map_err(|error| TemplateError { line: error.line + self.offset, ..error })
    }
}

impl Language {
    /// Language of a text: Liquid has `{% … %}`, and in Go's a variable begins with a dot or a dollar.
    pub fn of(text: &str) -> Self {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let after = &rest[open + 1..];
            if after.starts_with('%') {
                return Language::Liquid;
            }
            let Some(action) = after.strip_prefix('{') else {
                rest = after;
                continue;
            };
            let inner = action.split("}}").next().unwrap_or_default();
            let inner = inner.trim_start_matches('-').trim_end_matches('-').trim();
            let word = inner.split_whitespace().next().unwrap_or_default();
            if inner.starts_with(['.', '$', '(', '`']) || inner.starts_with("/*") {
                return Language::Go;
            }
            let has_go_operand =
                inner.split_whitespace().skip(1).any(|word| word.starts_with(['.', '$', '(']));
            if functions::is_go_word(word) || has_go_operand {
                return Language::Go;
            }
            if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                return Language::Liquid;
            }
            rest = action;
        }
        Language::Go
    }
}

#[cfg(test)]
mod tests;
