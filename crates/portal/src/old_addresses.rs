//! Addresses of the pages that the portal had before, which bookmarks and scripts still have.

use std::collections::HashMap;
use std::path::{Component, Path};

use axum::extract::Query;
use axum::http::{HeaderMap, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api::App;

/// Redirect target of an old address. `None` for a current one.
///
/// Pages are public, but the working directory of the portal and the ids of runs are revealed only to clients that have
/// sent the token.
pub(crate) fn location(app: &App, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let query = Query::<HashMap<String, String>>::try_from_uri(uri).map(|Query(query)| query);
    let old = Old::parse(uri.path(), &query.unwrap_or_default())?;
    let known = app.guard.is_authenticated(headers);
    Some(match old {
        Old::Project(name) if known => match app.about.repo_root.parent() {
            Some(parent) => with("/new", "workspace", &parent.join(name).to_string_lossy()),
            None => "/new".to_owned(),
        },
        Old::Project(_) => "/new".to_owned(),
        Old::Start(workspace) => with("/new", "workspace", &workspace),
        Old::Jobs { workspace: Some(workspace) } => with("/jobs", "workspace", &workspace),
        Old::Jobs { workspace: None } => "/jobs".to_owned(),
        Old::Tracking { job: Some(job), .. } => match app.run_of_job(&job).filter(|_| known) {
            Some(run) => format!("/runs/{}", utf8_percent_encode(&run.0, NON_ALPHANUMERIC)),
            None => "/runs".to_owned(),
        },
        Old::Tracking { job: None, name: Some(name) } => with("/jobs", "job", &name),
        Old::Tracking { job: None, name: None } => "/jobs".to_owned(),
    })
}

/// Meaning of an old address.
#[derive(Debug, PartialEq, Eq)]
enum Old {
    /// A session in a directory beside the repository.
    Project(String),
    /// A session in this directory.
    Start(String),
    Jobs {
        workspace: Option<String>,
    },
    /// A job that runs, or the chart of one that could.
    Tracking {
        job: Option<String>,
        name: Option<String>,
    },
}

impl Old {
    fn parse(path: &str, query: &HashMap<String, String>) -> Option<Self> {
        let value = |name: &str| query.get(name).filter(|value| !value.is_empty()).cloned();
        match path {
            "/" | "/index.html" => match value("project").filter(|name| is_name(name)) {
                Some(name) => Some(Old::Project(name)),
                None => value("wb").map(Old::Start),
            },
            "/jobs.html" => Some(Old::Jobs { workspace: value("wb") }),
            "/jobTracking.html" => Some(Old::Tracking { job: value("jobId"), name: value("jobName") }),
            _ => None,
        }
    }
}

/// Whether a text is a file name that does not lead out of its directory.
fn is_name(text: &str) -> bool {
    let mut components = Path::new(text).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
}

fn with(path: &str, name: &str, value: &str) -> String {
    format!("{path}?{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: Option<Old>) {
        let uri: Uri = address.parse().unwrap();
        let Query(query) = Query::<HashMap<String, String>>::try_from_uri(&uri).unwrap();
        assert_eq!(Old::parse(uri.path(), &query), expected, "{address}");
    }

    #[test]
    fn old_addresses_are_known_by_their_paths_and_names() {
        let text = |text: &str| Some(text.to_owned());
        check("/", None);
        check("/index.html", None);
        check("/jobs", None);
        check("/?project=other", Some(Old::Project("other".to_owned())));
        check("/index.html?project=a%20b", Some(Old::Project("a b".to_owned())));
        check("/?project=../../etc", None);
        check("/?wb=%2Fa%2Fb", Some(Old::Start("/a/b".to_owned())));
        check("/index.html?wb=%2Fa", Some(Old::Start("/a".to_owned())));
        check("/?project=other&wb=%2Fa", Some(Old::Project("other".to_owned())));
        check("/?wb=", None);
        check("/jobs.html", Some(Old::Jobs { workspace: None }));
        check("/jobs.html?wb=%2Fa%2Fb", Some(Old::Jobs { workspace: text("/a/b") }));
        check("/jobTracking.html?jobName=demo", Some(Old::Tracking { job: None, name: text("demo") }));
        check(
            "/jobTracking.html?jobName=demo&jobId=job-1",
            Some(Old::Tracking { job: text("job-1"), name: text("demo") }),
        );
    }
}
