//! Streams of a fleet: their shapes, and whether a stream that exists has the right one.

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use std::time::Duration;

use crate::FleetSettings;

/// Time for which the server recognises a message that is sent again.
const DUPLICATES: Duration = Duration::from_secs(3600);

/// The streams of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    Work,
    Log,
    Facts,
}

impl StreamKind {
    #[cfg(test)]
    pub(crate) const ALL: [StreamKind; 3] = [StreamKind::Work, StreamKind::Log, StreamKind::Facts];

    pub(crate) fn name(self) -> &'static str {
        match self {
            StreamKind::Work => "WORK",
            StreamKind::Log => "LOG",
            StreamKind::Facts => "FACTS",
        }
    }

    fn subject(self) -> &'static str {
        match self {
            StreamKind::Work => "work",
            StreamKind::Log => "log",
            StreamKind::Facts => "fact",
        }
    }

    pub(crate) fn config(self, settings: &FleetSettings, replicas: usize) -> Config {
        let prefix = &settings.prefix;
        let base = Config {
            name: prefix.stream(self.name()),
            subjects: vec![format!("{}.{}.>", prefix.as_str(), self.subject())],
            storage: StorageType::File,
            num_replicas: replicas,
            allow_direct: true,
            duplicate_window: DUPLICATES,
            max_messages: -1,
            max_messages_per_subject: -1,
            max_bytes: -1,
            max_consumers: -1,
            max_message_size: -1,
            ..Config::default()
        };
        match self {
            // A full queue refuses an order; it never drops one.
            StreamKind::Work => Config {
                retention: RetentionPolicy::WorkQueue,
                discard: DiscardPolicy::New,
                max_bytes: settings.work_bytes,
                ..base
            },
            StreamKind::Log => Config {
                retention: RetentionPolicy::Limits,
                discard: DiscardPolicy::New,
                max_age: settings.retention.unwrap_or_default(),
                ..base
            },
            StreamKind::Facts => Config {
                retention: RetentionPolicy::Limits,
                discard: DiscardPolicy::Old,
                max_messages_per_subject: 1,
                ..base
            },
        }
    }
}

/// The first difference that matters between a stream and what it should be. Replicas, sizes and ages are the operator's.
pub(crate) fn difference(found: &Config, wanted: &Config) -> Option<String> {
    let differs = |what: &str, found: String, wanted: String| {
        (found != wanted).then(|| format!("its {what} is {found}, not {wanted}"))
    };
    let debug = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    differs("subject", found.subjects.join(", "), wanted.subjects.join(", "))
        .or_else(|| differs("retention", debug(&found.retention), debug(&wanted.retention)))
        .or_else(|| differs("discard policy", debug(&found.discard), debug(&wanted.discard)))
        .or_else(|| differs("storage", debug(&found.storage), debug(&wanted.storage)))
        .or_else(|| {
            let messages = |config: &Config| config.max_messages_per_subject.max(-1).to_string();
            differs("number of messages per subject", messages(found), messages(wanted))
        })
        .or_else(|| (!found.allow_direct).then(|| "it does not allow direct reads".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_the_operator_may_be_larger_and_have_fewer_copies() {
        let settings = FleetSettings::of_url("nats://a").expect("a valid address");
        for kind in StreamKind::ALL {
            let wanted = kind.config(&settings, 3);
            let found = Config { num_replicas: 1, max_bytes: 7, ..wanted.clone() };
            assert_eq!(difference(&found, &wanted), None);
        }
        let wanted = StreamKind::Work.config(&settings, 1);
        let found = Config { retention: RetentionPolicy::Limits, ..wanted.clone() };
        let why = difference(&found, &wanted).expect("a difference");
        assert_eq!(why, "its retention is limits, not workqueue");
    }
}
