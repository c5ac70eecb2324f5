//! Servers: their streams, errors in one sentence, and clusters that lose members.

use hangar_fleet::claim::LogClaim;
use hangar_fleet::control::ControlCommand;
use hangar_fleet::facts::{CordonFact, CordonMode};
use hangar_fleet::log;
use hangar_fleet::order::OrderId;
use hangar_fleet::queue::{OrderQueue, Settled};
use hangar_fleet::record::FleetRecord;
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetError, FleetSettings, Prefix};
use hangar_store::SessionId;
use hangar_test_support::{NatsServers, NatsVersion};
use jiff::Timestamp;

use crate::{LONG, connect, order, settings};

async fn refused(settings: FleetSettings) -> String {
    Broker::connect(settings, "test").await.err().map(|error| error.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn what_is_wrong_is_one_sentence() {
    let nobody = FleetSettings::of_url("nats://me:secret@127.0.0.1:1").unwrap();
    let error = refused(nobody).await;
    assert!(error.starts_with("no NATS server answers at nats://127.0.0.1:1: "), "{error}");

    let closed = NatsServers::start(NatsVersion::Current, 1, "authorization { token: right }\n");
    let error = refused(settings(&closed)).await;
    assert_eq!(error, format!("the NATS server at {} refuses the credentials", closed.url()));

    let plain = NatsServers::start(NatsVersion::Current, 1, "# without jetstream\n");
    let error = refused(settings(&plain)).await;
    let url = plain.url();
    assert_eq!(
        error,
        format!("the NATS server at {url} has no JetStream for this account; start it with `-js`")
    );

    let missing = FleetSettings { creds: Some("/nowhere/me.creds".into()), ..settings(&plain) };
    let error = refused(missing).await;
    assert!(error.starts_with("the file /nowhere/me.creds of [fleet] cannot be used: "), "{error}");
}

#[tokio::test]
async fn a_stream_of_another_shape_is_named() {
    let servers = NatsServers::one();
    let client = async_nats::connect(servers.address(0)).await.unwrap();
    let theirs = async_nats::jetstream::stream::Config {
        name: "THEIRS_WORK".to_owned(),
        subjects: vec!["theirs.work.>".to_owned()],
        ..Default::default()
    };
    async_nats::jetstream::new(client).create_stream(theirs).await.unwrap();
    let settings = FleetSettings { prefix: Prefix::parse("theirs").unwrap(), ..settings(&servers) };
    let error = refused(settings).await;
    assert!(
        error.contains("the stream THEIRS_WORK is not the one that Hangar made: its retention is limits"),
        "{error}"
    );
    // Another prefix is another fleet.
    connect(&servers).await;
}

#[tokio::test]
async fn facts_are_replaced_and_listed() {
    for version in [NatsVersion::Current, NatsVersion::Debian] {
        let servers = NatsServers::start(version, 1, "");
        let broker = connect(&servers).await;
        assert_eq!(broker.facts::<CordonFact>().await.unwrap(), []);
        let fact =
            |worker: &str, mode| CordonFact { worker: worker.to_owned(), mode, at: Timestamp::UNIX_EPOCH };
        for mode in [CordonMode::Cordoned, CordonMode::Open] {
            broker.put_fact(&fact("w1", mode)).await.unwrap();
        }
        broker.put_fact(&fact("w2", CordonMode::Draining)).await.unwrap();
        let mut all = broker.facts::<CordonFact>().await.unwrap();
        all.sort_by(|a, b| a.worker.cmp(&b.worker));
        assert_eq!(all, [fact("w1", CordonMode::Open), fact("w2", CordonMode::Draining)]);
        assert_eq!(broker.fact::<CordonFact>("w1").await.unwrap().unwrap().mode, CordonMode::Open);
        assert_eq!(broker.fact::<CordonFact>("w3").await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_command_reaches_the_owner_and_nobody_else() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let id: SessionId = uuid::Uuid::new_v4().to_string().parse().unwrap();
    assert!(matches!(broker.command(&id, ControlCommand::Abort).await, Err(FleetError::NoOwner(_))));
    let mut commands = broker.commands(&id).await.unwrap();
    let owner = tokio::spawn(async move {
        commands.next().await.unwrap().accept().await;
        let second = commands.next().await.unwrap();
        let command = second.command.clone();
        second.refuse("no".to_owned()).await;
        command
    });
    // The subscription may still be on its way to the server.
    while let Err(error) = broker.command(&id, ControlCommand::Abort).await {
        assert!(matches!(error, FleetError::NoOwner(_)), "{error}");
    }
    let send = ControlCommand::Send { id: "m".to_owned(), text: "hi".to_owned() };
    let error = broker.command(&id, send.clone()).await.unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert_eq!(owner.await.unwrap(), send);
}

/// Appends and orders go on while servers are killed one after the other, the leader among them, and when all were restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_servers_loses_nothing() {
    let mut servers = NatsServers::three();
    let broker = connect(&servers).await;
    let streams = broker.streams().await.unwrap();
    assert!(streams.iter().all(|stream| stream.replicas == 3), "{streams:?}");
    let subject = log::session_subject(&broker, &uuid::Uuid::new_v4().to_string().parse().unwrap());
    let claimed = FleetRecord::Claimed {
        worker: "w".to_owned(),
        order: OrderId("o".to_owned()),
        delivery: 0,
        at: Timestamp::UNIX_EPOCH,
    };
    let claim = LogClaim::take(&broker, subject.clone(), 0, &claimed).await.unwrap();
    let queue = WorkQueue::new(&broker);
    let mut sent = 0;
    let mut append = async || {
        sent += 1;
        let message =
            FleetRecord::Message { id: format!("m{sent}"), text: String::new(), at: Timestamp::UNIX_EPOCH };
        claim.append(&message).await.unwrap();
        queue.put(&order(&format!("order-{sent}"), &[])).await.unwrap();
    };
    append().await;
    for n in 0..servers.count() {
        servers.kill(n);
        append().await;
        servers.restart(n);
        append().await;
    }
    (0..servers.count()).for_each(|n| servers.kill(n));
    (0..servers.count()).for_each(|n| servers.restart(n));
    append().await;
    let entries = log::read(&broker, &subject).await.unwrap();
    assert_eq!(entries.len(), sent + 1);
    for n in 1..=sent {
        let ticket = loop {
            // A consumer may be without a leader for a moment.
            if let Ok(Some(ticket)) = queue.pull("any", LONG).await {
                break ticket;
            }
        };
        let order = hangar_fleet::order::Order::parse(ticket.payload()).unwrap();
        assert_eq!(order.prompt, format!("order-{n}"));
        while ticket.settle(Settled::Done).await.is_err() {}
    }
}
