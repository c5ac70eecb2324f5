//! The log of a session: the rules of its one writer, held by the file alone and by the file with a copy on the servers.

use std::sync::Arc;
use std::time::Duration;

use hangar_agent::log::{LogError, Seq, SessionLog};
use hangar_fleet::check;
use hangar_fleet::claim::LogClaim;
use hangar_fleet::fold::{SessionFold, TurnProgress};
use hangar_fleet::lease::{LeaseInstant, LeaseKeeper};
use hangar_fleet::log::{self, LogEntry, LogItem};
use hangar_fleet::order::OrderId;
use hangar_fleet::queue::{Settled, Ticket};
use hangar_fleet::record::FleetRecord;
use hangar_fleet::replica::ClaimedLogs;
use hangar_fleet::{Broker, FleetError};
use hangar_protocol::data::{SessionInfo, WorkingDirectory};
use hangar_protocol::{Body, Event, EventId};
use hangar_store::{SessionId, SessionMeta, Store};
use hangar_test_support::NatsServers;
use jiff::Timestamp;

use crate::connect;

fn session() -> SessionId {
    uuid::Uuid::new_v4().to_string().parse().unwrap()
}

fn meta() -> SessionMeta {
    let context = WorkingDirectory { cwd: "/w".to_owned(), git_root: None, repository: None, branch: None };
    SessionMeta::new(context, Timestamp::UNIX_EPOCH)
}

fn event(id: &str, parent: Option<&str>, text: String) -> Event {
    let body = Body::from(SessionInfo::new("note", text));
    let parent = parent.map(|parent| EventId(parent.to_owned()));
    Event::new(EventId(id.to_owned()), "2026-01-01T00:00:00.000Z".to_owned(), parent, None, body)
}

async fn append(log: &mut impl SessionLog, at: u64, events: &[Event]) -> Result<Seq, LogError> {
    let end = log.append(Seq(at), events)?;
    if let Some(stored) = log.settle() {
        stored.await?;
    }
    Ok(end)
}

/// The rules of every log of a session.
async fn suite(store: &Store, id: &SessionId) {
    let mut log = store.create(id, meta()).unwrap();
    let two = [event("a", None, "1".to_owned()), event("b", Some("a"), "2".to_owned())];
    assert_eq!(append(&mut log, 0, &two).await.unwrap(), Seq(2));
    let moved = append(&mut log, 1, &[event("x", Some("a"), "late".to_owned())]).await;
    assert!(matches!(moved, Err(LogError::Moved { expected: 1, actual: 2, .. })), "{moved:?}");
    assert!(store.open(id).is_err(), "a log has one writer");
    drop(log);
    let mut log = store.open(id).unwrap();
    assert_eq!(append(&mut log, 2, &[event("c", Some("b"), "3".to_owned())]).await.unwrap(), Seq(3));
    let read: Vec<String> = store.read(id).unwrap().map(|event| event.unwrap().id().0.clone()).collect();
    assert_eq!(read, ["a", "b", "c"]);
}

fn claimed(worker: &str) -> FleetRecord {
    FleetRecord::Claimed {
        worker: worker.to_owned(),
        order: OrderId("o".to_owned()),
        delivery: 0,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn lines(entries: &[LogEntry]) -> Vec<u8> {
    let lines = entries.iter().filter_map(|entry| match &entry.item {
        LogItem::Events(lines) => Some(lines.to_vec()),
        LogItem::Record(_) => None,
    });
    lines.flatten().collect()
}

async fn claim(broker: &Broker, id: &SessionId, worker: &str) -> LogClaim {
    let subject = log::session_subject(broker, id);
    let last = SessionFold::of(&log::read(broker, &subject).await.unwrap()).last;
    LogClaim::take(broker, subject, last, &claimed(worker)).await.unwrap()
}

#[tokio::test]
async fn a_log_in_a_file_keeps_the_rules() {
    let home = tempfile::tempdir().unwrap();
    suite(&Store::new(home.path()), &session()).await;
}

#[tokio::test]
async fn a_log_with_a_copy_on_a_server_keeps_the_rules_and_both_are_the_same() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let (home, id) = (tempfile::tempdir().unwrap(), session());
    let claims = ClaimedLogs::default();
    claims.insert(id.clone(), claim(&broker, &id, "w1").await);
    let store = Store::new(home.path()).with_replica(Some(Arc::new(claims)));
    suite(&store, &id).await;
    let entries = log::read(&broker, &log::session_subject(&broker, &id)).await.unwrap();
    let file = std::fs::read(store.session_dir(&id).join("events.jsonl")).unwrap();
    assert_eq!(String::from_utf8(lines(&entries)).unwrap(), String::from_utf8(file).unwrap());
    assert_eq!(check::problems(&entries), Vec::<String>::new());

    // Another machine goes on from the copy.
    let other = tempfile::tempdir().unwrap();
    let store = Store::new(other.path());
    store.restore(&id, &lines(&entries)).unwrap();
    assert_eq!(store.open(&id).unwrap().end(), Seq(3));
}

#[tokio::test]
async fn a_claim_that_is_over_takes_no_newer_one_of_the_same_worker_with_it() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let (home, id) = (tempfile::tempdir().unwrap(), session());
    let claims = ClaimedLogs::default();
    let (first, second) = (claim(&broker, &id, "w1").await, claim(&broker, &id, "w1").await);
    claims.insert(id.clone(), first.clone());
    claims.insert(id.clone(), second);
    claims.remove(&id, &first);
    let store = Store::new(home.path()).with_replica(Some(Arc::new(claims)));
    let mut log = store.create(&id, meta()).unwrap();
    append(&mut log, 0, &[event("a", None, "1".to_owned())]).await.unwrap();
    let entries = log::read(&broker, &log::session_subject(&broker, &id)).await.unwrap();
    assert!(!lines(&entries).is_empty(), "the log has a copy on the servers");
}

#[tokio::test]
async fn a_session_without_a_claim_is_not_written() {
    let (home, id) = (tempfile::tempdir().unwrap(), session());
    let store = Store::new(home.path()).with_replica(Some(Arc::new(ClaimedLogs::default())));
    let mut log = store.create(&id, meta()).unwrap();
    let refused = append(&mut log, 0, &[event("a", None, "1".to_owned())]).await;
    assert!(format!("{refused:?}").contains("has no claim of session"), "{refused:?}");
}

/// A ticket whose extensions are never answered.
struct Unanswered;

#[async_trait::async_trait]
impl Ticket for Unanswered {
    fn payload(&self) -> &[u8] {
        b""
    }

    fn deliveries(&self) -> u64 {
        1
    }

    async fn extend(&self) -> Result<(), FleetError> {
        std::future::pending().await
    }

    async fn settle(&self, _: Settled) -> Result<(), FleetError> {
        Ok(())
    }
}

/// As of a process that was stopped while it waited for the confirmation of an append.
#[tokio::test]
async fn an_append_that_is_confirmed_after_the_lease_is_no_leave_to_act() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let (id, lease) = (session(), Duration::from_secs(1));
    let first = claim(&broker, &id, "w1").await;
    let keeper = LeaseKeeper::start(Arc::new(Unanswered), lease, LeaseInstant::now());
    first.bind(keeper.end().clone());
    let line = serde_json::to_string(&event("a", None, "1".to_owned())).unwrap() + "\n";
    first.append_lines(line.as_bytes()).unwrap();
    let settled = first.settled();
    let subject = log::session_subject(&broker, &id);
    while lines(&log::read(&broker, &subject).await.unwrap()).is_empty() {
        tokio::task::yield_now().await;
    }
    keeper.over().cancelled().await;
    if let Some(settled) = settled {
        let late = settled.await.unwrap_err();
        assert!(late.to_string().contains("the lease has ended"), "{late}");
    }
    assert!(first.settled().unwrap().await.is_err(), "everything is stored, and nothing may follow from it");
    assert!(first.append_lines(line.as_bytes()).is_err());
    assert!(first.over().is_cancelled());
}

#[tokio::test]
async fn a_writer_that_lost_its_claim_is_refused() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let (home, id) = (tempfile::tempdir().unwrap(), session());
    let first = claim(&broker, &id, "w1").await;
    let claims = ClaimedLogs::default();
    claims.insert(id.clone(), first.clone());
    let store = Store::new(home.path()).with_replica(Some(Arc::new(claims)));
    let mut log = store.create(&id, meta()).unwrap();
    append(&mut log, 0, &[event("a", None, "1".to_owned())]).await.unwrap();

    let second = claim(&broker, &id, "w2").await;
    assert!(second.epoch() > first.epoch());
    let refused = append(&mut log, 1, &[event("b", Some("a"), "2".to_owned())]).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(first.over().is_cancelled());
    assert!(log.append(Seq(2), &[event("c", Some("b"), "3".to_owned())]).is_err(), "it stays refused");

    second
        .append_lines(
            format!("{}\n", serde_json::to_string(&event("d", Some("a"), "4".to_owned())).unwrap())
                .as_bytes(),
        )
        .unwrap();
    second.settled().unwrap().await.unwrap();
    let entries = log::read(&broker, &log::session_subject(&broker, &id)).await.unwrap();
    assert_eq!(check::problems(&entries), Vec::<String>::new());
    let text = String::from_utf8(lines(&entries)).unwrap();
    assert!(text.contains(r#""id":"d""#) && !text.contains(r#""id":"b""#), "{text}");

    // A claim that knows less than the log has is none.
    let subject = log::session_subject(&broker, &id);
    let late = LogClaim::take(&broker, subject, first.epoch(), &claimed("w3")).await;
    assert!(matches!(late, Err(FleetError::Moved { .. })));
}

#[tokio::test]
async fn an_event_that_is_larger_than_a_message_arrives_whole() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let id = session();
    let claim = claim(&broker, &id, "w1").await;
    let large = serde_json::to_string(&event("a", None, "x".repeat(3 << 20))).unwrap() + "\n";
    claim.append_lines(large.as_bytes()).unwrap();
    claim
        .append(&FleetRecord::Message {
            id: "m".to_owned(),
            text: "hi".to_owned(),
            at: Timestamp::UNIX_EPOCH,
        })
        .await
        .unwrap();
    let entries = log::read(&broker, &log::session_subject(&broker, &id)).await.unwrap();
    assert_eq!(lines(&entries), large.as_bytes());
    let fold = SessionFold::of(&entries);
    assert_eq!((fold.events, fold.waiting[0].progress), (1, TurnProgress::Queued));
}

#[tokio::test]
async fn a_reader_follows_a_log_from_any_message_on() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let id = session();
    let claim = claim(&broker, &id, "w1").await;
    let message =
        |id: &str| FleetRecord::Message { id: id.to_owned(), text: String::new(), at: Timestamp::UNIX_EPOCH };
    claim.append(&message("a")).await.unwrap();
    let mut follow =
        log::FleetLogReader::open(&broker, &log::session_subject(&broker, &id), claim.epoch()).await.unwrap();
    claim.append(&message("b")).await.unwrap();
    for expected in ["a", "b"] {
        let entry = follow.next().await.unwrap().unwrap();
        assert_eq!(entry.item, LogItem::Record(message(expected)));
    }
}
