//! Creating, finding, renaming and deleting sessions.

use crate::home::{Home, append, event, file_names, id, ids, meta, past};
use hangar_agent::log::{LogError, Seq, SessionLog};
use hangar_protocol::data::{AssistantIdle, WorkingDirectory};
use hangar_protocol::{Event, EventId, EventKind, LogPosition};
use hangar_store::{Filter, ResolveError, SessionId, SessionMeta, SessionName, StoreError};

fn given(name: &str) -> SessionName {
    SessionName::Given(name.to_owned())
}

#[test]
fn a_new_session_has_these_files_and_nobody_else_may_read_them() {
    let home = Home::new();
    let session = home.create("s");
    assert_eq!(
        file_names(&session.dir()),
        [".lock", "checkpoints", "events.jsonl", "files", "workspace.yaml"]
    );
    #[cfg(unix)]
    for name in file_names(&session.dir()) {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(session.dir().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

#[test]
fn the_facts_of_a_session_are_on_disk_as_written() {
    let home = Home::new();
    let context = WorkingDirectory {
        cwd: "/home/me/widgets".to_owned(),
        git_root: Some("/home/me/widgets".to_owned()),
        repository: Some("acme/widgets".to_owned()),
        branch: Some("main".to_owned()),
    };
    let meta = SessionMeta {
        name: SessionName::from_prompt("fix: the\nbug"),
        client_name: Some("hangar".to_owned()),
        ..SessionMeta::new(context, past(0))
    };
    let mut session = home.store.create(&id("s"), meta).unwrap();
    append(&mut session, event(7, "x"));
    session.sync().unwrap();
    expect_test::expect![[r#"
        id: s
        cwd: /home/me/widgets
        git_root: /home/me/widgets
        repository: acme/widgets
        branch: main
        client_name: hangar
        name: "fix: the\nbug"
        user_named: false
        summary_count: 0
        created_at: 2001-09-09T01:46:40.000Z
        updated_at: 2001-09-09T01:46:47.000Z
    "#]]
    .assert_eq(&std::fs::read_to_string(session.dir().join("workspace.yaml")).unwrap());
}

#[test]
fn a_session_cannot_be_created_twice_nor_opened_before() {
    let home = Home::new();
    assert!(matches!(home.store.open(&id("s")), Err(StoreError::NotFound { .. })));
    assert!(matches!(home.store.read(&id("s")), Err(StoreError::NotFound { .. })));
    drop(home.create("s"));
    assert!(matches!(home.store.create(&id("s"), meta("/")), Err(StoreError::Exists { .. })));
}

#[test]
fn a_second_writer_in_the_same_process_is_refused() {
    let home = Home::new();
    let session = home.create("s");
    let own = std::process::id();
    assert!(matches!(home.store.open(&id("s")), Err(StoreError::InUse { pid: Some(pid), .. }) if pid == own));
    assert!(matches!(home.store.create(&id("s"), meta("/")), Err(StoreError::InUse { .. })));
    drop(session);
    home.store.open(&id("s")).unwrap();
}

#[test]
fn a_session_that_another_program_holds_is_refused() {
    let home = Home::new();
    let dir = home.create("s").dir();
    let hold = std::fs::File::create(dir.join("inuse.4242.hold")).unwrap();
    home.store.open(&id("s")).unwrap();
    hold.lock().unwrap();
    assert!(matches!(home.store.open(&id("s")), Err(StoreError::InUse { pid: Some(4242), .. })));
}

#[test]
fn appending_somewhere_else_than_at_the_end_is_refused() {
    let home = Home::new();
    let mut session = home.create("s");
    assert_eq!(session.append(Seq(0), &[event(0, "a"), event(1, "b")]).unwrap(), Seq(2));
    let error = session.append(Seq(1), &[event(2, "c")]).unwrap_err();
    assert!(matches!(error, LogError::Moved { expected: 1, actual: 2, .. }));
    assert_eq!(ids(&home.store, "s"), ["e0", "e1"]);
}

#[test]
fn lines_that_somebody_else_appended_are_noticed_and_left_alone() {
    let home = Home::new();
    let mut session = home.create("s");
    append(&mut session, event(0, "a"));
    let text = std::fs::read_to_string(session.log_path()).unwrap();
    std::fs::write(session.log_path(), text.repeat(3)).unwrap();
    let error = session.append(Seq(1), &[event(1, "b")]).unwrap_err();
    assert!(matches!(error, LogError::Moved { expected: 1, actual: 3, .. }));
    assert_eq!(std::fs::read_to_string(session.log_path()).unwrap(), text.repeat(3));
}

#[test]
fn ephemeral_events_are_not_written_and_are_no_parents() {
    let home = Home::new();
    let mut session = home.create("s");
    let idle =
        Event::new(EventId("idle".to_owned()), String::new(), None, None, AssistantIdle::default().into());
    assert_eq!(session.append(Seq(0), &[event(0, "a"), idle.clone()]).unwrap(), Seq(1));
    assert_eq!(session.append(Seq(1), &[idle]).unwrap(), Seq(1));
    assert_eq!(session.last_event_id(), Some(&EventId("e0".to_owned())));
    assert_eq!(ids(&home.store, "s"), ["e0"]);
}

#[test]
fn the_last_events_can_be_read_alone() {
    let home = Home::new();
    let mut session = home.create("s");
    for n in 0..10 {
        append(&mut session, event(n, &"x".repeat(n as usize * 10_000)));
    }
    let last = |count| -> Vec<String> {
        home.store.read_back(&id("s"), count).unwrap().iter().map(|event| event.id().0.clone()).collect()
    };
    assert_eq!(last(3), ["e7", "e8", "e9"]);
    assert_eq!(last(0), [""; 0]);
    assert_eq!(last(100).len(), 10);
}

#[test]
fn sessions_are_listed_by_the_time_they_were_written() {
    let home = Home::new();
    for (name, second) in [("old", 10), ("newest", 30), ("new", 20)] {
        append(&mut home.create(name), event(second, "x"));
    }
    let mut ended_well = home.create("older");
    append(&mut ended_well, event(5, "x"));
    ended_well.sync().unwrap();
    let names: Vec<String> = home
        .store
        .list(&Filter::default())
        .unwrap()
        .into_iter()
        .map(|session| session.id.to_string())
        .collect();
    assert_eq!(names, ["newest", "new", "old", "older"]);
    assert_eq!(home.store.last(&Filter::default()).unwrap().unwrap().id, id("newest"));
}

#[test]
fn a_list_can_be_narrowed() {
    let home = Home::new();
    drop(home.store.create(&id("a"), meta("/a")).unwrap());
    drop(home.store.create(&id("b"), meta("/b")).unwrap());
    let filter = Filter { cwd: Some("/b".to_owned()), ..Filter::default() };
    assert_eq!(home.store.last(&filter).unwrap().unwrap().id, id("b"));
    let filter = Filter { repository: Some("acme/widgets".to_owned()), ..Filter::default() };
    assert_eq!(home.store.last(&filter).unwrap(), None);
}

#[test]
fn a_home_without_sessions_lists_none() {
    let home = Home::new();
    assert_eq!(home.store.list(&Filter::default()).unwrap(), []);
}

#[test]
fn what_is_not_a_session_is_not_listed() {
    let home = Home::new();
    drop(home.create("real"));
    std::fs::create_dir(home.store.root().join(".session-operation-locks")).unwrap();
    std::fs::create_dir(home.store.root().join("empty")).unwrap();
    std::fs::write(home.store.root().join("file"), "x").unwrap();
    assert_eq!(home.store.list(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn a_session_without_facts_is_listed_by_what_its_log_says() {
    let home = Home::new();
    let start = r#"{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"p","copilotVersion":"1","startTime":"2020-01-01T00:00:00.000Z","context":{"cwd":"/elsewhere"}},"id":"a","timestamp":"2020-01-01T00:00:00.000Z","parentId":null}"#;
    for (yaml, log) in
        [(None, start), (Some("\0\0"), start), (Some("created_at: never"), start), (None, "garbage")]
    {
        let dir = home.create("s").dir();
        std::fs::write(dir.join("events.jsonl"), format!("{log}\n")).unwrap();
        std::fs::remove_file(dir.join("workspace.yaml")).unwrap();
        if let Some(yaml) = yaml {
            std::fs::write(dir.join("workspace.yaml"), yaml).unwrap();
        }
        let meta = home.store.last(&Filter::default()).unwrap().unwrap().meta;
        let cwd = meta.context.map(|context| context.cwd);
        assert_eq!(cwd.as_deref(), (log == start).then_some("/elsewhere"));
        home.store.rename(&id("s"), given("mended")).unwrap();
        let meta = home.store.last(&Filter::default()).unwrap().unwrap().meta;
        assert_eq!(meta.name, Some(given("mended")));
        home.store.delete(&id("s")).unwrap();
    }
}

#[test]
fn the_log_of_another_program_reads_and_goes_on() {
    let home = Home::new();
    let dir = home.create("s").dir();
    let log = [
        r#"{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"2026-11-15T18:32:05.380Z","selectedModel":"m","contextTier":null,"context":{"cwd":"/w"},"alreadyInUse":false},"id":"1","timestamp":"2026-11-15T18:32:05.415Z","parentId":null}"#,
        r#"{"type":"user.message","data":{"content":"hi","transformedContent":"x","supportedNativeDocumentMimeTypes":[],"delivery":"idle"},"id":"2","timestamp":"2026-11-15T18:32:05.663Z","parentId":"1"}"#,
        r#"{"type":"session.permissions_changed","data":{"later":[1,2.50]},"id":"3","timestamp":"2026-11-15T18:32:05.668Z","parentId":"2"}"#,
    ];
    std::fs::write(dir.join("events.jsonl"), format!("{}\n", log.join("\n"))).unwrap();
    let read: Vec<String> = home
        .store
        .read(&id("s"))
        .unwrap()
        .map(|event| serde_json::to_string(&event.unwrap()).unwrap())
        .collect();
    assert_eq!(read, log);

    let mut session = home.store.open(&id("s")).unwrap();
    assert_eq!((session.end(), session.last_event_id()), (Seq(3), Some(&EventId("3".to_owned()))));
    append(&mut session, event(3, "more"));
    let messages = home.store.read_kinds(&id("s"), |kind| kind == EventKind::UserMessage).unwrap();
    assert_eq!(messages.map(|event| event.unwrap().id().0.clone()).collect::<Vec<_>>(), ["2", "e3"]);
}

#[test]
fn a_deleted_session_is_gone_and_its_id_free() {
    let home = Home::new();
    let session = home.create("s");
    assert!(matches!(home.store.delete(&id("s")), Err(StoreError::InUse { .. })));
    drop(session);
    std::fs::create_dir(home.store.root().join(".deleted-1-left-over")).unwrap();
    home.store.delete(&id("s")).unwrap();
    assert_eq!(file_names(home.store.root()), [""; 0]);
    assert!(matches!(home.store.delete(&id("s")), Err(StoreError::NotFound { .. })));
    home.create("s");
}

/// Sessions `aaaaaaa-1` named `Feature`, `aaaaaaa-2` named from the prompt `feature`, `bbbbbbb-1` and `bbbbbbb-2`
/// both named from the prompt `twice`.
fn check_resolve(text: &str, expected: Result<&str, &str>) {
    let home = Home::new();
    let names = [
        ("aaaaaaa-1", given("Feature")),
        ("aaaaaaa-2", SessionName::Derived("feature".to_owned())),
        ("bbbbbbb-1", SessionName::Derived("twice".to_owned())),
        ("bbbbbbb-2", SessionName::Derived("twice".to_owned())),
        ("ccccccc-1", given("bbbbbbb")),
    ];
    for (second, (name, title)) in names.into_iter().enumerate() {
        let mut session = home.create(name);
        session.rename(title).unwrap();
        append(&mut session, event(second as u64, "x"));
    }
    let resolved = home.store.resolve(text);
    assert_eq!(
        resolved.as_ref().map(SessionId::as_str).map_err(ToString::to_string),
        expected.map_err(str::to_owned)
    );
    if let Err(error) = resolved {
        assert!(matches!(error, ResolveError::NotFound { .. } | ResolveError::Ambiguous { .. }));
    }
}

#[test]
fn a_session_is_found_by_id_by_its_beginning_and_by_name() {
    check_resolve("aaaaaaa-2", Ok("aaaaaaa-2"));
    check_resolve("ccccccc", Ok("ccccccc-1"));
    check_resolve("CCCCCCC-", Ok("ccccccc-1"));
    check_resolve("FEATURE", Ok("aaaaaaa-1"));
    check_resolve("bbbbbbb", Ok("ccccccc-1"));
}

#[test]
fn what_names_no_session_or_several_is_refused() {
    check_resolve("cccccc", Err(r#"no session has the id or name "cccccc""#));
    check_resolve("../../etc", Err(r#"no session has the id or name "../../etc""#));
    check_resolve("", Err(r#"no session has the id or name """#));
    check_resolve("aaaaaaa", Err(r#""aaaaaaa" could mean 2 sessions: aaaaaaa-1, aaaaaaa-2"#));
    check_resolve("twice", Err(r#""twice" could mean 2 sessions: bbbbbbb-2, bbbbbbb-1"#));
}

#[test]
fn an_append_says_where_each_event_ends() {
    let home = Home::new();
    let mut session = home.create("s");
    append(&mut session, event(0, "one"));
    let idle =
        Event::new(EventId("i".to_owned()), "t".to_owned(), None, None, AssistantIdle::default().into());
    session.append(session.end(), &[event(1, "two"), idle.clone(), event(2, "three")]).unwrap();
    let appended = session.appended().to_vec();
    let mut follow = home.store.follow(&id("s"), LogPosition::default()).unwrap();
    let mut positions = Vec::new();
    while follow.next_line().unwrap().is_some() {
        positions.push(follow.position());
    }
    assert_eq!(appended, positions[1..]);
    session.append(session.end(), &[idle]).unwrap();
    assert!(session.appended().is_empty(), "a passing event has no place in the log");
}
