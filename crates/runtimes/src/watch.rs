//! Watch over a turn: silence of the agent, commands that run too long, and work that leads nowhere.
//!
//! Silence counts only while no tool runs and no person is asked. Events are signs of life, not of progress: progress is a
//! call that the turn has not made before, or a change in the working tree.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::Duration;

use hangar_git::Git;
use hangar_protocol::Body;
use hangar_protocol::data::{SessionWarning, ToolStart};
use tokio::time::Instant;

use crate::outcome::Stopped;
use crate::runtime::TurnLimits;

/// Maximum number of calls that are told apart, and of those that run at once.
const MOST_CALLS: usize = 10_000;
/// Type of the warning that a turn makes no progress.
pub const NO_PROGRESS: &str = "no_progress";

/// Finding of the watch.
#[derive(Debug)]
pub enum WatchNews {
    /// The turn has passed a limit.
    Stop(Stopped),
    /// The turn makes no progress, which is told and nothing else.
    Warn(Box<SessionWarning>),
}

/// Watch over one turn. It is told of events and of the time, and does nothing by itself.
#[derive(Debug)]
pub struct TurnWatch {
    limits: TurnLimits,
    /// When the agent last said anything.
    heard: Instant,
    /// Running calls, with their start where the limit of a command applies to them.
    tools: BTreeMap<String, Option<Instant>>,
    /// Open questions to a person.
    asked: BTreeSet<String>,
    progress: Progress,
}

/// Progress of a turn.
#[derive(Debug)]
struct Progress {
    since: Instant,
    calls: DistinctCalls,
    /// Whether the working tree was looked at since, to compare with later.
    looked: bool,
    /// Whether the lack of it was told.
    told: bool,
}

impl Progress {
    fn made(&mut self, now: Instant) {
        (self.since, self.looked, self.told) = (now, false, false);
    }
}

/// Tool calls of a turn, by name and arguments.
#[derive(Debug, Default)]
pub struct DistinctCalls(HashSet<u64>);

impl DistinctCalls {
    /// Adds a call; false if the same one was made before.
    pub fn is_new(&mut self, start: &ToolStart) -> bool {
        let mut digest = DefaultHasher::new();
        start.tool_name.hash(&mut digest);
        start.arguments.to_string().hash(&mut digest);
        if self.0.len() == MOST_CALLS {
            self.0.clear();
        }
        self.0.insert(digest.finish())
    }
}

/// The sentence that a turn makes no progress, as its events tell it. The next progress takes it back.
#[derive(Debug, Default)]
pub struct ProgressRemark {
    calls: DistinctCalls,
    sentence: Option<String>,
}

impl ProgressRemark {
    /// Notes an event. Returns whether the sentence has changed.
    pub fn note(&mut self, body: &Body) -> bool {
        let sentence = match body {
            Body::SessionWarning(warning) if warning.warning_type == NO_PROGRESS => {
                Some(warning.message.clone())
            }
            Body::ToolStart(start) if self.calls.is_new(start) => None,
            Body::UserMessage(_) => None,
            _ => return false,
        };
        let changed = self.sentence != sentence;
        self.sentence = sentence;
        changed
    }

    pub fn sentence(&self) -> Option<&String> {
        self.sentence.as_ref()
    }
}

/// Action that is due.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Stop(Stopped),
    /// Look at the working tree, for a comparison later.
    Look,
    /// No progress for so long, unless the working tree has changed.
    Unproductive {
        seconds: u64,
    },
}

impl TurnWatch {
    pub fn new(limits: TurnLimits, now: Instant) -> Self {
        Self {
            limits,
            heard: now,
            tools: BTreeMap::new(),
            asked: BTreeSet::new(),
            progress: Progress { since: now, calls: DistinctCalls::default(), looked: false, told: false },
        }
    }

    /// The agent has written something.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Notes an event of the turn.
    pub fn note(&mut self, body: &Body, now: Instant) {
        self.heard = now;
        match body {
            Body::ToolStart(start) => self.started(start, now),
            Body::ToolComplete(complete) => drop(self.tools.remove(&complete.tool_call_id)),
            // The calls of a sub-agent have the limit, each for itself.
            Body::SubagentStarted(started) => {
                if let Some(call) = self.tools.get_mut(&started.tool_call_id) {
                    *call = None;
                }
            }
            Body::PermissionRequested(asked) => self.asked(&asked.request_id),
            Body::UserInputRequested(asked) => self.asked(&asked.request_id),
            Body::ElicitationRequested(asked) => self.asked(&asked.request_id),
            Body::ExitPlanModeRequested(asked) => self.asked(&asked.request_id),
            Body::PermissionCompleted(done) => self.answered(&done.request_id, now),
            Body::UserInputCompleted(done) => self.answered(&done.request_id, now),
            Body::ElicitationCompleted(done) => self.answered(&done.request_id, now),
            Body::ExitPlanModeCompleted(done) => self.answered(&done.request_id, now),
            // A person has said something new.
            Body::UserMessage(_) => self.progress.made(now),
            _ => {}
        }
    }

    fn started(&mut self, start: &ToolStart, now: Instant) {
        if self.tools.len() < MOST_CALLS {
            self.tools.insert(start.tool_call_id.clone(), Some(now));
        }
        if self.progress.calls.is_new(start) {
            self.progress.made(now);
        }
    }

    pub fn asked(&mut self, request_id: &str) {
        self.asked.insert(request_id.to_owned());
    }

    /// A question was answered. The time that a person took counts for nothing.
    pub fn answered(&mut self, request_id: &str, now: Instant) {
        if self.asked.remove(request_id) && self.asked.is_empty() {
            self.heard = now;
            self.tools.values_mut().flatten().for_each(|since| *since = now);
            self.progress.made(now);
        }
    }

    /// Whether a person is asked.
    pub fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// When [`check`](Self::check) has something to do, if nothing happens before.
    pub fn due(&self) -> Option<Instant> {
        if self.is_asking() {
            return None;
        }
        let progress = self.limits.progress.filter(|_| !self.progress.told);
        let progress =
            progress.map(|limit| self.progress.since + if self.progress.looked { limit } else { limit / 2 });
        [self.silent_at(), self.tool_over_at(), progress].into_iter().flatten().min()
    }

    fn silent_at(&self) -> Option<Instant> {
        self.limits.stall.filter(|_| self.tools.is_empty()).map(|limit| self.heard + limit)
    }

    fn tool_over_at(&self) -> Option<Instant> {
        let oldest = self.tools.values().flatten().min()?;
        self.limits.tool.map(|limit| *oldest + limit)
    }

    fn decide(&self, now: Instant) -> Due {
        let over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let seconds = |limit: Option<Duration>| limit.unwrap_or_default().as_secs();
        if self.is_asking() {
            return Due::Nothing;
        }
        if over(self.silent_at()) {
            return Due::Stop(Stopped::Stalled { seconds: seconds(self.limits.stall) });
        }
        if over(self.tool_over_at()) {
            return Due::Stop(Stopped::ToolTimedOut { seconds: seconds(self.limits.tool) });
        }
        let Some(limit) = self.limits.progress.filter(|_| !self.progress.told) else { return Due::Nothing };
        let lasted = now.saturating_duration_since(self.progress.since);
        match self.progress.looked {
            true if lasted >= limit => Due::Unproductive { seconds: limit.as_secs() },
            false if lasted >= limit / 2 => Due::Look,
            _ => Due::Nothing,
        }
    }

    /// Looks whether a limit is passed, and at the working tree where that matters.
    pub async fn check(&mut self, tree: &mut TreeProbe) -> Option<WatchNews> {
        match self.decide(Instant::now()) {
            Due::Nothing => None,
            Due::Stop(why) => Some(WatchNews::Stop(why)),
            Due::Look => {
                tree.has_changed().await;
                self.progress.looked = true;
                None
            }
            Due::Unproductive { .. } if tree.has_changed().await => {
                self.progress.made(Instant::now());
                None
            }
            Due::Unproductive { seconds } if self.limits.stop_without_progress => {
                Some(WatchNews::Stop(Stopped::Unproductive { seconds }))
            }
            Due::Unproductive { seconds } => {
                self.progress.told = true;
                let told = format!("no new commit, change or call for {seconds} s");
                Some(WatchNews::Warn(Box::new(SessionWarning::new(NO_PROGRESS, told))))
            }
        }
    }
}

/// Compares the working tree with how it was at the last look.
#[derive(Debug, Clone, Default)]
pub struct TreeProbe {
    place: Option<(Git, PathBuf)>,
    last: Option<u64>,
}

impl TreeProbe {
    /// A probe of the working tree of a directory. One on another machine cannot be looked at.
    pub fn new(git: Git, directory: PathBuf) -> Self {
        Self { place: Some((git, directory)), last: None }
    }

    /// Whether commits, files or their contents differ from those at the last look. False at the first look, and where nothing
    /// can be known.
    async fn has_changed(&mut self) -> bool {
        let Some((git, directory)) = &self.place else { return false };
        let Ok(Some(found)) = hangar_git::fingerprint(git, directory).await else { return false };
        self.last.replace(found).is_some_and(|last| last != found)
    }
}

#[cfg(test)]
mod tests {
    use hangar_protocol::data::{PermissionCompleted, PermissionRequested, ToolComplete};
    use serde_json::json;

    use super::*;

    const STALL: u64 = 10;
    const TOOL: u64 = 60;
    const PROGRESS: u64 = 100;

    fn limits() -> TurnLimits {
        TurnLimits {
            stall: Some(Duration::from_secs(STALL)),
            tool: Some(Duration::from_secs(TOOL)),
            progress: Some(Duration::from_secs(PROGRESS)),
            ..TurnLimits::default()
        }
    }

    fn body<T: serde::de::DeserializeOwned + Into<Body>>(value: serde_json::Value) -> Body {
        serde_json::from_value::<T>(value).expect("a body").into()
    }

    fn call(id: &str, command: &str) -> Body {
        body::<ToolStart>(
            json!({ "toolCallId": id, "toolName": "bash", "arguments": { "command": command } }),
        )
    }

    fn done(id: &str) -> Body {
        body::<ToolComplete>(json!({ "toolCallId": id, "success": true }))
    }

    /// A line of a test: a second, and what happens then.
    fn watched(lines: &[(u64, Body)]) -> (TurnWatch, Instant) {
        let start = Instant::now();
        let mut watch = TurnWatch::new(limits(), start);
        for (second, body) in lines {
            watch.note(body, start + Duration::from_secs(*second));
        }
        (watch, start)
    }

    #[track_caller]
    fn check(lines: &[(u64, Body)], second: u64, expected: &Due) {
        let (watch, start) = watched(lines);
        assert_eq!(&watch.decide(start + Duration::from_secs(second)), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_while_no_tool_runs_and_nobody_is_asked() {
        let stalled = Due::Stop(Stopped::Stalled { seconds: STALL });
        check(&[], STALL - 1, &Due::Nothing);
        check(&[], STALL, &stalled);
        check(&[(1, call("a", "make"))], STALL + 20, &Due::Nothing);
        check(&[(1, call("a", "make")), (30, done("a"))], 30 + STALL, &stalled);
        let asked = body::<PermissionRequested>(
            json!({ "requestId": "r", "permissionRequest": { "kind": "read", "path": "/a", "intention": "" } }),
        );
        check(&[(1, asked.clone())], 10_000, &Due::Nothing);
        let answer =
            body::<PermissionCompleted>(json!({ "requestId": "r", "result": { "kind": "approved" } }));
        check(&[(1, asked.clone()), (500, answer.clone())], 500 + STALL - 1, &Due::Nothing);
        check(&[(1, asked), (500, answer)], 500 + STALL, &stalled);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_command_has_a_limit_of_its_own() {
        let over = Due::Stop(Stopped::ToolTimedOut { seconds: TOOL });
        check(&[(1, call("a", "make"))], TOOL, &Due::Look);
        check(&[(1, call("a", "make"))], TOOL + 1, &over);
        // The oldest of several counts.
        check(&[(1, call("a", "x")), (50, call("b", "y"))], TOOL + 1, &over);
        check(&[(1, call("a", "x")), (50, call("b", "y")), (55, done("a"))], TOOL + 1, &Due::Nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_call_again_is_no_progress() {
        let mut lines = Vec::new();
        for second in (0..PROGRESS).step_by(5) {
            lines.push((second, call("a", "ls")));
            lines.push((second + 1, done("a")));
        }
        let (mut watch, start) = watched(&lines);
        watch.heard(start + Duration::from_secs(PROGRESS));
        assert_eq!(watch.decide(start + Duration::from_secs(PROGRESS)), Due::Look);
        watch.progress.looked = true;
        let unproductive = Due::Unproductive { seconds: PROGRESS };
        assert_eq!(watch.decide(start + Duration::from_secs(PROGRESS)), unproductive);
        watch.note(&call("b", "ls -l"), start + Duration::from_secs(PROGRESS));
        assert_eq!(watch.decide(start + Duration::from_secs(PROGRESS + 1)), Due::Nothing);
    }

    #[test]
    fn a_remark_stays_until_there_is_progress() {
        let mut remark = ProgressRemark::default();
        assert!(!remark.note(&call("a", "ls")), "there was none to take back");
        let warning = SessionWarning::new(NO_PROGRESS, "no new commit".to_owned());
        assert!(remark.note(&warning.into()));
        assert!(!remark.note(&call("b", "ls")), "the same call is no progress");
        assert!(!remark.note(&done("b")));
        assert_eq!(remark.sentence().map(String::as_str), Some("no new commit"));
        assert!(remark.note(&call("c", "ls -l")));
        assert_eq!(remark.sentence(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_lack_of_progress_is_told_once() {
        let (mut watch, _) = watched(&[]);
        watch.limits.stall = None;
        let mut tree = TreeProbe::default();
        tokio::time::advance(Duration::from_secs(PROGRESS)).await;
        assert!(watch.check(&mut tree).await.is_none(), "it looks at the tree first");
        let Some(WatchNews::Warn(warning)) = watch.check(&mut tree).await else { panic!("no warning") };
        assert_eq!(warning.message, "no new commit, change or call for 100 s");
        assert!(watch.check(&mut tree).await.is_none());
        assert_eq!(watch.due(), None);
        watch.limits.stop_without_progress = true;
        watch.note(&call("a", "ls"), Instant::now());
        watch.note(&done("a"), Instant::now());
        tokio::time::advance(Duration::from_secs(PROGRESS)).await;
        assert!(watch.check(&mut tree).await.is_none());
        let Some(WatchNews::Stop(why)) = watch.check(&mut tree).await else { panic!("goes on") };
        assert_eq!(why, Stopped::Unproductive { seconds: PROGRESS });
    }
}
