//! Flags, input, output and exit codes of the command line.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::Value;

use crate::{HANGAR, hangar};

/// Message on stderr about an accepted flag.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Notice {
    /// It works, or asks for what happens anyway.
    Silent,
    /// It does nothing here, and one line says so.
    Given,
}
use Notice::{Given, Silent};

/// Every flag of the reference that a one-shot run can be given. `$WORK` is the working directory.
const FLAGS: &[(&[&str], Notice)] = &[
    (&["--output-format", "json"], Silent),
    (&["--silent"], Silent),
    (&["-s"], Silent),
    (&["--stream", "on"], Silent),
    (&["--stream", "off"], Silent),
    (&["--model", "mock-model"], Silent),
    (&["--reasoning-effort", "none"], Silent),
    (&["--effort", "max"], Silent),
    (&["--context", "default"], Given),
    (&["--auto-tier", "low"], Given),
    (&["-C", "$WORK"], Silent),
    (&["--add-dir", "$WORK"], Silent),
    (&["--add-dir", "$WORK", "--add-dir", "$WORK"], Silent),
    (&["--attachment", "$WORK/note.txt"], Silent),
    (&["--allow-all-tools"], Silent),
    (&["--allow-all-paths"], Silent),
    (&["--allow-all-urls"], Silent),
    (&["--allow-all"], Silent),
    (&["--yolo"], Silent),
    (&["--allow-tool", "shell(git:*)"], Silent),
    (&["--allow-tool=shell(git push),write"], Silent),
    (&["--deny-tool", "write(.env)"], Silent),
    (&["--available-tools", "bash,view"], Silent),
    (&["--excluded-tools", "bash"], Silent),
    (&["--allow-url", "example.com"], Silent),
    (&["--deny-url", "https://*.example.com"], Silent),
    (&["--disallow-temp-dir"], Silent),
    (&["--assisted-approval"], Given),
    (&["--no-ask-user"], Silent),
    (&["--autopilot", "--max-autopilot-continues", "0"], Silent),
    (&["--mode", "interactive"], Silent),
    (&["--mode", "plan"], Silent),
    (&["--mode", "autopilot", "--max-autopilot-continues", "0"], Silent),
    (&["--plan"], Silent),
    (&["--max-ai-credits", "30"], Given),
    (&["--fleet"], Silent),
    (&["--continue"], Silent),
    (&["--session-id", "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001"], Silent),
    (&["--name", "my feature"], Silent),
    (&["-n", "my feature"], Silent),
    (&["--no-custom-instructions"], Silent),
    (&["--additional-mcp-config", "{\"mcpServers\":{}}"], Silent),
    (&["--disable-builtin-mcps"], Silent),
    (&["--disable-mcp-server", "github"], Silent),
    (&["--enable-mcp-server", "github"], Silent),
    (&["--enable-all-github-mcp-tools"], Silent),
    (&["--add-github-mcp-toolset", "issues"], Silent),
    (&["--add-github-mcp-tool", "get_issue"], Silent),
    (&["--mcp-github-auth", "server=origin"], Given),
    (&["--allow-all-mcp-server-instructions"], Given),
    (&["--plugin-dir", "$WORK"], Silent),
    (&["--trust-folder"], Silent),
    (&["--secret-env-vars", "TOKEN,OTHER"], Silent),
    (&["--enable-memory"], Given),
    (&["--share=$WORK/shared.md"], Silent),
    (&["--share-gist"], Given),
    (&["--usage-output-file", "$WORK/usage.json"], Silent),
    (&["--log-dir", "$WORK/logs"], Silent),
    (&["--log-level", "debug"], Silent),
    (&["--no-auto-update"], Silent),
    (&["--no-color"], Silent),
    (&["--plain-diff"], Silent),
    (&["--bash-env"], Silent),
    (&["--screen-reader"], Silent),
    (&["--banner"], Silent),
    (&["--mouse"], Silent),
    (&["--experimental"], Silent),
    (&["--sandbox"], Silent),
    (&["--no-sandbox"], Silent),
    (&["--remote"], Given),
    (&["--remote-export"], Given),
    (&["--no-remote-export"], Silent),
    (&["--no-eager-powershell-resolution"], Silent),
    (&["--config-dir", "$WORK/config"], Silent),
    (&["--ahp-host", "somewhere"], Given),
    (&["--connect=somewhere"], Given),
    (&["--environment-host", "somewhere"], Given),
    (&["--worktree=feature"], Given),
];

#[test]
fn every_flag_of_the_reference_is_accepted() {
    let model = ModelServer::start();
    let mut problems = String::new();
    for (flags, notice) in FLAGS {
        let scratch = Scratch::new();
        let work = scratch.work().to_string_lossy().into_owned();
        scratch.file("note.txt", "a note\n");
        let flags: Vec<String> = flags.iter().map(|flag| flag.replace("$WORK", &work)).collect();
        let json = !["--output-format", "--silent", "-s"].contains(&flags[0].as_str());
        let run = hangar(&scratch, &model)
            .args(["-p", "say pong"])
            .args(if json { &["--output-format", "json"][..] } else { &[] })
            .args(&flags)
            .finish();
        // `--share` names the file it wrote; that is its answer, not a notice.
        let said = run.stderr.lines().filter(|line| !line.contains("shared.md")).count();
        let expected = usize::from(*notice == Given);
        if run.exit != 0 || !run.stdout.contains("pong") {
            problems.push_str(&format!("{flags:?} ended with {}: {}\n", run.exit, run.stderr));
        } else if json && said != expected {
            problems.push_str(&format!("{flags:?} should say {expected} lines: {:?}\n", run.stderr));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn sessions_are_kept_in_the_home_that_a_flag_names() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let home = scratch.work().join("home");
    let run = hangar(&scratch, &model).args(["-p", "SAY:x", "--config-dir"]).arg(&home);
    let id = run.args(["--output-format", "json"]).finish().expect_exit(0).session_id();
    assert!(home.join("session-state").join(id).is_dir());
    assert!(!scratch.state().join("session-state").exists());
}

/// Flags that ask for what happens anyway, or for the colours and mice of a program with a screen.
const NEEDLESS: &[&str] = &[
    "--no-auto-update",
    "--no-color",
    "--plain-diff",
    "--bash-env",
    "--screen-reader",
    "--banner",
    "--mouse",
    "--experimental",
    "--no-remote-export",
    "--no-eager-powershell-resolution",
];

#[test]
fn help_names_every_flag_that_has_an_effect() {
    let help = hangar(&Scratch::new(), &ModelServer::start()).args(["--help"]).finish().expect_exit(0).stdout;
    let effective = FLAGS.iter().filter(|(flags, notice)| *notice == Silent && !NEEDLESS.contains(&flags[0]));
    let names = effective.map(|(flags, _)| flags[0].split('=').next().unwrap());
    let missing: Vec<&str> = names.filter(|name| !help.contains(name)).collect();
    assert!(missing.is_empty(), "--help does not know {missing:?}");
}

#[test]
fn a_word_that_is_nearly_a_command_is_answered_with_it() {
    for (word, command) in
        [("jobs", "hangar job"), ("session", "hangar sessions"), ("docter", "hangar doctor")]
    {
        let run = hangar(&Scratch::new(), &ModelServer::start()).args([word]).finish().expect_exit(1);
        assert!(run.stderr.contains(command), "{word}: {}", run.stderr);
    }
}

/// A run that cannot start: exit code 1, one short remark that names the cause, and at most the result on stdout.
#[track_caller]
fn check_refused(args: &[&str], stdin: Option<&str>, env: &[(&str, &str)], names: &str) {
    let scratch = Scratch::new();
    let model = ModelServer::start();
    let mut run = hangar(&scratch, &model).args(args).args(["--output-format", "json"]);
    for (key, value) in env {
        run = if value.is_empty() { run.without_env(key) } else { run.env(key, value) };
    }
    if let Some(text) = stdin {
        run = run.stdin(text);
    }
    let run = run.finish().expect_exit(1);
    assert!(run.stderr.contains(names), "stderr does not name `{names}`: {}", run.stderr);
    let lines = run.stderr.lines().filter(|line| !line.trim().is_empty()).count();
    assert!((1..=4).contains(&lines), "stderr is not one remark: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let result = run.result();
    assert_eq!(result["exitCode"], 1);
    assert_eq!(run.stdout.lines().count(), 1, "stdout has more than the result: {}", run.stdout);
    assert!(model.requests().is_empty(), "the model was asked");
    assert!(scratch.sessions().is_empty(), "a session was left behind");
}

#[test]
fn an_unknown_flag_is_refused() {
    check_refused(&["-p", "x", "--no-such-flag"], None, &[], "--no-such-flag");
}

#[test]
fn an_unknown_effort_is_refused() {
    check_refused(&["-p", "x", "--effort", "extreme"], None, &[], "extreme");
}

#[test]
fn a_malformed_rule_is_refused() {
    check_refused(&["-p", "x", "--allow-tool", "shell("], None, &[], "shell(");
}

#[test]
fn an_unknown_session_is_refused() {
    check_refused(&["-p", "x", "--resume=nothing-of-that-name"], None, &[], "nothing-of-that-name");
}

#[test]
fn two_ways_to_choose_a_session_are_refused() {
    check_refused(&["-p", "x", "--continue", "--resume=abcdefgh"], None, &[], "--continue");
}

#[test]
fn an_empty_prompt_on_stdin_is_refused() {
    check_refused(&[], Some(""), &[], "prompt");
}

#[test]
fn a_missing_model_is_refused() {
    check_refused(&["-p", "x"], None, &[("COPILOT_MODEL", "")], "model");
}

#[test]
fn a_missing_provider_is_refused() {
    let offline =
        [("COPILOT_PROVIDER_BASE_URL", ""), ("COPILOT_PROVIDER_API_KEY", ""), ("COPILOT_MODEL", "")];
    check_refused(&["-p", "x"], None, &offline, "provider");
}

#[test]
fn a_prompt_that_is_not_quoted_is_refused() {
    check_refused(&["-p", "fix", "the", "test"], None, &[], "the");
}

#[test]
fn a_fractional_number_of_continuations_is_refused() {
    check_refused(&["-p", "x", "--max-autopilot-continues", "1.5"], None, &[], "1.5");
}

#[test]
fn a_prompt_of_200_kb_arrives_whole() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = format!("{}\nSAY:read it all", "twenty-five characters. \n".repeat(8192));
    let run = hangar(&scratch, &model).args(["--output-format", "json"]).stdin(prompt.as_str()).finish();
    let events = run.expect_exit(0).events();
    assert_eq!(Finished::of_type(&events, "user.message")[0]["data"]["content"], prompt.as_str());
    assert_eq!(Finished::of_type(&events, "assistant.message")[0]["data"]["content"], "read it all");
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.len() > prompt.len(), "the model saw only {} bytes", asked.len());
}

#[test]
fn text_mode_splits_the_answer_from_the_remarks() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).args(["-p", "SAY:hello"]).finish().expect_exit(0);
    assert_eq!(run.stdout, "hello\n\n");
    let session = scratch.sessions().pop().expect("the run was saved");
    assert!(run.stderr.contains(&format!("--resume={session}")), "stderr tells how to go on: {}", run.stderr);
}

#[test]
fn silent_text_mode_prints_the_answer_alone() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let script = "TOOL:bash:{\"command\":\"echo x\",\"description\":\"d\"}\nSAY:hello";
    let run =
        hangar(&scratch, &model).args(["-p", script, "-s", "--allow-all-tools"]).finish().expect_exit(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("hello\n\n", ""));
}

#[test]
fn an_error_in_text_mode_is_told_on_stderr() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).args(["-p", "FAIL:400", "-s"]).finish().expect_exit(1);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("400"), "{}", run.stderr);
}

#[test]
fn without_streaming_there_are_no_pieces_and_no_stream_is_asked_for() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["-p", "SAY:hello", "--stream", "off", "--output-format", "json"];
    let events = hangar(&scratch, &model).args(args).finish().expect_exit(0).events();
    let pieces =
        events.iter().filter(|event| event["type"].as_str().is_some_and(|kind| kind.ends_with("_delta")));
    assert_eq!(pieces.count(), 0);
    assert_ne!(model.last_request()["stream"], true);
}

#[test]
fn the_usage_file_has_the_figures_of_the_run() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let path = scratch.work().join("usage.json");
    let args =
        ["-p", "TOOL:create:{\"path\":\"$WORK/a.txt\",\"file_text\":\"one\\ntwo\\n\"}", "--allow-all-tools"];
    let args = args.map(|arg| arg.replace("$WORK", &scratch.work().to_string_lossy()));
    hangar(&scratch, &model).args(args).arg("--usage-output-file").arg(&path).finish().expect_exit(0);
    let usage: Value =
        serde_json::from_slice(&std::fs::read(path).expect("the file was written")).expect("it is JSON");
    assert_eq!(usage["codeChanges"]["linesAdded"], 2, "{usage:#}");
    assert!(usage["modelMetrics"]["mock-model"].is_object(), "{usage:#}");
}

#[test]
fn a_run_can_be_shared_as_markdown() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let path = scratch.work().join("shared.md");
    hangar(&scratch, &model)
        .args(["-p", "what is it?\nSAY:a hangar"])
        .arg(format!("--share={}", path.display()))
        .finish()
        .expect_exit(0);
    let text = std::fs::read_to_string(path).expect("the file was written");
    assert!(text.contains("what is it?") && text.contains("a hangar"), "{text}");
}

#[test]
fn a_run_that_cannot_be_shared_fails() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = scratch.file("note.txt", "not a folder\n");
    let share = format!("--share={}/x.md", file.display());
    let run = hangar(&scratch, &model)
        .args(["-p", "SAY:x", &share, "--output-format", "json"])
        .finish()
        .expect_exit(1);
    assert_eq!(run.result()["exitCode"], 1);
}

#[test]
fn the_version_is_found_by_whatever_drives_the_reference() {
    let scratch = Scratch::new();
    let link = scratch.root().join("copilot");
    std::os::unix::fs::symlink(HANGAR, &link).expect("a link in the scratch");
    for (program, flag) in
        [(HANGAR.as_ref(), "--version"), (link.as_path(), "--version"), (link.as_path(), "version")]
    {
        let run = scratch.run(program).arg(flag).finish().expect_exit(0);
        let found = run.stdout.split([' ', '\n']).any(is_version);
        assert!(found, "{} {flag} printed no version: {}", program.display(), run.stdout);
    }
}

/// `1.2.3`, perhaps with a full stop behind it.
fn is_version(word: &str) -> bool {
    let numbers: Vec<&str> = word.trim_end_matches('.').split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok())
}

#[test]
fn the_version_names_the_commit() {
    let run = Scratch::new().run(HANGAR).arg("--version").finish().expect_exit(0);
    let line = run.stdout.trim_end();
    let commit = line.strip_prefix(concat!("hangar ", env!("CARGO_PKG_VERSION"))).expect(line).trim_start();
    let hash = commit.trim_matches(['(', ')']);
    assert!(commit.is_empty() || hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
}

#[test]
fn every_shell_has_completions() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = scratch.run(HANGAR).args(["completions", shell]).finish().expect_exit(0);
        for word in ["sessions", "allow-tool", "output-format"] {
            assert!(run.stdout.contains(word), "{shell} does not know {word}");
        }
        assert!(!run.stdout.contains("no-mouse"), "{shell} offers a hidden flag");
    }
    scratch.run(HANGAR).args(["completions", "tcsh"]).finish().expect_exit(1);
}

#[test]
fn every_command_has_a_man_page() {
    let scratch = Scratch::new();
    let pages = scratch.root().join("man/man1");
    scratch.run(HANGAR).arg("man").arg(&pages).finish().expect_exit(0);
    for page in ["hangar.1", "hangar-run.1", "hangar-job-run.1", "hangar-sessions-rewind.1", "hangar-up.1"] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap_or_default();
        assert!(text.contains(".SH NAME"), "{page} is not there or no man page");
    }
}

#[test]
fn called_as_copilot_it_uses_that_home() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let link = scratch.root().join("copilot");
    std::os::unix::fs::symlink(HANGAR, &link).expect("a link in the scratch");
    let run = scratch
        .run(&link)
        .without_env("HANGAR_HOME")
        .without_env("COPILOT_HOME")
        .provider(model.url())
        .args(["-p", "SAY:x", "--output-format", "json"])
        .finish()
        .expect_exit(0);
    let log = scratch.home().join(".copilot/session-state").join(run.session_id()).join("events.jsonl");
    assert!(log.exists(), "there is no {}", log.display());
}

#[test]
fn the_exit_codes_are_documented() {
    let help = Scratch::new().run(HANGAR).arg("--help").finish().expect_exit(0).stdout;
    assert!(help.contains("Exit codes"), "{help}");
}

#[test]
fn a_reader_that_goes_away_is_a_normal_end() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let shell = format!(
        "{HANGAR} -p STREAM:2000 --output-format json | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    );
    let run = scratch.run("bash").provider(model.url()).args(["-c", &shell]).finish();
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert!([0, 1].contains(&run.exit), "ended with {}: {}", run.exit, run.stderr);
}
