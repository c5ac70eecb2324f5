//! One event of each kind, as lines `type data`. Other crates hold their folds against the same file.

use hangar_protocol::{Body, Event, EventKind};

const SAMPLES: &str = include_str!("samples.txt");

#[test]
fn every_kind_has_a_sample_that_is_read_and_written() {
    let kinds: Vec<&str> = SAMPLES.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(kinds, EventKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>());
    for line in SAMPLES.lines() {
        let (kind, data) = line.split_once(' ').unwrap();
        let line = format!(r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"t","parentId":null}}"#);
        let event = Event::parse(&line).unwrap();
        assert!(!matches!(event.body(), Body::Unknown { .. }), "{line}");
        assert_eq!(event.event_kind().map(EventKind::as_str), Some(kind));
        let written = event.body().data().unwrap();
        let line = line.replace(data, &written.to_string());
        let again = Event::parse(&line).unwrap();
        assert_eq!(format!("{:?}", again.body()), format!("{:?}", event.body()));
    }
}
