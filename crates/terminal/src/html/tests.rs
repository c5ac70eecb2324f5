use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// The page of events, without its head.
fn body(events: &[(&str, Value)]) -> String {
    let mut page = HtmlPage::default();
    for (at, (kind, data)) in events.iter().enumerate() {
        let event = json!({
            "type": kind, "data": data, "id": format!("e{at}"), "timestamp": "2026-11-17T12:00:00.000Z", "parentId": null,
        });
        page.add(&Event::parse(&event.to_string()).expect("an event"));
    }
    let page = page.finish("a <name>");
    assert!(page.starts_with("<!doctype html>") && page.contains("prefers-color-scheme"));
    let (_, after) = page.split_once("<main>\n").expect("a body");
    after.split_once("</main>").expect("an end").0.to_owned()
}

fn check(events: &[(&str, Value)], expected: Expect) {
    expected.assert_eq(&body(events));
}

#[test]
fn a_conversation_is_headings_lists_tables_and_code() {
    let answer = "# Done\n\nIt **works** in `main.rs`:\n\n- [x] one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nlet a = b < c;\n```\n\n\
                  See [docs](https://example.com/?a=1&b=2).";
    check(
        &[
            ("user.message", json!({ "content": "fix it\nplease" })),
            ("assistant.message", json!({ "messageId": "m", "content": answer })),
        ],
        expect![[r#"
            <h1>a &lt;name&gt;</h1>
            <section class="prompt"><pre>fix it
            please</pre></section>
            <section class="answer">
            <h2>Done</h2>
            <p>It <strong>works</strong> in <code>main.rs</code>:</p>
            <ul>
            <li>☑ one</li>
            <li>two</li>
            </ul>
            <table>
            <tr><th>a</th><th style="text-align:right">b</th></tr>
            <tr><td>1</td><td style="text-align:right">2</td></tr>
            </table>
            <pre><code>let a = b &lt; c;
            </code></pre>
            <p>See <a rel="noreferrer" href="https://example.com/?a=1&amp;b=2">docs</a>.</p>
            </section>
        "#]],
    );
}

#[test]
fn a_call_folds_with_its_arguments_and_its_output() {
    let call = json!({ "toolCallId": "c", "toolName": "bash", "arguments": { "command": "ls & echo <b>" } });
    let result = json!({ "toolCallId": "c", "success": true, "result": { "content": "\u{1b}[31ma.txt\u{1b}[0m\n<exited with exit code 0>" } });
    check(
        &[("tool.execution_start", call), ("tool.execution_complete", result)],
        expect![[r#"
        <h1>a &lt;name&gt;</h1>
        <details class="tool ok"><summary><b>Run</b> <code>ls &amp; echo &lt;b&gt;</code></summary>
        <pre class="arguments">ls &amp; echo &lt;b&gt;</pre>
        <pre class="output">a.txt
        &lt;exited with exit code 0&gt;</pre>
        </details>
    "#]],
    );
}

#[test]
fn nothing_that_was_said_is_markup() {
    let attack = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![p](https://x.example/\"onload=) \u{202e}";
    let page = body(&[
        ("user.message", json!({ "content": attack })),
        (
            "assistant.message",
            json!({ "messageId": "m", "content": format!("{attack}\n\n<div onclick=x>\n{attack}") }),
        ),
        (
            "tool.execution_start",
            json!({ "toolCallId": "c", "toolName": attack, "arguments": { "x": attack } }),
        ),
        (
            "tool.execution_complete",
            json!({ "toolCallId": "c", "success": false, "error": { "message": attack } }),
        ),
        ("session.error", json!({ "errorType": "x", "message": attack })),
    ]);
    for forbidden in ["<script", "<img", "<div onclick", "href=\"javascript", "\u{202e}"] {
        assert!(!page.contains(forbidden), "{forbidden}: {page}");
    }
    let tags = page.split('<').skip(1).filter_map(|tag| tag.split(['>', ' ', '\n']).next());
    let known = "h1 h2 section pre p details summary b code span a em main div";
    for tag in tags {
        assert!(known.split(' ').any(|name| name == tag.trim_start_matches('/')), "<{tag}>: {page}");
    }
}
