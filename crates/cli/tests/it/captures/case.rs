//! The cases as data: what was run, and what the reference did.
//!
//! `cases.json` holds facts that were condensed from recordings of the reference. An event is one line of text: its
//! type, then the values that are compared (`pinned` says which), then the fields that it has (`+`) or lacks (`-`)
//! against what `fields` says events of its type usually have. `>` before it marks an event of a sub-agent.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Captures {
    /// Variables of every case. `$MODEL` is the address of the scripted model.
    pub(crate) environment: BTreeMap<String, String>,
    pinned: BTreeMap<String, Vec<String>>,
    fields: BTreeMap<String, BTreeSet<String>>,
    pub(crate) cases: Vec<Case>,
    pub(crate) log: Log,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The case that ran before this one on the same machine.
    pub(crate) after: Option<String>,
    /// May speak of `$WORK`, `$FILLER` and `$SESSION(case)`.
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Option<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Content of the working directory before the run.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Another directory than the working directory to start in.
    pub(crate) cwd: Option<String>,
    pub(crate) signal: Option<Interruption>,
    /// Negative: the signal that ended the process.
    pub(crate) exit: i32,
    /// The status of each request that the model saw; absent where the recording does not tell.
    pub(crate) requests: Option<Vec<u16>>,
    /// Whether anything came on stderr; absent where the recording does not tell.
    pub(crate) stderr: Option<bool>,
    /// Text mode: stdout as it was.
    pub(crate) text: Option<String>,
    /// Text mode: how many lines with words came on stdout, where the words are the reference's own.
    pub(crate) text_lines: Option<usize>,
    events: Option<Vec<String>>,
    /// The events are those of this other case.
    like: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interruption {
    pub(crate) send: SignalName,
    /// The signal is sent when an event of this type was seen.
    pub(crate) on: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum SignalName {
    Int,
    Term,
    Kill,
}

/// The log on disk after all cases of a chain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) session: String,
    events: Vec<String>,
}

/// One event, reduced to what is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) kind: String,
    pub(crate) of_sub_agent: bool,
    /// The type and the pinned values.
    pub(crate) text: String,
    /// For an expectation the fields that must be there, for an observation those that are.
    pub(crate) fields: BTreeSet<String>,
}

impl Case {
    /// Whether stdout is a stream of events.
    pub(crate) fn prints_json(&self) -> bool {
        self.args.windows(2).any(|pair| pair == ["--output-format", "json"])
    }

    /// The prompt, where nothing has to be filled in.
    pub(crate) fn literal_prompt(&self) -> Option<&str> {
        let flag = self.args.iter().position(|arg| arg == "-p");
        let prompt =
            flag.map_or(self.stdin.as_deref(), |flag| self.args.get(flag + 1).map(String::as_str))?;
        (!prompt.contains('$')).then_some(prompt)
    }
}

impl Captures {
    pub(crate) fn load() -> Self {
        serde_json::from_str(include_str!("../../captures/cases.json"))
            .expect("cases.json is what `Captures` says")
    }

    /// The events of a case on stdout; `None` in text mode.
    pub(crate) fn events(&self, case: &Case) -> Option<Vec<Line>> {
        let source = match &case.like {
            Some(twin) => self.case(twin),
            None => case,
        };
        Some(source.events.as_ref()?.iter().map(|text| self.parse(text)).collect())
    }

    pub(crate) fn log_events(&self) -> Vec<Line> {
        self.log.events.iter().map(|text| self.parse(text)).collect()
    }

    pub(crate) fn case(&self, name: &str) -> &Case {
        self.cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no case is called {name}"))
    }

    /// Cases that share a machine, in the order in which they run.
    pub(crate) fn chains(&self) -> Vec<Vec<&Case>> {
        let mut chains: Vec<Vec<&Case>> = Vec::new();
        for case in self.cases.iter().filter(|case| case.after.is_none()) {
            let mut chain = vec![case];
            while let Some(next) =
                self.cases.iter().find(|next| next.after.as_ref() == chain.last().map(|last| &last.name))
            {
                chain.push(next);
            }
            chains.push(chain);
        }
        assert_eq!(chains.iter().map(Vec::len).sum::<usize>(), self.cases.len(), "a case is in no chain");
        chains
    }

    pub(crate) fn parse(&self, text: &str) -> Line {
        let (of_sub_agent, rest) = text.strip_prefix("> ").map_or((false, text), |rest| (true, rest));
        let (mut words, mut marks) = (Vec::new(), Vec::new());
        for word in split_words(rest) {
            if word.starts_with(['+', '-']) { marks.push(word) } else { words.push(word) }
        }
        let kind = words[0].to_owned();
        let mut fields = self.fields.get(&kind).cloned().unwrap_or_default();
        for mark in marks {
            if let Some(field) = mark.strip_prefix('+') {
                fields.insert(field.to_owned());
            } else {
                fields.remove(&mark[1..]);
            }
        }
        Line { kind, of_sub_agent, text: words.join(" "), fields }
    }

    /// An observed event in the same form.
    pub(crate) fn line(&self, event: &Value) -> Line {
        let kind = event["type"].as_str().unwrap_or("(no type)").to_owned();
        // The last line of a run is no event: it has no `data`.
        let data = event.get("data").unwrap_or(event);
        let mut text = kind.clone();
        for path in self.pinned.get(&kind).into_iter().flatten() {
            if let Some(value) =
                path.split('.').try_fold(data, |value, key| value.get(key)).filter(|v| !v.is_null())
            {
                text.push_str(&format!(" {path}={}", pinned_value(path, value)));
            }
        }
        let fields = data.as_object().map(|data| data.keys().cloned().collect()).unwrap_or_default();
        Line { kind, of_sub_agent: event.get("agentId").is_some(), text, fields }
    }
}

fn pinned_value(path: &str, value: &Value) -> String {
    match value {
        Value::String(text) => match path {
            // The model's quotes of a tool's answer are tested with the tools.
            "content" if text.starts_with("done: ") => "done:…".to_owned(),
            "source" if text.starts_with("agent-") => "agent-…".to_owned(),
            _ if !text.is_empty() && !text.contains([' ', '\n', '\t', '"']) => text.clone(),
            _ => value.to_string(),
        },
        value => value.to_string(),
    }
}

/// Splits at spaces outside of quotes.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c: char| {
        quoted ^= c == '"';
        c == ' ' && !quoted
    })
}
