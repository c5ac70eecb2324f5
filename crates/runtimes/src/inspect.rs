//! A look at an installed program: its version, and what its help says.

use std::process::{Output, Stdio};
use std::time::Duration;

use hangar_process::{Group, command_in_own_session};

use crate::capabilities::EFFORT_LEVELS;
use crate::resolution::Located;
use crate::surroundings::Surroundings;

/// How long a program may take to answer. Some need seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn version(located: &Located, surroundings: &Surroundings) -> Result<String, String> {
    let output = ask(located, &["--version"], surroundings, PATIENCE).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("failed: {why}"));
    }
    // A number with dots, wherever it stands in the line.
    let number = first
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    Ok(number.unwrap_or(first).trim_end_matches('.').to_owned())
}

/// A program without help has none.
pub(crate) async fn help(located: &Located, args: &[&str], surroundings: &Surroundings) -> Option<String> {
    let output = ask(located, args, surroundings, PATIENCE).await.ok()?;
    // Some print their help on stderr.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Changes when the help does.
pub(crate) fn mark(help: &str) -> String {
    format!("{:016x}", fnv1a(help.as_bytes()))
}

/// The levels of effort that the help names behind the flag, weakest first. `None` if it names none.
pub(crate) fn effort_levels(help: &str) -> Option<Vec<String>> {
    let (_, behind) = help.split_once("effort <")?;
    // As far as the next flag.
    let flag = |line: &str| line.trim_start().starts_with('-');
    let lines = behind.lines().enumerate().take_while(|(n, line)| *n == 0 || !flag(line));
    let text: Vec<&str> = lines.map(|(_, line)| line).collect();
    let text = text.join(" ");
    let named: Vec<&str> = text.split(|c: char| !c.is_ascii_alphabetic()).collect();
    let levels: Vec<String> =
        EFFORT_LEVELS.iter().filter(|level| named.contains(level)).map(|level| (*level).to_owned()).collect();
    // One word may be prose.
    (levels.len() > 1).then_some(levels)
}

/// Good enough to notice a change; nobody is kept from anything by it.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs it and hears it out.
pub(crate) async fn ask(
    located: &Located,
    args: &[&str],
    surroundings: &Surroundings,
    patience: Duration,
) -> Result<Output, String> {
    let mark = format!("{}.", uuid::Uuid::new_v4());
    let mut command = command_in_own_session(&located.program);
    command.args(&located.leading).args(args).env_clear().envs(&surroundings.vars);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let unable = |error: std::io::Error| format!("could not be run: {error}");
    // The group is dropped at the end, with whatever the program left behind.
    let (child, _group) = Group::spawn(&mut command, mark).map_err(unable)?;
    match tokio::time::timeout(patience, child.wait_with_output()).await {
        Ok(output) => output.map_err(unable),
        Err(_) => Err(format!("said nothing for {} s", patience.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(help: &str, expected: Option<&[&str]>) {
        let levels = effort_levels(help);
        let levels: Option<Vec<&str>> =
            levels.as_ref().map(|levels| levels.iter().map(String::as_str).collect());
        assert_eq!(levels.as_deref(), expected);
    }

    #[test]
    fn levels_are_found_behind_the_flag_in_the_forms_that_helps_have() {
        check(
            "  --effort, --reasoning-effort <level>  Set the level (choices:\n      \"low\", \"medium\", \"high\", \"xhigh\")\n  --max <n>",
            Some(&["low", "medium", "high", "xhigh"]),
        );
        check(
            "  --reasoning-effort <level>\n     Set it [possible values: none, minimal, low, max]\n  --context <tier>  high",
            Some(&["none", "minimal", "low", "max"]),
        );
    }

    #[test]
    fn a_help_without_levels_names_none() {
        check("  --effort <level>  how high to aim\n", None);
        check("  --model <id>\n", None);
    }
}
