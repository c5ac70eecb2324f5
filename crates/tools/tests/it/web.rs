//! `web_fetch`, against a server on this machine.

use expect_test::{Expect, expect};
use hangar_agent::tool::{ToolContext, ToolStatus};
use hangar_tools::web::{Redirects, WebAccess};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;

/// Answers each path with its entry: status, extra headers, body. Ends with the test's runtime.
async fn serve(pages: Vec<(&'static str, &'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let host = address.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = answer(stream, &host, &pages).await;
        }
    });
    address
}

async fn answer(mut stream: TcpStream, host: &str, pages: &[(&str, &str, String)]) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..count]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (head, body) = match pages.iter().find(|(name, _, _)| *name == path) {
        Some((_, head, body)) => (head.replace("$HOST", host), body.as_str()),
        None => ("404 Not Found".to_owned(), ""),
    };
    let (status, headers) = head.split_once('\n').unwrap_or((&head, ""));
    let headers: String = headers.lines().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    stream
        .write_all(
            format!(
                "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
        .await
}

async fn check_with(
    reach: WebAccess,
    pages: Vec<(&'static str, &'static str, String)>,
    arguments: Value,
    expected: Expect,
) {
    let host = serve(pages).await;
    let bench = Bench::for_web(reach);
    let arguments: Value = serde_json::from_str(&arguments.to_string().replace("$HOST", &host)).unwrap();
    let answer = bench.call("web_fetch", &arguments).await;
    let port = host.rsplit(':').next().unwrap();
    expected.assert_eq(&bench.render(&answer.outcome).replace(&host, "$HOST").replace(port, "$PORT"));
}

async fn check(head: &'static str, body: &str, arguments: Value, expected: Expect) {
    check_with(WebAccess::default(), vec![("/page", head, body.to_owned())], arguments, expected).await;
}

const HTML: &str = "200 OK\ncontent-type: text/html; charset=utf-8";
const TEXT: &str = "200 OK\ncontent-type: text/plain";

#[tokio::test]
async fn a_page_becomes_markdown() {
    check(
        HTML,
        "<title>T</title><h1>Häad</h1><p>See <a href='/more'>more</a>",
        json!({"url": "http://$HOST/page"}),
        expect![[r#"
        Contents of http://$HOST/page:
        T

        # Häad

        See [more](http://$HOST/more)"#]],
    )
    .await;
    check(
        HTML,
        "<h1>x</h1>",
        json!({"url": "http://$HOST/page", "raw": true}),
        expect!["Here is the raw content:\nContents of http://$HOST/page:\n<h1>x</h1>"],
    )
    .await;
    check(TEXT, "<plain>", json!({"url": "http://$HOST/page"}), expect!["Content type text/plain cannot be simplified to markdown. Here is the raw content:\nContents of http://$HOST/page:\n<plain>"]).await;
    check(
        "200 OK\ncontent-type: text/markdown",
        "# M",
        json!({"url": "http://$HOST/page"}),
        expect!["Contents of http://$HOST/page:\n# M"],
    )
    .await;
}

#[tokio::test]
async fn a_long_page_is_read_in_parts() {
    let page = |start: u32, length: u32| json!({"url": "http://$HOST/page", "start_index": start, "max_length": length});
    let markdown = "200 OK\ncontent-type: text/markdown";
    check(markdown, "ab😀defgh", page(1, 3), expect!["Contents of http://$HOST/page:\nb😀d\n\n<note>Content truncated. Call the fetch tool with a start_index of 4 to get more content.</note>"]).await;
    check(markdown, "ab😀defgh", page(4, 100), expect!["Contents of http://$HOST/page:\nefgh"]).await;
    check(
        markdown,
        "ab😀defgh",
        page(8, 10),
        expect!["Contents of http://$HOST/page:\n<error>No more content available.</error>"],
    )
    .await;
    check(
        markdown,
        "ab",
        page(0, 0),
        expect!["Contents of http://$HOST/page:\n<error>No more content available.</error>"],
    )
    .await;
    let host = serve(vec![("/page", TEXT, "x".repeat(6_000_000))]).await;
    let bench = Bench::for_web(WebAccess::default());
    let text = bench
        .call("web_fetch", &json!({"url": format!("http://{host}/page"), "max_length": 90_000}))
        .await
        .outcome
        .text;
    assert!(text.len() < 20_500 && text.contains("a start_index of 20000 "), "{}", text.len());
    let text = bench
        .call("web_fetch", &json!({"url": format!("http://{host}/page"), "start_index": 5_242_880}))
        .await
        .outcome
        .text;
    assert!(text.ends_with("<error>No more content available.</error>"), "{text}");
}

#[tokio::test]
async fn redirects_are_followed_to_their_end() {
    let pages = || {
        vec![
            ("/page", "302 Found\nlocation: /two", String::new()),
            ("/two", "301 Moved\nlocation: http://$HOST/three", String::new()),
            ("/three", TEXT, "here".to_owned()),
            ("/loop", "302 Found\nlocation: /loop", String::new()),
            ("/file", "302 Found\nlocation: file:///etc/passwd", String::new()),
        ]
    };
    let fetch = |path: &str| json!({"url": format!("http://$HOST{path}")});
    check_with(WebAccess::default(), pages(), fetch("/page"), expect!["Content type text/plain cannot be simplified to markdown. Here is the raw content:\nContents of http://$HOST/three (redirected from http://$HOST/page):\nhere"]).await;
    check_with(
        WebAccess::default(),
        pages(),
        fetch("/loop"),
        expect![
            "Failure (more than 10 redirects): Failed to fetch http://$HOST/loop: more than 10 redirects"
        ],
    )
    .await;
    check_with(WebAccess::default(), pages(), fetch("/file"), expect![[r#"Failure (it redirects to "file:///etc/passwd", which is not an http or https URL): Failed to fetch http://$HOST/file: it redirects to "file:///etc/passwd", which is not an http or https URL"#]]).await;
}

#[tokio::test]
async fn a_permission_for_one_host_can_be_held_to_it() {
    let pages = vec![("/page", "302 Found\nlocation: http://localhost:1/x", String::new())];
    let reach = WebAccess { redirects: Redirects::SameHost, ..WebAccess::default() };
    check_with(reach, pages, json!({"url": "http://$HOST/page"}), expect!["Failure (it redirects to another host, http://localhost:1/x; call web_fetch with that URL to follow): Failed to fetch http://$HOST/page: it redirects to another host, http://localhost:1/x; call web_fetch with that URL to follow"]).await;
}

#[tokio::test]
async fn a_page_that_is_not_there_is_a_failure() {
    check("500 Oops", "", json!({"url": "http://$HOST/page"}), expect!["Failure (the server answered with status code 500): Failed to fetch http://$HOST/page: the server answered with status code 500"]).await;
    check(HTML, "", json!({"url": "http://$HOST/gone"}), expect!["Failure (the server answered with status code 404): Failed to fetch http://$HOST/gone: the server answered with status code 404"]).await;
}

#[tokio::test]
async fn inner_addresses_are_refused_however_they_are_named() {
    let host = serve(vec![("/page", TEXT, "secret".to_owned())]).await;
    let port = host.rsplit(':').next().unwrap();
    let bench = Bench::new(&[]);
    for name in
        ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "169.254.169.254"]
    {
        let answer = bench.call("web_fetch", &json!({"url": format!("http://{name}:{port}/page")})).await;
        let text = answer.outcome.text;
        assert!(text.contains("the host has the blocked address"), "{name}: {text}");
    }
}

#[tokio::test]
async fn urls_of_other_kinds_are_refused() {
    let bench = Bench::new(&[]);
    bench
        .check(
            "web_fetch",
            json!({"url": "not a url"}),
            expect![[r#"Failure (Invalid URL): Invalid URL: "not a url""#]],
        )
        .await;
    bench.check("web_fetch", json!({"url": "file:///etc/passwd"}), expect!["Failure (file protocol not supported): The file:// protocol is not supported by web_fetch. Use the view tool to read local files instead."]).await;
    bench.check("web_fetch", json!({"url": "ftp://x/y"}), expect!["Failure (unsupported protocol): The ftp:// protocol is not supported by web_fetch. Only http:// and https:// URLs are allowed."]).await;
    bench
        .check(
            "web_fetch",
            json!({}),
            expect![[r#"Failure ("url": Required): Invalid input: "url": Required"#]],
        )
        .await;
    expect![[r#"
        {
          "kind": "url",
          "toolCallId": "call",
          "intention": "Fetch web content",
          "url": "https://example.com/x"
        }
        reads
        writes"#]]
    .assert_eq(&bench.inspect("web_fetch", &json!({"url": "https://example.com/x"})));
}

#[tokio::test]
async fn a_server_that_never_answers_can_be_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bench = Bench::for_web(WebAccess::default());
    let (progress, _events) = mpsc::channel(1);
    let context = ToolContext {
        grant: hangar_agent::permissions::Grant::Full,
        cancel: CancellationToken::new(),
        hurry: CancellationToken::new(),
        progress,
    };
    let cancel = context.cancel.clone();
    let running = tokio::spawn(bench.tool("web_fetch").run(bench.input(&json!({"url": url})), context));
    let _connection = listener.accept().await.unwrap();
    cancel.cancel();
    assert_eq!(running.await.unwrap().status, ToolStatus::Interrupted);
}
