//! From words as written to arguments as programs get them, as far as that can be told.

use std::collections::BTreeSet;

use brush_parser::ParserOptions;
use brush_parser::word::{
    BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, ParameterTestType,
    SpecialParameter, TildeExpr, WordPiece, WordPieceWithSource,
};

use super::ansi;
use super::variables::Values;
use super::visitor::Visitor;

/// Arguments that one word is followed into.
const ALTERNATIVE_LIMIT: usize = 64;

/// One argument, or one of the arguments that a word can become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arg {
    pub(super) text: String,
    /// False if the text is only how it was written.
    pub(super) is_known: bool,
    /// Start of the first pattern; everything before it is literal.
    pub(super) glob_at: Option<usize>,
    /// Another argument stands for the same word: only one of them is there.
    pub(super) is_choice: bool,
}

impl Arg {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_known: true, glob_at: None, is_choice: false }
    }

    pub(super) fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_known: false, glob_at: None, is_choice: false }
    }

    /// Whether it would run something if the shell expanded it once more.
    pub(super) fn hides_substitution(&self) -> bool {
        self.is_known && hides_substitution(&self.text)
    }

    /// The text, if this is the only thing the argument can be.
    pub(super) fn exact(&self) -> Option<&str> {
        (self.is_known && !self.is_choice && self.glob_at.is_none()).then_some(self.text.as_str())
    }
}

/// Whether word splitting applies to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Splitting {
    Fields,
    /// In assignments and targets of redirections.
    None,
}

/// A text that is being put together.
#[derive(Debug, Clone, Default)]
struct Draft {
    text: String,
    glob_at: Option<usize>,
    /// Places between two arguments.
    breaks: Vec<usize>,
    has_quotes: bool,
}

/// The texts that a word can become; `None` once that is not known.
type Drafts = Option<Vec<Draft>>;

impl Visitor<'_> {
    /// The arguments that a word becomes, or can become. Everything that runs for it is visited.
    pub(super) fn expand(&mut self, word: &str, splitting: Splitting) -> Vec<Arg> {
        let options = ParserOptions::default();
        let mut args = Vec::new();
        for word in self.expand_braces(word, splitting, &options) {
            let Ok(pieces) = brush_parser::word::parse(&word, &options) else {
                self.facts.is_opaque = true;
                args.push(Arg::unknown(word));
                continue;
            };
            match self.pieces(&pieces, Quoting::None, Some(vec![Draft::default()])) {
                None => args.push(Arg::unknown(word.clone())),
                Some(drafts) => {
                    let is_choice = drafts.len() > 1;
                    let all = drafts.into_iter().flat_map(|draft| draft.into_args(splitting));
                    args.extend(all.map(|arg| Arg { is_choice, ..arg }));
                }
            }
            if args.len() > ALTERNATIVE_LIMIT {
                return vec![Arg::unknown(word)];
            }
        }
        self.facts.has_hidden_commands |= args.iter().any(Arg::hides_substitution);
        args
    }

    /// The texts that a word can become when it is assigned.
    pub(super) fn assigned(&mut self, word: &str) -> Values {
        let args = self.expand(word, Splitting::None);
        // A value that is evaluated later (`((x))`) may run what looks like mere text now.
        if args.iter().any(Arg::hides_substitution) {
            self.facts.is_tainted = true;
        }
        let known: Option<BTreeSet<String>> =
            args.into_iter().map(|arg| arg.is_known.then_some(arg.text)).collect();
        known.map_or(Values::Unknown, Values::Known)
    }

    /// Visits what runs in a text that is treated as if it stood in double quotes.
    pub(super) fn visit_text(&mut self, text: &str) {
        match brush_parser::word::parse_heredoc(text, &ParserOptions::default()) {
            Ok(pieces) => {
                self.pieces(&pieces, Quoting::Double, None);
            }
            Err(_) => self.facts.is_opaque = true,
        }
    }

    /// An expression that the shell calculates. Values of variables in it are evaluated in turn, and run what is
    /// substituted in them.
    pub(super) fn visit_arithmetic(&mut self, text: &str) {
        self.visit_text(text);
        let Ok(pieces) = brush_parser::word::parse_heredoc(text, &ParserOptions::default()) else { return };
        let mut names = BTreeSet::new();
        let mut assigns = false;
        for piece in &pieces {
            match &piece.piece {
                WordPiece::Text(text) => {
                    assigns |= text.contains('=') || text.contains("++") || text.contains("--");
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let words = text.split(|c| !is_name(c));
                    names.extend(words.filter(|word| word.starts_with(|c: char| !c.is_ascii_digit())));
                }
                WordPiece::ParameterExpansion(ParameterExpr::Parameter {
                    parameter: Parameter::Named(name),
                    indirect: false,
                }) => {
                    names.insert(name);
                }
                WordPiece::ParameterExpansion(ParameterExpr::Parameter {
                    parameter: Parameter::Special(special),
                    ..
                }) if !matches!(special, SpecialParameter::AllPositionalParameters { .. }) => {}
                WordPiece::ParameterExpansion(ParameterExpr::ParameterLength { .. }) => {}
                // The value of anything else is unknown, and would be evaluated.
                _ => self.facts.evaluates_anything = true,
            }
        }
        for name in names {
            match self.variables.values(name) {
                Values::Unknown => self.facts.evaluates_anything = true,
                Values::Known(values) => {
                    self.facts.is_opaque |= values.iter().any(|value| hides_substitution(value));
                }
            }
            if assigns {
                self.note_variable(name);
                // Some number.
                self.variables.assign(name, Values::Known(BTreeSet::from(["0".to_owned()])));
            }
        }
    }

    fn expand_braces(&mut self, word: &str, splitting: Splitting, options: &ParserOptions) -> Vec<String> {
        if splitting == Splitting::None || !word.contains('{') {
            return vec![word.to_owned()];
        }
        match brush_parser::word::parse_brace_expansions(word, options) {
            Ok(None) => vec![word.to_owned()],
            Ok(Some(parts)) => match join_braces(&parts) {
                Some(words) => words,
                None => {
                    self.facts.is_tainted = true;
                    vec![word.to_owned()]
                }
            },
            Err(_) => {
                self.facts.is_opaque = true;
                vec![word.to_owned()]
            }
        }
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoting: Quoting, mut drafts: Drafts) -> Drafts {
        let mut behind_dollar = false;
        for piece in pieces {
            // `${ command; }` and the like: the parser of words does not know them all.
            if let WordPiece::Text(text) = &piece.piece {
                if behind_dollar && text.starts_with(['{', '(', '[']) {
                    self.facts.is_opaque = true;
                }
                behind_dollar = text.ends_with('$');
                // In a default value (`${x:-<(command)}`) the parser takes a process for text.
                self.facts.is_opaque |=
                    quoting == Quoting::None && (text.contains("<(") || text.contains(">("));
            } else {
                behind_dollar = false;
            }
            drafts = self.piece(&piece.piece, quoting, drafts);
        }
        drafts
    }

    fn piece(&mut self, piece: &WordPiece, quoting: Quoting, drafts: Drafts) -> Drafts {
        match piece {
            WordPiece::Text(text) => add(drafts, text, quoting == Quoting::None),
            WordPiece::SingleQuotedText(text) => quoted(add(drafts, text, false)),
            WordPiece::AnsiCQuotedText(text) => match ansi::decode(text) {
                Some(text) => quoted(add(drafts, &text, false)),
                None => None,
            },
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                let drafts = self.pieces(pieces, Quoting::Double, drafts);
                quoted(drafts)
            }
            WordPiece::EscapeSequence(escape) => add(drafts, unescape(escape, quoting), false),
            WordPiece::TildeExpansion(tilde) => match tilde {
                TildeExpr::Home => self.named("HOME", Quoting::Double, drafts),
                TildeExpr::WorkingDir => self.working_directory(drafts),
                TildeExpr::UserHome(_)
                | TildeExpr::OldWorkingDir
                | TildeExpr::NthDirFromTopOfDirStack { .. }
                | TildeExpr::NthDirFromBottomOfDirStack { .. } => None,
            },
            WordPiece::ParameterExpansion(expression) => {
                self.parameter_expression(expression, quoting, drafts)
            }
            WordPiece::CommandSubstitution(script) => {
                self.visit_substitution(script);
                None
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                // One layer of backslashes belongs to the backquotes. Which of them the parser has taken off is not
                // certain, so the script is read in every way.
                let scripts =
                    [script.clone(), without_escapes(script, "$`\\"), without_escapes(script, "$`\\\"")];
                for script in BTreeSet::from(scripts) {
                    self.visit_substitution(&script);
                }
                None
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.visit_arithmetic(&expression.value);
                // Some number.
                add(drafts, "0", false)
            }
        }
    }

    fn parameter_expression(
        &mut self,
        expression: &ParameterExpr,
        quoting: Quoting,
        drafts: Drafts,
    ) -> Drafts {
        use ParameterExpr as P;
        // Everything that is expanded on the way is visited first, whatever comes of it.
        let (parameter, texts): (Option<&Parameter>, [Option<&str>; 2]) = match expression {
            P::Parameter { parameter, .. } | P::ParameterLength { parameter, .. } => {
                (Some(parameter), [None, None])
            }
            P::UseDefaultValues { parameter, default_value: text, .. }
            | P::AssignDefaultValues { parameter, default_value: text, .. }
            | P::IndicateErrorIfNullOrUnset { parameter, error_message: text, .. }
            | P::UseAlternativeValue { parameter, alternative_value: text, .. }
            | P::RemoveSmallestSuffixPattern { parameter, pattern: text, .. }
            | P::RemoveLargestSuffixPattern { parameter, pattern: text, .. }
            | P::RemoveSmallestPrefixPattern { parameter, pattern: text, .. }
            | P::RemoveLargestPrefixPattern { parameter, pattern: text, .. }
            | P::UppercaseFirstChar { parameter, pattern: text, .. }
            | P::UppercasePattern { parameter, pattern: text, .. }
            | P::LowercaseFirstChar { parameter, pattern: text, .. }
            | P::LowercasePattern { parameter, pattern: text, .. } => {
                (Some(parameter), [text.as_deref(), None])
            }
            P::Substring { parameter, offset, length, .. } => (
                Some(parameter),
                [Some(offset.value.as_str()), length.as_ref().map(|length| length.value.as_str())],
            ),
            P::ReplaceSubstring { parameter, pattern, replacement, .. } => {
                (Some(parameter), [Some(pattern.as_str()), replacement.as_deref()])
            }
            P::Transform { parameter, .. } => {
                // `@P` runs substitutions in a value, `@E` writes any text.
                self.facts.is_opaque = true;
                (Some(parameter), [None, None])
            }
            P::VariableNames { .. } | P::MemberKeys { .. } => (None, [None, None]),
        };
        if let Some(Parameter::NamedWithIndex { index, .. }) = parameter {
            self.visit_arithmetic(index);
        }
        if let P::Substring { offset, length, .. } = expression {
            self.visit_arithmetic(&offset.value);
            length.iter().for_each(|length| self.visit_arithmetic(&length.value));
        }
        // `${!name}` reads a variable whose name, with an index that is calculated, is the value of another.
        self.facts.evaluates_anything |= is_indirect(expression);
        for text in texts.into_iter().flatten() {
            // Visited under either reading of its quotes: what runs in one of them is then known.
            self.expand(text, Splitting::None);
            self.visit_text(text);
        }
        match expression {
            P::Parameter { parameter, indirect: false } => self.parameter(parameter, quoting, drafts),
            P::ParameterLength { .. } => add(drafts, "0", false),
            P::UseDefaultValues {
                parameter: Parameter::Named(name),
                indirect: false,
                test_type,
                default_value,
            } => {
                let default = match default_value {
                    Some(text) => self.assigned(text),
                    None => Values::Known(BTreeSet::from([String::new()])),
                };
                match (self.variables.values(name), default) {
                    (Values::Known(mut values), Values::Known(defaults)) => {
                        let may_be_empty = match test_type {
                            ParameterTestType::UnsetOrNull => values.remove(""),
                            ParameterTestType::Unset => true,
                        };
                        if may_be_empty {
                            values.extend(defaults);
                        }
                        add_values(drafts, &values, quoting)
                    }
                    (Values::Unknown, _) | (_, Values::Unknown) => None,
                }
            }
            P::AssignDefaultValues { parameter: Parameter::Named(name), .. } => {
                self.variables.assign(name, Values::Unknown);
                None
            }
            _ => None,
        }
    }

    fn parameter(&mut self, parameter: &Parameter, quoting: Quoting, drafts: Drafts) -> Drafts {
        match parameter {
            Parameter::Named(name) if name == "PWD" => self.working_directory(drafts),
            Parameter::Named(name)
            | Parameter::NamedWithIndex { name, .. }
            | Parameter::NamedWithAllIndices { name, .. } => self.named(name, quoting, drafts),
            Parameter::Positional(_) => None,
            Parameter::Special(special) => match special {
                SpecialParameter::PositionalParameterCount
                | SpecialParameter::LastExitStatus
                | SpecialParameter::ProcessId => add(drafts, "0", false),
                SpecialParameter::AllPositionalParameters { .. }
                | SpecialParameter::LastBackgroundProcessId
                | SpecialParameter::CurrentOptionFlags
                | SpecialParameter::ShellName => None,
            },
        }
    }

    fn named(&mut self, name: &str, quoting: Quoting, drafts: Drafts) -> Drafts {
        match self.variables.values(name) {
            Values::Known(values) => add_values(drafts, &values, quoting),
            Values::Unknown => None,
        }
    }

    fn working_directory(&mut self, drafts: Drafts) -> Drafts {
        let places: Option<BTreeSet<String>> =
            self.places.iter().map(|place| place.to_str().map(str::to_owned)).collect();
        match places {
            Some(places) if !places.is_empty() => add_values(drafts, &places, Quoting::Double),
            Some(_) | None => None,
        }
    }
}

fn is_indirect(expression: &ParameterExpr) -> bool {
    use ParameterExpr as P;
    match expression {
        P::Parameter { indirect, .. }
        | P::UseDefaultValues { indirect, .. }
        | P::AssignDefaultValues { indirect, .. }
        | P::IndicateErrorIfNullOrUnset { indirect, .. }
        | P::UseAlternativeValue { indirect, .. }
        | P::ParameterLength { indirect, .. }
        | P::RemoveSmallestSuffixPattern { indirect, .. }
        | P::RemoveLargestSuffixPattern { indirect, .. }
        | P::RemoveSmallestPrefixPattern { indirect, .. }
        | P::RemoveLargestPrefixPattern { indirect, .. }
        | P::Substring { indirect, .. }
        | P::Transform { indirect, .. }
        | P::UppercaseFirstChar { indirect, .. }
        | P::UppercasePattern { indirect, .. }
        | P::LowercaseFirstChar { indirect, .. }
        | P::LowercasePattern { indirect, .. }
        | P::ReplaceSubstring { indirect, .. } => *indirect,
        P::VariableNames { .. } | P::MemberKeys { .. } => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

fn add(drafts: Drafts, text: &str, can_glob: bool) -> Drafts {
    let mut drafts = drafts?;
    let glob = if can_glob { first_glob(text) } else { None };
    for draft in &mut drafts {
        if let Some(at) = glob {
            draft.glob_at.get_or_insert(draft.text.len() + at);
        }
        draft.text.push_str(text);
    }
    Some(drafts)
}

/// Start of a pattern. A bracket that is not closed is none, as in the command `[`; parentheses in a word belong to
/// the patterns of `extglob`.
fn first_glob(text: &str) -> Option<usize> {
    text.char_indices()
        .find(|(at, c)| match c {
            '*' | '?' | '(' => true,
            '[' => text[*at..].contains(']'),
            _ => false,
        })
        .map(|(at, _)| at)
}

fn quoted(drafts: Drafts) -> Drafts {
    let mut drafts = drafts?;
    drafts.iter_mut().for_each(|draft| draft.has_quotes = true);
    Some(drafts)
}

fn add_values(drafts: Drafts, values: &BTreeSet<String>, quoting: Quoting) -> Drafts {
    let drafts = drafts?;
    if drafts.len() * values.len() > ALTERNATIVE_LIMIT {
        return None;
    }
    let mut grown = Vec::with_capacity(drafts.len() * values.len());
    for draft in &drafts {
        for value in values {
            let mut draft = draft.clone();
            let start = draft.text.len();
            if quoting == Quoting::None {
                if let Some(at) = first_glob(value) {
                    draft.glob_at.get_or_insert(start + at);
                }
                let blanks = value.char_indices().filter(|(_, c)| matches!(c, ' ' | '\t' | '\n'));
                draft.breaks.extend(blanks.map(|(at, _)| start + at));
            }
            draft.text.push_str(value);
            grown.push(draft);
        }
    }
    Some(grown)
}

impl Draft {
    fn into_args(self, splitting: Splitting) -> Vec<Arg> {
        let whole = |text: String, glob_at| Arg { glob_at, ..Arg::literal(text) };
        if splitting == Splitting::None {
            return vec![whole(self.text, self.glob_at)];
        }
        if self.text.is_empty() && !self.has_quotes {
            // Nothing is left of the word.
            return Vec::new();
        }
        if self.breaks.is_empty() {
            return vec![whole(self.text, self.glob_at)];
        }
        let mut args = Vec::new();
        let mut start = 0;
        for end in self.breaks.iter().copied().chain([self.text.len()]) {
            if start < end {
                let glob_at = self.glob_at.filter(|at| (start..end).contains(at)).map(|at| at - start);
                args.push(whole(self.text[start..end].to_owned(), glob_at));
            }
            start = end + 1;
        }
        args
    }
}

fn unescape(escape: &str, quoting: Quoting) -> &str {
    let Some(escaped) = escape.strip_prefix('\\') else { return escape };
    match quoting {
        Quoting::None if escaped == "\n" => "",
        Quoting::None => escaped,
        Quoting::Double if matches!(escaped, "$" | "`" | "\"" | "\\") => escaped,
        Quoting::Double if escaped == "\n" => "",
        Quoting::Double => escape,
    }
}

/// The text without backslashes before these characters.
fn without_escapes(text: &str, escaped: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.peek() {
            Some(next) if c == '\\' && escaped.contains(*next) => plain.extend(rest.next()),
            _ => plain.push(c),
        }
    }
    plain
}

/// All words of a brace expression; `None` if there are too many.
fn join_braces(parts: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut words = vec![String::new()];
    for part in parts {
        let choices = match part {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut choices = Vec::new();
                for member in members {
                    match member {
                        BraceExpressionMember::Child(parts) => choices.extend(join_braces(parts)?),
                        // Numbers and letters: the ends stand for what is between them.
                        BraceExpressionMember::NumberSequence { start, end, .. } => {
                            choices.extend([start.to_string(), end.to_string()]);
                        }
                        BraceExpressionMember::CharSequence { start, end, .. } => {
                            choices.extend([start.to_string(), end.to_string()]);
                        }
                    }
                }
                choices
            }
        };
        if words.len() * choices.len() > ALTERNATIVE_LIMIT {
            return None;
        }
        words = words
            .iter()
            .flat_map(|word| choices.iter().map(move |choice| format!("{word}{choice}")))
            .collect();
    }
    Some(words)
}

/// Whether a text would run something if the shell expanded it once more.
pub(super) fn hides_substitution(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}
