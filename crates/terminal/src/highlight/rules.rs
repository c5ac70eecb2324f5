//! Rules of a language: the data that drives the lexer.

/// Language that can be highlighted.
#[derive(Debug)]
pub(super) struct Language {
    /// Names in info strings of fenced code, which are also extensions of files.
    pub(super) names: &'static [&'static str],
    /// Names of whole files, in lower case.
    pub(super) files: &'static [&'static str],
    pub(super) grammar: Grammar,
}

#[derive(Debug)]
pub(super) enum Grammar {
    Code(&'static LexicalRules),
    Markdown,
    Diff,
}

/// Lexical rules of a language.
#[derive(Debug)]
pub(super) struct LexicalRules {
    /// Marks of comments up to the end of the line.
    pub(super) comments: &'static [&'static str],
    pub(super) blocks: &'static [BlockComment],
    /// Forms of strings; of two that start alike the longer one comes first.
    pub(super) quotes: &'static [Quote],
    /// Letters before a quote that change the string, in lower case.
    pub(super) prefixes: &'static [(&'static str, StringPrefix)],
    /// Mark of a here document.
    pub(super) heredoc: Option<&'static str>,
    pub(super) keywords: &'static [&'static str],
    pub(super) constants: &'static [&'static str],
    pub(super) types: &'static [&'static str],
    /// Keywords before the name of a function.
    pub(super) functions: &'static [&'static str],
    /// Keywords before the name of a type.
    pub(super) definitions: &'static [&'static str],
    pub(super) case: Case,
    /// ASCII characters of words beside letters, digits and `_`.
    pub(super) word: &'static str,
    /// Characters before the name of a variable.
    pub(super) sigils: &'static str,
    /// Characters after a word or a string that make it a key.
    pub(super) keys: &'static str,
    pub(super) features: &'static [Feature],
}

impl LexicalRules {
    pub(super) const NONE: Self = Self {
        comments: &[],
        blocks: &[],
        quotes: &[],
        prefixes: &[],
        heredoc: None,
        keywords: &[],
        constants: &[],
        types: &[],
        functions: &[],
        definitions: &[],
        case: Case::Meaningless,
        word: "",
        sigils: "",
        keys: "",
        features: &[],
    };

    pub(super) fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Whether a byte belongs to words. All of a character beyond ASCII does.
    pub(super) fn is_word(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || byte == b'_'
            || !byte.is_ascii()
            || self.word.as_bytes().contains(&byte)
    }
}

/// Meaning of the case of letters in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Meaningless,
    /// Keywords have any case.
    Ignored,
    /// A capital starts a type, capitals only are a constant.
    Types,
    /// As `Types`, but a word before a parenthesis is a function.
    TypesAndCalls,
}

/// Peculiarity of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    /// `#[attribute]`.
    Attributes,
    /// A comment starts after a blank only.
    BlankBeforeComment,
    /// A quote within a word is text.
    BlankBeforeQuote,
    /// `'x'` is a character, any other `'` is not a quote.
    Characters,
    /// A document of markup.
    Document,
    /// `@decorator`.
    Decorators,
    /// `#"text"#`.
    HashStrings,
    /// Keywords are the first words of lines.
    Instructions,
    /// Markup between values of the language.
    Jsx,
    /// `'lifetime`.
    Lifetimes,
    /// `[==[text]==]`.
    LongBrackets,
    /// `name!`.
    Macros,
    /// `#directive` at the start of a line.
    Preprocessor,
    /// `/pattern/`.
    Patterns,
    /// `[section]` at the start of a line.
    Sections,
    /// Commands with their arguments.
    Shell,
    /// Selectors, and declarations in braces.
    Styles,
    /// `:symbol`.
    Symbols,
    /// `target: prerequisites` and `VARIABLE = value` at the start of a line.
    Targets,
    /// Keys and values by indentation.
    Yaml,
}

/// Comment with an end mark. One that starts with `=` is at the start of a line only.
#[derive(Debug)]
pub(super) struct BlockComment {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) nested: bool,
}

pub(super) const fn block(open: &'static str, close: &'static str) -> BlockComment {
    BlockComment { open, close, nested: false }
}

pub(super) const fn nested(open: &'static str, close: &'static str) -> BlockComment {
    BlockComment { open, close, nested: true }
}

/// Form of a string.
#[derive(Debug)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) escape: Escape,
    /// Whether the string may go over lines.
    pub(super) lines: bool,
    pub(super) holes: Holes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    None,
    Backslash,
    /// The end mark twice.
    Doubled,
}

/// Places in a string that are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holes {
    None,
    /// `{name:format}`, which is not lexed further.
    Format,
    /// `{code}`; a brace is written twice.
    Braces,
    /// `${code}`.
    Template,
    /// `${code}` and `$name`.
    Dollar,
    /// `$name`, `${name}` and `$(command)`.
    Shell,
    /// `#{code}`.
    Hash,
    /// `\(code)`.
    Parenthesis,
}

/// String on one line that starts and ends with the same mark and has escapes with backslashes.
pub(super) const fn quote(mark: &'static str) -> Quote {
    Quote { open: mark, close: mark, escape: Escape::Backslash, lines: false, holes: Holes::None }
}

impl Quote {
    pub(super) const fn over_lines(self) -> Self {
        Self { lines: true, ..self }
    }

    pub(super) const fn raw(self) -> Self {
        Self { escape: Escape::None, ..self }
    }

    pub(super) const fn doubled(self) -> Self {
        Self { escape: Escape::Doubled, ..self }
    }

    pub(super) const fn until(self, close: &'static str) -> Self {
        Self { close, ..self }
    }

    pub(super) const fn with(self, holes: Holes) -> Self {
        Self { holes, ..self }
    }
}

/// Meaning of letters before a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringPrefix {
    Plain,
    Raw,
    Holes(Holes),
    RawHoles(Holes),
    /// Raw, with any number of `#` around the quotes.
    Hashes,
    /// Raw, with a delimiter and parentheses in the quotes.
    Delimiter,
}
