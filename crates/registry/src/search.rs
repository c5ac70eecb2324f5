//! Finding sessions among all of the home.

use hangar_store::{Filter, SessionSummary};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::error::RegistryError;
use crate::hub::Hub;
use crate::resource::{SessionResource, SessionState};

/// Default and maximum number of sessions per page.
pub const DEFAULT_LIMIT: u64 = 100;
pub const MOST: u64 = 500;
/// Maximum number of logs that are read for one page. The rest is left for the next page.
const LOOKED_INTO: usize = 2000;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionQuery")]
pub struct Search {
    /// Part of a name, an id or a workspace; case-insensitive.
    pub query: Option<String>,
    pub state: Option<SessionState>,
    pub runtime: Option<String>,
    /// Default: 100.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// `next` of the previous page.
    #[schemars(regex(pattern = r"^-?[0-9]{1,14}\..+$"))]
    pub cursor: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SessionList")]
pub struct SessionList {
    pub sessions: Vec<SessionResource>,
    /// Cursor of the next page, if there may be one.
    pub next: Option<String>,
}

/// Position after a page: lists are sorted by time, then by id.
struct ListCursor {
    updated: Timestamp,
    id: String,
}

impl ListCursor {
    fn parse(text: &str) -> Option<Self> {
        let (millis, id) = text.split_once('.')?;
        let updated = Timestamp::from_millisecond(millis.parse().ok()?).ok()?;
        Some(Self { updated, id: id.to_owned() })
    }

    fn of(summary: &SessionSummary) -> String {
        format!("{}.{}", summary.meta.updated_at.as_millisecond(), summary.id)
    }

    fn is_before(&self, summary: &SessionSummary) -> bool {
        self.is_before_time(summary.meta.updated_at.as_millisecond(), summary.id.as_str())
    }

    fn is_before_time(&self, theirs: i64, id: &str) -> bool {
        let ours = self.updated.as_millisecond();
        theirs < ours || (theirs == ours && id > self.id.as_str())
    }
}

impl Hub {
    pub fn search(&self, search: &Search, limit: usize) -> Result<SessionList, RegistryError> {
        let cursor = match &search.cursor {
            None => None,
            Some(text) => Some(ListCursor::parse(text).ok_or_else(|| {
                RegistryError::Invalid("the `cursor` is none that a page gave as its `next`".to_owned())
            })?),
        };
        let words = search.query.as_deref().map(str::to_lowercase).filter(|query| !query.is_empty());
        if let Some(fleet) = self.fleet() {
            let listed = fleet.list(words.as_deref());
            let behind = listed.into_iter().filter(|(at, id)| {
                cursor.as_ref().is_none_or(|cursor| cursor.is_before_time(at.as_millisecond(), id.as_str()))
            });
            let behind = behind.map(|(at, id)| (format!("{}.{id}", at.as_millisecond()), id));
            return Ok(self.listed(search, limit, behind, |id| self.session(&id)));
        }
        let mut all = self.store().list(&Filter::default())?;
        // Sorted by what a cursor can say.
        all.sort_by(|a, b| {
            let (a_at, b_at) = (a.meta.updated_at.as_millisecond(), b.meta.updated_at.as_millisecond());
            b_at.cmp(&a_at).then_with(|| a.id.cmp(&b.id))
        });
        let behind =
            all.into_iter().filter(|summary| cursor.as_ref().is_none_or(|cursor| cursor.is_before(summary)));
        let matching = behind.filter(|summary| words.as_ref().is_none_or(|words| mentions(summary, words)));
        let matching = matching.map(|summary| (ListCursor::of(&summary), summary));
        Ok(self.listed(search, limit, matching, |summary| self.describe(summary).ok()))
    }

    /// One page of sessions that come with their cursors.
    fn listed<T>(
        &self,
        search: &Search,
        limit: usize,
        matching: impl Iterator<Item = (String, T)>,
        describe: impl Fn(T) -> Option<SessionResource>,
    ) -> SessionList {
        let mut found = SessionList { sessions: Vec::new(), next: None };
        let mut last = None;
        for (looked, (cursor, entry)) in matching.enumerate() {
            if found.sessions.len() == limit || looked == LOOKED_INTO {
                found.next = last;
                break;
            }
            last = Some(cursor);
            // A session that was deleted meanwhile, or that cannot be read, must not hide the others.
            let Some(session) = describe(entry) else { continue };
            let fits = search.state.is_none_or(|state| state == session.state)
                && search.runtime.as_ref().is_none_or(|runtime| *runtime == session.runtime);
            if fits {
                found.sessions.push(session);
            }
        }
        found
    }
}

fn mentions(summary: &SessionSummary, words: &str) -> bool {
    let name = summary.meta.name.as_ref().map(hangar_store::SessionName::as_str);
    let cwd = summary.meta.context.as_ref().map(|context| context.cwd.as_str());
    [name, cwd, Some(summary.id.as_str())]
        .into_iter()
        .flatten()
        .any(|text| text.to_lowercase().contains(words))
}
