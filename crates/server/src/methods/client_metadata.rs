//! Metadata of a client about a session. It is stored with the session and only clients read it: no model, event or
//! list shows it.

use std::collections::BTreeMap;

use hangar_store::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::session::parse_id;
use super::{Call, Failure, Method, Reply};
use crate::session_files::SessionDir;

const FILE: &str = "client-metadata.json";
const UNFINISHED: &str = "client-metadata.json.tmp";
const VERSION: u64 = 1;

/// Size limits of a session's client metadata.
const MAX_ENTRIES: usize = 128;
const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 16_384;
/// Sessions of one request.
const MAX_SESSIONS: usize = 10_000;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.metadata.getClientMetadata", run: |call| Box::pin(get(call)) },
    Method { name: "session.metadata.updateClientMetadata", run: |call| Box::pin(update(call)) },
    Method { name: "sessions.getClientMetadata", run: |call| Box::pin(get_many(call)) },
];

type Metadata = BTreeMap<String, String>;

#[derive(Serialize)]
struct StoredMetadata<'a> {
    version: u64,
    metadata: &'a Metadata,
}

#[derive(Debug, PartialEq)]
enum Unreadable {
    Corrupt,
    /// A later program wrote them.
    Version,
    Unavailable(String),
}

fn parse(text: Option<&str>) -> Result<Metadata, Unreadable> {
    #[derive(Deserialize)]
    struct StoredFile {
        version: u64,
        #[serde(default)]
        metadata: Value,
    }
    let Some(text) = text else { return Ok(Metadata::new()) };
    let read: StoredFile = serde_json::from_str(text).map_err(|_| Unreadable::Corrupt)?;
    if read.version != VERSION {
        return Err(Unreadable::Version);
    }
    serde_json::from_value(read.metadata).map_err(|_| Unreadable::Corrupt)
}

async fn read(dir: &SessionDir) -> Result<Metadata, Unreadable> {
    let text =
        dir.read(FILE).await.map_err(|failure| Unreadable::Unavailable(failure.message().to_owned()))?;
    parse(text.as_deref())
}

fn told(unreadable: Unreadable) -> Failure {
    Failure::new(match unreadable {
        Unreadable::Corrupt => format!("{FILE} of the session is corrupt"),
        Unreadable::Version => format!("{FILE} of the session is of a later version"),
        Unreadable::Unavailable(why) => why,
    })
}

async fn get(call: Call) -> Result<Reply, Failure> {
    let metadata = read(&call.live()?.dir).await.map_err(told)?;
    Reply::of(json!(metadata))
}

/// Patch of the metadata: clear all, then remove some, then set some.
#[derive(Default)]
struct Patch {
    clear: bool,
    remove: Vec<String>,
    set: Metadata,
}

impl Patch {
    fn parse(params: Map<String, Value>) -> Result<Self, Failure> {
        let mut patch = Self::default();
        let wrong = |name: &str, what: &str| {
            Failure::refused(format!("client metadata update parameter '{name}' {what}"))
        };
        for (name, value) in params {
            match (name.as_str(), value) {
                ("sessionId", _) | ("clear" | "remove" | "set", Value::Null) => {}
                ("clear", Value::Bool(clear)) => patch.clear = clear,
                ("clear", _) => return Err(wrong("clear", "must be a boolean")),
                ("remove", value) => {
                    patch.remove = serde_json::from_value(value)
                        .map_err(|_| wrong("remove", "must be an array of strings"))?;
                }
                ("set", Value::Object(set)) => {
                    for (key, value) in set {
                        let Value::String(value) = value else {
                            return Err(wrong("set", "values must be strings"));
                        };
                        patch.set.insert(key, value);
                    }
                }
                ("set", _) => return Err(wrong("set", "must be an object")),
                (name, _) => {
                    return Err(Failure::refused(format!(
                        "unknown client metadata update parameter '{name}'"
                    )));
                }
            }
        }
        patch.check().map_err(|why| Failure::refused(format!("client metadata is invalid: {why}")))?;
        Ok(patch)
    }

    fn check(&self) -> Result<(), String> {
        if self.set.len() > MAX_ENTRIES {
            return Err(format!("set exceeds {MAX_ENTRIES} entries"));
        }
        for (key, value) in &self.set {
            match (key.len(), value.len()) {
                (0, _) => return Err("keys must not be empty".to_owned()),
                (key, _) if key > MAX_KEY => return Err(format!("key exceeds {MAX_KEY} bytes")),
                (_, value) if value > MAX_VALUE => {
                    return Err(format!("value for key '{key}' exceeds {MAX_VALUE} bytes"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(self, metadata: &mut Metadata) -> Result<(), Failure> {
        if self.clear {
            metadata.clear();
        }
        metadata.retain(|key, _| !self.remove.contains(key));
        metadata.extend(self.set);
        match metadata.len() {
            0..=MAX_ENTRIES => Ok(()),
            _ => {
                Err(Failure::refused(format!("client metadata is invalid: it exceeds {MAX_ENTRIES} entries")))
            }
        }
    }
}

async fn update(call: Call) -> Result<Reply, Failure> {
    let patch = Patch::parse(call.params()?)?;
    let live = call.live()?;
    // Two changes at once would each write what it read.
    let _alone = live.client_metadata.lock().await;
    let mut metadata = read(&live.dir).await.map_err(told)?;
    patch.apply(&mut metadata)?;
    let text = json!(StoredMetadata { version: VERSION, metadata: &metadata }).to_string();
    // A process that is killed in between leaves the previous content.
    live.dir.write(UNFINISHED, text).await?;
    live.dir.rename(UNFINISHED, FILE).await?;
    Reply::of(json!(metadata))
}

/// Reads the metadata of several sessions, live or not, in the requested order.
async fn get_many(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_ids: Vec<String>,
        keys: Option<Vec<String>>,
    }
    let params: Params = call.params()?;
    if params.session_ids.len() > MAX_SESSIONS {
        return Err(Failure::new(format!("more than {MAX_SESSIONS} sessions are asked for at once")));
    }
    let ids: Vec<SessionId> = params.session_ids.iter().map(|id| parse_id(id)).collect::<Result<_, _>>()?;
    let mut answers = Vec::with_capacity(ids.len());
    for id in ids {
        let dir = match call.hub.live(id.as_str()) {
            Ok(live) => Some(live.dir.clone()),
            Err(_) => {
                let store = &call.hub.config().store;
                store.contains(&id).then(|| SessionDir::local(store.session_dir(&id)))
            }
        };
        let mut answer = match dir {
            None => json!({ "status": "notFound" }),
            Some(dir) => match read(&dir).await {
                Ok(mut metadata) => {
                    if let Some(keys) = &params.keys {
                        metadata.retain(|key, _| keys.contains(key));
                    }
                    json!({ "status": "ok", "metadata": metadata })
                }
                Err(Unreadable::Corrupt) => json!({ "status": "corrupt" }),
                Err(Unreadable::Version) => json!({ "status": "unsupportedVersion" }),
                Err(Unreadable::Unavailable(why)) => {
                    json!({ "status": "unavailable", "code": "EIO", "message": why })
                }
            },
        };
        answer["sessionId"] = json!(id.as_str());
        answers.push(answer);
    }
    Reply::of(json!(answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patch: Value, expected: Value) {
        let Value::Object(params) = patch else { unreachable!() };
        let mut metadata = Metadata::from([("a".to_owned(), "1".to_owned())]);
        let done = Patch::parse(params).and_then(|patch| patch.apply(&mut metadata));
        let got = match done {
            Ok(()) => json!(metadata),
            Err(failure) => json!(failure.message()),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn a_change_clears_then_removes_then_sets() {
        check(json!({}), json!({ "a": "1" }));
        check(json!({ "remove": ["a", "z"], "set": { "b": "2" } }), json!({ "b": "2" }));
        check(json!({ "remove": ["b"], "set": { "b": "2" } }), json!({ "a": "1", "b": "2" }));
        check(json!({ "clear": true }), json!({}));
    }

    #[test]
    fn what_is_no_such_change_is_refused() {
        let long = "k".repeat(MAX_KEY + 1);
        check(json!({ "set": { "": "x" } }), json!("client metadata is invalid: keys must not be empty"));
        check(json!({ "set": { long: "x" } }), json!("client metadata is invalid: key exceeds 256 bytes"));
        let many: Map<String, Value> = (0..200).map(|n| (n.to_string(), json!("v"))).collect();
        check(json!({ "set": many }), json!("client metadata is invalid: set exceeds 128 entries"));
        check(
            json!({ "set": { "a": 7 } }),
            json!("client metadata update parameter 'set' values must be strings"),
        );
        check(json!({ "values": {} }), json!("unknown client metadata update parameter 'values'"));
    }

    #[test]
    fn words_that_cannot_be_read_are_told_apart() {
        assert_eq!(parse(None), Ok(Metadata::new()));
        assert_eq!(parse(Some("{")), Err(Unreadable::Corrupt));
        assert_eq!(parse(Some(r#"{"version":2,"metadata":{}}"#)), Err(Unreadable::Version));
        assert_eq!(parse(Some(r#"{"version":1,"metadata":{"a":1}}"#)), Err(Unreadable::Corrupt));
    }
}
