//! Prompts and their variables.
//!
//! Expansion has two halves. Validation replaces the variables of the entry, once; what is left are the variables that
//! only a run knows, and those are replaced before each prompt is sent.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::validate::Invalid;

/// Lines of a prompt. A file may have one text instead of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "Prompt", schema_with = "prompt_schema")]
pub struct TaskPrompt(pub Vec<String>);

fn prompt_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "description": "Lines of a prompt, or one text.",
        "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "string" }],
    })
}

impl<const N: usize> From<[&str; N]> for TaskPrompt {
    fn from(lines: [&str; N]) -> Self {
        Self(lines.into_iter().map(str::to_owned).collect())
    }
}

impl<'de> Deserialize<'de> for TaskPrompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = TaskPrompt;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of lines")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TaskPrompt, E> {
                Ok(TaskPrompt(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TaskPrompt, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = seq.next_element()? {
                    lines.push(line);
                }
                Ok(TaskPrompt(lines))
            }
        }
        deserializer.deserialize_any(Lines)
    }
}

macro_rules! runtime_variables {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal; )*) => {
        /// Variables that only a run knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum RuntimeVariable { $( $(#[$doc])* $variant, )* }

        impl RuntimeVariable {
            pub const ALL: &'static [RuntimeVariable] = &[$( RuntimeVariable::$variant, )*];

            /// Without the `$`.
            pub fn name(self) -> &'static str {
                match self { $( RuntimeVariable::$variant => $name, )* }
            }
        }
    };
}

runtime_variables! {
    UserInput = "user-input";
    TaskModel = "task-model";
    ReportedDocument = "reported-document";
    ReportedTrueReason = "reported-true-reason";
    ReportedFalseReason = "reported-false-reason";
}

impl RuntimeVariable {
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variable| variable.name() == name)
    }
}

/// Stands for a variable that has no value yet.
pub const MISSING: &str = "<MISSING>";
/// Maximum nesting of variables. Cycles are found by name; this bounds other nesting.
const MAX_DEPTH: usize = 64;
/// Maximum length of an expanded prompt: variables that use variables twice grow exponentially otherwise.
const MAX_EXPANDED: usize = 4 << 20;

/// Job tool that a prompt must mention so that it can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredTool {
    Anything,
    /// It ends in one of the boolean tools.
    YesOrNo,
}

/// A piece of a text: itself, or the name of a variable without its `$`.
#[derive(Debug, PartialEq, Eq)]
enum PromptPiece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Letters, and hyphens between letters: `$abc-def1` is the variable `abc-def` before a `1`.
fn variable_at(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.as_bytes();
    let letters = |from: usize| name[from..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let mut end = letters(0);
    if end == 0 {
        return None;
    }
    while name.get(end) == Some(&b'-') {
        match letters(end + 1) {
            0 => break,
            more => end += 1 + more,
        }
    }
    text.get(1..=end)
}

fn pieces(text: &str) -> impl Iterator<Item = PromptPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) = variable_at(rest) {
            rest = &rest[1 + name.len()..];
            return Some(PromptPiece::Variable(name));
        }
        let end = rest
            .match_indices('$')
            .map(|(at, _)| at)
            .find(|at| *at > 0 && variable_at(&rest[*at..]).is_some())
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(PromptPiece::Text(text))
    })
}

/// Whether a text uses a variable of a run.
pub fn uses(text: &str, variable: RuntimeVariable) -> bool {
    pieces(text).any(|piece| piece == PromptPiece::Variable(variable.name()))
}

/// Replaces the variables of an entry. What comes out is one text in which only variables of a run are left.
pub fn expand_static(
    variables: &IndexMap<String, TaskPrompt>,
    path: &str,
    prompt: &TaskPrompt,
    asks: RequiredTool,
) -> Result<TaskPrompt, Invalid> {
    let mut text = String::new();
    expand_into(variables, path, prompt, &mut Vec::new(), &mut text)?;
    let answers = [crate::tools::JobTool::BooleanTrue, crate::tools::JobTool::BooleanFalse];
    if asks == RequiredTool::YesOrNo && !answers.iter().any(|tool| text.contains(tool.name())) {
        let reason = "Boolean tool (job_boolean_true or job_boolean_false) must be mentioned.";
        return Err(Invalid::at(path, reason));
    }
    Ok(TaskPrompt(vec![text]))
}

fn expand_into<'a>(
    variables: &'a IndexMap<String, TaskPrompt>,
    path: &str,
    prompt: &TaskPrompt,
    inside: &mut Vec<&'a str>,
    out: &mut String,
) -> Result<(), Invalid> {
    if prompt.0.is_empty() {
        return Err(Invalid::at(path, "Prompt is empty."));
    }
    for piece in pieces(&prompt.0.join("\n")) {
        match piece {
            PromptPiece::Text(text) => out.push_str(text),
            PromptPiece::Variable(name) if RuntimeVariable::named(name).is_some() => {
                out.push('$');
                out.push_str(name);
            }
            PromptPiece::Variable(name) => {
                let Some((name, value)) = variables.get_key_value(name) else {
                    return Err(Invalid::at(path, format!("Cannot find prompt variable: ${name}.")));
                };
                if inside.contains(&name.as_str()) {
                    let cycle = inside.iter().map(|name| format!("${name}")).collect::<Vec<_>>().join(" -> ");
                    let reason = format!("Prompt variable ${name} contains itself: {cycle} -> ${name}.");
                    return Err(Invalid::at(path, reason));
                }
                if inside.len() == MAX_DEPTH {
                    let reason = format!("Prompt variables are nested deeper than {MAX_DEPTH}.");
                    return Err(Invalid::at(path, reason));
                }
                inside.push(name);
                expand_into(variables, &format!("{path}/${name}"), value, inside, out)?;
                inside.pop();
            }
        }
        if out.len() > MAX_EXPANDED {
            return Err(Invalid::at(path, format!("Prompt is longer than {MAX_EXPANDED} bytes.")));
        }
    }
    Ok(())
}

/// A prompt was to be sent that validation has not seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a prompt must have exactly one item, and this has {0}")]
pub struct NotExpanded(pub usize);

/// Replaces the variables of a run. One pass: what a value contains is text.
pub fn expand_dynamic(prompt: &TaskPrompt, values: &Values) -> Result<String, NotExpanded> {
    let [text] = prompt.0.as_slice() else { return Err(NotExpanded(prompt.0.len())) };
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            PromptPiece::Text(text) => out.push_str(text),
            PromptPiece::Variable(name) => {
                let value = RuntimeVariable::named(name).and_then(|variable| values.get(variable));
                out.push_str(value.unwrap_or(MISSING));
            }
        }
    }
    Ok(out)
}

/// Values of a run's variables for one task. Nothing is shared between tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    pub user_input: Option<String>,
    pub task_model: Option<String>,
    pub document: Option<String>,
    pub answer: Option<ToolAnswer>,
}

/// Arguments of a boolean tool. The last call counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnswer {
    pub value: bool,
    pub reason: String,
}

impl Values {
    fn get(&self, variable: RuntimeVariable) -> Option<&str> {
        let reason = |value: bool| self.answer.as_ref().filter(|answer| answer.value == value);
        match variable {
            RuntimeVariable::UserInput => self.user_input.as_deref(),
            RuntimeVariable::TaskModel => self.task_model.as_deref(),
            RuntimeVariable::ReportedDocument => self.document.as_deref(),
            RuntimeVariable::ReportedTrueReason => reason(true).map(|answer| answer.reason.as_str()),
            RuntimeVariable::ReportedFalseReason => reason(false).map(|answer| answer.reason.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variables(pairs: &[(&str, &[&str])]) -> IndexMap<String, TaskPrompt> {
        let prompt = |lines: &[&str]| TaskPrompt(lines.iter().map(|line| (*line).to_owned()).collect());
        pairs.iter().map(|(name, lines)| ((*name).to_owned(), prompt(lines))).collect()
    }

    #[track_caller]
    fn check(pairs: &[(&str, &[&str])], prompt: &[&str], expected: Result<&str, &str>) {
        let prompt = TaskPrompt(prompt.iter().map(|line| (*line).to_owned()).collect());
        let expanded = expand_static(&variables(pairs), "root", &prompt, RequiredTool::Anything);
        let expanded = expanded.map(|prompt| prompt.0.concat()).map_err(|invalid| invalid.to_string());
        assert_eq!(expanded, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn lines_are_joined() {
        check(&[], &["a", "b"], Ok("a\nb"));
    }

    #[test]
    fn variables_inside_variables_are_replaced() {
        check(&[("x", &["<$y>"]), ("y", &["1", "2"])], &["$x!"], Ok("<1\n2>!"));
    }

    #[test]
    fn variables_of_a_run_stay_even_if_the_entry_has_one_of_that_name() {
        check(&[("user-input", &["no"])], &["$user-input $task-model"], Ok("$user-input $task-model"));
    }

    #[test]
    fn digits_and_braces_are_no_names() {
        check(&[("abc-def", &["v"])], &["$5 ${x} $ $- $abc-def1 $abc-def-"], Ok("$5 ${x} $ $- v1 v-"));
    }

    #[test]
    fn an_unknown_variable_is_named() {
        check(&[], &["$nope"], Err("root: Cannot find prompt variable: $nope."));
    }

    #[test]
    fn an_empty_prompt_is_refused() {
        check(&[], &[], Err("root: Prompt is empty."));
    }

    #[test]
    fn the_path_shows_the_way_to_a_mistake() {
        let pairs: &[(&str, &[&str])] = &[("outer", &["$inner"]), ("inner", &["$nope"])];
        check(pairs, &["$outer"], Err("root/$outer/$inner: Cannot find prompt variable: $nope."));
    }

    #[test]
    fn a_cycle_is_found() {
        let pairs: &[(&str, &[&str])] = &[("a", &["$b"]), ("b", &["$a"])];
        check(pairs, &["$a"], Err("root/$a/$b: Prompt variable $a contains itself: $a -> $b -> $a."));
    }

    #[test]
    fn a_variable_that_is_used_twice_is_no_cycle() {
        check(&[("a", &["x"])], &["$a$a"], Ok("xx"));
    }

    #[test]
    fn variables_that_double_are_bounded() {
        let letters: Vec<String> = ('a'..='z').map(|c| c.to_string()).collect();
        let mut all = variables(&[("z", &["0123456789"])]);
        for pair in letters.windows(2) {
            all.insert(pair[0].clone(), TaskPrompt(vec![format!("${0}${0}", pair[1])]));
        }
        let result = expand_static(&all, "root", &TaskPrompt::from(["$a"]), RequiredTool::Anything);
        assert!(result.unwrap_err().to_string().ends_with("Prompt is longer than 4194304 bytes."));
    }

    #[test]
    fn a_question_mentions_one_of_its_answers() {
        let ask = |text: &str| {
            expand_static(&IndexMap::new(), "p", &TaskPrompt::from([text]), RequiredTool::YesOrNo)
        };
        assert!(ask("call job_boolean_true").is_ok());
        assert!(ask("call job_boolean_false").is_ok());
        assert_eq!(
            ask("well?").unwrap_err().to_string(),
            "p: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned."
        );
    }

    #[test]
    fn values_replace_variables_once() {
        let values = Values { user_input: Some("$task-model".to_owned()), ..Values::default() };
        let text = expand_dynamic(&TaskPrompt::from(["$user-input $task-model"]), &values).unwrap();
        assert_eq!(text, "$task-model <MISSING>");
    }

    #[test]
    fn one_reason_replaces_the_other() {
        let values =
            Values { answer: Some(ToolAnswer { value: false, reason: "r".to_owned() }), ..Values::default() };
        let prompt = TaskPrompt::from(["$reported-true-reason $reported-false-reason"]);
        assert_eq!(expand_dynamic(&prompt, &values).unwrap(), "<MISSING> r");
    }

    #[test]
    fn what_was_not_expanded_is_not_sent() {
        let error = expand_dynamic(&TaskPrompt::from(["a", "b"]), &Values::default()).unwrap_err();
        assert!(error.to_string().contains("must have exactly one item"));
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(text in "[a-z$\\-1 é{}]{0,40}") {
            let again: String = pieces(&text)
                .map(|piece| match piece {
                    PromptPiece::Text(text) => text.to_owned(),
                    PromptPiece::Variable(name) => format!("${name}"),
                })
                .collect();
            prop_assert_eq!(again, text);
        }

        #[test]
        fn expansion_ends_whatever_the_variables_say(
            values in proptest::collection::vec("[ab$ c\\-]{0,12}", 3),
            prompt in "[abc$ \\-]{0,20}",
        ) {
            let all: IndexMap<String, TaskPrompt> =
                ["a", "b", "c"].iter().zip(values).map(|(name, value)| ((*name).to_owned(), TaskPrompt(vec![value]))).collect();
            if let Ok(expanded) = expand_static(&all, "p", &TaskPrompt(vec![prompt]), RequiredTool::Anything) {
                prop_assert_eq!(expanded.0.len(), 1);
                let left = pieces(&expanded.0[0]).filter_map(|piece| match piece {
                    PromptPiece::Variable(name) => Some(name),
                    PromptPiece::Text(_) => None,
                });
                // A `$` that ended one value may meet letters that begin the next; nothing else is left.
                for name in left {
                    prop_assert!(name.bytes().all(|byte| b"abc-".contains(&byte)));
                }
            }
        }

        #[test]
        fn the_users_words_are_never_read_as_variables(input in "\\PC{0,60}") {
            let values = Values { user_input: Some(input.clone()), ..Values::default() };
            let text = expand_dynamic(&TaskPrompt::from(["<$user-input>"]), &values).unwrap();
            prop_assert_eq!(text, format!("<{input}>"));
        }
    }
}
