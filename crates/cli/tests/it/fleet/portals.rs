//! Portals of a fleet: each lists, follows and steers the sessions that workers run.

use std::time::{Duration, Instant};

use hangar_fleet::claim::LogClaim;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::order::{Labels, Order, OrderId, OrderWorkspace, SessionSettings};
use hangar_fleet::record::{FleetRecord, OrderEnd};
use hangar_fleet::{Broker, FleetSettings, VERSION, log, placing};
use hangar_test_support::{NatsServers, Running, Scratch, Signal};
use serde_json::{Value, json};

use super::machines::{Fleet, LEASE, file, until_log};
use crate::hangar;
use crate::portal::client::{Answer, Ask, Message, Stream};

/// Far longer than anything takes here.
const LONG: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// A portal with a home of its own.
struct Portal {
    running: Running,
    _scratch: Scratch,
    port: u16,
}

impl Fleet {
    fn portal(&self) -> Portal {
        let scratch = Scratch::new();
        self.configure(&scratch, &self.servers.url());
        let portal = hangar(&scratch, &self.model).within(Duration::from_secs(3600));
        let mut running = portal.args(["up", "--port", "0", "--fleet"]).start();
        let line = running.next_line().expect("the portal says where it is");
        let port = line.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Portal { port: port.unwrap_or_else(|| panic!("{line}")), running, _scratch: scratch }
    }
}

impl Portal {
    fn ask(&self, method: &str, path: &str) -> Ask {
        Ask::new(self.port, method, &format!("/api/v1{path}"))
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        expect(&self.ask("GET", path).send(), 200)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value, status: u16) -> Value {
        expect(&self.ask("POST", path).json(body).send(), status)
    }

    fn hear(&self, id: &str, after: u64) -> Stream {
        self.ask("GET", &format!("/sessions/{id}/stream?after={after}")).stream()
    }

    /// Opens a session on the remote of the fleet.
    #[track_caller]
    fn open(&self, fleet: &Fleet, id: &str, prompt: &str, policy: &str) -> Value {
        let body = json!({ "id": id, "remote": fleet.remote(), "prompt": prompt, "policy": policy });
        self.post("/sessions", &body, 201)
    }

    /// Waits until a session is as expected in the list.
    #[track_caller]
    fn until(&self, id: &str, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + LONG;
        loop {
            let list = self.get("/sessions");
            let found = list["sessions"].as_array().unwrap().iter().find(|session| session["id"] == id);
            if let Some(found) = found.filter(|session| expected(session)) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "never: {what}\n{list:#}");
            std::thread::sleep(LOOK);
        }
    }
}

#[track_caller]
fn expect(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Numbers of the events of a stream.
fn numbers(heard: &[Message]) -> Vec<u64> {
    heard.iter().filter_map(|message| message.id).collect()
}

#[test]
fn every_portal_shows_and_steers_a_session_that_was_opened_in_another() {
    let fleet = Fleet::new(NatsServers::three());
    let (a, b) = (fleet.portal(), fleet.portal());
    let (begun, gate) = (fleet.here.root().join("begun"), fleet.here.root().join("gate"));
    let wait = format!(
        r#"TOOL:bash:{{"command":"echo 1 > {}; while [ ! -e {} ]; do sleep 0.05; done; echo made > made.txt"}}
SAY:first"#,
        begun.display(),
        gate.display()
    );
    let id = id();
    // Nobody is there to take it; a request that is repeated, here or there, is the same session.
    assert_eq!(a.open(&fleet, &id, &wait, "allow-all")["state"], "queued");
    assert_eq!(a.open(&fleet, &id, &wait, "allow-all")["id"], id);
    b.open(&fleet, &id, &wait, "allow-all");
    let _worker = fleet.worker("w1", &["--label", "linux"]);
    file(&begun);
    let listed = b.until(&id, "the session is at work", |session| session["state"] == "working");
    assert_eq!((&listed["worker"], &listed["open"]), (&json!("w1"), &json!("worker")));
    assert_eq!(listed["workspace"], fleet.remote());

    // Both follow it, and two messages at once become two turns in one order.
    let (mut at_a, mut at_b) = (a.hear(&id, 0), b.hear(&id, 0));
    at_a.until_kind("tool.execution_start");
    at_b.until_kind("tool.execution_start");
    std::thread::scope(|scope| {
        for (portal, text) in [(&a, "SAY:two"), (&b, "SAY:three")] {
            let ask = portal.ask("POST", &format!("/sessions/{id}/messages"));
            let ask = ask.json(&json!({ "text": text, "id": format!("m-{text}") }));
            scope.spawn(move || expect(&ask.send(), 202));
        }
    });
    // A repetition is the same message.
    b.post(&format!("/sessions/{id}/messages"), &json!({ "text": "SAY:two", "id": "m-SAY:two" }), 202);
    std::fs::write(&gate, "").unwrap();
    let prompts = |heard: &[Message]| -> Vec<String> {
        let prompts = heard.iter().filter(|message| message.kind() == "user.message");
        prompts
            .map(|message| message.data["data"]["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let [heard_a, heard_b] = [&mut at_a, &mut at_b].map(|stream| stream.until_state("idle"));
    assert_eq!(prompts(&heard_a), prompts(&heard_b), "all readers see one order");
    assert_eq!(fleet.check(&id), ["w1"]);
    let whole = a.hear(&id, 0).until_state("idle");
    let said = prompts(&whole);
    assert_eq!(said.len(), 3, "{said:?}");
    let seqs = numbers(&whole);
    assert!(seqs.is_sorted() && seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    // From any event on.
    let rest = b.hear(&id, seqs[4]).until_state("idle");
    assert_eq!(numbers(&rest), seqs[5..]);
    assert_eq!(fleet.kept(&id, "made.txt"), "made");

    // Nobody has it now: a message opens it again, by an order.
    b.post(&format!("/sessions/{id}/messages"), &json!({ "text": "SAY:again" }), 202);
    let more = a.hear(&id, *seqs.last().unwrap());
    let mut more = more;
    more.until(|message| message.kind() == "assistant.message" && message.data["data"]["content"] == "again");
    more.until_state("idle");
    assert_eq!(fleet.check(&id), ["w1", "w1"]);
    let page = b.get(&format!("/sessions/{id}/events?limit=5000"));
    assert_eq!(page["last"], a.get(&format!("/sessions/{id}"))["events"]);
    let found = a.get(&format!("/sessions?query={}", &id[..8]));
    assert_eq!(found["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn people_answer_the_questions_of_agents_on_workers_in_any_portal() {
    let fleet = Fleet::new(NatsServers::one());
    let _worker = fleet.worker("w1", &[]);
    let (a, b) = (fleet.portal(), fleet.portal());
    let id = id();
    let touch = r#"TOOL:bash:{"command":"touch made.txt","description":"makes a file"}"#;
    a.open(&fleet, &id, touch, "ask");
    let asked = |portal: &Portal| {
        let deadline = Instant::now() + LONG;
        loop {
            let open = portal.get("/approvals");
            if let [only] = open["approvals"].as_array().unwrap().as_slice() {
                return only.clone();
            }
            assert!(Instant::now() < deadline, "nothing is asked: {open}");
            std::thread::sleep(LOOK);
        }
    };
    // Nobody reads the session; its question is listed all the same, in both.
    let (in_a, in_b) = (asked(&a), asked(&b));
    assert_eq!(in_a["id"], in_b["id"]);
    assert_eq!((&in_a["kind"], &in_a["sessionId"]), (&json!("permission"), &json!(id)));
    a.until(&id, "it waits", |session| session["state"] == "waiting" && session["approvals"] == 1);
    let path = format!("/approvals/{}", in_a["id"].as_str().unwrap());
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let answers = [&a, &b].map(|portal| {
            let ask = portal.ask("POST", &path).json(&json!({ "decision": "approve" }));
            scope.spawn(move || ask.send().status)
        });
        answers.map(|answer| answer.join().unwrap()).into()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "one answer counts");
    a.until(&id, "it has ended", |session| session["state"] == "idle");
    for portal in [&a, &b] {
        assert_eq!(portal.get("/approvals")["approvals"], json!([]));
    }
    assert_eq!(fleet.kept(&id, "made.txt"), "");
    fleet.check(&id);
}

#[test]
fn an_order_that_waits_is_taken_back() {
    let fleet = Fleet::new(NatsServers::one());
    let portal = fleet.portal();
    let id = id();
    portal.open(&fleet, &id, "SAY:never", "allow-all");
    portal.post(&format!("/sessions/{id}/abort"), &Value::Null, 202);
    portal.until(&id, "it is idle", |session| session["state"] == "idle");
    let _worker = fleet.worker("w1", &[]);
    let other = self::id();
    portal.open(&fleet, &other, "SAY:hello", "allow-all");
    portal.until(&other, "the next one has ended", |session| session["state"] == "idle");
    assert_eq!(fleet.check(&other), ["w1"]);
    let entries = fleet.log(&id);
    assert!(format!("{entries:?}").contains("portal-"), "the portal ended it: {entries:?}");
    assert!(!format!("{entries:?}").contains("TurnBegan"), "{entries:?}");
    // It goes on when it is told to.
    portal.post(&format!("/sessions/{id}/messages"), &json!({ "text": "SAY:now" }), 202);
    until_log(&fleet, &id, "its turn has ended", |fold| {
        fold.over.values().filter(|end| **end == OrderEnd::Done).count() == 2
    });
}

#[test]
fn what_a_killed_portal_accepted_is_there() {
    let fleet = Fleet::new(NatsServers::one());
    let (mut portal, other) = (fleet.portal(), fleet.portal());
    let ids: Vec<String> = (0..6).map(|_| id()).collect();
    let mut accepted = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        let body =
            json!({ "id": id, "remote": fleet.remote(), "prompt": "SAY:hello", "policy": "allow-all" });
        let ask = portal.ask("POST", "/sessions").json(&body);
        // Every other one is killed while it answers.
        let asking = std::thread::spawn(move || ask.send().status);
        if n % 2 == 1 {
            portal.running.signal(Signal::KILL);
        }
        // A connection that was refused or cut is no answer.
        let status = asking.join().unwrap_or_default();
        if status == 201 {
            accepted.push(id.clone());
        }
        if n % 2 == 1 {
            portal = fleet.portal();
        }
    }
    assert!(accepted.len() >= 3, "{accepted:?}");
    for id in &accepted {
        other.until(id, "it was accepted", |_| true);
    }
    // A client that heard nothing asks again, elsewhere.
    for id in &ids {
        assert_eq!(other.open(&fleet, id, "SAY:hello", "allow-all")["id"], id.as_str());
    }
    let _worker = fleet.worker("w1", &["--slots", "2"]);
    for id in &ids {
        other.until(id, "it has ended", |session| session["state"] == "idle");
        assert_eq!(fleet.check(id).len(), 1, "it was carried out once");
    }
}

#[test]
fn the_page_of_the_fleet_shows_workers_and_steers_them() {
    let fleet = Fleet::new(NatsServers::one());
    let portal = fleet.portal();
    let worker = fleet.worker("w1", &["--slots", "3", "--label", "gpu"]);
    let until = |what: &str, expected: &dyn Fn(&Value) -> bool| {
        let deadline = Instant::now() + LONG;
        loop {
            let view = portal.get("/fleet");
            if expected(&view["workers"][0]) {
                return view;
            }
            assert!(Instant::now() < deadline, "never: {what}\n{view:#}");
            std::thread::sleep(LOOK);
        }
    };
    let view = until("w1 is ready", &|worker| worker["state"] == "ready");
    let shown = &view["workers"][0];
    assert_eq!((&shown["name"], &shown["slots"], &shown["busy"]), (&json!("w1"), &json!(3), &json!(0)));
    assert_eq!((&shown["labels"], &view["leaseSeconds"]), (&json!(["gpu"]), &json!(LEASE)));
    assert!(shown["freeBytes"].as_u64().is_some() && shown["load"].as_f64().is_some(), "{shown}");
    portal.post("/fleet/workers/w1/mode", &json!({ "mode": "cordoned" }), 202);
    until("w1 is cordoned", &|worker| worker["state"] == "cordoned");
    let id = id();
    portal.open(&fleet, &id, "SAY:hello", "allow-all");
    portal.post("/fleet/workers/nobody/mode", &json!({ "mode": "open" }), 404);
    let metrics = Ask::new(portal.port, "GET", "/metrics").send();
    let metrics = String::from_utf8(metrics.body).unwrap();
    for line in [
        "hangar_fleet_connected 1",
        "hangar_fleet_orders_waiting 1",
        r#"hangar_fleet_workers{state="cordoned"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    portal.post("/fleet/workers/w1/mode", &json!({ "mode": "open" }), 202);
    portal.until(&id, "it has ended", |session| session["state"] == "idle");
    portal.post("/fleet/workers/w1/mode", &json!({ "mode": "draining" }), 202);
    worker.running.finish().expect_exit(0);
    until("w1 is gone", &|worker| worker["state"] == "gone");
    // A portal of one machine has no fleet.
    let scratch = Scratch::new();
    let mut local = hangar(&scratch, &fleet.model).args(["up", "--port", "0"]).start();
    let line = local.next_line().unwrap();
    let port = line.rsplit_once(':').unwrap().1.parse().unwrap();
    let answer = Ask::new(port, "GET", "/api/v1/fleet").send();
    assert_eq!((answer.status, answer.json()["code"].as_str()), (404, Some("no_fleet")));
}

/// Lines of events as an agent writes them, numbered from one.
fn events(from: u64, to: u64) -> Vec<u8> {
    let mut lines = Vec::new();
    for n in from..=to {
        let parent = if n == 1 { "null".to_owned() } else { format!("\"e{}\"", n - 1) };
        let line = format!(
            r#"{{"id":"e{n}","timestamp":"2026-01-01T00:00:00.000Z","parentId":{parent},"type":"session.info","data":{{"infoType":"test","message":"{n} {:>400}"}}}}"#,
            ""
        );
        lines.extend_from_slice(line.as_bytes());
        lines.push(b'\n');
    }
    lines
}

#[test]
fn a_slow_reader_is_cut_off_and_comes_back_while_others_read_on() {
    const ALL: u64 = 50_000;
    const STEP: u64 = 500;
    let fleet = Fleet::new(NatsServers::one());
    let portal = fleet.portal();
    let id = id();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // A worker that writes as fast as the servers take it.
    let (broker, claim) = runtime.block_on(async {
        let settings = FleetSettings::of_url(&fleet.servers.url()).unwrap();
        let broker = Broker::connect(settings, "writer").await.unwrap();
        let order = Order {
            v: VERSION,
            id: OrderId(id.clone()),
            session: id.clone(),
            labels: Labels::default(),
            prompt: "write".to_owned(),
            settings: SessionSettings::default(),
            workspace: OrderWorkspace::Path { path: "/".into() },
            from: "test".to_owned(),
            placed: jiff::Timestamp::now(),
        };
        let fact = placing::register(&broker, &order).await.unwrap();
        let running = SessionFact { state: FleetSessionState::Running, worker: Some("w".to_owned()), ..fact };
        broker.put_fact(&running).await.unwrap();
        let subject = log::session_subject(&broker, &id.parse().unwrap());
        let claimed = FleetRecord::Claimed {
            worker: "w".to_owned(),
            order: order.id,
            delivery: 0,
            at: jiff::Timestamp::now(),
        };
        let claim = LogClaim::take(&broker, subject, 0, &claimed).await.unwrap();
        (broker, claim)
    });
    portal.until(&id, "it is listed", |session| session["state"] == "working");
    let (mut slow, mut quick) = (portal.hear(&id, 0), portal.hear(&id, 0));
    let writing = runtime.spawn(async move {
        for from in (1..=ALL).step_by(STEP as usize) {
            claim.append_lines(&events(from, from + STEP - 1)).unwrap();
            if let Some(settled) = claim.settled() {
                settled.await.unwrap();
            }
        }
        // The claim ends with it.
        drop((claim, broker));
    });
    // One reads everything, although the other reads nothing. Where it is slower than the writer, it comes back too.
    let read = |stream: &mut Stream| {
        let (mut seen, mut cuts) = (Vec::new(), 0);
        while seen.last() != Some(&ALL) {
            match stream.next() {
                Some(message) => seen.extend(message.id),
                None => {
                    cuts += 1;
                    *stream = portal.hear(&id, seen.last().copied().unwrap_or(0));
                }
            }
        }
        assert!(seen.iter().copied().eq(1..=ALL), "{} events after {cuts} cuts", seen.len());
        cuts
    };
    read(&mut quick);
    runtime.block_on(writing).unwrap();
    assert!(read(&mut slow) > 0, "it was cut off");
}
