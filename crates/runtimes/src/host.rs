//! Host of an agent: this machine, or another one by ssh.

use std::ffi::OsString;
use std::path::Path;

use hangar_process::MARK;

use crate::invocation::{Argument, MAX_REPORT};

/// Host of an agent's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Host {
    #[default]
    Local,
    Ssh(Ssh),
}

impl Host {
    /// Target of ssh.
    pub fn target(&self) -> Option<&str> {
        match self {
            Host::Local => None,
            Host::Ssh(ssh) => Some(&ssh.target),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ssh {
    /// `host`, `user@host`, or a name of the user's ssh configuration.
    pub target: String,
    pub host_keys: HostKeys,
    pub port: Option<u16>,
    /// Options beside ours, for `-o`.
    pub options: Vec<String>,
}

/// Policy for hosts with an unknown key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostKeys {
    #[default]
    AcceptNew,
    Known,
    Any,
}

impl HostKeys {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "accept-new" => Some(HostKeys::AcceptNew),
            "yes" => Some(HostKeys::Known),
            "no" => Some(HostKeys::Any),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            HostKeys::AcceptNew => "accept-new",
            HostKeys::Known => "yes",
            HostKeys::Any => "no",
        }
    }
}

/// Time that an agent's connection may take.
const CONNECT_SECONDS: u64 = 30;

/// Exit code of the remote command when its directory does not exist: one that shells and agents do not use.
pub(crate) const NO_WORKSPACE: i32 = 119;

impl Ssh {
    /// The arguments of `ssh` that run a program over there.
    pub(crate) fn arguments(&self, remote: &RemoteProgram<'_>) -> Vec<OsString> {
        let mut all = self.connection(CONNECT_SECONDS);
        all.push(remote.command().into());
        all
    }

    /// The arguments of `ssh` that end well if the host can be reached as agents reach it.
    pub fn trial(&self, connect_seconds: u64) -> Vec<OsString> {
        let mut all = self.connection(connect_seconds);
        all.push("true".into());
        all
    }

    fn connection(&self, connect_seconds: u64) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut option = |value: String| all.extend([OsString::from("-o"), value.into()]);
        option(format!("StrictHostKeyChecking={}", self.host_keys.as_str()));
        option("BatchMode=yes".to_owned());
        option(format!("ConnectTimeout={connect_seconds}"));
        option("ServerAliveInterval=15".to_owned());
        option("ServerAliveCountMax=3".to_owned());
        for value in &self.options {
            option(value.clone());
        }
        if let Some(port) = self.port {
            all.extend(["-p".into(), port.to_string().into()]);
        }
        // Nothing behind it is an option of ssh, whatever a host is called.
        all.extend(["-T".into(), "--".into(), self.target.clone().into()]);
        all
    }
}

/// Standard input of the remote program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessInput {
    Nothing,
    /// A number of bytes, sent first. The rest of the input is the connection itself.
    Bytes(usize),
    /// Bytes that are sent until the connection ends.
    Link,
}

/// A program over there, in a directory, with variables and arguments that its shell takes literally.
///
/// Variables and files are sent ahead of its input, as the [preface](Self::preface) of the link: others on that machine can
/// see command lines.
pub(crate) struct RemoteProgram<'a> {
    pub(crate) workspace: &'a Path,
    /// Program; may be several words, as in a configuration file.
    pub(crate) program: &'a str,
    pub(crate) args: &'a [Argument],
    pub(crate) env: &'a [(String, String)],
    pub(crate) input: ProcessInput,
    /// Random prefix of the output line that holds the agent's report.
    pub(crate) report: Option<&'a str>,
}

impl RemoteProgram<'_> {
    /// Bytes that precede the program's own input: the variables, then the files.
    pub(crate) fn preface(&self) -> Vec<u8> {
        let mut preface = self.variables().into_bytes();
        preface.extend(self.files().flat_map(str::bytes));
        preface
    }

    /// Commands of a shell that set the variables.
    fn variables(&self) -> String {
        let set = |(name, value): &(String, String)| format!("export {name}={}\n", quoted(value));
        self.env.iter().filter(|(name, _)| is_identifier(name)).map(set).collect()
    }

    fn files(&self) -> impl Iterator<Item = &str> {
        self.args.iter().filter_map(|argument| match argument {
            Argument::Input { text, .. } => Some(text.as_str()),
            Argument::Word(_) | Argument::Report { .. } => None,
        })
    }

    /// The program with its arguments, for the shell over there.
    fn words(&self) -> String {
        let mut words = String::new();
        // No shell can set these.
        let odd: Vec<_> = self.env.iter().filter(|(name, _)| !is_identifier(name)).collect();
        if !odd.is_empty() {
            words.push_str("env ");
            odd.iter().for_each(|(name, value)| words += &format!("{} ", quoted(&format!("{name}={value}"))));
        }
        words.push_str(self.program);
        let mut inputs = 0;
        for argument in self.args {
            words.push(' ');
            words += &match argument {
                Argument::Word(word) => quoted(&word.to_string_lossy()),
                Argument::Input { before, .. } => {
                    inputs += 1;
                    format!("{}\"$files/{inputs}\"", quoted(before))
                }
                Argument::Report { before } => format!("{}\"$files/report\"", quoted(before)),
            };
        }
        words
    }

    /// Runs the agent in the background of a shell, beside a watch that waits for the end of the link: when that drops, the
    /// whole group over there is ended with it.
    ///
    /// The process that forwards the input becomes the watch afterwards: the link has one reader at any time, so that
    /// no part of a prompt is taken by the other. The input goes through a named pipe, which is removed as soon as both
    /// ends are open: with `|` the shell would wait for both sides, and the watch ends last.
    fn command(&self) -> String {
        let variables = self.variables();
        let mut ahead = String::new();
        let has_files =
            self.input != ProcessInput::Nothing || self.report.is_some() || self.files().next().is_some();
        if has_files {
            ahead += "files=$(mktemp -d) || exit 126; ";
        }
        if !variables.is_empty() {
            ahead += &format!("variables=$(head -c {}); ", variables.len());
        }
        for (n, text) in self.files().enumerate() {
            ahead += &format!("head -c {} >\"$files/{}\"; ", text.len(), n + 1);
        }
        let (feed, begin, stdin) = match self.input {
            ProcessInput::Nothing => ("cat".to_owned(), "", "/dev/null"),
            ProcessInput::Bytes(bytes) => {
                (format!("head -c {bytes} >\"$files/in\"; cat"), "rm \"$files/in\"; ", "\"$files/in\"")
            }
            ProcessInput::Link => ("cat >\"$files/in\"".to_owned(), "rm \"$files/in\"; ", "\"$files/in\""),
        };
        if self.input != ProcessInput::Nothing {
            ahead += "mkfifo \"$files/in\" || exit 126; ";
        }
        let clean = if has_files { "rm -rf \"$files\"; " } else { "" };
        let report = self.report.map(|mark| {
            format!(
                "if [ -s \"$files/report\" ]; then printf '\\n%s' {}; head -c {MAX_REPORT} \"$files/report\" | tr -d '\\n'; echo; fi; ",
                quoted(mark)
            )
        });
        // The watch can be ended by a signal until the link has dropped; from then on it sees that everything else ends.
        //
        // ssh gives the command a group of its own, so `kill 0` reaches all that belongs to it and nobody else. A signal
        // that is caught here is not ignored by what is started, as one that is ignored would be; it ends the waiting,
        // which begins again as long as the agent lives. What the agent started in groups of their own is found by a mark
        // in its environment, where the system shows that.
        let script = format!(
            "cd -- {dir} || exit {NO_WORKSPACE}; {ahead}exec 3<&0; trap : TERM; mark=ssh:$$.$(date +%s).; \
             sweep() {{ for file in $(grep -lsF {MARK}=$mark /proc/[0-9]*/environ); do \
             process=${{file#/proc/}}; kill -KILL \"${{process%/environ}}\"; done; }}; \
             {{ {feed}; trap : TERM; kill -TERM 0; sleep 5; sweep; {clean}kill -KILL 0; }} <&3 >/dev/null 2>&1 & \
             {{ {begin}trap : TERM; {set}export {MARK}=$mark; {words}; }} <{stdin} 3<&- & agent=$!; \
             while wait \"$agent\"; code=$?; kill -0 \"$agent\" 2>/dev/null; do :; done; \
             {report}sweep 2>/dev/null; {clean}kill -TERM 0; exit \"$code\"",
            dir = quoted(&self.workspace.to_string_lossy()),
            set = if variables.is_empty() { "" } else { "eval \"$variables\"; " },
            words = self.words(),
            report = report.unwrap_or_default(),
        );
        format!("exec sh -c {}", quoted(&script))
    }
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A word that a POSIX shell takes literally.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_gives_back_what_was_quoted(word in "[^\0]{0,40}") {
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {}", quoted(&word)))
                .output()
                .unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout).into_owned(), word);
        }
    }

    /// As sshd starts a command.
    fn in_own_group(command: &str) -> std::process::Command {
        use std::os::unix::process::CommandExt;
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(command).stdin(std::process::Stdio::piped()).process_group(0);
        shell
    }

    /// A program without arguments and variables.
    fn plain(workspace: &Path, program: &str, input: ProcessInput) -> String {
        RemoteProgram { workspace, program, args: &[], env: &[], input, report: None }.command()
    }

    #[test]
    fn variables_and_files_are_on_no_command_line_and_are_gone_at_the_end() {
        use std::io::Write;
        let place = tempfile::tempdir().unwrap();
        let args = [
            Argument::Input { before: "--in=@".to_owned(), text: "a 'secret'\n".to_owned() },
            Argument::from("word"),
            Argument::Report { before: "--out=".to_owned() },
        ];
        let env = [("TOKEN".to_owned(), "another secret".to_owned())];
        let program = r#"sh -c 'echo "$TOKEN $2"; cat "${1#--in=@}"; cat; printf "{\n\"a\": 1}\n" > "${3#--out=}"; dirname "${1#--in=@}"' sh"#;
        let remote = RemoteProgram {
            workspace: place.path(),
            program,
            args: &args,
            env: &env,
            input: ProcessInput::Bytes(6),
            report: Some("mark-1 "),
        };
        let command = remote.command();
        assert!(!command.contains("secret"), "{command}");
        let mut shell = in_own_group(&command).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut link = shell.stdin.take().unwrap();
        link.write_all(&[remote.preface(), b"prompt".to_vec()].concat()).unwrap();
        let output = shell.wait_with_output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        let [token, input, prompt, empty, report] = lines[..] else { panic!("{output}") };
        assert_eq!((token, input, empty), ("another secret word", "a 'secret'", ""));
        assert_eq!(report, "mark-1 {\"a\": 1}");
        let files = Path::new(prompt.strip_prefix("prompt").unwrap());
        assert!(files.is_absolute() && !files.exists(), "{}", files.display());
    }

    /// Checks the arguments and input of the remote command, run by the shell that ssh would use.
    #[track_caller]
    fn check(workspace: &str, args: &[&str], stdin: Option<&str>, expected: &str) {
        use std::io::Write;
        let place = tempfile::tempdir().unwrap();
        let workspace = place.path().join(workspace);
        std::fs::create_dir(&workspace).unwrap();
        let program = r#"sh -c 'pwd | sed "s/.*\///"; printf "<%s>" "$@"; printf %s "$GREETING"; cat' sh"#;
        let args: Vec<Argument> = args.iter().map(Argument::from).collect();
        let env = [
            ("GREETING".to_owned(), "it's $(here)\n".to_owned()),
            ("AN-ODD-NAME".to_owned(), "x".to_owned()),
        ];
        let input = stdin.map_or(ProcessInput::Nothing, |stdin| ProcessInput::Bytes(stdin.len()));
        let remote =
            RemoteProgram { workspace: &workspace, program, args: &args, env: &env, input, report: None };
        let mut shell = in_own_group(&remote.command()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut link = shell.stdin.take().unwrap();
        let mut prompt = remote.preface();
        prompt.extend(stdin.unwrap_or_default().bytes());
        // Beside the reading: a prompt may be longer than all pipes together can hold.
        let written = std::thread::spawn(move || {
            link.write_all(&prompt).unwrap();
            link
        });
        // The link stays open, as ssh keeps it: the end of the input must come by its length.
        let output = shell.wait_with_output().unwrap();
        drop(written.join());
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert!(output.status.success());
    }

    #[test]
    fn hostile_names_and_prompts_arrive_as_they_are() {
        let name = "we'ird $(touch x) \"`dir`";
        check(
            name,
            &["a b", "$HOME", "x'y\nz"],
            Some("say 'hi' $(now)\nend"),
            "we'ird $(touch x) \"`dir`\n<a b><$HOME><x'y\nz>it's $(here)\nsay 'hi' $(now)\nend",
        );
    }

    #[test]
    fn a_prompt_arrives_whole_though_the_link_is_watched() {
        let prompt = "0123456789abcde\n".repeat(20_000);
        for _ in 0..5 {
            check("plain", &[], Some(&prompt), &format!("plain\n<>it's $(here)\n{prompt}"));
        }
    }

    #[test]
    fn an_agent_without_input_sees_its_end() {
        check("plain", &[], None, "plain\n<>it's $(here)\n");
    }

    #[test]
    fn an_agent_ends_when_the_link_drops() {
        let place = tempfile::tempdir().unwrap();
        for input in [ProcessInput::Nothing, ProcessInput::Link] {
            let mut shell = in_own_group(&plain(place.path(), "sleep 1000", input)).spawn().unwrap();
            drop(shell.stdin.take());
            assert!(!shell.wait().unwrap().success());
        }
    }

    #[test]
    fn what_an_agent_says_when_the_link_drops_still_comes_through() {
        use std::io::{BufRead, BufReader, Read};
        let place = tempfile::tempdir().unwrap();
        let program = "sh -c 'trap \"sleep 0.3; echo last words; exit 3\" TERM; echo ready; while :; do sleep 0.05; done'";
        let command = plain(place.path(), program, ProcessInput::Nothing);
        let mut shell = in_own_group(&command).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        drop(shell.stdin.take());
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "last words\n");
        assert_eq!(shell.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn what_left_the_group_ends_with_the_agent_and_with_the_link() {
        use std::io::{BufRead, BufReader, Read};
        let place = tempfile::tempdir().unwrap();
        for ending in ["wait", "exit 0"] {
            // The other one holds the output open as long as it lives.
            let program = format!("sh -c 'setsid sleep 1000 & echo ready; {ending}'");
            let command = plain(place.path(), &program, ProcessInput::Nothing);
            let mut shell = in_own_group(&command).stdout(std::process::Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(shell.stdout.take().unwrap());
            output.read_line(&mut String::new()).unwrap();
            drop(shell.stdin.take());
            output.read_to_end(&mut Vec::new()).unwrap();
            shell.wait().unwrap();
        }
    }

    #[test]
    fn an_agent_that_talks_over_the_link_is_answered_and_says_how_it_ended() {
        use std::io::{BufRead, BufReader, Write};
        let place = tempfile::tempdir().unwrap();
        let program = r#"sh -c 'read line; echo "heard $line"; exit 7'"#;
        let command = plain(place.path(), program, ProcessInput::Link);
        let mut shell = in_own_group(&command).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut link = shell.stdin.take().unwrap();
        link.write_all(b"you\n").unwrap();
        let mut answer = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert_eq!(answer, "heard you\n");
        assert_eq!(shell.wait().unwrap().code(), Some(7));
    }
}
