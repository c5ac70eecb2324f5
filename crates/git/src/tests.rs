use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(60), output: 1 << 20 };

/// A repository with one committed file, and a program in it that leaves a trace when it runs.
struct Hostile(tempfile::TempDir);

impl Hostile {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let hostile = Self(dir);
        let repo = hostile.repo();
        fs::create_dir(&repo).unwrap();
        fs::write(repo.join("a.txt"), "a\n").unwrap();
        hostile.plain(
            "git init -q -b main . && git add . && git -c user.name=t -c user.email=t@x commit -q -m one",
        );
        let program = hostile.program();
        fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", hostile.canary().display())).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        hostile
    }

    fn repo(&self) -> PathBuf {
        self.0.path().join("repo")
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("program")
    }

    fn canary(&self) -> PathBuf {
        self.0.path().join("canary")
    }

    /// A script in the repository, with git as it comes.
    fn plain(&self, script: &str) {
        let status = std::process::Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.repo())
            .env("PROGRAM", self.program())
            .env("CANARY", self.canary())
            .env("HOME", self.0.path())
            .status();
        assert!(status.unwrap().success(), "{script}");
    }

    fn git(&self) -> Git {
        let path = std::env::var_os("PATH").unwrap();
        let variables = [("PATH".into(), path), ("HOME".into(), self.0.path().into())];
        Git::new(Environment::of(variables))
    }
}

/// Prepares a repository in a way that makes plain git run the program, and looks that ours does not.
async fn check(prepare: &str, calls: &[&[&str]]) {
    let hostile = Hostile::new();
    hostile.plain(prepare);
    // A file of the same size that looks changed is read again.
    hostile.plain("echo b > a.txt; touch -d 2001-01-01 a.txt");
    let quoted: Vec<String> =
        calls.iter().map(|call| format!("git --no-pager {} >/dev/null 2>&1 || :", call.join(" "))).collect();
    hostile.plain(&quoted.join("\n"));
    assert!(hostile.canary().exists(), "{prepare}: the trap does not work");
    fs::remove_file(hostile.canary()).unwrap();
    hostile.plain("echo c > a.txt; touch -d 2002-01-01 a.txt");
    let git = hostile.git();
    for filters in [Filters::Off, Filters::User] {
        let tree = git.open(&hostile.repo(), filters).await.unwrap();
        for call in calls {
            tree.run(call, LIMITS).await.unwrap();
        }
    }
    assert!(!hostile.canary().exists(), "{prepare}: it ran");
}

const STATUS: &[&str] = &["status", "--porcelain"];
const DIFF: &[&str] = &["diff", "--no-ext-diff", "--no-textconv", "HEAD"];

#[tokio::test]
async fn filters_do_not_run() {
    for variable in ["clean", "process"] {
        let attributes = "echo '*.txt filter=evil' > .gitattributes";
        check(&format!("git config filter.evil.{variable} $PROGRAM; {attributes}"), &[STATUS, DIFF]).await;
        // Also those of another file, and those that the repository's own attributes name.
        check(
            &format!(
                "git config -f .git/more filter.evil.{variable} $PROGRAM; git config include.path more; {attributes}"
            ),
            &[STATUS],
        )
        .await;
        check(
            &format!(
                "git config filter.evil.{variable} $PROGRAM; echo '*.txt filter=evil' > .git/info/attributes"
            ),
            &[STATUS],
        )
        .await;
    }
}

#[tokio::test]
async fn filters_do_not_run_at_a_checkout() {
    let checkout = ["checkout", "--force", "HEAD", "--", "."];
    for variable in ["smudge", "process"] {
        check(
            &format!("git config filter.evil.{variable} $PROGRAM; echo '*.txt filter=evil' > .gitattributes"),
            &[&checkout],
        )
        .await;
    }
}

#[tokio::test]
async fn hooks_and_monitors_do_not_run() {
    check("git config core.fsmonitor $PROGRAM", &[STATUS]).await;
    check("cp $PROGRAM .git/hooks/post-checkout", &[&["checkout", "--detach", "HEAD"]]).await;
    check("cp $PROGRAM .git/hooks/reference-transaction", &[&["branch", "-f", "new"]]).await;
    check(
        "mkdir hooks; cp $PROGRAM hooks/post-checkout; git config core.hooksPath hooks",
        &[&["checkout", "--detach", "HEAD"]],
    )
    .await;
}

#[tokio::test]
async fn programs_that_show_differences_do_not_run() {
    let hostile = ["diff.external $PROGRAM", "diff.evil.command $PROGRAM", "diff.evil.textconv $PROGRAM"];
    for setting in hostile {
        let stage = Hostile::new();
        stage.plain(&format!(
            "git config {setting}; echo '*.txt diff=evil' > .gitattributes; echo more >> a.txt; git diff HEAD >/dev/null || :"
        ));
        assert!(stage.canary().exists(), "{setting}: the trap does not work");
        fs::remove_file(stage.canary()).unwrap();
        let git = stage.git();
        let tree = git.open(&stage.repo(), Filters::Off).await.unwrap();
        let output = tree.run(DIFF, LIMITS).await.unwrap();
        assert!(output.text().contains("+more"), "{output:?}");
        assert!(!stage.canary().exists(), "{setting}: it ran");
    }
}

#[tokio::test]
async fn signatures_are_not_checked_by_a_program_of_the_repository() {
    let signed = "git config gpg.program $PROGRAM; git config log.showSignature true; \
                  git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----' > .git/c; \
                  git update-ref HEAD $(git hash-object -t commit -w .git/c)";
    check(signed, &[&["log", "-1"]]).await;
}

#[tokio::test]
async fn objects_are_not_fetched_by_a_program_of_the_repository() {
    let promised = "git config extensions.partialClone evil; git config remote.evil.promisor true; \
                    git config remote.evil.url \"ext::touch $CANARY\"; git config protocol.ext.allow always; \
                    rm -f .git/objects/$(git rev-parse HEAD:a.txt | sed 's,^..,&/,')";
    check(promised, &[&["diff", "HEAD"]]).await;
}

#[tokio::test]
async fn files_elsewhere_are_not_the_repositorys() {
    let hostile = Hostile::new();
    fs::create_dir(hostile.0.path().join("private")).unwrap();
    fs::write(hostile.0.path().join("private/a.txt"), "secret\n").unwrap();
    hostile.plain("git config core.worktree ../../private");
    let git = hostile.git();
    let tree = git.open(&hostile.repo(), Filters::Off).await.unwrap();
    let output = tree.run(DIFF, LIMITS).await.unwrap();
    assert_eq!((output.code, output.text().as_str()), (0, ""));
}

#[tokio::test]
async fn filters_of_the_user_run_where_they_are_wanted() {
    let hostile = Hostile::new();
    hostile
        .plain("git config --global filter.mine.clean $PROGRAM; echo '*.txt filter=mine' > .gitattributes");
    let git = hostile.git();
    for (filters, runs) in [(Filters::Off, false), (Filters::User, true)] {
        hostile.plain("touch -d 2001-01-01 a.txt");
        git.open(&hostile.repo(), filters).await.unwrap().run(STATUS, LIMITS).await.unwrap();
        assert_eq!(hostile.canary().exists(), runs, "{filters:?}");
    }
}

#[tokio::test]
async fn output_and_time_have_bounds() {
    let hostile = Hostile::new();
    let git = hostile.git();
    let tree = git.open(&hostile.repo(), Filters::Off).await.unwrap();
    let few = CallLimits { output: 2, ..LIMITS };
    let output = tree.run(&["rev-parse", "HEAD"], few).await.unwrap();
    assert_eq!((output.stdout.len(), output.cut), (2, true));
    // A configuration that never ends is not waited for.
    hostile.plain("mkfifo .git/pipe; git config include.path pipe");
    let soon = CallLimits { time: Duration::from_millis(200), ..LIMITS };
    let tree = WorkTree {
        git: &git,
        directory: hostile.repo(),
        settings: Vec::new(),
        variables: Vec::new(),
        repository: Repository::Enclosing,
    };
    assert!(matches!(tree.run(STATUS, soon).await, Err(GitError::Time(_))));
}

#[tokio::test]
async fn a_place_that_is_no_repository_has_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = Hostile::new();
    let git = hostile.git();
    let tree = git.open(dir.path(), Filters::Off).await.unwrap();
    let output = tree.run(&["rev-parse", "HEAD"], LIMITS).await.unwrap();
    assert_eq!(output.code, 128);
    assert!(output.stderr.contains("not a git repository"), "{}", output.stderr);
}

#[tokio::test]
async fn a_clone_has_the_files_and_runs_no_program_of_the_repository() {
    let hostile = Hostile::new();
    hostile.plain("mkdir -p .git/hooks && cp $PROGRAM .git/hooks/post-checkout && git tag v1");
    let url = format!("file://{}", hostile.repo().display());
    let head = String::from_utf8(
        std::process::Command::new("git")
            .args(["rev-parse", "HEAD"])
            .current_dir(hostile.repo())
            .output()
            .unwrap()
            .stdout,
    );
    let at = |reference: Option<&str>, commit: Option<&str>| Revision {
        reference: reference.map(str::to_owned),
        commit: commit.map(str::to_owned),
    };
    let commit = head.unwrap().trim().to_owned();
    for (index, revision) in
        [at(None, None), at(Some("v1"), None), at(None, Some(&commit))].into_iter().enumerate()
    {
        let into = hostile.0.path().join(format!("clone-{index}"));
        let output = hostile.git().clone_into(&url, &revision, &into).await.unwrap();
        assert_eq!(output.code, 0, "{revision:?}: {}", output.stderr);
        assert_eq!(fs::read_to_string(into.join("a.txt")).unwrap(), "a\n");
    }
    assert!(!hostile.canary().exists());
}

#[tokio::test]
async fn a_url_starts_no_program() {
    let hostile = Hostile::new();
    for url in [format!("ext::{}", hostile.program().display()), "--upload-pack=touch x".to_owned()] {
        let into = hostile.0.path().join("clone");
        let output = hostile.git().clone_into(&url, &Revision::default(), &into).await.unwrap();
        assert_ne!(output.code, 0, "{url}");
        assert!(!into.exists() && !hostile.canary().exists(), "{url}");
    }
}

#[tokio::test]
async fn a_clone_does_not_use_the_network_when_that_is_forbidden() {
    let hostile = Hostile::new();
    let git = Git::new(Environment::of([("COPILOT_OFFLINE".into(), "true".into())]));
    let into = hostile.0.path().join("clone");
    let cloned = git.clone_into("https://127.0.0.1:9/x.git", &Revision::default(), &into).await;
    assert!(matches!(cloned, Err(GitError::Offline)), "{cloned:?}");
}
