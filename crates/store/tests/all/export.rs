//! Transcripts.

use crate::home::{Home, id};
use expect_test::{Expect, expect};
use hangar_store::export_markdown;

/// Each line is `type data`.
fn check(log: &str, expected: &Expect) {
    let home = Home::new();
    let dir = home.create("s").dir();
    let lines: String = log
        .trim()
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let (kind, data) = line.trim().split_once(' ').unwrap();
            format!("{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"{n}\",\"timestamp\":\"T{n}\",\"parentId\":null}}\n")
        })
        .collect();
    std::fs::write(dir.join("events.jsonl"), lines).unwrap();
    let mut out = Vec::new();
    export_markdown(home.store.read(&id("s")).unwrap(), &mut out).unwrap();
    expected.assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn a_session_reads_like_a_conversation() {
    check(
        r##"
        session.start {"sessionId":"abc","version":1,"producer":"p","copilotVersion":"1","startTime":"2026-01-01","selectedModel":"m","context":{"cwd":"/w","branch":"main"}}
        user.message {"content":"List the files\n# now","transformedContent":"<x>List"}
        session.usage_record {"usage":{"model":"m","inputTokens":100,"outputTokens":5}}
        assistant.message {"messageId":"1","content":"","reasoningText":"Let me </details> look","toolRequests":[]}
        tool.execution_start {"toolCallId":"c1","toolName":"bash","arguments":{"command":"ls","description":"d"}}
        tool.execution_start {"toolCallId":"c2","toolName":"view","arguments":{"path":"/w/README.md"}}
        tool.execution_complete {"toolCallId":"c2","success":true,"result":{"content":"```sh\nx\n```"}}
        tool.execution_complete {"toolCallId":"c1","success":false,"error":{"message":"no such thing","code":"failure"}}
        session.usage_record {"usage":{"model":"m","inputTokens":200}}
        assistant.message {"messageId":"2","content":"There is **one** file:\n```\nREADME.md","toolRequests":[]}
        session.shutdown {"shutdownType":"routine","totalApiDurationMs":1,"sessionStartTime":1,"codeChanges":{"linesAdded":2,"linesRemoved":1,"filesModified":["/w/a"]},"modelMetrics":{}}
        "##,
        &expect![[r#"
            # Session abc

            - Started: `2026-01-01`
            - Model: `m`
            - Directory: `/w`
            - Branch: `main`

            ## Prompt

            > List the files
            > # now

            <details>
            <summary>Reasoning</summary>

            > Let me &lt;/details> look

            </details>

            ### Tool `view`

            ```json
            {
              "path": "/w/README.md"
            }
            ```

            ````
            ```sh
            x
            ```
            ````

            ### Tool `bash`

            ```sh
            ls
            ```

            Failed (failure):

            ```
            no such thing
            ```

            ## Answer

            There is **one** file:
            ```
            README.md
            ```

            ## Totals

            | what | how much |
            |---|---|
            | prompts | 1 |
            | model calls | 2 |
            | input tokens | 300 |
            | output tokens | 5 (unknown for 1 calls) |
            | tool calls | 2 |
            | errors | 0 |
            | changes | +2 -1 lines in 1 files |
            | from | T0 |
            | to | T10 |
        "#]],
    );
}

#[test]
fn errors_stops_and_unfinished_calls_are_told() {
    check(
        r#"
        session.error {"errorType":"query","message":"the model <is> down","statusCode":500}
        abort {"reason":"user_abort"}
        unknown.thing {"x":1}
        tool.execution_start {"toolCallId":"c1","toolName":"apply_patch","arguments":"*** Begin Patch"}
        "#,
        &expect![[r#"
            # Session

            **Error (query, status 500)**: the model &lt;is> down

            **Stopped**: user_abort

            ### Tool `apply_patch`

            ```
            *** Begin Patch
            ```

            **No result was recorded**

            ## Totals

            | what | how much |
            |---|---|
            | prompts | 0 |
            | model calls | 0 |
            | input tokens | 0 |
            | output tokens | 0 |
            | tool calls | 1 |
            | errors | 1 |
            | from | T0 |
            | to | T3 |
        "#]],
    );
}

#[test]
fn a_huge_result_is_shortened() {
    let home = Home::new();
    let dir = home.create("s").dir();
    let line = format!(
        r#"{{"type":"tool.execution_complete","data":{{"toolCallId":"c","success":true,"result":{{"content":"{}"}}}},"id":"1","timestamp":"T","parentId":null}}"#,
        "é".repeat(1_000_000)
    );
    std::fs::write(dir.join("events.jsonl"), line).unwrap();
    let mut out = Vec::new();
    export_markdown(home.store.read(&id("s")).unwrap(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.len() < 40_000);
    assert!(text.contains("1967232 more bytes are in the session's log"), "{}", &text[text.len() - 400..]);
}
