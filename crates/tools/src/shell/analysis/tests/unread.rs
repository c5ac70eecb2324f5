//! Constructs that the analysis does not follow, and knows that it does not.

use super::*;

#[test]
fn only_a_few_programs_with_literal_arguments_are_plain() {
    for line in ["ls", "ls -la src", "cat src/main.rs", "head -n 5 a.txt", "pwd"] {
        assert!(is_plain(line), "{line}");
    }
    for line in [
        "find .",
        "cat *",
        "ls; pwd",
        "cat $x",
        "cat -- -x",
        "echo `id`",
        "ls\nid",
        "git status",
        "ls --hyperlink=x",
    ] {
        assert!(!is_plain(line), "{line}");
    }
}

#[test]
fn what_runs_commands_that_are_not_read_is_known() {
    let place = Place::new();
    let check = |line: &str, expected: bool| assert_eq!(place.analyze(line).runs_unread, expected, "{line}");
    for line in [
        "bash <<< 'git push'",
        "echo git push | sh",
        "bash build.sh",
        "./build.sh",
        "make",
        "python3 -c 'x'",
        "awk 'BEGIN { system(\"x\") }'",
        "sed '1e x' a.txt",
        ". <(echo x)",
        "git -c alias.x=push x",
        "git rebase --exec x HEAD~1",
    ] {
        check(line, true);
    }
    for line in ["ls", "bash -c ls", "git push", "git commit -m x", "cp a.txt b", "rm -r sub"] {
        check(line, false);
    }
}

#[test]
fn flags_of_git_do_not_hide_its_command() {
    let check = |line: &str, identifier: &str| {
        let found = Place::new().analyze(line);
        let known = found.commands.iter().any(|command| command.identifier == identifier);
        assert!(known || found.is_opaque, "{line}: {found:?}");
    };
    check("git --attr-source HEAD commit", "git commit");
    check("git --some-new-flag value commit", "git commit");
    check("git --no-lazy-fetch push", "git push");
    check("prlimit --nofile=64 git push", "git push");
    check("setpriv --reuid 0 git push", "git push");
}
