//! `grep` and `glob`.

use std::fs;

use expect_test::expect;
use hangar_agent::tool::{ToolContext, ToolStatus};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;

fn bench() -> Bench {
    let bench = Bench::new(&[
        (".git/config", "foo in git\n"),
        (".gitignore", "ignored/\n*.log\n"),
        (".hid/h.txt", "foo hidden\n"),
        ("ignored/i.txt", "foo ignored\n"),
        ("x.log", "foo log\n"),
        ("src/a.rs", "fn foo() {\n    bar();\n}\n\nfn baz() {\n    foo();\n}\n// Foo end\n"),
        ("src/b.txt", "foo\nx\ny\nz\nw\nv\nfoo\nfoo foo\n"),
        ("src/deep/c.ts", "export const foo = 1;\n"),
        ("src/crlf.txt", "foo\r\nbar\r\n"),
    ]);
    bench.write("src/bin.dat", b"bin\0foo\n");
    bench.write("src/latin.txt", b"latin \xe9 foo\n");
    bench
}

#[tokio::test]
async fn files_with_matches_are_listed_in_order() {
    let bench = bench();
    bench
        .check(
            "grep",
            json!({"pattern": "foo"}),
            expect![[r#"
        ./.hid/h.txt
        ./src/a.rs
        ./src/b.txt
        ./src/crlf.txt
        ./src/deep/c.ts
        ./src/latin.txt"#]],
        )
        .await;
    bench.check("grep", json!({"pattern": "foo", "paths": "src/deep"}), expect!["src/deep/c.ts"]).await;
    bench.check("grep", json!({"pattern": "foo", "path": "$W/src/deep"}), expect!["$W/src/deep/c.ts"]).await;
    bench
        .check(
            "grep",
            json!({"pattern": "foo", "paths": ["src/deep", "src/b.txt"]}),
            expect!["src/deep/c.ts\nsrc/b.txt"],
        )
        .await;
    bench
        .check(
            "grep",
            json!({"pattern": "foo", "paths": []  , "head_limit": 2}),
            expect!["./.hid/h.txt\n./src/a.rs"],
        )
        .await;
    bench.check("grep", json!({"pattern": "nowhere"}), expect!["No matches found."]).await;
}

#[tokio::test]
async fn what_is_ignored_is_found_only_by_name() {
    let bench = bench();
    bench.check("grep", json!({"pattern": "foo", "paths": "ignored"}), expect!["ignored/i.txt"]).await;
    bench.check("grep", json!({"pattern": "foo", "paths": "x.log"}), expect!["x.log"]).await;
    bench.check("grep", json!({"pattern": "foo log"}), expect!["No matches found."]).await;
    bench.check("glob", json!({"pattern": "*", "paths": "ignored"}), expect!["ignored/i.txt"]).await;
}

#[tokio::test]
async fn matching_lines_are_shown_as_ripgrep_does() {
    let bench = bench();
    let content = |mut arguments: serde_json::Value| {
        arguments["output_mode"] = json!("content");
        arguments
    };
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "src", "glob": "*.rs"})),
            expect![[r#"
                src/a.rs:1:fn foo() {
                src/a.rs:6:    foo();"#]],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "$W/src/b.txt", "-n": true})),
            expect!["$W/src/b.txt:1:foo\n$W/src/b.txt:7:foo\n$W/src/b.txt:8:foo foo"],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "src/b.txt", "-n": true, "-C": "1"})),
            expect![[r#"
        src/b.txt:1:foo
        src/b.txt-2-x
        --
        src/b.txt-6-v
        src/b.txt:7:foo
        src/b.txt:8:foo foo"#]],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": ["src/b.txt", "src/deep"], "-A": 1})),
            expect![[r#"
                src/b.txt:1:foo
                src/b.txt-2-x
                --
                src/b.txt:7:foo
                src/b.txt:8:foo foo
                --
                src/deep/c.ts:1:export const foo = 1;"#]],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "FOO", "-i": true, "type": "rust", "-n": true})),
            expect![[r#"
        ./src/a.rs:1:fn foo() {
        ./src/a.rs:6:    foo();
        ./src/a.rs:8:// Foo end"#]],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "src/b.txt", "head_limit": 2})),
            expect![[r#"
                src/b.txt:1:foo
                src/b.txt:7:foo"#]],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "src/crlf.txt"})),
            expect!["src/crlf.txt:1:foo"],
        )
        .await;
    bench
        .check(
            "grep",
            content(json!({"pattern": "foo", "paths": "src/latin.txt"})),
            expect!["src/latin.txt:1:latin � foo"],
        )
        .await;
}

#[tokio::test]
async fn matches_are_counted_by_line() {
    bench()
        .check(
            "grep",
            json!({"pattern": "foo", "paths": "src", "output_mode": "count"}),
            expect![[r#"
        src/a.rs:2
        src/b.txt:3
        src/crlf.txt:1
        src/deep/c.ts:1
        src/latin.txt:1"#]],
        )
        .await;
}

#[tokio::test]
async fn matches_span_lines_if_asked_to() {
    let bench = bench();
    let search = |multiline| json!({"pattern": "foo\\(\\) \\{\\n.*bar", "paths": "src", "multiline": multiline, "output_mode": "content", "-n": true});
    bench.check("grep", search(true), expect!["src/a.rs:1:fn foo() {\nsrc/a.rs:2:    bar();"]).await;
    bench
        .check(
            "grep",
            search(false),
            expect![[r#"
        Failure (rg: the literal "\n" is not allowed in a regex

        Set multiline to true to match line ends.): Error: rg: the literal "\n" is not allowed in a regex

        Set multiline to true to match line ends."#]],
        )
        .await;
}

#[tokio::test]
async fn binary_files_count_only_by_name() {
    let bench = bench();
    bench
        .check(
            "grep",
            json!({"pattern": "bin", "paths": "src/bin.dat", "output_mode": "content"}),
            expect![[r#"src/bin.dat: binary file matches (found "\0" byte around offset 3)"#]],
        )
        .await;
    bench
        .check(
            "grep",
            json!({"pattern": "bin", "paths": "src", "output_mode": "content"}),
            expect!["No matches found."],
        )
        .await;
}

#[tokio::test]
async fn searches_that_cannot_be_made_say_why() {
    let bench = bench();
    bench
        .check(
            "grep",
            json!({"pattern": "(open"}),
            expect![[r#"
        Failure (rg: regex parse error:
            (?:(open)
            ^
        error: unclosed group): Error: rg: regex parse error:
            (?:(open)
            ^
        error: unclosed group"#]],
        )
        .await;
    bench
        .check(
            "grep",
            json!({"pattern": "foo", "type": "nosuch"}),
            expect![
                "Failure (rg: unrecognized file type: nosuch): Error: rg: unrecognized file type: nosuch"
            ],
        )
        .await;
    bench
        .check(
            "grep",
            json!({"pattern": "foo", "paths": "gone"}),
            expect!["Failure (Search paths do not exist: gone): Error: Search paths do not exist: gone"],
        )
        .await;
    bench
        .check(
            "grep",
            json!({"pattern": "foo", "paths": ["gone", "src/a.rs"]}),
            expect!["src/a.rs\n\n(Warning: Some search paths were skipped because they do not exist: gone)"],
        )
        .await;
    bench.check("grep", json!({"pattern": "foo", "output_mode": "bad"}), expect![[r#"Failure ("output_mode": Invalid enum value): Invalid input: "output_mode": Invalid enum value"#]]).await;
    bench.check("grep", json!({"pattern": "foo", "head_limit": -1}), expect![[r#"Failure ("head_limit": Must be greater than or equal to 1): Invalid input: "head_limit": Must be greater than or equal to 1"#]]).await;
    bench.check("glob", json!({"pattern": "[bad"}), expect!["Failure (rg: error parsing glob '[bad': unclosed character class; missing ']'): Error: rg: error parsing glob '[bad': unclosed character class; missing ']'"]).await;
    bench
        .check(
            "glob",
            json!({"pattern": "*", "paths": "gone"}),
            expect!["Failure (Search paths do not exist: gone): Error: Search paths do not exist: gone"],
        )
        .await;
}

#[tokio::test]
async fn long_lines_and_many_matches_are_bounded() {
    let bench = Bench::new(&[]);
    bench.write("long.txt", format!("foo {}\n", "x".repeat(5000)));
    let text = bench.call("grep", &json!({"pattern": "foo", "output_mode": "content"})).await.outcome.text;
    assert!(text.len() < 2100 && text.ends_with("xxx [... omitted end of long line]"), "{text}");

    bench.write("long.txt", "foo some more text\n".repeat(200_000));
    let text = bench.call("grep", &json!({"pattern": "foo", "output_mode": "content"})).await.outcome.text;
    assert!(text.starts_with("Output too large to read at once (102"), "{}", &text[..200]);
    let saved = text.lines().next().unwrap().split_once("Saved to: ").unwrap().1;
    assert!(
        fs::read_to_string(saved)
            .unwrap()
            .ends_with("(Warning: Not all matches are listed: there were too many)")
    );
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let bench = bench();
    bench
        .check(
            "glob",
            json!({"pattern": "*.txt"}),
            expect!["./.hid/h.txt\n./src/b.txt\n./src/crlf.txt\n./src/latin.txt"],
        )
        .await;
    bench.check("glob", json!({"pattern": "**/*.ts"}), expect!["./src/deep/c.ts"]).await;
    bench.check("glob", json!({"pattern": "src/*.{rs,ts}"}), expect!["./src/a.rs"]).await;
    bench.check("glob", json!({"pattern": "./src/*.rs"}), expect!["./src/a.rs"]).await;
    bench.check("glob", json!({"pattern": "deep/*", "paths": "src"}), expect!["src/deep/c.ts"]).await;
    bench
        .check("glob", json!({"pattern": "*.ts", "paths": ["src", "src/deep"]}), expect!["src/deep/c.ts"])
        .await;
    bench
        .check(
            "glob",
            json!({"pattern": "**"}),
            expect![[r#"
        ./.gitignore
        ./.hid/h.txt
        ./src/a.rs
        ./src/b.txt
        ./src/bin.dat
        ./src/crlf.txt
        ./src/deep/c.ts
        ./src/latin.txt"#]],
        )
        .await;
    bench.check("glob", json!({"pattern": "*.nope"}), expect!["No files matched the pattern."]).await;
    bench
        .check(
            "glob",
            json!({}),
            expect![[r#"Failure ("pattern": Required): Invalid input: "pattern": Required"#]],
        )
        .await;
}

#[tokio::test]
async fn a_pattern_that_leads_elsewhere_is_searched_there() {
    let bench = bench();
    bench.check("glob", json!({"pattern": "$W/src/*.rs"}), expect!["$W/src/a.rs"]).await;
    bench.check("glob", json!({"pattern": "../w/src/**/*.ts"}), expect!["../w/src/deep/c.ts"]).await;
    let needs = bench.inspect("glob", &json!({"pattern": "/etc/*.conf"}));
    assert!(
        needs.contains("Search for files matching pattern in: /etc\"")
            && needs.ends_with("reads /etc\nwrites"),
        "{needs}"
    );
}

#[test]
fn searching_is_asked_for_by_the_place_that_matters() {
    let bench = bench();
    expect![[r#"
        {
          "kind": "read",
          "toolCallId": "call",
          "intention": "Search in directory: /etc",
          "path": "/etc"
        }
        reads $W/src /etc
        writes"#]]
    .assert_eq(&bench.inspect("grep", &json!({"pattern": "x", "paths": ["src", "/etc"]})));
    expect![[r#"
        {
          "kind": "read",
          "toolCallId": "call",
          "intention": "Search in file: $W/src/a.rs",
          "path": "$W/src/a.rs"
        }
        reads $W/src/a.rs
        writes"#]]
    .assert_eq(&bench.inspect("grep", &json!({"pattern": "x", "paths": "src/a.rs"})));
}

#[cfg(unix)]
#[tokio::test]
async fn links_below_are_not_followed_and_pipes_not_read() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new(&[("a.txt", "foo\n")]);
    fs::write(bench.base().join("secret"), "foo\n").unwrap();
    symlink("../secret", bench.path("link")).unwrap();
    symlink("..", bench.path("up")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    bench.check("grep", json!({"pattern": "foo"}), expect!["./a.txt"]).await;
    bench.check("glob", json!({"pattern": "**"}), expect!["./a.txt"]).await;
    let needs = bench.inspect("grep", &json!({"pattern": "foo", "paths": "link"}));
    assert!(needs.ends_with("reads $O/secret\nwrites"), "{needs}");
}

#[tokio::test]
async fn a_cancelled_search_is_interrupted() {
    let bench = bench();
    let (progress, _events) = mpsc::channel(1);
    let context = ToolContext {
        grant: hangar_agent::permissions::Grant::Full,
        cancel: CancellationToken::new(),
        hurry: CancellationToken::new(),
        progress,
    };
    context.cancel.cancel();
    let outcome = bench.tool("grep").run(bench.input(&json!({"pattern": "foo"})), context).await;
    assert_eq!(outcome.status, ToolStatus::Interrupted);
}
