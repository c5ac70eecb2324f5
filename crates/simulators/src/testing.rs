//! Helpers for tests of vendors: requests without a socket, and answers as values.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::request::{Request, Strictness};
use crate::simulator::Simulator;
use crate::stream::{StreamFrame, VendorResponse};

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &Value) -> Request {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
    };
    Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: String::new(),
        headers: headers.iter().map(header).collect::<HeaderMap>(),
        size: body.to_string().len(),
        body: body.clone(),
        strictness: Strictness::Strict,
    }
}

/// Status and body of an answer that is not streamed.
pub(crate) fn whole(answer: VendorResponse) -> (u16, Value) {
    match answer {
        VendorResponse::Whole { status, body, .. } => (status, body),
        VendorResponse::Stream { frames, .. } => panic!("a stream: {frames:?}"),
    }
}

/// The data of the events of a stream. Data that is not JSON is a string.
pub(crate) fn events(answer: VendorResponse) -> Vec<Value> {
    let VendorResponse::Stream { frames, .. } = answer else { panic!("no stream: {answer:?}") };
    let text: String = frames
        .iter()
        .map(|frame| match frame {
            StreamFrame::Data(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            StreamFrame::Wait(delay) => format!("data: \"wait {delay:?}\"\n\n"),
            StreamFrame::Cut => "data: \"cut\"\n\n".to_owned(),
        })
        .collect();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::from(data))).collect()
}

/// A request that a vendor refuses: a base body with other fields, and the sentence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusalCase {
    #[serde(default)]
    pub(crate) with: Map<String, Value>,
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Empty values remove a header.
    #[serde(default)]
    pub(crate) headers: Map<String, Value>,
    #[serde(default = "bad_request")]
    pub(crate) status: u16,
    /// Part of the sentence. Without it the request must be accepted.
    pub(crate) refused: Option<String>,
}

fn bad_request() -> u16 {
    400
}

#[derive(Deserialize)]
pub(crate) struct RefusalCases {
    pub(crate) case: Vec<RefusalCase>,
}

/// Sends each case to a simulator of its own, and compares.
pub(crate) fn check_refusals(
    cases: &str,
    path: &str,
    headers: &[(&str, &str)],
    base: &Value,
    simulator: impl Fn() -> Simulator,
) {
    let cases: RefusalCases = toml::from_str(cases).unwrap();
    let mut wrong = Vec::new();
    for case in &cases.case {
        let mut body = base.as_object().unwrap().clone();
        body.extend(case.with.clone());
        for field in &case.without {
            body.remove(field);
        }
        let mut sent: Vec<(&str, &str)> =
            headers.iter().filter(|(name, _)| !case.headers.contains_key(*name)).copied().collect();
        let own = case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
        sent.extend(own.filter(|(_, value)| !value.is_empty()));
        let (status, answer) = whole(simulator().answer(&post(path, &sent, &Value::Object(body))));
        let told = answer.to_string();
        let right = match &case.refused {
            Some(sentence) => {
                let quoted = serde_json::to_string(sentence).unwrap();
                status == case.status && told.contains(quoted.trim_matches('"'))
            }
            None => status == 200,
        };
        if !right {
            wrong.push(format!("{case:?}\n  was answered {status}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
