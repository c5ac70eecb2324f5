//! Work in the terminal: rewinds, models, images, the editor, plans, vim keys, colours, long sessions.

use std::os::unix::fs::PermissionsExt as _;

use hangar_test_support::Scratch;
use serde_json::json;

use super::{Terminal, hangar, process_in};

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A program in the work directory.
fn program(scratch: &Scratch, name: &str, script: &str) -> String {
    let path = scratch.file(name, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    path.display().to_string()
}

/// Attachments of the prompts of the one session.
fn attachments(scratch: &Scratch) -> Vec<serde_json::Value> {
    let log = scratch.log(&scratch.sessions().pop().expect("a session"));
    let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let prompts = events.filter(|event| event["type"] == "user.message");
    prompts.flat_map(|event| event["data"]["attachments"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn a_rewind_of_files_tells_what_it_changes_and_what_it_leaves() {
    let scratch = Scratch::new();
    scratch.file("theirs.txt", "original\n");
    let path = |name: &str| scratch.work().join(name).display().to_string();
    let mut terminal = Terminal::open(hangar(&scratch).arg("--allow-all-tools").arg("--allow-all-paths"));
    let calls = [
        ("create", json!({ "path": path("made.txt"), "file_text": "one\ntwo\n" })),
        ("edit", json!({ "path": path("theirs.txt"), "old_str": "original", "new_str": "by a tool" })),
    ];
    let calls: String = calls.iter().map(|(tool, arguments)| format!("TOOL:{tool}:{arguments}\n")).collect();
    terminal.prompt(&format!("{calls}SAY:It is done."));
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nIt is done."));
    terminal.wait_until("the end", |terminal| !terminal.seen().contains("working"));
    scratch.file("theirs.txt", "by a person\n");
    terminal.keys("/rewind\r");
    terminal.wait_for("2 files edited since");
    terminal.keys("\r");
    terminal.wait_until("the preview", |terminal| {
        let seen = terminal.seen();
        let told = [
            "the conversation and the files  2 files, listed below",
            "made.txt  is deleted (edits of +2 −0",
            "theirs.txt  is changed back (edits",
            "changes by shell commands are not recorded and stay",
        ];
        told.iter().all(|text| seen.contains(text))
    });
    terminal.keys("\x1b[B\r");
    terminal.wait_for("Rewound to an earlier point");
    terminal.wait_for("theirs.txt was left as it is: somebody");
    assert!(!scratch.work().join("made.txt").exists());
    let kept = std::fs::read_to_string(scratch.work().join("theirs.txt")).expect("the file");
    assert_eq!(kept, "by a person\n");
    terminal.keys("\x03");
    let text = terminal.leave();
    assert_eq!(text.matches("was left as it is").count(), 1, "{text}");
}

#[test]
fn the_scripted_model_is_listed_where_there_is_no_provider() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).env("COPILOT_OFFLINE", "true"));
    terminal.keys("/model\r");
    terminal.wait_until("the list", |terminal| {
        let seen = terminal.seen();
        seen.contains("❯ scripted  current") && seen.contains("no model provider is configured")
    });
    terminal.keys("\x1b");
    terminal.wait_until("the prompt", |terminal| !terminal.seen().contains("Models ("));
    terminal.leave();
}

#[test]
fn an_image_is_attached_by_its_path_and_from_the_clipboard() {
    use base64::Engine as _;
    let scratch = Scratch::new();
    let bytes = base64::engine::general_purpose::STANDARD.decode(PIXEL).expect("an image");
    let path = scratch.work().join("a pixel.png");
    std::fs::write(&path, bytes).expect("an image");
    program(&scratch, "bin/wl-paste", &format!("cat '{}'", path.display()));
    let programs =
        format!("{}:{}", scratch.work().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut terminal = Terminal::open(hangar(&scratch).env("PATH", &programs));
    // As terminals paste the path of a file that is dropped on them.
    terminal.paste(&path.display().to_string().replace(' ', "\\ "));
    terminal.wait_for("[Image #1: a pixel.png]");
    terminal.keys("\x16");
    terminal.wait_for("[Image #2:");
    terminal.keys(" look at them\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\npong"));
    terminal.wait_until("the end", |terminal| !terminal.seen().contains("working"));
    terminal.leave();
    assert_eq!(attachments(&scratch).len(), 2);
}

#[test]
fn the_draft_is_edited_in_the_editor() {
    let scratch = Scratch::new();
    let editor =
        program(&scratch, "editor", "grep -q draft \"$1\" && printf 'SAY:from the editor\\n' > \"$1\"");
    let mut terminal = Terminal::open(hangar(&scratch).without_env("VISUAL").env("EDITOR", &editor));
    terminal.keys("a draft");
    terminal.wait_for("a draft");
    terminal.keys("\x07");
    terminal.wait_for("❯ SAY:from the editor");
    terminal.keys("\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nfrom the editor"));
    terminal.leave();
    // An editor that fails changes nothing.
    let broken = program(&scratch, "broken", "exit 3");
    let mut terminal = Terminal::open(hangar(&scratch).without_env("VISUAL").env("EDITOR", &broken));
    terminal.keys("a draft");
    terminal.wait_for("a draft");
    terminal.keys("\x07");
    terminal.wait_for("the draft was not edited");
    terminal.wait_for("❯ a draft");
    terminal.keys("\x03");
    terminal.leave();
}

#[test]
fn a_plan_is_approved_with_a_key() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).args(["--plan"]));
    terminal.prompt("TOOL:exit_plan_mode:{\"summary\":\"First this, then that.\"}\nSAY:It goes on.");
    terminal.wait_for("Approve this plan?");
    terminal.wait_for("First this, then that.");
    terminal.wait_for("a number or enter answers");
    // Interactive: autopilot would go on by itself.
    terminal.keys("2");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nIt goes on."));
    terminal.wait_until("the end", |terminal| !terminal.seen().contains("working"));
    terminal.leave();
}

#[test]
fn vim_keys_edit_the_draft() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/vim\r");
    terminal.wait_for("Vim keys are on");
    terminal.keys("SAY:one two three");
    terminal.wait_for("one two three");
    terminal.keys("\x1b");
    terminal.wait_for("NORMAL");
    terminal.keys("0wwwdw");
    terminal.wait_until("the draft", |terminal| !terminal.seen().contains("two"));
    terminal.keys("\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\none three"));
    terminal.leave();
}

#[test]
fn a_light_background_has_dark_colours() {
    let mut colours = Vec::new();
    for background in ["ffff/ffff/ffff", "0000/0000/0000"] {
        let scratch = Scratch::new();
        let mut terminal = Terminal::open(hangar(&scratch).env("COLORTERM", "truecolor"));
        terminal.keys("/theme auto\r");
        terminal.keys(&format!("\x1b]11;rgb:{background}\x1b\\"));
        terminal.keys("SAY:`code`\r");
        terminal.wait_until("the answer", |terminal| terminal.text().contains("\ncode"));
        let raw = String::from_utf8_lossy(&terminal.raw).into_owned();
        let at = raw.rfind("code").expect("the code");
        colours.push(raw[..at].rsplit('\x1b').next().unwrap_or_default().to_owned());
        terminal.leave();
    }
    assert_ne!(colours[0], colours[1]);
}

#[test]
fn a_session_of_fifty_thousand_events_is_opened_at_its_end() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:the first answer\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nthe first answer"));
    terminal.leave();
    let session = scratch.sessions().pop().expect("a session");
    let log = scratch.log(&session);
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = events.last().expect("an event");
    let mut parent = last["id"].clone();
    let mut more = log.clone();
    for at in 0..25_000 {
        for (kind, data) in [
            ("user.message", json!({ "content": format!("prompt {at}") })),
            (
                "assistant.message",
                json!({ "messageId": format!("m{at}"), "content": format!("answer {at}") }),
            ),
        ] {
            let id = json!(format!(
                "00000000-0000-4000-8000-{:012}",
                at * 2 + usize::from(kind != "user.message")
            ));
            let event = json!({ "type": kind, "data": data, "id": id, "parentId": parent, "timestamp": last["timestamp"] });
            more.push_str(&format!("{event}\n"));
            parent = id;
        }
    }
    let path = scratch.state().join("session-state").join(&session).join("events.jsonl");
    std::fs::write(path, more).expect("the log");
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_for("answer 24999");
    assert!(again.text().contains("earlier in this session"), "{}", again.text());
    again.leave();
}

#[test]
fn a_command_in_the_background_is_listed_shown_and_stopped() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).arg("--allow-all-tools"));
    let command =
        json!({ "command": "echo it has begun; sleep 1000", "description": "Wait", "mode": "async" });
    terminal.prompt(&format!("TOOL:bash:{command}\nSAY:It runs."));
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nIt runs."));
    terminal.keys("/tasks\r");
    terminal.wait_for("echo it has begun; sleep 1000  running · Wait");
    terminal.keys("\r");
    terminal.wait_until("its output", |terminal| {
        terminal.seen().starts_with("Output") && terminal.seen().contains("\nit has begun")
    });
    terminal.keys("q/tasks\r");
    terminal.wait_for("Tasks (1)");
    terminal.keys("\x18");
    terminal.wait_until("the prompt", |terminal| !terminal.seen().contains("Tasks (1)"));
    terminal.keys("/tasks\r");
    terminal.wait_for("no sub-agents and no background commands");
    terminal.keys("\x1b");
    // Esc and a key right behind it would be one key with alt.
    terminal.wait_until("the prompt", |terminal| !terminal.seen().contains("Tasks (0)"));
    terminal.leave();
}

/// Memory of a process that is in use, in bytes.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn two_hundred_turns_take_hardly_more_memory() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    let mut answer = |turns: std::ops::Range<usize>| {
        for turn in turns {
            terminal.keys(&format!("SAY:turn {turn} is done\r"));
            let said = format!("\nturn {turn} is done");
            terminal.wait_until("the answer", |terminal| terminal.text().contains(&said));
        }
        memory(process_in(&scratch))
    };
    let before = answer(0..20);
    let grown = answer(20..220).saturating_sub(before);
    assert!(grown < 5 << 20, "{grown} bytes more");
    terminal.leave();
}

#[test]
fn subcommands_limits_and_the_status_line_work_in_a_session() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/mcp add demo -- /bin/true\r");
    terminal.wait_for("Added server \"demo\"");
    // The session was opened without servers, and has this one now.
    terminal.wait_for("∙ demo: ");
    terminal.keys("/mcp remove demo\r");
    terminal.wait_for("Removed server \"demo\"");
    terminal.wait_for("∙ No MCP servers are configured.");
    terminal.keys("/limits 2\r");
    terminal.wait_for("∙ The session stops before it has cost more than $2.00.");
    terminal.keys("/limits\r");
    terminal.wait_for("of at most $2.00.");
    terminal.keys("/limits off\r");
    terminal.wait_for("is not limited by this session any more");
    let status = program(&scratch, "status", "grep -o '\"mode\":\"[a-z]*\"'");
    terminal.keys(&format!("/statusline command {status}\r"));
    terminal.wait_for("\"mode\":\"interactive\"");
    terminal.keys("\x1b[Z");
    terminal.wait_for("\"mode\":\"plan\"");
    terminal.leave();
}

/// Runs git in the work directory.
fn git(scratch: &Scratch, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
        .args(args)
        .current_dir(scratch.work())
        .output()
        .expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_session_moves_into_a_working_tree_of_its_own() {
    let scratch = Scratch::new();
    git(&scratch, &["init", "-q", "-b", "main"]);
    scratch.file("kept.txt", "one\n");
    git(&scratch, &["add", "."]);
    git(&scratch, &["commit", "-q", "-m", "begin"]);
    scratch.file("kept.txt", "two\n");
    scratch.file("new.txt", "new\n");
    let mut terminal = Terminal::open(hangar(&scratch).arg("--allow-all-tools"));
    let trees = format!("{}.worktrees", scratch.work().display());
    let tree = |name: &str| std::path::Path::new(&trees).join(name);
    terminal.keys("/worktree side\r");
    terminal.wait_for("Your uncommitted changes stayed in");
    terminal.wait_until("the branch", |terminal| terminal.seen().contains(" · side"));
    assert_eq!(std::fs::read_to_string(tree("side").join("kept.txt")).expect("the file"), "one\n");
    terminal.keys(&format!("/cwd {}\r", scratch.work().display()));
    terminal.wait_until("the branch", |terminal| terminal.seen().contains(" · main"));
    terminal.keys("/move SAY:I am here.  SAY:twice\r");
    terminal.wait_for("Your uncommitted changes are there.");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nI am here."));
    let moved = tree("say-i-am-here-say-twice");
    assert_eq!(std::fs::read_to_string(moved.join("kept.txt")).expect("the file"), "two\n");
    assert_eq!(std::fs::read_to_string(moved.join("new.txt")).expect("the file"), "new\n");
    assert_eq!(git(&scratch, &["status", "--porcelain"]), "");
    terminal.keys("/worktree side\r");
    terminal.wait_for("there already; name another branch");
    terminal.leave();
}

#[test]
fn a_restart_opens_the_session_again() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).args(["--plan", "-i", "SAY:the first answer"]));
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nthe first answer"));
    terminal.wait_until("the end", |terminal| !terminal.seen().contains("working"));
    terminal.keys("/restart\r");
    terminal.wait_until("the second start", |terminal| {
        terminal.text().matches("\nthe first answer").count() == 2 && terminal.seen().contains("plan")
    });
    terminal.prompt("SAY:after the restart");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nafter the restart"));
    terminal.leave();
    let log = scratch.log(&scratch.sessions().pop().expect("a session"));
    assert_eq!(log.matches("\"type\":\"user.message\"").count(), 2, "{log}");
}
