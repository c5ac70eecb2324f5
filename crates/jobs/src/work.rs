//! The tree of a job's work: its children, its shape made simple, its tasks counted.

use crate::entry::{TaskWork, Work, WorkId};

impl Work {
    /// Whether it runs in a git worktree of its own.
    pub fn has_worktree(&self) -> bool {
        match self {
            Work::Ref(work) => work.worktree,
            Work::Seq(work) => work.worktree,
            Work::Par(work) => work.worktree,
            Work::Loop(work) => work.worktree,
            Work::Alt(work) => work.worktree,
        }
    }

    /// The works directly inside, each with its step on a path, in the order in which tasks are counted.
    pub fn children(&self) -> Vec<(String, &Work)> {
        match self {
            Work::Ref(_) => Vec::new(),
            Work::Seq(seq) => indexed(&seq.works),
            Work::Par(par) => indexed(&par.works),
            Work::Loop(work) => {
                let mut all: Vec<(String, &Work)> = Vec::new();
                all.extend(work.pre_condition.as_ref().map(|(_, work)| (PRE.to_owned(), &**work)));
                all.extend(work.post_condition.as_ref().map(|(_, work)| (POST.to_owned(), &**work)));
                all.push((BODY.to_owned(), &work.body));
                all
            }
            Work::Alt(alt) => {
                let mut all: Vec<(String, &Work)> = vec![(CONDITION.to_owned(), &alt.condition)];
                all.extend(alt.true_work.as_deref().map(|work| (TRUE.to_owned(), work)));
                all.extend(alt.false_work.as_deref().map(|work| (FALSE.to_owned(), work)));
                all
            }
        }
    }

    fn children_mut(&mut self) -> Vec<&mut Work> {
        match self {
            Work::Ref(_) => Vec::new(),
            Work::Seq(seq) => seq.works.iter_mut().collect(),
            Work::Par(par) => par.works.iter_mut().collect(),
            Work::Loop(work) => {
                let conditions = [&mut work.pre_condition, &mut work.post_condition];
                let mut all: Vec<&mut Work> =
                    conditions.into_iter().flatten().map(|(_, work)| &mut **work).collect();
                all.push(&mut work.body);
                all
            }
            Work::Alt(alt) => {
                let mut all: Vec<&mut Work> = vec![&mut alt.condition];
                all.extend(
                    [&mut alt.true_work, &mut alt.false_work].into_iter().flatten().map(|work| &mut **work),
                );
                all
            }
        }
    }

    /// Every task in it.
    pub fn tasks(&self) -> Vec<&TaskWork> {
        match self {
            Work::Ref(task) => vec![task],
            _ => self.children().into_iter().flat_map(|(_, work)| work.tasks()).collect(),
        }
    }

    pub fn task(&self, id: WorkId) -> Option<&TaskWork> {
        self.tasks().into_iter().find(|task| task.work_id_in_job == id)
    }

    /// Inlines a sequence in a sequence, and parallel work in parallel work. One with a worktree of its own stays,
    /// because it is not equivalent.
    pub fn simplify(&mut self) {
        for child in self.children_mut() {
            child.simplify();
        }
        match self {
            Work::Seq(seq) => {
                seq.works = flattened(std::mem::take(&mut seq.works), |work| match work {
                    Work::Seq(inner) if !inner.worktree => Ok(inner.works),
                    other => Err(other),
                });
            }
            Work::Par(par) => {
                par.works = flattened(std::mem::take(&mut par.works), |work| match work {
                    Work::Par(inner) if !inner.worktree => Ok(inner.works),
                    other => Err(other),
                });
            }
            Work::Ref(_) | Work::Loop(_) | Work::Alt(_) => {}
        }
    }

    /// Counts the tasks from 0, whatever numbers they had.
    pub fn assign_work_ids(&mut self) {
        self.count_from(&mut 0);
    }

    fn count_from(&mut self, next: &mut u32) {
        if let Work::Ref(task) = self {
            task.work_id_in_job = WorkId(*next);
            *next += 1;
        }
        for child in self.children_mut() {
            child.count_from(next);
        }
    }
}

pub(crate) const PRE: &str = ".preCondition[1]";
pub(crate) const POST: &str = ".postCondition[1]";
pub(crate) const BODY: &str = ".body";
pub(crate) const CONDITION: &str = ".condition";
pub(crate) const TRUE: &str = ".trueWork";
pub(crate) const FALSE: &str = ".falseWork";

pub(crate) fn nth(index: usize) -> String {
    format!(".works[{index}]")
}

fn indexed(works: &[Work]) -> Vec<(String, &Work)> {
    works.iter().enumerate().map(|(index, work)| (nth(index), work)).collect()
}

fn flattened(works: Vec<Work>, inner: impl Fn(Work) -> Result<Vec<Work>, Work>) -> Vec<Work> {
    let mut all = Vec::with_capacity(works.len());
    for work in works {
        match inner(work) {
            Ok(works) => all.extend(works),
            Err(work) => all.push(work),
        }
    }
    all
}
