//! Links, pipes and files of others where Hangar writes or was permitted to write: nothing outside is read or changed, and
//! the session goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::sdk::{Client, ID, of_session, stage};
use crate::{HANGAR, hangar};

/// Content of a file outside. It is neither an SQL database, a record of changes, a plan nor a log.
const KEPT: &str = "SECRET\n";

/// A machine with something to lose.
struct Machine {
    scratch: Scratch,
    model: ModelServer,
}

impl Machine {
    fn new() -> Self {
        let (scratch, model) = stage();
        std::fs::create_dir(scratch.root().join("outside")).unwrap();
        std::fs::write(scratch.root().join("outside/kept"), KEPT).unwrap();
        Self { scratch, model }
    }

    fn outside(&self) -> PathBuf {
        self.scratch.root().join("outside")
    }

    fn session_dir(&self) -> PathBuf {
        self.scratch.state().join("session-state").join(ID)
    }

    #[track_caller]
    fn is_untouched(&self, what: &str) {
        assert_eq!(std::fs::read_to_string(self.outside().join("kept")).unwrap(), KEPT, "{what}");
        let names: Vec<_> =
            std::fs::read_dir(self.outside()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"], "{what}");
    }

    fn client(&self) -> Client {
        Client::start(&self.scratch, &self.model)
    }

    /// A client with a session in which everything is allowed, and files are kept before they change.
    fn allowed(&self) -> Client {
        let mut client = self.client();
        client.create(json!({
            "enableFileChangeTracking": true,
            "requestPermission": true,
            "workingDirectory": self.scratch.work(),
        }));
        client.call("session.permissions.setApproveAll", of_session(json!({ "enabled": true })));
        client
    }
}

fn say(client: &mut Client, prompt: &str) {
    client.forget();
    client.send(prompt);
    client.event("session.idle");
}

fn bash(command: &str) -> String {
    format!("TOOL:bash:{}", json!({ "command": command, "description": "d" }))
}

/// Everything that makes Hangar write beside a session, in one turn and some calls.
fn write_everything(machine: &Machine, client: &mut Client, round: usize) {
    let edited = machine.scratch.work().join("edited.txt");
    let edit = json!({
        "path": edited, "old_str": format!("v{round}"), "new_str": format!("v{}", round + 1)
    });
    let sql = json!({
        "description": "d", "query": format!("INSERT INTO todos (id, title) VALUES ('t{round}', 'x')")
    });
    let spilled = bash("head -c 40000 /dev/zero | tr '\\0' x");
    say(client, &format!("TOOL:edit:{edit}\n{spilled}\nTOOL:sql:{sql}\nSAY:done"));
    client.answer("session.plan.read", of_session(json!({})));
    client.answer("session.plan.update", of_session(json!({ "content": "# Plan\n" })));
    client.answer("session.history.compact", of_session(json!({})));
    client.answer("session.name.set", of_session(json!({ "name": format!("name {round}") })));
    client.answer("session.workspaces.listFiles", of_session(json!({})));
    client.answer("session.history.listRewindPoints", of_session(json!({})));
    assert_eq!(std::fs::read_to_string(edited).unwrap(), format!("v{}\n", round + 1));
}

/// Lets a command put something where we write, writes everything, and goes on in another process.
fn check(plant: &str) {
    let machine = Machine::new();
    machine.scratch.file("edited.txt", "v0\n");
    let mut client = machine.allowed();
    write_everything(&machine, &mut client, 0);
    let (session, outside) = (machine.session_dir(), machine.outside());
    let plant = format!("set -e; cd {}; OUT={}; {plant}", session.display(), outside.display());
    say(&mut client, &format!("{}\nSAY:planted", bash(&plant)));
    write_everything(&machine, &mut client, 1);
    machine.is_untouched(&plant);
    client.finish();
    machine.is_untouched(&plant);

    let listed = machine.scratch.run(HANGAR).args(["sessions", "list"]).finish().expect_exit(0);
    assert!(listed.stdout.contains(ID) || listed.stdout.contains(&ID[..7]), "{}", listed.stdout);
    let mut client = machine.client();
    let config = json!({ "enableFileChangeTracking": true, "requestPermission": true });
    client.call("session.resume", of_session(config));
    client.call("session.permissions.setApproveAll", of_session(json!({ "enabled": true })));
    write_everything(&machine, &mut client, 2);
    say(&mut client, "SAY:still here");
    client.finish();
    machine.is_untouched(&plant);
}

#[test]
fn links_in_the_place_of_our_files_are_not_followed() {
    check(
        "ln -sf $OUT/kept rewind-file-snapshots/changes.jsonl; ln -sf $OUT/kept session.db; \
         ln -sf $OUT/kept session.db-journal; ln -sf $OUT/kept plan.md; ln -sf $OUT/kept workspace.yaml; \
         ln -sf $OUT/kept .lock; ln -sf $OUT/kept checkpoints/index.md; ln -sf $OUT/kept checkpoints/002-x.md",
    );
}

#[test]
fn links_to_what_does_not_exist_yet_are_not_followed() {
    check(
        "ln -sf $OUT/new rewind-file-snapshots/changes.jsonl; ln -sf $OUT/new session.db; ln -sf $OUT/new plan.md; \
         ln -sf $OUT/new workspace.yaml; ln -sf $OUT/new .lock; ln -sf $OUT/new checkpoints/index.md",
    );
}

#[test]
fn links_in_the_place_of_our_folders_are_not_followed() {
    check(
        "rm -r rewind-file-snapshots files checkpoints; for d in rewind-file-snapshots files checkpoints; do ln -s $OUT $d; done",
    );
    check("rm -r rewind-file-snapshots/backups; ln -s $OUT rewind-file-snapshots/backups");
}

#[test]
fn files_of_others_under_our_names_stay_as_they_are() {
    check(
        "for f in rewind-file-snapshots/changes.jsonl session.db plan.md workspace.yaml .lock checkpoints/index.md; \
         do ln -f $OUT/kept $f; done",
    );
}

#[test]
fn pipes_in_the_place_of_our_files_do_not_keep_us_waiting() {
    check(
        "for f in rewind-file-snapshots/changes.jsonl session.db plan.md workspace.yaml .lock checkpoints/index.md; \
         do rm -f $f; mkfifo $f; done; rm -r files; mkfifo files",
    );
}

#[test]
fn directories_in_the_place_of_our_files_do_not_end_the_session() {
    check(
        "for f in rewind-file-snapshots/changes.jsonl session.db plan.md workspace.yaml .lock checkpoints/index.md; \
         do rm -f $f; mkdir -p $f/full; done",
    );
}

/// A journal of SQLite that says that the database beside it was empty, and that another file is done with. Whoever opens the
/// database by path puts it back to that, and before SQLite 3.54 also removes that file.
fn journal(victim: &Path) -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SECTOR: usize = 512;
    let name = victim.as_os_str().as_encoded_bytes();
    let number = |value: usize| u32::try_from(value).unwrap().to_be_bytes();
    let mut journal = [MAGIC.as_slice(), &[0; 12], &number(SECTOR), &number(4096)].concat();
    journal.resize(SECTOR, 0);
    let sum = name.iter().map(|byte| usize::from(*byte)).sum();
    // The page that no database has.
    let page = 0x4000_0000 / 4096 + 1;
    journal.extend([&number(page), name, &number(name.len()), &number(sum), &MAGIC].concat());
    journal
}

#[test]
fn a_journal_that_others_put_beside_the_database_is_not_played_back() {
    let machine = Machine::new();
    let sql = json!({ "description": "d", "query": "INSERT INTO todos (id, title) VALUES ('t', 'x')" });
    let select = json!({ "description": "d", "query": "SELECT title || '!' AS told FROM todos" });
    let mut client = machine.allowed();
    say(&mut client, &format!("TOOL:sql:{sql}\nSAY:done"));
    let plant = || {
        let planted = journal(&machine.outside().join("kept"));
        std::fs::write(machine.session_dir().join("session.db-journal"), planted).unwrap();
    };
    plant();
    say(&mut client, &format!("TOOL:sql:{select}\nSAY:done"));
    machine.is_untouched("in the same process");
    client.finish();
    plant();
    let mut client = machine.client();
    client.call("session.resume", of_session(json!({ "requestPermission": true })));
    say(&mut client, &format!("TOOL:sql:{select}\nSAY:done"));
    client.finish();
    machine.is_untouched("in another process");
    assert!(machine.model.last_request()["messages"].to_string().contains("| x! |"));
}

#[test]
fn a_log_of_two_names_is_copied_and_a_link_in_its_place_is_told() {
    let machine = Machine::new();
    let run = |args: &[&str]| hangar(&machine.scratch, &machine.model).args(args).finish();
    run(&["--session-id", ID, "-p", "SAY:one"]).expect_exit(0);
    let log = machine.session_dir().join("events.jsonl");
    let second = machine.scratch.root().join("second");
    std::fs::hard_link(&log, &second).unwrap();
    let before = std::fs::read(&second).unwrap();
    run(&["--resume", ID, "-p", "SAY:two"]).expect_exit(0);
    assert_eq!(std::fs::read(&second).unwrap(), before);
    assert!(std::fs::read(&log).unwrap().starts_with(&before));

    let real = std::fs::read(&log).unwrap();
    std::fs::rename(&log, &second).unwrap();
    symlink(&second, &log).unwrap();
    let told = run(&["--resume", ID, "-p", "SAY:three"]).expect_exit(1);
    assert!(told.stderr.contains("events.jsonl is a link"), "{}", told.stderr);
    assert_eq!(std::fs::read(&second).unwrap(), real);
}

#[test]
fn a_directory_in_workspace_yaml_that_the_log_does_not_know_is_not_gone_on_in() {
    let machine = Machine::new();
    let run = |args: &[&str]| hangar(&machine.scratch, &machine.model).args(args).finish();
    run(&["--session-id", ID, "-p", "SAY:one"]).expect_exit(0);
    let yaml = machine.session_dir().join("workspace.yaml");
    let text = std::fs::read_to_string(&yaml).unwrap();
    let work = machine.scratch.work().display().to_string();
    std::fs::write(&yaml, text.replace(&work, &machine.outside().display().to_string())).unwrap();
    let told = run(&["--resume", ID, "-p", "SAY:two"]).expect_exit(1);
    assert!(told.stderr.contains("which its log does not say; pass -C"), "{}", told.stderr);
    run(&["--resume", ID, "-C", &work, "-p", "SAY:two"]).expect_exit(0);
}

/// Adds changes to the record of a session that no call made, beside one that a call made to `ours.txt`.
fn forge(machine: &Machine) {
    let changes = machine.session_dir().join("rewind-file-snapshots/changes.jsonl");
    let record: Value = serde_json::from_str(std::fs::read_to_string(&changes).unwrap().trim()).unwrap();
    let (work, outside) = (machine.scratch.work(), machine.outside());
    symlink(&outside, work.join("out")).unwrap();
    let absent = json!("absent");
    // `sha256sum` of what is in the file.
    let kept = json!({ "content": "b5758cb6fead016da791d69b85532f7d77f07b6a6ff621e111baffd029aeefc5" });
    let stolen = json!({ "content": "../../../../outside/kept" });
    let forged = [
        (outside.join("planted"), &record["before"], &absent),
        (work.join("../outside/planted"), &record["before"], &absent),
        (work.join(".git/config"), &record["before"], &absent),
        (outside.join("kept"), &absent, &kept),
        (work.join("out/planted"), &record["before"], &absent),
        (work.join("new.txt"), &stolen, &absent),
    ];
    let mut file = std::fs::OpenOptions::new().append(true).open(&changes).unwrap();
    for (path, before, after) in forged {
        let mut change = record.clone();
        (change["path"], change["before"], change["after"]) = (json!(path), before.clone(), after.clone());
        writeln!(file, "{change}").unwrap();
    }
}

#[track_caller]
fn is_rewound(machine: &Machine, told: &str) {
    machine.is_untouched(told);
    let work = machine.scratch.work();
    assert_eq!(std::fs::read_to_string(work.join("ours.txt")).unwrap(), "one\n", "{told}");
    assert!(!work.join(".git").exists() && !work.join("new.txt").exists(), "{told}");
    assert_eq!(told.matches("outside of the directories that the session may write").count(), 4, "{told}");
    assert!(told.contains("leads through one") && told.contains("is not what the record says"), "{told}");
}

#[test]
fn a_forged_record_rewinds_nothing_outside_and_the_rest_is_restored() {
    let machine = Machine::new();
    let ours = machine.scratch.file("ours.txt", "one\n");
    let edit = json!({ "path": ours, "old_str": "one", "new_str": "two" });
    let script = format!("TOOL:edit:{edit}\nSAY:done");
    let args = ["--session-id", ID, "--allow-all-tools", "-p", &script];
    hangar(&machine.scratch, &machine.model).args(args).finish().expect_exit(0);
    forge(&machine);
    let run = |args: &[&str]| machine.scratch.run(HANGAR).args(args).finish().expect_exit(0).stdout;
    let listed = run(&["sessions", "rewind", ID]);
    let first = listed.split(' ').next().unwrap();
    let told = run(&["sessions", "rewind", ID, "--to", first, "--files"]);
    is_rewound(&machine, &told);
    assert!(told.contains(&format!("Restored {}", ours.display())), "{told}");
}

#[test]
fn a_forged_record_is_not_believed_by_the_server_either() {
    let machine = Machine::new();
    let ours = machine.scratch.file("ours.txt", "one\n");
    let mut client = machine.allowed();
    let edit = json!({ "path": ours, "old_str": "one", "new_str": "two" });
    say(&mut client, &format!("TOOL:edit:{edit}\nSAY:done"));
    forge(&machine);
    let points = client.call("session.history.listRewindPoints", of_session(json!({})));
    let to = json!({ "eventId": points["points"][0]["eventId"], "mode": "conversation-and-files" });
    let rewound = client.call("session.history.rewind", of_session(to));
    assert_eq!(
        (&rewound["outcome"], &rewound["restoredFiles"]),
        (&json!("success"), &json!([ours])),
        "{rewound}"
    );
    is_rewound(&machine, rewound["error"].as_str().unwrap());
    client.finish();
}

/// Asks for a permission, lets somebody meddle before it is given, and says what the model was told.
fn answered_late(machine: &Machine, call: &str, meddle: impl FnOnce()) -> String {
    let mut client = machine.client();
    client.create(json!({
        "enableFileChangeTracking": true,
        "requestPermission": true,
        "workingDirectory": machine.scratch.work(),
    }));
    client.send(&format!("{call}\nSAY:done"));
    let asked = client.event("permission.requested");
    meddle();
    let approve = json!({ "requestId": asked["requestId"], "result": { "kind": "approve-once" } });
    client.call("session.permissions.handlePendingPermissionRequest", of_session(approve));
    client.event("session.idle");
    client.finish();
    machine.is_untouched(call);
    machine.model.last_request()["messages"].to_string()
}

#[test]
fn a_permission_for_one_path_is_not_used_on_another() {
    let calls = [
        ("create", json!({ "file_text": "x" }), "work/dir/planted"),
        ("edit", json!({ "old_str": "SECRET", "new_str": "x" }), "work/dir/kept"),
        // Outside of the working directory, so that it is asked for.
        ("view", json!({}), "other/dir/kept"),
        ("view", json!({}), "other/dir"),
        ("grep", json!({ "pattern": "SEC...", "output_mode": "content" }), "other/dir"),
        ("grep", json!({ "pattern": "SEC...", "output_mode": "content" }), "other/dir/kept"),
        ("glob", json!({ "pattern": "*" }), "other/dir"),
    ];
    for (tool, arguments, path) in calls {
        for moved in ["link", "directory"] {
            let machine = Machine::new();
            let root = machine.scratch.root();
            let dir = root.join(path.split_once("/dir").unwrap().0).join("dir");
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("kept"), "SECRET of ours\n").unwrap();
            let mut arguments = arguments.clone();
            let key = if ["grep", "glob"].contains(&tool) { "paths" } else { "path" };
            arguments[key] = json!(root.join(path));
            let told = answered_late(&machine, &format!("TOOL:{tool}:{arguments}"), || {
                std::fs::rename(&dir, dir.with_file_name("away")).unwrap();
                if moved == "link" {
                    symlink(machine.outside(), &dir).unwrap();
                } else {
                    std::fs::create_dir(&dir).unwrap();
                    std::fs::write(dir.join("kept"), "SECRET of others\n").unwrap();
                }
            });
            let refused = told.contains("nothing was done");
            assert!(refused, "{tool} {path} {moved}: {told}");
            let other = std::fs::read_to_string(dir.join("kept")).unwrap();
            assert!(!other.contains('x') && !dir.join("planted").exists(), "{tool} {path} {moved}");
        }
    }
}

#[test]
fn a_hard_link_that_was_put_in_the_place_of_a_file_is_not_written() {
    let machine = Machine::new();
    let file = machine.scratch.file("ours.txt", "SECRET of ours\n");
    let call = json!({ "path": file, "old_str": "SECRET", "new_str": "x" });
    let told = answered_late(&machine, &format!("TOOL:edit:{call}"), || {
        std::fs::remove_file(&file).unwrap();
        std::fs::hard_link(machine.outside().join("kept"), &file).unwrap();
    });
    assert!(told.contains("nothing was done"), "{told}");
}

/// Rounds in which a command swaps a directory for a link and back, and calls that are made meanwhile.
const ROUNDS: usize = 2000;
const CALLS: usize = 60;

#[test]
fn a_command_that_swaps_a_directory_in_a_loop_leads_no_tool_out_of_the_sandbox() {
    let machine = Machine::new();
    machine.scratch.file("dir/kept", KEPT);
    let outside = machine.outside().display().to_string();
    // Each state lasts about as long as a call takes from its inspection to its run.
    let swap = format!(
        "import os, time\nfor n in range({ROUNDS}):\n    os.rename('dir', 'away'); os.symlink({outside:?}, 'dir')\n    \
         time.sleep(0.001)\n    os.unlink('dir'); os.rename('away', 'dir')\n    time.sleep(0.001)\n"
    );
    machine.scratch.file("swap.py", &swap);
    let run = json!({ "command": "python3 swap.py", "description": "d", "mode": "async" });
    let dir = machine.scratch.work().join("dir");
    let mut script = format!("TOOL:bash:{run}\n");
    for n in 0..CALLS {
        let create = json!({ "path": dir.join(format!("planted{n}")), "file_text": "x" });
        let edit = json!({ "path": dir.join("kept"), "old_str": "SECRET", "new_str": "SECRET x" });
        script.push_str(&format!("TOOL:create:{create}\nTOOL:edit:{edit}\n"));
    }
    script.push_str("SAY:done");
    let done = hangar(&machine.scratch, &machine.model)
        .args(["--sandbox", "--allow-all", "--output-format", "json", "-p", &script])
        .finish()
        .expect_exit(0);
    machine.is_untouched(&swap);
    assert!(
        done.stdout.contains("nothing was done") || done.stdout.contains("outside"),
        "nobody swapped anything"
    );
}
