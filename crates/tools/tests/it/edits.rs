//! `create` and `edit`.

use std::fs;

use expect_test::expect;
use futures_util::future::join_all;
use hangar_protocol::Body;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_file_is_created_and_announced() {
    let bench = Bench::new(&[]);
    let answer = bench.call("create", &json!({"path": "$W/new.txt", "file_text": "hé\n😀"})).await;
    assert_eq!(bench.render(&answer.outcome), "Created file $W/new.txt with 5 characters");
    assert_eq!(bench.read("new.txt"), "hé\n😀");
    let changes = &answer.outcome.changes;
    assert_eq!((changes.lines_added, changes.lines_removed), (2, 0));
    assert_eq!(bench.tidy(&changes.files_modified.join(" ")), "$W/new.txt");
    let [Body::SessionInfo(info)] = answer.events.as_slice() else { panic!("{:?}", answer.events) };
    assert_eq!((info.info_type.as_str(), bench.tidy(&info.message).as_str()), ("file_created", "$W/new.txt"));
}

#[tokio::test]
async fn only_what_is_new_is_created() {
    let bench = Bench::new(&[("a.txt", "old"), ("sub/x", "")]);
    let create = |path| json!({"path": path, "file_text": "new"});
    bench.check("create", create("$W/a.txt"), expect!["Failure (Path already exists): Path $W/a.txt already exists as a file. Use `view` to check contents then edit it."]).await;
    bench.check("create", create("$W/sub"), expect!["Failure (Path already exists): Path $W/sub already exists as a directory. Use `view` to check contents then edit it."]).await;
    bench.check("create", create("$W/a.txt/sub/f"), expect!["Failure (Parent is not a directory): The directory $W/a.txt/sub cannot be made: there is a file in its way."]).await;
    bench
        .check(
            "create",
            json!({"path": "x"}),
            expect![[r#"Failure ("file_text": Required): Invalid input: "file_text": Required"#]],
        )
        .await;
    assert_eq!(bench.read("a.txt"), "old");
}

#[tokio::test]
async fn missing_directories_are_made() {
    let bench = Bench::new(&[]);
    let create = json!({"path": "$W/no/such/dir/f", "file_text": "new"});
    bench.check("create", create, expect!["Created file $W/no/such/dir/f with 3 characters"]).await;
    assert_eq!(bench.read("no/such/dir/f"), "new");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_no_directories() {
    let bench = Bench::new(&[]);
    let create = json!({"path": format!("$W/new/{}", "x".repeat(300)), "file_text": "new"});
    let text = bench.call("create", &create).await.outcome.text;
    assert!(text.starts_with("Cannot use "), "{text}");
    assert!(!bench.path("new").exists());
}

#[tokio::test]
async fn a_piece_is_replaced() {
    let bench = Bench::new(&[("a.txt", "one\ntwo\n")]);
    let answer = bench.call("edit", &json!({"path": "a.txt", "old_str": "two", "new_str": "TWO\n2.5"})).await;
    assert_eq!(bench.render(&answer.outcome), "File $W/a.txt updated with changes.");
    assert_eq!(bench.read("a.txt"), "one\nTWO\n2.5\n");
    assert_eq!((answer.outcome.changes.lines_added, answer.outcome.changes.lines_removed), (2, 1));
    expect![[r#"

        diff --git a$W/a.txt b$W/a.txt
        index 0000000..0000000 100644
        --- a$W/a.txt
        +++ b$W/a.txt
        @@ -1,3 +1,4 @@
         one
        -two
        +TWO
        +2.5
         
    "#]]
    .assert_eq(&bench.tidy(&answer.outcome.detailed.unwrap()));
}

#[tokio::test]
async fn an_edit_that_does_not_fit_says_why() {
    let bench = Bench::new(&[("a.txt", "one\ntwo\none\ntwo\n"), ("empty.txt", ""), ("sub/x", "")]);
    let edit = |old: &str, new: &str| json!({"path": "$W/a.txt", "old_str": old, "new_str": new});
    bench.check("edit", edit("nope", "x"), expect!["Failure (No match found): No match found: old_str not found in $W/a.txt; no changes made; you might want to try again with correct old_str"]).await;
    bench.check("edit", edit("one\ntwo", "x"), expect![[r#"Failure (Multiple matches found): Ambiguous match for old_str in $W/a.txt: pattern starting with "one" matched 2 times, at lines 1-2, 3-4. No changes made; try again with a more specific old_str."#]]).await;
    bench
        .check("edit", edit("one", "one"), expect!["No changes made: old_str and new_str are the same"])
        .await;
    bench.check("edit", edit("", "x"), expect!["Failure: Invalid inputs: old_str is required"]).await;
    bench
        .check(
            "edit",
            json!({"path": "a.txt", "old_str": "one"}),
            expect!["Failure: Invalid inputs: new_str is required"],
        )
        .await;
    bench
        .check(
            "edit",
            json!({"path": "gone", "old_str": "a", "new_str": "b"}),
            expect![
                "Failure (Path does not exist): Path $W/gone does not exist. Please provide a valid path."
            ],
        )
        .await;
    bench
        .check(
            "edit",
            json!({"path": "sub", "old_str": "a", "new_str": "b"}),
            expect!["Failure (Path is a directory): Path $W/sub is a directory, not a file."],
        )
        .await;
    assert_eq!(bench.read("a.txt"), "one\ntwo\none\ntwo\n");

    bench
        .check(
            "edit",
            json!({"path": "empty.txt", "old_str": "", "new_str": "X"}),
            expect!["File $W/empty.txt updated with changes."],
        )
        .await;
    assert_eq!(bench.read("empty.txt"), "X");
}

#[tokio::test]
async fn an_edit_that_does_not_fit_shows_the_nearest_text() {
    let bench = Bench::new(&[("a.rs", "fn one() {\n    call(1);\n    more();\n}\n")]);
    let edit = json!({"path": "$W/a.rs", "old_str": "    call(2);\n    much_more();", "new_str": "x"});
    bench.check("edit", edit, expect![[r#"
        Failure (No match found): No match found: old_str not found in $W/a.rs; no changes made; you might want to try again with correct old_str. The nearest text is:
        2.     call(1);
        3.     more();"#]]).await;
}

#[tokio::test]
async fn a_text_that_is_not_copied_exactly_is_replaced_where_it_is_the_only_one() {
    let bench = Bench::new(&[("a.rs", "fn one() {\n    if x {\n        y();\n    }\n}\n")]);
    let edit = json!({"path": "$W/a.rs", "old_str": "if x {\n    y();\n}", "new_str": "if x {\n    z();\n}"});
    bench
        .check(
            "edit",
            edit,
            expect!["File $W/a.rs updated with changes. old_str was not there exactly; the text at lines 2-4 was replaced, which differs in its indentation."],
        )
        .await;
    assert_eq!(bench.read("a.rs"), "fn one() {\n    if x {\n        z();\n    }\n}\n");
}

#[tokio::test]
async fn a_long_old_text_is_quoted_in_part() {
    let line = "a line that is so long that nobody would want to see all of it again in an error message";
    let bench = Bench::new(&[("a.txt", &format!("{line}\n{line}\n"))]);
    bench.check("edit", json!({"path": "a.txt", "old_str": line, "new_str": "x"}), expect![[r#"Failure (Multiple matches found): Ambiguous match for old_str in $W/a.txt: pattern starting with "a line that is so long that nobody would want to see all of it again in an er..." matched 2 times, at lines 1, 2. No changes made; try again with a more specific old_str."#]]).await;
}

#[tokio::test]
async fn edits_of_one_file_at_the_same_time_all_happen() {
    let lines: String = (0..40).map(|n| format!("line-{n:02}\n")).collect();
    let bench = Bench::new(&[("a.txt", &lines)]);
    let edits = (0..40).map(|n| {
        let arguments =
            json!({"path": "a.txt", "old_str": format!("line-{n:02}"), "new_str": format!("done-{n:02}")});
        let bench = &bench;
        async move { bench.call("edit", &arguments).await.outcome }
    });
    for outcome in join_all(edits).await {
        assert_eq!(bench.render(&outcome), "File $W/a.txt updated with changes.");
    }
    assert_eq!(bench.read("a.txt"), lines.replace("line", "done"));
}

#[tokio::test]
async fn files_created_at_the_same_time_are_created_once() {
    let bench = Bench::new(&[]);
    let creations = (0..10).map(|n| {
        let arguments = json!({"path": "a.txt", "file_text": format!("{n}")});
        let (bench, tool) = (&bench, bench.tool("create"));
        async move { bench.run(&*tool, bench.input(&arguments)).await.outcome }
    });
    let outcomes = join_all(creations).await;
    let created = outcomes.iter().filter(|outcome| outcome.text.starts_with("Created")).count();
    assert_eq!(created, 1);
}

#[test]
fn writing_is_asked_for_with_its_diff() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    expect![[r#"
        {
          "kind": "write",
          "toolCallId": "call",
          "intention": "Create file",
          "fileName": "$W/new.txt",
          "diff": "\ndiff --git a$W/new.txt b$W/new.txt\ncreate file mode 100644\nindex 0000000..0000000\n--- a/dev/null\n+++ b$W/new.txt\n@@ -1,0 +1,1 @@\n+x\n",
          "newFileContents": "x\n",
          "canOfferSessionApproval": true
        }
        reads
        writes $W/new.txt"#]]
    .assert_eq(&bench.inspect("create", &json!({"path": "new.txt", "file_text": "x\n"})));
    expect![[r#"
        {
          "kind": "write",
          "toolCallId": "call",
          "intention": "Edit file",
          "fileName": "$W/a.txt",
          "diff": "\ndiff --git a$W/a.txt b$W/a.txt\nindex 0000000..0000000 100644\n--- a$W/a.txt\n+++ b$W/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n \n",
          "newFileContents": "1\n",
          "canOfferSessionApproval": true
        }
        reads
        writes $W/a.txt"#]]
    .assert_eq(&bench.inspect("edit", &json!({"path": "a.txt", "old_str": "one", "new_str": "1"})));
    assert!(!bench.exists("new.txt"));
    assert_eq!(bench.read("a.txt"), "one\n");
}

#[test]
fn an_edit_that_changes_nothing_needs_nothing() {
    let bench = Bench::new(&[]);
    assert_eq!(
        bench.inspect("edit", &json!({"path": "/etc/passwd", "old_str": "a", "new_str": "a"})),
        "nothing"
    );
}

#[test]
fn what_is_in_files_outside_is_not_told_before_the_permission() {
    let bench = Bench::new(&[]);
    fs::write(bench.base().join("secret"), "password=1\n").unwrap();
    let wrong = bench.inspect("edit", &json!({"path": "$O/secret", "old_str": "password=2", "new_str": "x"}));
    assert!(wrong.contains("\"diff\": \"\"") && wrong.ends_with("writes $O/secret"), "{wrong}");
    let create = bench.inspect("create", &json!({"path": "$O/secret", "file_text": "x"}));
    assert!(create.ends_with("writes $O/secret"), "{create}");
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn an_edit_goes_through_a_link_and_leaves_it() {
        let bench = Bench::new(&[("real.sh", "old\r\nx\r\n")]);
        fs::set_permissions(bench.path("real.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("real.sh", bench.path("link")).unwrap();
        bench
            .check(
                "edit",
                json!({"path": "link", "old_str": "old\nx", "new_str": "new\ny"}),
                expect!["File $W/link updated with changes."],
            )
            .await;
        assert_eq!(bench.read("real.sh"), "new\r\ny\r\n");
        assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
        assert_eq!(fs::metadata(bench.path("real.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[tokio::test]
    async fn a_creation_goes_through_a_dangling_link() {
        let bench = Bench::new(&[]);
        symlink("target.txt", bench.path("link")).unwrap();
        bench
            .check(
                "create",
                json!({"path": "link", "file_text": "x"}),
                expect!["Created file $W/link with 1 characters"],
            )
            .await;
        assert_eq!(bench.read("target.txt"), "x");
    }

    #[test]
    fn a_write_is_judged_by_where_it_leads() {
        let bench = Bench::new(&[]);
        fs::create_dir(bench.base().join("outside")).unwrap();
        symlink("../outside", bench.path("inner")).unwrap();
        symlink("/nowhere/new", bench.path("dangling")).unwrap();
        let check = |path: &str, expected: &str| {
            let needs = bench.inspect("create", &json!({"path": path, "file_text": "x"}));
            assert!(needs.ends_with(&format!("writes {expected}")), "{needs}");
        };
        check("inner/a/b.txt", "$O/outside/a/b.txt");
        check("dangling", "/nowhere/new");
        check("../outside/x", "$O/outside/x");
    }

    #[tokio::test]
    async fn a_link_put_in_the_way_after_the_permission_is_not_followed() {
        let bench = Bench::new(&[("dir/a.txt", "one")]);
        fs::create_dir(bench.base().join("outside")).unwrap();
        fs::write(bench.base().join("outside/a.txt"), "one").unwrap();
        for (name, arguments) in [
            ("edit", json!({"path": "dir/a.txt", "old_str": "one", "new_str": "two"})),
            ("create", json!({"path": "dir/new.txt", "file_text": "x"})),
            ("view", json!({"path": "dir/a.txt"})),
            ("grep", json!({"pattern": "one", "paths": "dir"})),
            ("glob", json!({"pattern": "*", "paths": "dir"})),
        ] {
            let (tool, input) = (bench.tool(name), bench.input(&arguments));
            assert!(tool.inspect(&input).is_ok());
            fs::rename(bench.path("dir"), bench.path("moved")).unwrap();
            symlink("../outside", bench.path("dir")).unwrap();
            let answer = bench.run(&*tool, input).await;
            assert_eq!(answer.outcome.error.as_deref(), Some("Path leads elsewhere"), "{name}");
            fs::remove_file(bench.path("dir")).unwrap();
            fs::rename(bench.path("moved"), bench.path("dir")).unwrap();
        }
        assert_eq!(fs::read(bench.base().join("outside/a.txt")).unwrap(), b"one");
        assert!(!bench.base().join("outside/new.txt").exists());
    }
}
