//! Pull requests of the simulated forges, with reviews and merges.

use super::{Entry, ForgeServer, Note, Repository, now};

pub(super) struct Pull {
    pub(super) entry: Entry,
    pub(super) branch: String,
    pub(super) base: String,
    pub(super) merged: bool,
    /// Head when it was closed.
    last_head: String,
    pub(super) draft: bool,
    /// Head for which it was asked whether it can be merged: the first answer is that this is not known yet.
    computed: Option<String>,
    pub(super) threads: Vec<ReviewThread>,
    pub(super) reviews: Vec<Reviewed>,
}

pub(super) struct ReviewThread {
    pub(super) id: u64,
    /// Review that began it.
    pub(super) review: u64,
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) resolved: bool,
    /// Commit that the lines are of.
    pub(super) commit: String,
    pub(super) comments: Vec<Note>,
}

pub(super) struct Reviewed {
    pub(super) note: Note,
    pub(super) verdict: ReviewVerdict,
}

/// The end of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    Approved,
    ChangesRequested,
    Commented,
}

/// A remark of a reviewer on a line.
pub struct ReviewRemark<'a> {
    pub author: &'a str,
    pub is_bot: bool,
    pub file: &'a str,
    pub line: u64,
    pub body: &'a str,
}

/// Whether a pull request can be opened.
pub(super) enum Opening {
    Possible,
    /// Head or base is no branch.
    Invalid,
    /// The branch has an open one.
    Exists(u64),
    /// The branch has no commits of its own.
    Empty,
}

impl ForgeServer {
    /// A pull request without a branch, as one of somebody else.
    pub fn pull_request(&self, number: u64) {
        let entry = Entry::new("a pull request", "", Vec::new());
        let pull = Pull::new(entry, String::new(), "main".to_owned(), false);
        self.repository().pulls.insert(number, pull);
    }

    /// Numbers of all pull requests that were ever opened.
    pub fn pulls(&self) -> Vec<u64> {
        self.repository().pulls.keys().copied().collect()
    }

    /// Somebody remarks something about a line.
    pub fn remark(&self, number: u64, remark: &ReviewRemark<'_>) {
        let mut repository = self.repository();
        let head = repository.pulls.get(&number).and_then(|pull| repository.open_head(pull));
        let (id, review) = (repository.new_id(), repository.new_id());
        let note = |id: u64, body: &str| Note {
            id,
            author: remark.author.to_owned(),
            is_bot: remark.is_bot,
            body: body.to_owned(),
            at: now(),
        };
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        pull.threads.push(ReviewThread {
            id,
            review,
            path: remark.file.to_owned(),
            line: remark.line,
            resolved: false,
            commit: head.unwrap_or_default(),
            comments: vec![note(id, remark.body)],
        });
        pull.reviews.push(Reviewed { note: note(review, ""), verdict: ReviewVerdict::Commented });
        pull.entry.updated_at = now();
        repository.events.push(format!("pull {number} remarked"));
    }

    /// Somebody reviews.
    pub fn review(&self, number: u64, author: &str, verdict: ReviewVerdict, body: &str) {
        let mut repository = self.repository();
        let id = repository.new_id();
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        let (author, body) = (author.to_owned(), body.to_owned());
        pull.reviews.push(Reviewed { note: Note { id, author, is_bot: false, body, at: now() }, verdict });
        pull.entry.updated_at = now();
    }

    /// Bodies of the comments of each thread, with whether it is resolved.
    pub fn threads(&self, number: u64) -> Vec<(bool, Vec<String>)> {
        let repository = self.repository();
        let threads = repository.pulls[&number].threads.iter();
        let bodies =
            |thread: &ReviewThread| thread.comments.iter().map(|comment| comment.body.clone()).collect();
        threads.map(|thread| (thread.resolved, bodies(thread))).collect()
    }

    /// Whether a pull request is merged, and its state.
    pub fn pull_state(&self, number: u64) -> (bool, &'static str) {
        let repository = self.repository();
        let pull = &repository.pulls[&number];
        (pull.merged, pull.entry.state)
    }

    /// Labels of a pull request.
    pub fn pull_labels(&self, number: u64) -> Vec<String> {
        self.repository().pulls[&number].entry.labels.clone()
    }

    /// Branch of a pull request.
    pub fn branch_of(&self, number: u64) -> String {
        self.repository().pulls[&number].branch.clone()
    }

    /// Somebody closes a pull request without merging it.
    pub fn close_pull(&self, number: u64) {
        let mut repository = self.repository();
        let head = repository.head_of(number).unwrap_or_default();
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        (pull.entry.state, pull.last_head, pull.entry.updated_at) = ("closed", head, now());
    }
}

impl Pull {
    fn new(entry: Entry, branch: String, base: String, draft: bool) -> Self {
        Self {
            entry,
            branch,
            base,
            merged: false,
            last_head: String::new(),
            draft,
            computed: None,
            threads: Vec::new(),
            reviews: Vec::new(),
        }
    }

    /// The last verdict of each reviewer. A comment is none.
    pub(super) fn verdicts(&self) -> Vec<&Reviewed> {
        let mut last: Vec<&Reviewed> = Vec::new();
        for review in self.reviews.iter().filter(|review| review.verdict != ReviewVerdict::Commented) {
            last.retain(|known| known.note.author != review.note.author);
            last.push(review);
        }
        last
    }
}

impl Repository {
    pub(super) fn open_head(&self, pull: &Pull) -> Option<String> {
        if pull.entry.state == "closed" {
            return None;
        }
        self.git.as_ref()?.commit_of(&pull.branch)
    }

    pub(super) fn head_of(&self, number: u64) -> Option<String> {
        let pull = self.pulls.get(&number)?;
        self.open_head(pull).or_else(|| Some(pull.last_head.clone()))
    }

    pub(super) fn commit_of(&self, branch: &str) -> Option<String> {
        self.git.as_ref()?.commit_of(branch)
    }

    pub(super) fn is_outdated(&self, pull: &Pull, thread: &ReviewThread) -> bool {
        let Some((bare, head)) = self.git.as_ref().zip(self.open_head(pull)) else { return false };
        let line = |commit: &str| {
            let text = bare.git(&["show", &format!("{commit}:{}", thread.path)])?;
            text.lines().nth((thread.line as usize).saturating_sub(1)).map(str::to_owned)
        };
        line(&head) != line(&thread.commit)
    }

    /// Whether a pull request can be merged. Forges find that out after the first question.
    pub(super) fn mergeable(&mut self, number: u64) -> Option<bool> {
        let head = self.head_of(number)?;
        let base = self.pulls.get(&number)?.base.clone();
        let bare = self.git.as_ref()?;
        let key = format!("{head} {}", bare.commit_of(&base).unwrap_or_default());
        let pull = self.pulls.get_mut(&number)?;
        if pull.computed.as_ref() != Some(&key) {
            pull.computed = Some(key);
            return None;
        }
        Some(bare.merged_tree(&base, &head).is_some())
    }

    /// Commits that a branch has and its base lacks. `None` if one of them is no branch.
    pub(super) fn ahead(&self, base: &str, branch: &str) -> Option<Vec<String>> {
        let bare = self.git.as_ref()?;
        let (from, to) = (bare.commit_of(base)?, bare.commit_of(branch)?);
        let list = bare.git(&["rev-list", &format!("{from}..{to}")])?;
        Some(list.lines().map(str::to_owned).collect())
    }

    pub(super) fn opening(&self, branch: &str, base: &str) -> Opening {
        let Some(ahead) = self.ahead(base, branch) else { return Opening::Invalid };
        let is_same = |pull: &Pull| pull.branch == branch && pull.entry.state == "open";
        match self.pulls.iter().find(|(_, pull)| is_same(pull)) {
            Some((number, _)) => Opening::Exists(*number),
            None if ahead.is_empty() => Opening::Empty,
            None => Opening::Possible,
        }
    }

    pub(super) fn open_pull(&mut self, title: &str, body: &str, branches: (&str, &str), draft: bool) -> u64 {
        let number = self.next_number(true);
        let entry = Entry::new(title, body, Vec::new());
        let (branch, base) = (branches.0.to_owned(), branches.1.to_owned());
        self.pulls.insert(number, Pull::new(entry, branch, base, draft));
        self.events.push(format!("pull {number} opened"));
        number
    }

    /// Merges, and closes the issues that the text names. `None` if it conflicts.
    pub(super) fn merge_pull(&mut self, number: u64, squash: bool, message: &str) -> Option<String> {
        let head = self.head_of(number)?;
        let (bare, base) = (self.git.as_ref()?, self.pulls[&number].base.clone());
        let base_commit = bare.commit_of(&base)?;
        let tree = bare.merged_tree(&base, &head)?;
        let mut args = vec!["commit-tree", &tree, "-p", &base_commit, "-m", message];
        if !squash {
            args.extend(["-p", &head]);
        }
        let commit = bare.git(&args).expect("a commit");
        bare.git(&["update-ref", &format!("refs/heads/{base}"), &commit]).expect("a new base");
        let pull = self.pulls.get_mut(&number)?;
        let closes = closed_by(&pull.entry.body);
        (pull.entry.state, pull.merged, pull.last_head) = ("closed", true, head);
        pull.entry.updated_at = now();
        self.events.push(format!("pull {number} merged"));
        for issue in closes {
            if let Some(entry) = self.issues.get_mut(&issue) {
                entry.state = "closed";
            }
        }
        Some(commit)
    }

    /// Whether there was such a branch.
    pub(super) fn delete_branch(&self, branch: &str) -> bool {
        let bare = self.git.as_ref().filter(|bare| bare.commit_of(branch).is_some());
        bare.and_then(|bare| bare.git(&["update-ref", "-d", &format!("refs/heads/{branch}")])).is_some()
    }
}

/// Issues that a text closes when it is merged.
fn closed_by(body: &str) -> Vec<u64> {
    let words: Vec<String> = body.split_whitespace().map(str::to_lowercase).collect();
    let is_closing = |word: &str| {
        ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"]
            .contains(&word.trim_end_matches(':'))
    };
    let pairs = words.windows(2).filter(|pair| is_closing(&pair[0]));
    pairs.filter_map(|pair| pair[1].strip_prefix('#')?.trim_end_matches(['.', ',']).parse().ok()).collect()
}
