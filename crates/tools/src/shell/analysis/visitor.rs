//! Goes through a program and everything nested in it, and notes what is found.

use std::collections::HashSet;
use std::path::PathBuf;

use brush_parser::SourceSpan;
use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, BinaryPredicate, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, Program, RedirectList, SeparatorOperator, SimpleCommand,
    UnaryPredicate,
};
use hangar_protocol::permission::ShellCommand;

use super::variables::{self, Values, Variables};
use super::words::{Arg, Splitting, hides_substitution};
use super::{Analysis, LineContext, parse, paths};

/// Readings of a text until nothing new is learned of its variables.
const READING_LIMIT: usize = 8;

/// From this reading on, variables that hold ever more are given up.
const WIDENING: usize = 3;

/// Scripts inside of scripts that are read, over all levels.
const SCRIPT_LIMIT: usize = 500;

pub(super) struct Visitor<'a> {
    pub(super) facts: Facts,
    pub(super) variables: Variables<'a>,
    /// The directories in which the next command can find itself; none if that is not known.
    pub(super) places: Vec<PathBuf>,
    pub(super) functions: HashSet<String>,
    /// A loop or a function changes the directory, so that it can be anywhere at any time.
    wanders: bool,
    /// The script that is being read.
    source: String,
    scripts: usize,
}

#[derive(Default)]
pub(super) struct Facts {
    pub(super) commands: Vec<ShellCommand>,
    pub(super) possible_paths: Vec<String>,
    pub(super) possible_urls: Vec<String>,
    pub(super) reads: Vec<PathBuf>,
    pub(super) writes: Vec<PathBuf>,
    pub(super) has_write_redirection: bool,
    /// Something could not be read.
    pub(super) is_opaque: bool,
    /// Something makes every command doubtful.
    pub(super) is_tainted: bool,
    /// A text would run something if it were evaluated.
    pub(super) has_hidden_commands: bool,
    /// Something is evaluated that is not known.
    pub(super) evaluates_anything: bool,
    /// The commands do more than their names say: they come with variables, functions or substitutions.
    pub(super) is_elaborate: bool,
}

impl<'a> Visitor<'a> {
    pub(super) fn read(program: &Program, text: &str, scope: LineContext<'a>) -> Analysis {
        let mut visitor = Self {
            facts: Facts::default(),
            variables: Variables::new(scope.env),
            places: Vec::new(),
            functions: HashSet::new(),
            wanders: false,
            source: text.to_owned(),
            scripts: 0,
        };
        for reading in 1.. {
            let known = (visitor.functions.len(), visitor.wanders);
            visitor.facts = Facts::default();
            visitor.places = if visitor.wanders { Vec::new() } else { vec![scope.cwd.to_path_buf()] };
            visitor.scripts = 0;
            visitor.program(program);
            let learned = visitor.variables.begin() || known != (visitor.functions.len(), visitor.wanders);
            if !learned {
                break;
            }
            if reading == WIDENING {
                visitor.variables.widen();
            }
            if reading == READING_LIMIT {
                visitor.facts.is_opaque = true;
                break;
            }
        }
        visitor.facts.into_analysis()
    }

    /// Reads a script that is part of another.
    pub(super) fn visit_script(&mut self, text: &str) {
        self.scripts += 1;
        let program = if self.scripts > SCRIPT_LIMIT { None } else { parse(text) };
        match program {
            Some(program) => {
                let outer = std::mem::replace(&mut self.source, text.to_owned());
                self.program(&program);
                self.source = outer;
            }
            None => self.facts.is_opaque = true,
        }
    }

    pub(super) fn visit_substitution(&mut self, script: &str) {
        self.facts.is_elaborate = true;
        self.aside(|visitor| visitor.visit_script(script));
    }

    /// A variable is set, to whatever.
    pub(super) fn note_variable(&mut self, name: &str) {
        self.facts.is_tainted |= variables::is_dangerous(name);
        if variables::replaces_programs(name) {
            // A rule that allows the commands after it does not allow what they become.
            self.note_command(format!("{name}="), false);
        }
    }

    pub(super) fn note_command(&mut self, identifier: impl Into<String>, read_only: bool) {
        let command = ShellCommand { identifier: identifier.into(), read_only };
        if !self.facts.commands.contains(&command) {
            self.facts.commands.push(command);
        }
    }

    fn program(&mut self, program: &Program) {
        program.complete_commands.iter().for_each(|list| self.list(list));
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            match item.1 {
                SeparatorOperator::Sequence => self.and_or(&item.0),
                SeparatorOperator::Async => self.aside(|visitor| visitor.and_or(&item.0)),
            }
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        if list.additional.is_empty() {
            return;
        }
        let (mark, places) = (self.variables.mark(), self.places.clone());
        for part in &list.additional {
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = part;
            self.pipeline(pipeline);
        }
        self.variables.reset(mark);
        self.also_in(places);
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        match pipeline.seq.as_slice() {
            [command] => self.command(command),
            commands => commands.iter().for_each(|command| self.aside(|visitor| visitor.command(command))),
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(command) => self.simple(command),
            Command::Compound(command, redirects) => {
                self.compound(command);
                self.redirects(redirects.as_ref());
            }
            Command::Function(function) => {
                self.facts.is_elaborate = true;
                self.functions.insert(function.fname.value.clone());
                self.repeatedly(|visitor| visitor.compound(&function.body.0));
                self.redirects(function.body.1.as_ref());
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }

    fn compound(&mut self, command: &CompoundCommand) {
        match command {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => {
                let text = self.source_of(&subshell.loc);
                self.visit_calculation(&text);
                self.aside(|visitor| visitor.list(&subshell.list));
            }
            CompoundCommand::Arithmetic(arithmetic) => {
                let text = self.source_of(&arithmetic.loc);
                self.visit_calculation(&text);
                if text.starts_with("((") && text.ends_with("))") {
                    self.visit_arithmetic(&arithmetic.expr.value);
                } else {
                    // The parser takes `( (rm x) )` for a calculation too.
                    match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                        Some(script) => self.visit_substitution(script),
                        None => self.facts.is_opaque = true,
                    }
                }
            }
            CompoundCommand::ForClause(clause) => {
                self.note_variable(&clause.variable_name);
                match &clause.values {
                    Some(words) => {
                        for word in words {
                            let args = self.expand(&word.value, Splitting::Fields);
                            let values = args.into_iter().map(|arg| arg.exact().map(str::to_owned)).collect();
                            let values = Option::map_or(values, Values::Unknown, Values::Known);
                            self.variables.assign(&clause.variable_name, values);
                        }
                    }
                    None => self.variables.assign(&clause.variable_name, Values::Unknown),
                }
                self.repeatedly(|visitor| visitor.list(&clause.body.list));
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                for expression in
                    [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten()
                {
                    self.visit_arithmetic(&expression.value);
                }
                self.repeatedly(|visitor| visitor.list(&clause.body.list));
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeatedly(|visitor| {
                    visitor.list(&clause.0);
                    visitor.list(&clause.1.list);
                });
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.maybe(|visitor| visitor.list(&clause.then));
                for branch in clause.elses.iter().flatten() {
                    self.maybe(|visitor| {
                        branch.condition.iter().for_each(|condition| visitor.list(condition));
                        visitor.list(&branch.body);
                    });
                }
            }
            CompoundCommand::CaseClause(clause) => {
                self.expand(&clause.value.value, Splitting::None);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.expand(&pattern.value, Splitting::None);
                    }
                    if let Some(list) = &case.cmd {
                        self.maybe(|visitor| visitor.list(list));
                    }
                }
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.facts.is_tainted = true;
                self.aside(|visitor| visitor.command(&coprocess.body));
            }
        }
    }

    /// A line that begins with `((`: the shell expands it before it knows whether it is arithmetic, whatever the parser says.
    fn visit_calculation(&mut self, text: &str) {
        if let Some(text) = text.strip_prefix("((") {
            self.visit_text(text);
        }
    }

    fn source_of(&self, span: &SourceSpan) -> String {
        let length = span.end.index.saturating_sub(span.start.index);
        self.source.chars().skip(span.start.index).take(length).collect()
    }

    fn simple(&mut self, command: &SimpleCommand) {
        let mut args = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                    self.facts.is_elaborate |= command.word_or_name.is_some();
                    self.assignment(assignment);
                }
                other => self.item(other, &mut args),
            }
        }
        let Some(name) = &command.word_or_name else { return };
        let mut words = self.expand(&name.value, Splitting::Fields);
        args.append(&mut words);
        let declares = matches!(
            args.first().and_then(Arg::exact),
            Some("declare" | "typeset" | "local" | "export" | "readonly")
        );
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) if declares => {
                    self.assignment(assignment);
                }
                other => self.item(other, &mut args),
            }
        }
        self.run(&args);
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, args: &mut Vec<Arg>) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect),
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                args.append(&mut self.expand(&word.value, Splitting::Fields));
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.facts.is_elaborate = true;
                self.aside(|visitor| visitor.list(&subshell.list));
                args.push(Arg::literal("/dev/fd/63"));
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name,
            AssignmentName::ArrayElementName(name, index) => {
                self.visit_arithmetic(index);
                self.facts.is_tainted |= hides_substitution(index);
                name
            }
        };
        self.note_variable(name);
        let words: Vec<&str> = match &assignment.value {
            AssignmentValue::Scalar(word) => vec![&word.value],
            AssignmentValue::Array(elements) => elements
                .iter()
                .flat_map(|(key, value)| key.iter().chain([value]))
                .map(|word| word.value.as_str())
                .collect(),
        };
        for word in words {
            let values = self.assigned(word);
            let values = if assignment.append { Values::Unknown } else { values };
            self.variables.assign(name, values);
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(one, two) | ExtendedTestExpr::Or(one, two) => {
                self.test(one);
                self.test(two);
            }
            ExtendedTestExpr::Not(test) | ExtendedTestExpr::Parenthesized(test) => self.test(test),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                let is_evaluated = matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned
                        | UnaryPredicate::ShellVariableIsSetAndNameRef
                );
                self.operand(&word.value, is_evaluated);
            }
            ExtendedTestExpr::BinaryTest(predicate, one, two) => {
                let is_evaluated = matches!(
                    predicate,
                    BinaryPredicate::ArithmeticEqualTo
                        | BinaryPredicate::ArithmeticNotEqualTo
                        | BinaryPredicate::ArithmeticLessThan
                        | BinaryPredicate::ArithmeticLessThanOrEqualTo
                        | BinaryPredicate::ArithmeticGreaterThan
                        | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
                );
                self.operand(&one.value, is_evaluated);
                self.operand(&two.value, is_evaluated);
            }
        }
    }

    /// An operand of `[[ ]]` can be a path, and for some operators it is an expression.
    fn operand(&mut self, word: &str, is_evaluated: bool) {
        for arg in self.expand(word, Splitting::None) {
            self.facts.is_tainted |= arg.hides_substitution();
            self.facts.is_opaque |= arg.hides_substitution() && is_evaluated;
            // A name stands for its value, which is evaluated in turn.
            let is_name = arg.text.contains(|c: char| c.is_alphabetic() || c == '_');
            self.facts.evaluates_anything |= is_evaluated && (!arg.is_known || is_name);
            paths::note_argument(self, &arg);
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect));
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, kind, target) => self.file_redirect(kind, target),
            IoRedirect::OutputAndError(word, _) => self.redirect_to(&word.value),
            IoRedirect::HereString(_, word) => {
                self.expand(&word.value, Splitting::None);
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.visit_text(&document.doc.value);
                }
            }
        }
    }

    fn file_redirect(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget) {
        let word = match target {
            IoFileRedirectTarget::Fd(_) => return,
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.facts.is_elaborate = true;
                return self.aside(|visitor| visitor.list(&subshell.list));
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => &word.value,
        };
        match kind {
            IoFileRedirectKind::Read => {
                for arg in self.expand(word, Splitting::None) {
                    paths::note_input(self, &arg);
                }
            }
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => self.redirect_to(word),
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput => {
                // `2>&1` and `>&-` are about descriptors; `>&file` is about a file.
                let is_descriptor =
                    !word.is_empty() && word.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                if !is_descriptor {
                    self.redirect_to(word);
                }
            }
        }
    }

    fn redirect_to(&mut self, word: &str) {
        for arg in self.expand(word, Splitting::None) {
            paths::note_output(self, &arg);
        }
    }

    /// For what runs in a process of its own: neither its directory nor its variables are seen outside.
    pub(super) fn aside(&mut self, visit: impl FnOnce(&mut Self)) {
        let (mark, places) = (self.variables.mark(), self.places.clone());
        visit(self);
        self.variables.reset(mark);
        self.places = places;
    }

    /// For what may not run.
    fn maybe(&mut self, visit: impl FnOnce(&mut Self)) {
        let (mark, places) = (self.variables.mark(), self.places.clone());
        visit(self);
        self.variables.reset(mark);
        self.also_in(places);
    }

    /// For what may run never, once, or many times, and not only here.
    fn repeatedly(&mut self, visit: impl FnOnce(&mut Self)) {
        let (mark, places) = (self.variables.mark(), self.places.clone());
        visit(self);
        self.variables.reset(mark);
        self.wanders |= self.places != places;
        self.also_in(places);
    }

    /// Adds the places of the other way to get here.
    fn also_in(&mut self, places: Vec<PathBuf>) {
        if self.places.is_empty() || places.is_empty() {
            self.places.clear();
            return;
        }
        for place in places {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        }
    }
}

/// Paths listed at most. A line with more of them was not read to its end.
const PATH_LIMIT: usize = 256;

impl Facts {
    pub(super) fn note_read(&mut self, path: PathBuf) {
        self.is_opaque |= !add(&mut self.reads, path);
    }

    pub(super) fn note_write(&mut self, path: PathBuf) {
        self.is_opaque |= !add(&mut self.writes, path);
    }

    /// Adds to the paths that permission requests display. The list may be truncated: checks do not use it.
    pub(super) fn note_possible_path(&mut self, text: &str) {
        add(&mut self.possible_paths, text.to_owned());
    }

    fn into_analysis(self) -> Analysis {
        // Text that is hidden in one place may be evaluated in the other.
        let is_opaque = self.is_opaque || self.has_hidden_commands && self.evaluates_anything;
        let is_doubtful = is_opaque || self.is_tainted || self.evaluates_anything;
        let mut commands = self.commands;
        let runs_unread = is_doubtful || commands.iter().any(|command| !is_followed(command));
        for command in &mut commands {
            command.read_only &= !is_doubtful;
        }
        Analysis {
            runs_unread,
            can_offer_session_approval: !is_opaque && !self.is_elaborate && !commands.is_empty(),
            commands,
            possible_paths: self.possible_paths,
            possible_urls: self.possible_urls,
            reads: self.reads,
            writes: self.writes,
            has_write_redirection: self.has_write_redirection,
            is_opaque,
        }
    }
}

/// Programs that change something and run nothing.
const RUN_NOTHING: [&str; 16] = [
    "cd", "chgrp", "chmod", "chown", "cp", "install", "kill", "ln", "mkdir", "mv", "rm", "rmdir", "tee",
    "touch", "truncate", "unlink",
];

/// Commands of Git that run no others but its own hooks.
const GIT_RUNS_NOTHING: [&str; 24] = [
    "add",
    "am",
    "apply",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "fetch",
    "gc",
    "init",
    "merge",
    "mv",
    "notes",
    "pull",
    "push",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
    "tag",
];

/// Whether all that a command runs was read too.
fn is_followed(command: &ShellCommand) -> bool {
    command.read_only
        || match command.identifier.strip_prefix("git ") {
            Some(subcommand) => GIT_RUNS_NOTHING.contains(&subcommand),
            None => RUN_NOTHING.contains(&command.identifier.as_str()),
        }
}

/// Says whether there was room.
fn add<T: PartialEq>(list: &mut Vec<T>, item: T) -> bool {
    if list.contains(&item) {
        return true;
    }
    let has_room = list.len() < PATH_LIMIT;
    if has_room {
        list.push(item);
    }
    has_room
}
