//! The numbers of events: those who watch are told the same as the log says.

use hangar_protocol::LogPosition;
use hangar_registry::frame::StreamItem;
use hangar_registry::hub::{Hub, MessageDelivery};
use hangar_registry::page::PageRange;
use hangar_registry::resource::SessionPolicy;
use hangar_registry::subscription::Subscription;
use hangar_store::SessionId;

use crate::stage::Stage;

/// Events up to an answer, by number; ephemeral ones have none.
async fn heard(subscription: &mut Subscription, answer: &str) -> Vec<(u64, String)> {
    let mut heard = Vec::new();
    loop {
        let Some(StreamItem::Event(event)) = subscription.next().await.unwrap() else { continue };
        let json = String::from_utf8(event.json().to_vec()).unwrap();
        let is_last =
            json.contains(&format!("\"content\":\"{answer}\"")) && json.contains("assistant.message");
        heard.extend(event.seq.map(|seq| (seq, json)));
        if is_last {
            return heard;
        }
    }
}

fn log(hub: &Hub, id: &SessionId) -> Vec<(u64, String)> {
    let mut follow = hub.store().follow(id, LogPosition::default()).unwrap();
    let mut lines = Vec::new();
    while let Some((seq, line)) = follow.next_line().unwrap() {
        lines.push((seq, String::from_utf8(line.to_vec()).unwrap()));
    }
    lines
}

#[tokio::test]
async fn watchers_are_told_each_line_of_the_log_with_its_number() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let mut subscription = stage.hub.subscribe(&id, 0).unwrap();
    let mut all = Vec::new();
    for word in ["one", "two", "three"] {
        stage.hub.send(&id, format!("say {word}"), MessageDelivery::Enqueue).await.unwrap();
        all.extend(heard(&mut subscription, word).await);
    }
    assert_eq!(all, log(&stage.hub, &id));
    assert_eq!(stage.hub.session(&id).unwrap().events, all.len() as u64);
    // A later subscriber reads the same from the file.
    let mut later = stage.hub.subscribe(&id, 0).unwrap();
    assert_eq!(heard(&mut later, "three").await, all);
}

#[tokio::test]
async fn a_session_that_is_opened_again_is_counted_on() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let mut subscription = stage.hub.subscribe(&id, 0).unwrap();
    stage.hub.send(&id, "say one".to_owned(), MessageDelivery::Enqueue).await.unwrap();
    let mut all = heard(&mut subscription, "one").await;
    let stage = stage.again().await;
    let mut subscription = stage.hub.subscribe(&id, all.len() as u64).unwrap();
    stage.hub.send(&id, "say two".to_owned(), MessageDelivery::Enqueue).await.unwrap();
    all.extend(heard(&mut subscription, "two").await);
    assert_eq!(all, log(&stage.hub, &id));
    assert!(all.iter().any(|(_, line)| line.contains("\"abort\"")), "the closing event is among them");
}

#[tokio::test]
async fn what_is_for_the_session_alone_is_told_to_nobody_who_watches() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let mut subscription = stage.hub.subscribe(&id, 0).unwrap();
    let mut all = Vec::new();
    for word in ["one", "two"] {
        stage.hub.send(&id, format!("think {word}"), MessageDelivery::Enqueue).await.unwrap();
        all.extend(heard(&mut subscription, word).await);
    }
    let is_internal = |line: &str| line.contains("hangar.model_items");
    let logged = log(&stage.hub, &id);
    assert_eq!(logged.iter().filter(|(_, line)| is_internal(line)).count(), 2);
    let shown: Vec<_> = logged.into_iter().filter(|(_, line)| !is_internal(line)).collect();
    assert_eq!(all, shown, "live");
    let mut later = stage.hub.subscribe(&id, 0).unwrap();
    assert_eq!(heard(&mut later, "two").await, shown, "from the file");
    let page = stage.hub.page(&id, PageRange::Last, 100).unwrap();
    let paged: Vec<_> = page.events.iter().map(|event| (event.seq, event.event.get().to_owned())).collect();
    assert_eq!(paged, shown, "as a page");
}
