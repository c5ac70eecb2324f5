//! `view`.

use std::fs;

use base64::Engine as _;
use expect_test::expect;
use hangar_agent::model::Part;
use serde_json::json;

use crate::bench::Bench;

const FIVE: &str = "one\ntwo\nthree\nfour\nfive\n";

/// One transparent pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn lines_are_numbered() {
    let bench = Bench::new(&[
        ("a.txt", FIVE),
        ("unended.txt", "no newline"),
        ("empty.txt", ""),
        ("crlf.txt", "a\r\nb\r\n"),
    ]);
    bench
        .check("view", json!({"path": "a.txt"}), expect!["1. one\n2. two\n3. three\n4. four\n5. five\n6. "])
        .await;
    bench.check("view", json!({"path": "$W/unended.txt"}), expect!["1. no newline"]).await;
    bench.check("view", json!({"path": "$W/empty.txt"}), expect![""]).await;
    bench.check("view", json!({"path": "$W/crlf.txt"}), expect!["1. a\r\n2. b\r\n3. "]).await;
}

#[tokio::test]
async fn a_range_keeps_its_numbers() {
    let bench = Bench::new(&[("a.txt", FIVE), ("unended.txt", "x")]);
    let view = |range| json!({"path": "$W/a.txt", "view_range": range});
    bench.check("view", view(json!([2, 3])), expect!["2. two\n3. three"]).await;
    bench.check("view", view(json!([4, -1])), expect!["4. four\n5. five\n6. "]).await;
    bench.check("view", view(json!([4, 100])), expect!["4. four\n5. five\n6. "]).await;
    bench.check("view", view(json!([5])), expect!["5. five\n6. "]).await;
    bench.check("view", view(json!(["1", "2"])), expect!["1. one\n2. two"]).await;
    bench.check("view", view(json!([])), expect!["1. one\n2. two\n3. three\n4. four\n5. five\n6. "]).await;
    bench.check("view", json!({"path": "unended.txt", "view_range": [1, -1]}), expect!["1. x"]).await;
}

#[tokio::test]
async fn a_range_that_names_no_lines_is_refused() {
    let bench = Bench::new(&[("a.txt", FIVE), ("empty.txt", "")]);
    let view = |range| json!({"path": "$W/a.txt", "view_range": range});
    bench.check("view", view(json!([100, 200])), expect!["Failure (view_range out of bounds): Invalid view_range: start line (100) is beyond the end of the file. The file has 6 lines."]).await;
    bench.check("view", view(json!([0, 2])), expect!["Failure (Invalid view_range): Invalid view_range: start line (0) must be greater than or equal to 1."]).await;
    bench.check("view", view(json!([-3, -1])), expect!["Failure (Invalid view_range): Invalid view_range: start line (-3) must be greater than or equal to 1."]).await;
    bench.check("view", view(json!([3, 2])), expect!["Failure (Invalid view_range): Invalid view_range: end line (2) must be greater than or equal to start line (3)."]).await;
    bench.check("view", view(json!([2, -2])), expect!["Failure (Invalid view_range): Invalid view_range: end line (-2) must be greater than or equal to 1, or -1 to read to the end of the file."]).await;
    bench.check("view", json!({"path": "empty.txt", "view_range": [1, 1]}), expect!["Failure (view_range out of bounds): Invalid view_range: start line (1) is beyond the end of the file. The file has 0 lines."]).await;
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let bench = Bench::new(&[("a.txt", "x")]);
    bench
        .check(
            "view",
            json!({"path": "gone.txt"}),
            expect![
                "Failure (Path does not exist): Path $W/gone.txt does not exist. Please provide a valid path."
            ],
        )
        .await;
    bench
        .check(
            "view",
            json!({"path": "$W/a.txt/x"}),
            expect![
                "Failure (Path does not exist): Path $W/a.txt/x does not exist. Please provide a valid path."
            ],
        )
        .await;
    bench
        .check(
            "view",
            json!({"path": ""}),
            expect![
                "Failure (Path not provided): A path parameter is required, and must be a non-empty string."
            ],
        )
        .await;
    bench
        .check("view", json!({}), expect![[r#"Failure ("path": Required): Invalid input: "path": Required"#]])
        .await;
}

#[tokio::test]
async fn large_files_are_read_in_parts() {
    let bench = Bench::new(&[]);
    bench.write("big.txt", "line\n".repeat(10_000));
    bench.check("view", json!({"path": "big.txt"}), expect!["File too large to read at once (48.8 KB). Consider using the grep tool to search within the file, or view with view_range to read specific sections."]).await;
    bench
        .check(
            "view",
            json!({"path": "big.txt", "view_range": [9_999, 10_000]}),
            expect!["9999. line\n10000. line"],
        )
        .await;
    let whole =
        bench.call("view", &json!({"path": "big.txt", "forceReadLargeFiles": true})).await.outcome.text;
    assert!(whole.ends_with("\n10000. line\n10001. "));

    bench.write("huge.txt", "0123456789abcde\n".repeat(1_000_000));
    bench.check("view", json!({"path": "huge.txt", "forceReadLargeFiles": true}), expect!["Failure (File too large): File is too large to view (15.3MB). Maximum file size is 10MB. Use shell tool with head/tail commands or specify a line range with view_range parameter to view specific sections."]).await;
    bench
        .check(
            "view",
            json!({"path": "huge.txt", "view_range": [1_000_000, 1_000_000]}),
            expect!["1000000. 0123456789abcde"],
        )
        .await;
    let much = bench.call("view", &json!({"path": "huge.txt", "view_range": [11, -1]})).await.outcome.text;
    assert!(much.len() < 40 * 1024, "{}", much.len());
    assert!(
        much.ends_with(
            "\n1290. 0123456789abcde\n\n[Output truncated. Use view_range=[1291, ...] to continue reading.]"
        ),
        "{}",
        &much[much.len() - 200..]
    );
}

#[tokio::test]
async fn endless_lines_are_passed_over_and_cut() {
    let bench = Bench::new(&[]);
    bench.write("long.txt", format!("{}\nafter\n{}", "x".repeat(700_000), "y".repeat(700_000)));
    bench.check("view", json!({"path": "long.txt", "view_range": [2, 2]}), expect!["2. after"]).await;
    bench.check("view", json!({"path": "long.txt", "view_range": [4, 4]}), expect!["Failure (view_range out of bounds): Invalid view_range: start line (4) is beyond the end of the file. The file has 3 lines."]).await;
    let cut = bench.call("view", &json!({"path": "long.txt", "view_range": [1, 2]})).await.outcome.text;
    assert_eq!(cut, format!("1. {} [... omitted end of long line]\n2. after", "x".repeat(2_000)));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let bench = Bench::new(&[]);
    bench.write("bad.txt", b"\xff\xfeabc\nx\0y\n");
    bench.check("view", json!({"path": "bad.txt"}), expect!["1. \u{fffd}\u{fffd}abc\n2. x\0y\n3. "]).await;
}

#[tokio::test]
async fn a_directory_gives_its_names() {
    let bench = Bench::new(&[("sub/deep/x", ""), ("sub/a", ""), ("sub/.hidden", ""), ("sub/Z", "")]);
    bench.check("view", json!({"path": "sub"}), expect![".hidden\nZ\na\ndeep"]).await;
    fs::create_dir(bench.path("empty")).unwrap();
    bench.check("view", json!({"path": "$W/empty"}), expect![""]).await;
}

#[tokio::test]
async fn a_directory_of_many_names_is_spilled() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("many")).unwrap();
    for n in 0..600 {
        bench.write(&format!("many/a-rather-long-name-of-a-file-{n:04}.txt"), "");
    }
    let text = bench.call("view", &json!({"path": "many"})).await.outcome.text;
    assert!(text.starts_with("Output too large to read at once (22.3 KB). Saved to: "), "{text}");
}

#[tokio::test]
async fn an_image_is_shown_as_one() {
    let bench = Bench::new(&[("fake.png", "no image")]);
    let pixel = base64::engine::general_purpose::STANDARD.decode(PIXEL).unwrap();
    bench.write("wrong-name.jpg", &pixel);
    let outcome = bench.call("view", &json!({"path": "wrong-name.jpg"})).await.outcome;
    assert_eq!(outcome.text, "Viewed image file successfully.");
    let [Part::Text(about), Part::Image { mime_type, data }] = outcome.images.as_slice() else {
        panic!("{:?}", outcome.images)
    };
    assert_eq!(
        (bench.tidy(about).as_str(), mime_type.as_str(), data.as_str()),
        ("Image file at path $W/wrong-name.jpg", "image/png", PIXEL)
    );

    bench
        .check(
            "view",
            json!({"path": "fake.png"}),
            expect!["Failure (Failed to view image file.): Failed to view image file."],
        )
        .await;
    bench.write("huge.png", [pixel.clone(), vec![0; 33 << 20]].concat());
    bench
        .check(
            "view",
            json!({"path": "huge.png"}),
            expect![
                "Failure (Failed to view image file.): Failed to view image file. It is larger than 32 MB."
            ],
        )
        .await;
    bench.write("cut.png", &pixel[..20]);
    let text = bench.call("view", &json!({"path": "cut.png"})).await.outcome.text;
    assert!(text.starts_with("Failed to view image file. It is damaged"), "{text}");
    // More bytes than providers take, for one pixel.
    bench.write("padded.png", [pixel, vec![0; 5 << 20]].concat());
    let outcome = bench.call("view", &json!({"path": "padded.png"})).await.outcome;
    let [Part::Text(about), Part::Image { data, .. }] = outcome.images.as_slice() else {
        panic!("{:?}", outcome.images)
    };
    assert_eq!(bench.tidy(about), "Image file at path $W/padded.png, scaled from 1x1 to 1x1 pixels");
    assert!(data.len() < 1000, "{}", data.len());
}

#[tokio::test]
async fn people_see_the_lines_as_a_diff_without_changes() {
    let bench = Bench::new(&[("a.txt", FIVE)]);
    let outcome = bench.call("view", &json!({"path": "a.txt", "view_range": [2, 3]})).await.outcome;
    expect![[r#"

        diff --git a$W/a.txt b$W/a.txt
        index 0000000..0000000 100644
        --- a$W/a.txt
        +++ b$W/a.txt
        @@ -2,2 +2,2 @@
         two
         three
    "#]]
    .assert_eq(&bench.tidy(&outcome.detailed.unwrap()));
}

#[tokio::test]
async fn reading_is_asked_for_by_the_given_name_and_judged_by_the_real_one() {
    let bench = Bench::new(&[("sub/x", "")]);
    fs::write(bench.base().join("secret"), "s").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret", bench.path("link")).unwrap();
    expect![[r#"
        {
          "kind": "read",
          "toolCallId": "call",
          "intention": "Read file: $W/link",
          "path": "$W/link"
        }
        reads $O/secret
        writes"#]]
    .assert_eq(&bench.inspect("view", &json!({"path": "sub/../link"})));
    expect![[r#"
        {
          "kind": "read",
          "toolCallId": "call",
          "intention": "List directory: $W/sub",
          "path": "$W/sub"
        }
        reads $W/sub
        writes"#]]
    .assert_eq(&bench.inspect("view", &json!({"path": "sub"})));
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let bench = Bench::new(&[]);
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    bench
        .check(
            "view",
            json!({"path": "pipe"}),
            expect![
                "Failure (Cannot use the file: not a regular file): Cannot use $W/pipe: not a regular file."
            ],
        )
        .await;
}
