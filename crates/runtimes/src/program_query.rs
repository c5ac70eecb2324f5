//! Queries to an installed program: its version and its help, on its own host.

use std::process::Stdio;
use std::time::Duration;

use hangar_process::credentials::Child;
use hangar_process::{ProcessGroup, command_in_own_session};
use tokio::io::AsyncWriteExt;

use crate::capabilities::EFFORT_LEVELS;
use crate::environment::RuntimeEnvironment;
use crate::host::{Host, ProcessInput, RemoteProgram};
use crate::invocation::Argument;
use crate::outcome::{excerpt, telling_line};
use crate::resolution::Located;

/// Timeout of a program's answer. Some programs need seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Exit code of ssh when it cannot connect.
pub(crate) const NO_CONNECTION: i32 = 255;
/// Exit code of a shell that did not find the program.
pub(crate) const NO_SUCH_PROGRAM: i32 = 127;

/// Host on which programs are probed.
pub(crate) struct ProbeHost<'a> {
    pub(crate) host: &'a Host,
    /// Environment of programs on this machine.
    pub(crate) runtime_env: &'a RuntimeEnvironment,
    /// Environment of programs on another host.
    pub(crate) env: &'a [(String, String)],
}

/// Exit status and output of a probed program.
pub(crate) struct ProgramAnswer {
    /// Absent for one that was ended by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramAnswer {
    pub(crate) fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

/// Why a program has no version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoVersion {
    /// It is not there, or the machine cannot be reached: a sentence.
    Absent(String),
    /// It exists and does not work: the reason, to follow its name.
    Broken(String),
}

pub(crate) async fn version(located: &Located, host: &ProbeHost<'_>) -> Result<String, NoVersion> {
    let answer = host.ask(located, &["--version"], PATIENCE).await.map_err(NoVersion::Broken)?;
    let first =
        |text: &str| text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
    if let (Host::Ssh(ssh), Some(code @ (NO_CONNECTION | NO_SUCH_PROGRAM))) = (host.host, answer.code) {
        let target = &ssh.target;
        return Err(NoVersion::Absent(match code {
            NO_SUCH_PROGRAM => format!("`{}` is not installed on {target}", located.program),
            _ => {
                let why = telling_line(&answer.stderr).map(|line| format!(": {}", excerpt(line)));
                format!("{target} cannot be reached{}", why.unwrap_or_default())
            }
        }));
    }
    if !answer.is_success() {
        return Err(NoVersion::Broken(format!("failed: {}", first(&answer.stderr))));
    }
    let first = first(&answer.stdout);
    // A number with dots, wherever it stands in the line.
    let number = first
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    Ok(number.unwrap_or(&first).trim_end_matches('.').to_owned())
}

/// A program without help has none.
pub(crate) async fn help(located: &Located, args: &[&str], host: &ProbeHost<'_>) -> Option<String> {
    let answer = host.ask(located, args, PATIENCE).await.ok()?;
    // Some print their help on stderr.
    let text = if answer.stdout.is_empty() { answer.stderr } else { answer.stdout };
    (!text.is_empty()).then_some(text)
}

/// Changes when the help does.
pub(crate) fn mark(help: &str) -> String {
    format!("{:016x}", fnv1a(help.as_bytes()))
}

/// Effort levels that the help lists after the flag, weakest first. `None` if it lists none.
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

/// Hash that detects changes; nothing depends on its strength.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl ProbeHost<'_> {
    /// Runs a program and collects its output.
    pub(crate) async fn ask(
        &self,
        located: &Located,
        args: &[&str],
        patience: Duration,
    ) -> Result<ProgramAnswer, String> {
        let mark = format!("{}.", uuid::Uuid::new_v4());
        let mut preface = None;
        let mut command = match self.host {
            Host::Local => {
                let mut command = command_in_own_session(&located.program);
                command.args(&located.leading).args(args).env_clear().envs(&self.runtime_env.vars);
                command.stdin(Stdio::null());
                command
            }
            Host::Ssh(ssh) => {
                let words = located.leading.iter().map(String::as_str).chain(args.iter().copied());
                let words: Vec<Argument> = words.map(Argument::from).collect();
                let remote = RemoteProgram {
                    workspace: ".".as_ref(),
                    program: &located.program,
                    args: &words,
                    env: self.env,
                    input: ProcessInput::Nothing,
                    report: None,
                };
                let mut command = command_in_own_session("ssh");
                command.args(ssh.arguments(&remote)).env_clear();
                command.envs(self.runtime_env.environment(Child::Helper)).stdin(Stdio::piped());
                preface = Some(remote.preface());
                command
            }
        };
        command.current_dir(self.runtime_env.home_or_root());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let unable = |error: std::io::Error| format!("could not be run: {error}");
        // The group is dropped at the end, with whatever the program left behind.
        let (mut child, _group) = ProcessGroup::spawn(&mut command, mark).map_err(unable)?;
        // The other side ends when this is closed.
        let mut link = child.stdin.take();
        let answered = async {
            if let (Some(link), Some(preface)) = (&mut link, &preface) {
                link.write_all(preface).await?;
            }
            child.wait_with_output().await
        };
        match tokio::time::timeout(patience, answered).await {
            Ok(output) => {
                let output = output.map_err(unable)?;
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                Ok(ProgramAnswer {
                    code: output.status.code(),
                    stdout: text(output.stdout),
                    stderr: text(output.stderr),
                })
            }
            Err(_) => Err(format!("said nothing for {} s", patience.as_secs())),
        }
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
