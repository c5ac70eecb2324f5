//! The pager of the transcript.

use expect_test::expect;

use crate::script::{check, run};

#[test]
fn the_transcript_is_paged_and_searched() {
    let open = "ready\nctrl+o\ntranscript:one\\n\\ntwo needle\\n\\nthree\\n\\nfour needle\\n\\nfive\\n\\n1\\n\\n2\\n\\n3\\n\\n4\\n\\n5\\n\\n6\\n\\n7\\n\\n8\\n\\n9";
    check(
        open,
        expect![[r#"
        Transcript
        four needle

        five

        1

        2

        3

        4

        5

        6

        7

        8

        9

        9–30 of 30 · ↑↓ pgup pgdn g G move · / searches, n next · q…
        ---
        ReadTranscript
    "#]],
    );
    check(
        &format!("{open}\ng\n/\ntype:needle\nscreen\nenter\nscreen\nn\nq"),
        expect![[r#"
            Transcript
            ❯ the first prompt

            one

            two needle

            three

            four needle

            five

            1

            2

            3

            4

            5

            /needle▮
            ---
            ReadTranscript
            ===
            Transcript
            ▌two needle

            three

            ▌four needle

            five

            1

            2

            3

            4

            5

            6

            7

            5–26 of 30 · ↑↓ pgup pgdn g G move · / searches, n next · q…
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn a_view_at_the_end_stays_there_when_the_window_changes() {
    let lines: Vec<String> = (0..40).map(|line| format!("{line} {}", "word ".repeat(12))).collect();
    let open = format!("size:60x12\nready\nctrl+o\ntranscript:{}", lines.join("\\n\\n"));
    for sizes in ["resize:40x12", "resize:80x30", "resize:40x8\nresize:60x20"] {
        let screen = run(&format!("{open}\n{sizes}"));
        let status = screen.lines().find(|line| line.contains(" of ")).expect("the place");
        let (shown, all) = status.split_once(" of ").expect("the place");
        let last = shown.split('–').next_back().expect("the last row");
        assert!(all.starts_with(&format!("{last} ")), "{sizes}: {status}");
        assert!(screen.contains("39 word"), "{sizes}: {screen}");
    }
}
