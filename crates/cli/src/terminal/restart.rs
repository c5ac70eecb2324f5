//! `/restart`: the program starts again in place of this process, with the same flags and the session that was shown.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;

use crate::telemetry;

/// Flags that choose a session or begin it, each with whether it takes a value.
const CHOOSING: &[(&str, Option<&str>, TakenValue)] = &[
    ("--resume", Some("-r"), TakenValue::Optional),
    ("--continue", None, TakenValue::None),
    ("--session-id", None, TakenValue::Required),
    ("--name", Some("-n"), TakenValue::Required),
    ("--interactive", Some("-i"), TakenValue::Required),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakenValue {
    None,
    /// In the next word, unless that is a flag.
    Optional,
    Required,
}

/// Starts the program again, with a session if there is one. Returns only if that fails.
pub(super) fn again(session: Option<&str>) -> anyhow::Error {
    telemetry::finish();
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return anyhow::Error::new(error).context("the program cannot be started again"),
    };
    let error =
        std::process::Command::new(&program).args(arguments(std::env::args_os().skip(1), session)).exec();
    anyhow::Error::new(error).context(format!("{} cannot be started again", program.display()))
}

/// The flags of this process with another session.
fn arguments(typed: impl Iterator<Item = OsString>, session: Option<&str>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut typed = typed.peekable();
    // `hangar attach ID` names its session otherwise.
    if typed.peek().is_some_and(|word| word == "attach") {
        return typed.collect();
    }
    while let Some(word) = typed.next() {
        match CHOOSING.iter().find_map(|(long, short, value)| matched(&word, long, *short, *value)) {
            None => kept.push(word),
            Some(TakenValue::None) => {}
            Some(TakenValue::Required) => drop(typed.next()),
            Some(TakenValue::Optional) => {
                typed.next_if(|next| !next.as_encoded_bytes().starts_with(b"-"));
            }
        }
    }
    kept.extend(session.map(|id| OsString::from(format!("--resume={id}"))));
    kept
}

/// The value that is still to come, if a word is this flag.
fn matched(word: &OsStr, long: &str, short: Option<&str>, value: TakenValue) -> Option<TakenValue> {
    let bytes = word.as_encoded_bytes();
    if word == long || short.is_some_and(|short| word == short) {
        return Some(value);
    }
    let with_value = bytes.strip_prefix(long.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    let joined = short.is_some_and(|short| bytes.starts_with(short.as_bytes()));
    (with_value || joined).then_some(TakenValue::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, session: Option<&str>, expected: &str) {
        let made = arguments(typed.split_whitespace().map(OsString::from), session);
        let made: Vec<String> = made.into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(made.join(" "), expected, "{typed}");
    }

    #[test]
    fn flags_stay_and_the_session_is_another() {
        check("", Some("s1"), "--resume=s1");
        check(
            "--model gpt --deny-tool shell(rm)",
            Some("s1"),
            "--model gpt --deny-tool shell(rm) --resume=s1",
        );
        check("--continue --plan", Some("s1"), "--plan --resume=s1");
        check("--resume --plan", Some("s1"), "--plan --resume=s1");
        check("--resume abc --plan", Some("s1"), "--plan --resume=s1");
        check("-r=abc --resume=x -iprompt --interactive=-x -n name", None, "");
        check("-i hello --name n --session-id 1 --screen-reader", None, "--screen-reader");
        check("run --runtime claude --resume old", Some("s1"), "run --runtime claude --resume=s1");
        check("attach s1", Some("s1"), "attach s1");
    }
}
