//! `apply_patch`.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use crate::bench::Bench;

fn patch(body: &str) -> Value {
    json!(format!("*** Begin Patch\n{body}\n*** End Patch"))
}

#[tokio::test]
async fn several_files_change_at_once() {
    let bench =
        Bench::for_patches(&[("a.txt", "one\ntwo\nthree\n"), ("d.txt", "del\n"), ("m.txt", "x\ny\n")]);
    let body = "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n*** Add File: new/n.txt\n+hello\n+world\n\
                *** Delete File: d.txt\n*** Update File: m.txt\n*** Move to: moved/m.txt\n@@\n-y\n+Y";
    let answer = bench.call("apply_patch", &patch(body)).await;
    expect![[r#"
        Added 1 file(s): $W/new/n.txt
        Modified 2 file(s): $W/a.txt, $W/moved/m.txt
        Deleted 1 file(s): $W/d.txt"#]]
    .assert_eq(&bench.render(&answer.outcome));
    assert_eq!(bench.read("a.txt"), "one\nTWO\nthree\n");
    assert_eq!(bench.read("new/n.txt"), "hello\nworld\n");
    assert_eq!(bench.read("moved/m.txt"), "x\nY\n");
    assert!(!bench.exists("d.txt") && !bench.exists("m.txt"));
    let changes = answer.outcome.changes;
    assert_eq!((changes.lines_added, changes.lines_removed, changes.files_modified.len()), (4, 3, 4));
    let left_over: Vec<_> = fs::read_dir(bench.path(""))
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with('.'))
        .collect();
    assert!(left_over.is_empty(), "{left_over:?}");
}

#[tokio::test]
async fn the_patch_may_come_as_an_argument() {
    let bench = Bench::for_patches(&[]);
    let input = "*** Begin Patch\n*** Add File: n.txt\n+x\n*** End Patch";
    bench.check("apply_patch", json!({"input": input}), expect!["Added 1 file(s): $W/n.txt"]).await;
    bench
        .check(
            "apply_patch",
            json!({"patch": input}),
            expect![[r#"Failure ("input": Required): Invalid input: "input": Required"#]],
        )
        .await;
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let bench = Bench::for_patches(&[("a.txt", "one\n")]);
    bench
        .check(
            "apply_patch",
            patch("*** Add File: n.txt\n+x\n*** Update File: a.txt\n@@\n-one\n+1\n@@\n-nope\n+y"),
            expect![[r#"
            Failure: Failed to apply patch: Error: Failed to find expected lines in $W/a.txt:
            nope
            (hunk 2 of the file, line 8 of the patch; no files were changed)"#]],
        )
        .await;
    bench.check("apply_patch", patch("*** Update File: gone.txt\n@@\n-a\n+b"), expect!["Failure: Failed to apply patch: Error: Failed to read file to update $W/gone.txt: No such file or directory (os error 2)"]).await;
    bench.check("apply_patch", patch("*** Delete File: gone.txt"), expect!["Failure: Failed to apply patch: Error: Failed to delete $W/gone.txt: No such file or directory (os error 2)"]).await;
    bench
        .check(
            "apply_patch",
            patch("*** Add File: a.txt\n+x"),
            expect!["Failure: Failed to apply patch: Error: File already exists: $W/a.txt"],
        )
        .await;
    bench
        .check(
            "apply_patch",
            json!("*** Begin Patch\n*** End Patch"),
            expect!["Failure: Failed to apply patch: Error: No files were modified."],
        )
        .await;
    bench
        .check(
            "apply_patch",
            json!("not a patch"),
            expect!["Failure: Failed to parse patch: The first line of the patch must be '*** Begin Patch'"],
        )
        .await;
    assert_eq!(bench.read("a.txt"), "one\n");
    assert!(!bench.exists("n.txt"));
}

#[tokio::test]
async fn later_parts_see_what_earlier_ones_did() {
    let bench = Bench::for_patches(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let body = "*** Update File: a.txt\n@@\n-one\n+two\n*** Update File: a.txt\n@@\n-two\n+three\n\
                *** Delete File: b.txt\n*** Add File: b.txt\n+new\n*** Add File: c.txt\n+c\n*** Delete File: c.txt";
    bench.call("apply_patch", &patch(body)).await;
    assert_eq!((bench.read("a.txt"), bench.read("b.txt")), ("three\n".to_owned(), "new\n".to_owned()));
    assert!(!bench.exists("c.txt"));
    bench.check("apply_patch", patch("*** Delete File: b.txt\n*** Update File: b.txt\n@@\n-new\n+x"), expect!["Failure: Failed to apply patch: Error: Failed to read file to update $W/b.txt: entity not found"]).await;
    assert_eq!(bench.read("b.txt"), "new\n");
}

#[tokio::test]
async fn a_write_that_fails_takes_the_others_back() {
    let bench =
        Bench::for_patches(&[("a.txt", "one\n"), ("b.txt", "b\n"), ("z.txt", "a file, not a directory")]);
    let body = "*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: b.txt\n*** Add File: made/n.txt\n+x\n\
                *** Add File: z.txt/n.txt\n+x";
    let answer = bench.call("apply_patch", &patch(body)).await;
    let text = bench.render(&answer.outcome);
    assert!(
        text.contains("Failed to write $W/z.txt/n.txt") && text.ends_with("(no files were changed)"),
        "{text}"
    );
    assert_eq!((bench.read("a.txt"), bench.read("b.txt")), ("one\n".to_owned(), "b\n".to_owned()));
    assert!(!bench.exists("made"));
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 3);
}

#[test]
fn writing_is_asked_for_once_for_all_files() {
    let bench = Bench::for_patches(&[("a.txt", "one\n")]);
    expect![[r#"
        {
          "kind": "write",
          "toolCallId": "call",
          "intention": "Update file",
          "fileName": "$W/a.txt",
          "diff": "\ndiff --git a$W/a.txt b$W/a.txt\nindex 0000000..0000000 100644\n--- a$W/a.txt\n+++ b$W/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n \n",
          "newFileContents": "1\n",
          "canOfferSessionApproval": true
        }
        reads
        writes $W/a.txt"#]]
    .assert_eq(&bench.inspect("apply_patch", &patch("*** Update File: a.txt\n@@\n-one\n+1")));
    let several = bench.inspect(
        "apply_patch",
        &patch("*** Update File: a.txt\n*** Move to: ../out.txt\n@@\n-one\n+1\n*** Add File: n\n+x"),
    );
    assert!(several.contains("\"fileName\": \"$O/out.txt\""), "{several}");
    assert!(several.contains("\"intention\": \"Apply a patch to 2 files\""), "{several}");
    assert!(several.ends_with("writes $W/a.txt $W/a.txt $O/out.txt $W/n"), "{several}");
}

#[test]
fn hostile_paths_are_facts_like_others() {
    let bench = Bench::for_patches(&[]);
    let needs =
        bench.inspect("apply_patch", &patch("*** Add File: ../../../../../../../../etc/cron.d/x\n+x"));
    assert!(needs.ends_with("writes /etc/cron.d/x"), "{needs}");
    let needs = bench.inspect("apply_patch", &patch("*** Delete File: /etc/passwd\n*** Add File: a\n+x"));
    assert!(needs.contains("\"fileName\": \"/etc/passwd\""), "{needs}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_deleted_link_leaves_its_target_and_a_moved_file_keeps_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = Bench::for_patches(&[("target.txt", "t\n"), ("run.sh", "x\n")]);
    symlink("target.txt", bench.path("link")).unwrap();
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let body = "*** Delete File: link\n*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-x\n+y";
    bench
        .check(
            "apply_patch",
            patch(body),
            expect!["Modified 1 file(s): $W/bin/run.sh\nDeleted 1 file(s): $W/link"],
        )
        .await;
    assert!(!bench.exists("link") && bench.exists("target.txt"));
    assert_eq!(fs::metadata(bench.path("bin/run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn gpt_models_get_their_own_tools() {
    assert_eq!(Bench::for_patches(&[]).names(), ["apply_patch", "view", "web_fetch", "sql", "rg", "glob"]);
    assert_eq!(Bench::new(&[]).names(), ["view", "create", "edit", "web_fetch", "sql", "grep", "glob"]);
}
