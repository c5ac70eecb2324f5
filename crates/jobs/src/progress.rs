//! Progress of a run in its tree of work. The result of a task moves it on; the next step depends on the kinds of work
//! around the task, and on nothing else.

use std::path::{Path, PathBuf};

use crate::entry::{LoopWork, Work, WorkId};
use crate::work::{BODY, CONDITION, FALSE, POST, PRE, TRUE, nth};

/// A work that has begun.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkProgress {
    /// Path in the tree, as in validation messages.
    place: String,
    tree: Tree,
    at: At,
}

#[derive(Debug, Clone, PartialEq)]
enum Tree {
    /// It has no worktree of its own, or no longer.
    Parents,
    Wanted,
    Made(PathBuf),
}

#[derive(Debug, Clone, PartialEq)]
enum At {
    Ready(WorkId),
    Running(WorkId),
    Seq { index: usize, child: Box<WorkProgress> },
    Par { children: Vec<WorkProgress> },
    Loop { step: LoopStep, child: Box<WorkProgress> },
    Alt { step: AltStep, child: Box<WorkProgress> },
    Finished(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopStep {
    Pre,
    Body,
    Post,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AltStep {
    Condition,
    Branch,
}

/// Action that a run needs to make progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextAction {
    Start { work: WorkId, directory: PathBuf },
    MakeWorktree { place: String, from: PathBuf },
    LeaveWorktree { place: String },
}

/// Input that moves a run on.
pub(crate) enum ProgressInput<'a> {
    Started(WorkId),
    Stopped(WorkId, bool),
    WorktreeMade(&'a str, &'a Path),
    WorktreeLeft(&'a str),
}

impl WorkProgress {
    pub(crate) fn begin(work: &Work) -> Self {
        Self::enter(work, String::new())
    }

    fn enter(work: &Work, place: String) -> Self {
        let child = |work: &Work, step: &str| Box::new(Self::enter(work, format!("{place}{step}")));
        let at = match work {
            Work::Ref(task) => At::Ready(task.work_id_in_job),
            Work::Seq(seq) => match seq.works.first() {
                Some(first) => At::Seq { index: 0, child: child(first, &nth(0)) },
                None => At::Finished(true),
            },
            Work::Par(par) if par.works.is_empty() => At::Finished(true),
            Work::Par(par) => {
                let children = par.works.iter().enumerate().map(|(index, work)| *child(work, &nth(index)));
                At::Par { children: children.collect() }
            }
            Work::Loop(work) => loop_from_start(work, &child),
            Work::Alt(alt) => At::Alt { step: AltStep::Condition, child: child(&alt.condition, CONDITION) },
        };
        let tree = if work.has_worktree() { Tree::Wanted } else { Tree::Parents };
        let mut progress = Self { place, tree, at };
        progress.roll(work);
        progress
    }

    /// Result, once it is known and no task is left.
    pub(crate) fn result(&self) -> Option<bool> {
        match (&self.at, &self.tree) {
            (At::Finished(succeeded), Tree::Parents) => Some(*succeeded),
            _ => None,
        }
    }

    pub(crate) fn wishes(&self, directory: &Path) -> Vec<NextAction> {
        let directory = match &self.tree {
            Tree::Wanted => {
                let from = directory.to_owned();
                return vec![NextAction::MakeWorktree { place: self.place.clone(), from }];
            }
            Tree::Made(own) => own,
            Tree::Parents => directory,
        };
        match &self.at {
            At::Ready(work) => vec![NextAction::Start { work: *work, directory: directory.to_owned() }],
            At::Running(_) => Vec::new(),
            At::Seq { child, .. } | At::Loop { child, .. } | At::Alt { child, .. } => child.wishes(directory),
            At::Par { children } => children.iter().flat_map(|child| child.wishes(directory)).collect(),
            At::Finished(_) if self.tree == Tree::Parents => Vec::new(),
            At::Finished(_) => vec![NextAction::LeaveWorktree { place: self.place.clone() }],
        }
    }

    pub(crate) fn apply(&mut self, work: &Work, moved: &ProgressInput<'_>) {
        match moved {
            ProgressInput::WorktreeMade(place, path) if *place == self.place => {
                self.tree = Tree::Made((*path).to_owned());
            }
            ProgressInput::WorktreeLeft(place) if *place == self.place => self.tree = Tree::Parents,
            ProgressInput::Started(_)
            | ProgressInput::Stopped(..)
            | ProgressInput::WorktreeMade(..)
            | ProgressInput::WorktreeLeft(_) => {}
        }
        match (&mut self.at, moved) {
            (At::Ready(id), ProgressInput::Started(started)) if id == started => {
                self.at = At::Running(*started)
            }
            (At::Running(id), ProgressInput::Stopped(stopped, succeeded)) if id == stopped => {
                self.at = At::Finished(*succeeded);
            }
            (At::Ready(_) | At::Running(_) | At::Finished(_), _) => {}
            (At::Seq { child, .. } | At::Loop { child, .. } | At::Alt { child, .. }, _) => {
                if let Some(inner) = part(work, &self.place, child) {
                    child.apply(inner, moved);
                }
            }
            (At::Par { children }, _) => {
                for child in children {
                    if let Some(inner) = part(work, &self.place, child) {
                        child.apply(inner, moved);
                    }
                }
            }
        }
        self.roll(work);
    }

    /// Moves on as far as what is finished inside allows.
    fn roll(&mut self, work: &Work) {
        while let Some(next) = self.next(work) {
            self.at = next;
        }
    }

    fn next(&self, work: &Work) -> Option<At> {
        let enter = |work: &Work, step: &str| Box::new(Self::enter(work, format!("{}{step}", self.place)));
        match (&self.at, work) {
            (At::Seq { index, child }, Work::Seq(seq)) => {
                Some(match (child.result()?, seq.works.get(index + 1)) {
                    (false, _) => At::Finished(false),
                    (true, None) => At::Finished(true),
                    (true, Some(next)) => At::Seq { index: index + 1, child: enter(next, &nth(index + 1)) },
                })
            }
            (At::Par { children }, _) => {
                let results: Option<Vec<bool>> = children.iter().map(WorkProgress::result).collect();
                Some(At::Finished(results?.into_iter().all(|succeeded| succeeded)))
            }
            (At::Loop { step, child }, Work::Loop(work)) => {
                let result = child.result()?;
                let expected = |condition: &Option<(bool, Box<Work>)>| {
                    condition.as_ref().is_none_or(|(expected, _)| *expected == result)
                };
                Some(match step {
                    LoopStep::Pre if expected(&work.pre_condition) => {
                        At::Loop { step: LoopStep::Body, child: enter(&work.body, BODY) }
                    }
                    LoopStep::Pre => At::Finished(true),
                    LoopStep::Body if !result => At::Finished(false),
                    LoopStep::Body => match &work.post_condition {
                        Some((_, post)) => At::Loop { step: LoopStep::Post, child: enter(post, POST) },
                        None => At::Finished(true),
                    },
                    LoopStep::Post if expected(&work.post_condition) => loop_from_start(work, &enter),
                    LoopStep::Post => At::Finished(true),
                })
            }
            (At::Alt { step, child }, Work::Alt(alt)) => {
                let result = child.result()?;
                let branch = if result { (&alt.true_work, TRUE) } else { (&alt.false_work, FALSE) };
                Some(match (step, branch) {
                    (AltStep::Branch, _) => At::Finished(result),
                    (AltStep::Condition, (None, _)) => At::Finished(true),
                    (AltStep::Condition, (Some(work), place)) => {
                        At::Alt { step: AltStep::Branch, child: enter(work, place) }
                    }
                })
            }
            _ => None,
        }
    }
}

fn loop_from_start(work: &LoopWork, enter: &impl Fn(&Work, &str) -> Box<WorkProgress>) -> At {
    match &work.pre_condition {
        Some((_, pre)) => At::Loop { step: LoopStep::Pre, child: enter(pre, PRE) },
        None => At::Loop { step: LoopStep::Body, child: enter(&work.body, BODY) },
    }
}

/// The work that a child is the progress of.
fn part<'a>(work: &'a Work, place: &str, child: &WorkProgress) -> Option<&'a Work> {
    let step = child.place.strip_prefix(place)?;
    work.children().into_iter().find(|(name, _)| name == step).map(|(_, work)| work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn task(name: &str) -> Value {
        json!({ "kind": "Ref", "taskId": name })
    }

    /// Starts whatever may start and lets it come out as the names say: `a+ b-`, in that order. Gives what was started
    /// and how the whole came out.
    #[track_caller]
    fn check(work: Value, script: &str, started: &str, result: Option<bool>) {
        let mut work: Work = serde_json::from_value(work).unwrap();
        work.simplify();
        work.assign_work_ids();
        let mut progress = WorkProgress::begin(&work);
        let mut seen = Vec::new();
        let mut start = |progress: &mut WorkProgress| {
            for wish in progress.wishes(Path::new("/")) {
                let NextAction::Start { work: id, .. } = wish else { panic!("{wish:?}") };
                seen.push(work.task(id).unwrap().task_id.clone());
                progress.apply(&work, &ProgressInput::Started(id));
            }
        };
        start(&mut progress);
        for word in script.split_whitespace() {
            let (name, succeeded) = (&word[..word.len() - 1], word.ends_with('+'));
            let id = work.tasks().into_iter().find(|task| task.task_id == name).unwrap().work_id_in_job;
            progress.apply(&work, &ProgressInput::Stopped(id, succeeded));
            start(&mut progress);
        }
        assert_eq!((seen.join(" ").as_str(), progress.result()), (started, result));
    }

    fn seq(works: &[&str]) -> Value {
        json!({ "kind": "Seq", "works": works.iter().map(|name| task(name)).collect::<Vec<_>>() })
    }

    fn par(works: &[&str]) -> Value {
        json!({ "kind": "Par", "works": works.iter().map(|name| task(name)).collect::<Vec<_>>() })
    }

    #[test]
    fn a_task_is_its_result() {
        check(task("a"), "a+", "a", Some(true));
        check(task("a"), "a-", "a", Some(false));
    }

    #[test]
    fn a_sequence_stops_at_its_first_failure() {
        check(seq(&["a", "b"]), "a+ b+", "a b", Some(true));
        check(seq(&["a", "b"]), "a-", "a", Some(false));
        check(seq(&["a", "b"]), "a+ b-", "a b", Some(false));
    }

    #[test]
    fn parallel_work_waits_for_all() {
        check(par(&["a", "b"]), "b+ a+", "a b", Some(true));
        check(par(&["a", "b"]), "a-", "a b", None);
        check(par(&["a", "b"]), "a- b+", "a b", Some(false));
    }

    #[test]
    fn a_choice_follows_its_condition() {
        let alt =
            json!({ "kind": "Alt", "condition": task("c"), "trueWork": task("t"), "falseWork": task("f") });
        check(alt.clone(), "c+ t+", "c t", Some(true));
        check(alt.clone(), "c- f+", "c f", Some(true));
        check(alt.clone(), "c+ t-", "c t", Some(false));
        check(alt, "c- f-", "c f", Some(false));
    }

    #[test]
    fn a_branch_that_is_not_there_is_a_success() {
        check(
            json!({ "kind": "Alt", "condition": task("c"), "falseWork": task("f") }),
            "c+",
            "c",
            Some(true),
        );
        check(json!({ "kind": "Alt", "condition": task("c"), "trueWork": task("t") }), "c-", "c", Some(true));
    }

    #[test]
    fn a_loop_that_must_not_begin_is_a_success() {
        let work = json!({ "kind": "Loop", "preCondition": [true, task("p")], "body": task("b") });
        check(work.clone(), "p-", "p", Some(true));
        check(work.clone(), "p+ b+", "p b", Some(true));
        check(work, "p+ b-", "p b", Some(false));
    }

    #[test]
    fn a_loop_repeats_while_its_condition_comes_out_as_expected() {
        let work = json!({ "kind": "Loop", "postCondition": [false, task("q")], "body": task("b") });
        check(work.clone(), "b+ q- b+ q- b+ q+", "b q b q b q", Some(true));
        check(work, "b+ q- b-", "b q b", Some(false));
    }

    #[test]
    fn a_loop_with_both_conditions_asks_the_first_again() {
        let work = json!({
            "kind": "Loop",
            "preCondition": [true, task("p")],
            "postCondition": [true, task("q")],
            "body": task("b"),
        });
        check(work, "p+ b+ q+ p+ b+ q+ p-", "p b q p b q p", Some(true));
    }

    #[test]
    fn works_within_works_hold_their_rules() {
        let work = json!({ "kind": "Seq", "works": [par(&["a", "b"]), task("c")] });
        check(work.clone(), "a+ b+ c+", "a b c", Some(true));
        check(work, "a- b+", "a b", Some(false));
    }

    #[test]
    fn a_worktree_is_made_before_and_left_after() {
        let mut work: Work = serde_json::from_value(
            json!({ "kind": "Seq", "works": [{ "kind": "Seq", "works": [task("a")], "worktree": true }, task("b")] }),
        )
        .unwrap();
        work.simplify();
        work.assign_work_ids();
        let mut progress = WorkProgress::begin(&work);
        let outside = Path::new("/repo");
        let place = ".works[0]".to_owned();
        let expected = NextAction::MakeWorktree { place: place.clone(), from: outside.to_owned() };
        assert_eq!(progress.wishes(outside), [expected]);
        progress.apply(&work, &ProgressInput::WorktreeMade(&place, Path::new("/tree")));
        let expected = NextAction::Start { work: WorkId(0), directory: "/tree".into() };
        assert_eq!(progress.wishes(outside), [expected]);
        progress.apply(&work, &ProgressInput::Started(WorkId(0)));
        progress.apply(&work, &ProgressInput::Stopped(WorkId(0), true));
        assert_eq!(progress.wishes(outside), [NextAction::LeaveWorktree { place: place.clone() }]);
        progress.apply(&work, &ProgressInput::WorktreeLeft(&place));
        let expected = NextAction::Start { work: WorkId(1), directory: outside.to_owned() };
        assert_eq!(progress.wishes(outside), [expected]);
    }
}
