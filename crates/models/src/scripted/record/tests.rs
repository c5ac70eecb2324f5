#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};
use hangar_agent::model::{Message, ModelProvider, ModelRequest, Part};
use tempfile::TempDir;

use super::super::conversation::{answer, assistant, call, lines, request, result, user};
use super::super::{Script, ScriptedModel};
use super::*;

type Events = Vec<Result<ModelEvent, ModelError>>;

struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("recording.jsonl")
    }

    async fn record(&self, names: &[(&str, &str)], requests: &[ModelRequest]) -> Events {
        let model = Arc::new(ScriptedModel::new(Script::default(), 1));
        let recorder = Recorder::open(model, &self.path(), named(names)).unwrap();
        ask(&recorder, requests).await
    }

    async fn replay(&self, names: &[(&str, &str)], requests: &[ModelRequest]) -> Events {
        ask(&Replay::open(&self.path(), named(names)).unwrap(), requests).await
    }

    fn written(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }
}

fn named(names: &[(&str, &str)]) -> RecordedNames {
    RecordedNames::new(names.iter().map(|(value, name)| ((*value).to_owned(), (*name).to_owned())))
}

async fn ask(provider: &dyn ModelProvider, requests: &[ModelRequest]) -> Events {
    let mut events = Vec::new();
    for request in requests {
        events.extend(answer(provider, request).await);
    }
    events
}

/// A session with a tool call, a failure that a retry overcomes, and a truncation.
fn session() -> Vec<ModelRequest> {
    let prompt = user("THINK:hm\nSTREAM:3\nTOOL:bash:{\"command\": \"ls\"}");
    let ls = call("any", "bash", "{\"command\": \"ls\"}");
    let turn = assistant("tok0 tok1 tok2 ", std::slice::from_ref(&ls));
    let first = vec![prompt.clone()];
    let second = vec![prompt.clone(), turn.clone(), result(&ls, "a.txt")];
    let mut third = second.clone();
    third.extend([assistant("done: a.txt", &[]), user("FAIL:429:1:2\nSAY:now")]);
    let cut = vec![user("SAY:half\nDROP:")];
    [first, second, third.clone(), third, cut].map(request).to_vec()
}

async fn check_replay(recorded: Vec<Message>, asked: Vec<Message>, expected: Expect) {
    let fixture = Fixture::new();
    fixture.record(&[], &[request(recorded)]).await;
    expected.assert_eq(&lines(&fixture.replay(&[], &[request(asked)]).await));
}

#[tokio::test]
async fn a_replay_gives_the_events_that_were_recorded() {
    let fixture = Fixture::new();
    let recorded = fixture.record(&[], &session()).await;
    assert_eq!(fixture.replay(&[], &session()).await, recorded);
    expect![[r#"
        reasoning "hm"
        text "tok0 "
        text "tok1 "
        text "tok2 "
        input of Function bash call_10001_0: ""
        input of Function bash call_10001_0: "{\"command\": \"ls\"}"
        ToolCalls: "tok0 tok1 tok2 " reasoning "hm" Function bash({"command": "ls"})
        text "done: a.txt"
        Stop: "done: a.txt"
        RateLimit: 429 mock failure 429 (retry after 2s)
        text "now"
        Stop: "now"
        text "half"
        Cut: the script broke off the answer
    "#]]
    .assert_eq(&lines(&recorded));
}

#[tokio::test]
async fn an_exchange_is_one_line() {
    let fixture = Fixture::new();
    fixture.record(&[], &session()[1..2]).await;
    expect![[r#"
        {"version":1,"model":"scripted","after":"1679fa28dd2e9830","asked":[{"tool":"a.txt"}],"tools":["bash","apply_patch"],"events":[{"text":"done: a.txt"},{"finished":{"id":"scripted-10001","turn":{"text":"done: a.txt","reasoning":null,"tool_calls":[]},"finish":"stop","usage":{"input_tokens":46,"output_tokens":2,"cache_read_tokens":null,"cache_write_tokens":null,"reasoning_tokens":null}}}]}
    "#]]
    .assert_eq(&fixture.written());
}

#[tokio::test]
async fn times_reminders_and_ids_do_not_matter() {
    let decorated = |time: &str, id: &str| {
        let call = call(id, "bash", if id == "1" { "{\"a\": 1}" } else { "{\"a\":1}" });
        vec![
            user(&format!(
                "<current_datetime>{time}</current_datetime>\n\nTOOL:bash:{{}}\n\n<system_reminder>{id}</system_reminder>"
            )),
            assistant("", std::slice::from_ref(&call)),
            result(&call, "ok"),
        ]
    };
    check_replay(
        decorated("2026", "1"),
        decorated("2027", "2"),
        expect![[r#"
        text "done: ok"
        Stop: "done: ok"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn the_system_prompt_and_the_tools_do_not_matter() {
    let fixture = Fixture::new();
    fixture.record(&[], &[request(vec![user("hello")])]).await;
    let other = ModelRequest { system: "Another.".into(), tools: [].into(), ..request(vec![user("hello")]) };
    expect![[r#"
        text "pong"
        Stop: "pong"
    "#]]
    .assert_eq(&lines(&fixture.replay(&[], &[other]).await));
}

#[tokio::test]
async fn a_prompt_that_was_not_recorded_is_named() {
    check_replay(
        vec![user("SAY:one")],
        vec![user("what else?")],
        expect![[r#"
        Refused: the prompt `what else?` is not in the recording
    "#]],
    )
    .await;
    let long = "long ".repeat(100);
    check_replay(vec![user("SAY:one")], vec![user(&long)], expect![[r#"
        Refused: the prompt `long long long long long long long long long long long long long long long long long long long long long long long long …` is not in the recording
    "#]])
    .await;
}

#[tokio::test]
async fn the_same_prompt_after_another_conversation_is_another_request() {
    check_replay(
        vec![user("a"), assistant("pong", &[]), user("b")],
        vec![user("a"), assistant("PONG", &[]), user("b")],
        expect![[r#"
            Refused: the recording has the prompt `b` only after another conversation
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_answer_is_given_once() {
    let fixture = Fixture::new();
    fixture.record(&[], &[request(vec![user("hello")])]).await;
    let twice = [request(vec![user("hello")]), request(vec![user("hello")])];
    expect![[r#"
        text "pong"
        Stop: "pong"
        Refused: the recording has no further answer to the prompt `hello`
    "#]]
    .assert_eq(&lines(&fixture.replay(&[], &twice).await));
}

#[tokio::test]
async fn images_are_part_of_the_conversation() {
    let picture = |data: &str| {
        let image = Part::Image { mime_type: "image/png".to_owned(), data: data.to_owned() };
        vec![Message::User(vec![Part::Text("look".to_owned()), image])]
    };
    check_replay(
        picture("QQ=="),
        picture("QQ=="),
        expect![[r#"
        text "pong"
        Stop: "pong"
    "#]],
    )
    .await;
    check_replay(
        picture("QQ=="),
        picture("Qg=="),
        expect![[r#"
        Refused: the prompt `look
        [image/png eff8ebce4f23476b]` is not in the recording
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_replay_in_one_piece_leaves_the_pieces_out() {
    let fixture = Fixture::new();
    fixture.record(&[], &[request(vec![user("STREAM:3")])]).await;
    let whole = ModelRequest { stream: false, ..request(vec![user("STREAM:3")]) };
    expect![[r#"
        Stop: "tok0 tok1 tok2 "
    "#]]
    .assert_eq(&lines(&fixture.replay(&[], &[whole]).await));
}

#[tokio::test]
async fn named_values_are_not_in_the_file_and_come_back_with_their_new_value() {
    let fixture = Fixture::new();
    let said = |directory: &str| {
        [request(vec![user(&format!(
            "SAY:in {directory}/a\nSAY:tok3n\nTOOL:bash:{{\"cwd\": \"{directory}\"}}"
        ))])]
    };
    fixture.record(&[("/old/dir", "workdir"), ("tok3n", "token")], &said("/old/dir")).await;
    let written = fixture.written();
    assert!(!written.contains("/old/dir") && !written.contains("tok3n"), "{written}");
    expect![[r#"
        text "in /new/a"
        text "tok3n"
        input of Function bash call_10001_0: ""
        input of Function bash call_10001_0: "{\"cwd\": \"/new\"}"
        ToolCalls: "in /new/atok3n" Function bash({"cwd": "/new"})
    "#]]
    .assert_eq(&lines(&fixture.replay(&[("/new", "workdir"), ("tok3n", "token")], &said("/new")).await));
}

#[tokio::test]
async fn a_named_value_in_several_pieces_is_not_in_the_file() {
    let fixture = Fixture::new();
    let names = [("tok1 tok2", "secret")];
    fixture.record(&names, &[request(vec![user("STREAM:4")])]).await;
    let written = fixture.written();
    assert!(!written.contains("tok1") && !written.contains("tok2"), "{written}");
    expect![[r#"
        text "tok0 tok1 tok2 tok3 "
        Stop: "tok0 tok1 tok2 tok3 "
    "#]]
    .assert_eq(&lines(&fixture.replay(&names, &[request(vec![user("STREAM:4")])]).await));
}

#[tokio::test]
async fn a_cancelled_call_is_not_recorded() {
    use futures_util::StreamExt;
    let fixture = Fixture::new();
    let model = Arc::new(ScriptedModel::new(Script::default(), 1));
    let recorder = Recorder::open(model, &fixture.path(), RecordedNames::default()).unwrap();
    let mut events = recorder.stream(request(vec![user("STREAM:4")]));
    events.next().await;
    drop(events);
    assert_eq!(fixture.written(), "");
}

#[cfg(unix)]
#[tokio::test]
async fn a_recording_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.record(&[], &[]).await;
    assert_eq!(fixture.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

fn check_file(text: &str, expected: Expect) {
    let fixture = Fixture::new();
    std::fs::write(fixture.path(), text).unwrap();
    let error = Replay::open(&fixture.path(), RecordedNames::default()).err().unwrap();
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    check_file("{}\n", expect!["line 1 of the recording is not an exchange"]);
    check_file(
        "{\"version\":9,\"model\":\"\",\"asked\":[],\"tools\":[],\"events\":[]}\n",
        expect!["line 1 of the recording has version 9, not 1"],
    );
    assert!(matches!(
        Replay::open(Path::new("/nonexistent/recording"), RecordedNames::default()),
        Err(ReplayError::Read(_))
    ));
}
