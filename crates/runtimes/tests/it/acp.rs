//! Scripts in the place of agents of the Agent Client Protocol.

use std::path::PathBuf;
use std::time::Duration;

use hangar_runtimes::acp::AcpRuntime;
use hangar_runtimes::environment::RuntimeEnvironment;
use hangar_runtimes::outcome::TurnResult;
use hangar_runtimes::runtime::{AgentOrder, AgentSession, Runtime, SessionCommand, SessionNews};

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers every request, writes down the method of every message, and does `$before` and `$prompt` in between.
const AGENT: &str = r#"
session=0
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  method=$(printf %s "$line" | sed -n 's/.*"method":"\([^"]*\)".*/\1/p')
  echo "$method" >> heard
  before
  case $method in
  initialize) answer='{"protocolVersion":1,"agentCapabilities":{}}';;
  session/new) session=$((session+1)); answer="{\"sessionId\":\"s$session\"}";;
  session/prompt) prompt "$line"; answer='{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2}}';;
  *) continue;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$answer}"
done
"#;

struct Stage {
    dir: tempfile::TempDir,
    runtime: AcpRuntime,
}

impl Stage {
    /// The agent's actions before each answer, and when it is prompted.
    fn new(before: &str, prompt: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("before() {{ :\n{before}\n}}\nprompt() {{ :\n{prompt}\n}}\n{AGENT}");
        let surroundings =
            RuntimeEnvironment { vars: std::env::vars().collect(), ..RuntimeEnvironment::bare(dir.path()) };
        let args = vec!["-c".to_owned(), script];
        let runtime = AcpRuntime::new("agent", "sh", args, &surroundings);
        Self { dir, runtime }
    }

    async fn open(&self) -> AgentSession {
        let order = AgentOrder::new(uuid::Uuid::new_v4().to_string(), self.dir.path().to_owned());
        self.runtime.open(order).await.unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// The answers of a turn, and whether it was completed.
async fn answers(live: &mut AgentSession) -> (Vec<String>, bool) {
    let mut answers = Vec::new();
    loop {
        let news =
            tokio::time::timeout(PATIENCE, live.news.recv()).await.expect("the turn ends").expect("news");
        match news {
            SessionNews::Event(event) => {
                if let hangar_protocol::Body::AssistantMessage(message) = event.body() {
                    answers.push(message.content.clone());
                }
            }
            SessionNews::TurnEnded(ended) => return (answers, ended.outcome.end == TurnResult::Completed),
        }
    }
}

/// An answer of one of the sessions, in a piece.
fn says(session: &str, text: &str) -> String {
    format!(
        r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}'"#
    )
}

#[tokio::test]
async fn nonsense_between_messages_is_passed_over() {
    let nonsense = r#"
echo 'starting up, please wait...'
echo '{"jsonrpc":"2.0","id":99999,"result":null}'
echo '{"jsonrpc":"2.0","id":"x","method":"fs/read_text_file","params":[]}'
echo '{"jsonrpc":"2.0","method":"session/update"}'
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nobody","update":{}}}'
echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"nobody"}}'
echo '[1,2'
echo 'null'
printf '\377\376\n\n'
"#;
    let stage = Stage::new(nonsense, &says("s1", "pong"));
    let mut live = stage.open().await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    assert_eq!(answers(&mut live).await, (vec!["pong".to_owned()], true));
}

#[tokio::test]
async fn sessions_of_one_process_hear_their_own_words() {
    let both = format!("{}\n{}", says("s1", "one"), says("s2", "two"));
    let stage = Stage::new("", &format!("case $1 in *s2*) {both};; esac"));
    let (mut first, mut second) = (stage.open().await, stage.open().await);
    second.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    assert_eq!(answers(&mut second).await, (vec!["two".to_owned()], true));
    // The first message came between turns, so it belongs to no prompt.
    first.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    assert!(answers(&mut first).await.1);
    let heard = std::fs::read_to_string(stage.file("heard")).unwrap();
    assert_eq!(heard.matches("initialize").count(), 1, "{heard}");
}

#[tokio::test]
async fn a_session_that_is_dropped_in_its_turn_is_cancelled_though_the_process_stays() {
    // A prompt that is answered by nothing but its cancellation.
    let stage = Stage::new("", "read -r line; echo \"$line\" >> heard");
    let keeper = stage.open().await;
    let mut dropped = stage.open().await;
    dropped.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    while !matches!(dropped.news.recv().await.unwrap(), SessionNews::Event(event) if event.kind() == "user.message")
    {
    }
    let prompted = async {
        while !std::fs::read_to_string(stage.file("heard")).unwrap().contains("session/prompt") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, prompted).await.expect("the prompt arrives");
    drop(dropped);
    let cancelled = async {
        while !std::fs::read_to_string(stage.file("heard")).unwrap().contains("session/cancel") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, cancelled).await.expect("the agent is told to stop");
    drop(keeper);
}
