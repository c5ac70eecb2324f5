//! The ledger as a fold over logs of sessions: every call once, whatever is killed, deleted or forked.

use std::io::Write;
use std::path::Path;

use hangar_jobs::store::FileStore;
use hangar_registry::ledger::{Costs, CostsBy, CostsQuery, Ledger, LedgerConfig};
use hangar_store::Store;
use jiff::tz::TimeZone;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn ledger(&self) -> Ledger {
        self.ledger_in(TimeZone::UTC)
    }

    fn ledger_in(&self, zone: TimeZone) -> Ledger {
        Ledger::open(LedgerConfig {
            dir: self.0.path().join("ledger"),
            store: Store::new(self.0.path()),
            runs: FileStore::new(self.0.path().join("runs")),
            agents: vec!["codex".to_owned()],
            own: "native".to_owned(),
            zone,
        })
        .unwrap()
    }

    fn log(&self, session: &str) -> std::path::PathBuf {
        self.0.path().join("session-state").join(session).join("events.jsonl")
    }

    /// Appends events `id type data`, at a time.
    fn write(&self, session: &str, at: &str, events: &[&str]) {
        let path = self.log(session);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        for event in events {
            let mut words = event.splitn(3, ' ');
            let mut word = || words.next().unwrap();
            let (id, kind, data) = (word(), word(), word());
            writeln!(
                file,
                r#"{{"type":"{kind}","data":{data},"id":"{id}","timestamp":"{at}","parentId":null}}"#
            )
            .unwrap();
        }
    }
}

const NOON: &str = "2026-11-18T12:00:00.000Z";
const START: &str = r#"s session.start {"sessionId":"s","version":1,"producer":"p","copilotVersion":"1","startTime":"t","context":{"cwd":"/p"}}"#;
const CODEX: &str = r#"s session.start {"sessionId":"s","version":1,"producer":"codex","copilotVersion":"1","startTime":"t","context":{"cwd":"/q"}}"#;
const PRICED: &str = r#"a session.usage_record {"usage":{"model":"m","inputTokens":10,"outputTokens":1,"cost":0.5},"computed":true}"#;
const UNPRICED: &str = r#"b session.usage_record {"usage":{"model":"n","inputTokens":3}}"#;

const ASSIGNED: &str = r#"g hangar.agent_assigned {"agent":"reviewer","runtime":"codex"}"#;

#[test]
fn a_named_agent_is_counted_by_its_name() {
    let home = Home::new();
    home.write("one", NOON, &[CODEX, PRICED]);
    // Another event: a call that two logs begin with makes one a fork of the other.
    home.write("two", NOON, &[CODEX, ASSIGNED, &PRICED.replacen("a ", "c ", 1)]);
    check(&costs(&home.ledger(), CostsBy::Agent), &["codex 1 10 0.5 0", "reviewer 1 10 0.5 0"]);
}

fn closing(id: &str, input: u64) -> String {
    format!(
        r#"{id} session.shutdown {{"shutdownType":"routine","totalApiDurationMs":7,"sessionStartTime":1,"codeChanges":{{"linesAdded":0,"linesRemoved":0,"filesModified":[]}},"modelMetrics":{{"m":{{"requests":{{"count":2}},"usage":{{"inputTokens":{input},"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0}}}}}}}}"#
    )
}

fn costs(ledger: &Ledger, by: CostsBy) -> Costs {
    ledger.collect().unwrap();
    ledger.costs(&CostsQuery { by, ..CostsQuery::default() })
}

/// `key calls input cost unpriced` of each row.
#[track_caller]
fn check(costs: &Costs, expected: &[&str]) {
    let rows = costs.rows.iter().map(|row| {
        let figures = &row.figures;
        format!(
            "{} {} {} {} {}",
            row.key, figures.calls, figures.input_tokens, figures.cost, figures.unpriced
        )
    });
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn calls_are_summed_by_agent_model_project_and_day_and_unknown_is_not_zero() {
    let home = Home::new();
    home.write("one", NOON, &[START, PRICED, UNPRICED]);
    home.write("two", "2026-11-17T23:30:00.000Z", &[CODEX, &PRICED.replacen('a', "q", 1)]);
    let ledger = home.ledger();
    check(&costs(&ledger, CostsBy::Agent), &["codex 1 10 0.5 0", "native 2 13 0.5 1"]);
    check(&costs(&ledger, CostsBy::Model), &["m 2 20 1 0", "n 1 3 0 1"]);
    check(&costs(&ledger, CostsBy::Project), &["/p 2 13 0.5 1", "/q 1 10 0.5 0"]);
    check(&costs(&ledger, CostsBy::Day), &["2026-11-17 1 10 0.5 0", "2026-11-18 2 13 0.5 1"]);
    let total = costs(&ledger, CostsBy::Day).total;
    assert!((total.cost - 1.0).abs() < 1e-9 && (total.computed - 1.0).abs() < 1e-9);
    let unknown = costs(&ledger, CostsBy::Model).rows[1].figures;
    assert_eq!(unknown.known_cost(), None);
    let only = ledger.costs(&CostsQuery { since: Some("2026-11-18".to_owned()), ..CostsQuery::default() });
    check(&only, &["2026-11-18 2 13 0.5 1"]);
}

#[test]
fn days_begin_in_the_zone_of_the_home_also_for_calls_that_were_counted_before() {
    let home = Home::new();
    home.write("two", "2026-11-17T23:30:00.000Z", &[CODEX, PRICED]);
    check(&costs(&home.ledger(), CostsBy::Day), &["2026-11-17 1 10 0.5 0"]);
    let east = TimeZone::fixed(jiff::tz::offset(2));
    check(&costs(&home.ledger_in(east), CostsBy::Day), &["2026-11-18 1 10 0.5 0"]);
}

#[test]
fn a_call_is_counted_once_by_all_processes_and_after_restarts() {
    let home = Home::new();
    home.write("one", NOON, &[START, PRICED]);
    let (here, there) = (home.ledger(), home.ledger());
    check(&costs(&here, CostsBy::Model), &["m 1 10 0.5 0"]);
    check(&costs(&there, CostsBy::Model), &["m 1 10 0.5 0"]);
    home.write("one", NOON, &[PRICED]);
    check(&costs(&there, CostsBy::Model), &["m 2 20 1 0"]);
    check(&costs(&here, CostsBy::Model), &["m 2 20 1 0"]);
    check(&costs(&home.ledger(), CostsBy::Model), &["m 2 20 1 0"]);
    // A process that was killed while it appended left half a line.
    let book = home.0.path().join("ledger/calls.jsonl");
    let text = std::fs::read(&book).unwrap();
    std::fs::write(&book, &text[..text.len() - 20]).unwrap();
    check(&costs(&home.ledger(), CostsBy::Model), &["m 2 20 1 0"]);
    assert_eq!(std::fs::read(&book).unwrap(), text, "the cut line was mended");
}

#[test]
fn an_agent_that_tells_sums_at_the_end_is_counted_by_what_came_on_top() {
    let home = Home::new();
    home.write("one", NOON, &[CODEX, &closing("c", 20)]);
    let ledger = home.ledger();
    check(&costs(&ledger, CostsBy::Agent), &["codex 2 20 0 2"]);
    home.write("one", NOON, &[&closing("d", 50)]);
    check(&costs(&ledger, CostsBy::Agent), &["codex 2 50 0 2"]);
    let turn = r#"e session.usage_record {"usage":{"model":"m","inputTokens":5},"calls":3}"#;
    home.write("two", NOON, &[CODEX, turn, &closing("f", 5)]);
    check(&costs(&ledger, CostsBy::Session), &["one 2 50 0 2", "two 3 5 0 3"]);
}

#[test]
fn deleted_sessions_stay_and_forks_do_not_count_their_past_again() {
    let home = Home::new();
    home.write("one", NOON, &[START, PRICED]);
    let ledger = home.ledger();
    check(&costs(&ledger, CostsBy::Session), &["one 1 10 0.5 0"]);
    std::fs::create_dir_all(home.log("fork").parent().unwrap()).unwrap();
    std::fs::copy(home.log("one"), home.log("fork")).unwrap();
    let meta =
        "id: fork\ncwd: /p\ncreated_at: 2026-11-18T13:00:00.000Z\nupdated_at: 2026-11-18T13:00:00.000Z\n";
    std::fs::write(home.log("fork").with_file_name("workspace.yaml"), meta).unwrap();
    check(&costs(&ledger, CostsBy::Session), &["one 1 10 0.5 0"]);
    let later = r#"z session.usage_record {"usage":{"model":"m","inputTokens":7,"cost":0.25}}"#;
    home.write("fork", "2026-11-18T13:00:05.000Z", &[later]);
    check(&costs(&ledger, CostsBy::Session), &["one 1 10 0.5 0", "fork 1 7 0.25 0"]);
    std::fs::remove_dir_all(home.log("one").parent().unwrap()).unwrap();
    check(&costs(&home.ledger(), CostsBy::Session), &["one 1 10 0.5 0", "fork 1 7 0.25 0"]);
}

#[test]
fn sums_that_were_written_down_are_the_fold_of_the_file() {
    let home = Home::new();
    let many = vec![PRICED; 3000];
    home.write("one", NOON, &[START]);
    home.write("one", NOON, &many);
    let before = costs(&home.ledger(), CostsBy::Model);
    check(&before, &["m 3000 30000 1500 0"]);
    let sums: &Path = &home.0.path().join("ledger/sums.json");
    assert!(sums.exists());
    assert_eq!(costs(&home.ledger(), CostsBy::Model), before);
    std::fs::remove_file(sums).unwrap();
    assert_eq!(costs(&home.ledger(), CostsBy::Model), before);
}
