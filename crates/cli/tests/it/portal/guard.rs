//! Access control of the portal.

use std::io::{Read, Write};
use std::net::TcpStream;

use hangar_test_support::{ModelServer, Scratch};
use serde_json::json;

use super::{Portal, expect, port, refused, up};

const TOKEN: &str = "correct-horse-battery";

fn with_token() -> Portal {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = scratch.file("token", &format!("{TOKEN}\n"));
    Portal::on(scratch, model, &["--token-file", file.to_str().unwrap()])
}

#[test]
fn with_a_token_nothing_is_told_without_it() {
    let portal = with_token();
    let mut meta = portal.get("/api/v1/meta");
    // The page that asks for the token has the configured look.
    let look = meta.as_object_mut().unwrap().remove("appearance");
    assert_eq!(look, Some(json!({ "theme": "system", "density": "comfortable" })));
    assert_eq!(
        meta,
        json!({ "version": env!("CARGO_PKG_VERSION"), "tokenRequired": true, "authenticated": false })
    );
    for path in ["/api/v1/sessions", "/api/v1/stream", "/api/v1/openapi.json", "/api/v1/nope", "/api/test"] {
        let answer = portal.ask("GET", path).send();
        refused(&answer, 401, "token_required", "Bearer");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    for wrong in ["", "Bearer ", "Bearer wrong", "Basic Y29ycmVjdA==", TOKEN] {
        let ask = portal.ask("GET", "/api/v1/sessions").header("authorization", wrong);
        refused(&ask.send(), 401, "token_required", "token");
    }
    let right = portal.ask("GET", "/api/v1/sessions").header("authorization", &format!("Bearer {TOKEN}"));
    expect(right.send(), 200);
    assert_eq!(portal.ask("GET", "/").send().status, 200, "the page asks for the token itself");
}

#[test]
fn a_login_gives_a_cookie_that_is_not_the_token() {
    let portal = with_token();
    let login = |token: &str| portal.ask("POST", "/api/v1/login").json(&json!({ "token": token })).send();
    let wrong = login("wrong");
    refused(&wrong, 401, "wrong_token", "not the token");
    assert!(wrong.header("set-cookie").is_none());
    let right = login(TOKEN);
    assert_eq!(right.status, 204);
    let cookie = right.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(TOKEN),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap().to_owned();
    let with_cookie = |path: &str| portal.ask("GET", path).header("cookie", &pair).send();
    assert_eq!(with_cookie("/api/v1/meta").json()["authenticated"], true);
    expect(with_cookie("/api/v1/sessions"), 200);
    let out = portal.ask("POST", "/api/v1/logout").header("cookie", &pair).send();
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn other_machines_need_a_token() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let finished = up(&scratch, &model, &["--host", "0.0.0.0"]).finish().expect_exit(1);
    assert!(finished.stderr.contains("--token-env"), "{}", finished.stderr);
    let short = up(&scratch, &model, &["--token-env", "PORTAL_TOKEN"]).env("PORTAL_TOKEN", "short");
    let finished = short.finish().expect_exit(1);
    assert!(
        finished.stderr.contains("PORTAL_TOKEN") && !finished.stderr.contains("short\n"),
        "{}",
        finished.stderr
    );
    let unset = up(&scratch, &model, &["--token-env", "PORTAL_TOKEN"]).finish().expect_exit(1);
    assert!(unset.stderr.contains("not set"), "{}", unset.stderr);
    let args = ["--host", "0.0.0.0", "--token-env", "PORTAL_TOKEN"];
    let mut running = up(&scratch, &model, &args).env("PORTAL_TOKEN", TOKEN).start();
    assert_ne!(port(&mut running), 0);
}

#[test]
fn a_name_that_was_pointed_here_gets_nothing() {
    let portal = Portal::start();
    for host in ["evil.example", &format!("evil.example:{}", portal.port), "127.0.0.1.evil.example"] {
        for path in ["/api/v1/sessions", "/api/v1/meta", "/"] {
            let answer = portal.ask("GET", path).header("host", host).send();
            refused(&answer, 403, "wrong_host", "--allow-host");
        }
    }
    let local = format!("localhost:{}", portal.port);
    expect(portal.ask("GET", "/api/v1/sessions").header("host", &local).send(), 200);
}

#[test]
fn pages_of_others_cannot_make_it_work() {
    let portal = Portal::start();
    let body = json!({ "workspace": portal.scratch.work() });
    let open = || portal.ask("POST", "/api/v1/sessions").json(&body);
    refused(&open().header("origin", "https://evil.example").send(), 403, "cross_origin", "other pages");
    refused(&open().header("origin", "null").send(), 403, "cross_origin", "other pages");
    refused(&open().header("sec-fetch-site", "cross-site").send(), 403, "cross_origin", "other pages");
    let form =
        portal.ask("POST", "/api/v1/sessions").header("content-type", "text/plain").text(body.to_string());
    refused(&form.send(), 415, "json_required", "application/json");
    assert_eq!(portal.get("/api/v1/sessions")["sessions"], json!([]));
    let own = format!("http://127.0.0.1:{}", portal.port);
    expect(open().header("origin", &own).header("sec-fetch-site", "same-origin").send(), 201);
}

#[test]
fn paths_lead_nowhere_else() {
    let portal = Portal::start();
    for path in
        ["/../../../../etc/passwd", "/%2e%2e/%2e%2e/Cargo.toml", "/assets/../../../Cargo.toml", "/no.js"]
    {
        let answer = portal.ask("GET", path).send();
        assert_eq!(answer.status, 404, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    for page in ["/", "/sessions/abc", "/runs"] {
        let answer = portal.ask("GET", page).send();
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").unwrap().starts_with("text/html"), "{page}");
        assert!(answer.header("content-security-policy").unwrap().contains("default-src 'self'"));
    }
}

#[test]
fn who_is_slow_or_talks_too_much_holds_nobody_up() {
    let portal = Portal::start();
    // Heads that never end.
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", portal.port)).unwrap();
            stream.write_all(b"GET /api/v1/sessions HTTP/1.1\r\nhost: 127").unwrap();
            stream
        })
        .collect();
    portal.get("/api/v1/sessions");
    drop(slow);
    let large = portal.ask("GET", "/api/v1/sessions").header("x-large", &"x".repeat(200 << 10)).send();
    assert!([0, 400, 431].contains(&large.status), "{}", large.status);
    let many =
        (0..300).fold(portal.ask("GET", "/api/v1/sessions"), |ask, at| ask.header(&format!("x-{at}"), "x"));
    assert!([0, 400, 431].contains(&many.send().status));
    let mut nonsense = TcpStream::connect(("127.0.0.1", portal.port)).unwrap();
    nonsense.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = nonsense.read_to_end(&mut answer);
    portal.get("/api/v1/sessions");
}

#[test]
fn a_reader_that_takes_nothing_does_not_hold_the_session_up() {
    let portal = Portal::start();
    let id = portal.open("SAY:first", "allow-all");
    let stuck: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", portal.port)).unwrap();
            let head = format!(
                "GET /api/v1/sessions/{id}/stream HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n",
                portal.port
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    portal.hear(&id, 0).until_state("idle");
    let noisy = r#"TOOL:bash:{"command":"for i in $(seq 300); do head -c 9000 /dev/zero | tr '\\0' x; done","description":"noise"}"#;
    portal.send(&id, &format!("{noisy}\n{noisy}\nSAY:end"));
    portal.hear(&id, 0).until(|message| message.data["data"]["content"] == "end");
    drop(stuck);
}

/// Ways in which a browser asks for an image of a page that is not the portal's.
fn images(port: u16) -> Vec<Vec<(&'static str, String)>> {
    let local = ("host", format!("127.0.0.1:{port}"));
    let named = ("host", "portal.test".to_owned());
    let browser = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36".to_owned());
    let page = |referer: &str| ("referer", referer.to_owned());
    let fetch = |site: &str| {
        let dest = ("sec-fetch-dest", "image".to_owned());
        [("sec-fetch-site", site.to_owned()), ("sec-fetch-mode", "no-cors".to_owned()), dest]
    };
    let with = |host: &(&'static str, String), more: &[(&'static str, String)]| {
        [&[host.clone(), browser.clone()], more].concat()
    };
    vec![
        with(&local, &fetch("cross-site")),
        with(&local, &fetch("same-site")),
        with(&named, &fetch("cross-site")),
        // Browsers that do not say more, be it because the name is not this machine's.
        with(&named, &[page("http://evil.example/page")]),
        with(&named, &[]),
        with(&local, &[page("https://evil.example/")]),
        with(&local, &[]),
        with(&local, &[("origin", "http://evil.example".to_owned())]),
        // Nobody can tell these from a browser's.
        vec![named],
        vec![("host", "evil.example".to_owned())],
        vec![("host", format!("evil.example:{port}"))],
    ]
}

#[test]
fn an_image_of_another_page_changes_nothing() {
    let portal = Portal::start_with(&["--allow-host", "portal.test"]);
    let asked = |path: &str, headers: &[(&'static str, String)]| {
        headers.iter().fold(portal.ask("GET", path), |ask, (name, value)| ask.header(name, value)).send()
    };
    for headers in images(portal.port) {
        for path in [
            "/api/stop",
            "/api/%73top",
            "/api/copilot/models",
            "/api/copilot/session/start/mock-model",
            "/api/copilot/session/session-1/live",
            "/api/copilot/session/session-1/query",
            "/api/copilot/job/start/demo",
            "/api/v1/models",
            "/api/v1/runtimes?check=true",
        ] {
            let answer = asked(path, &headers);
            assert_eq!(answer.status, 403, "{path} {headers:?}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    let named = |method: &str, path: &str| portal.ask(method, path).header("host", "portal.test");
    expect(named("GET", "/api/test").send(), 200);
    let session = "/api/copilot/session/session-1/stop";
    assert_eq!(expect(named("POST", session).send(), 200), json!({ "error": "SessionNotFound" }));
    expect(named("GET", "/api/v1/models").header("referer", "http://portal.test/sessions/new").send(), 200);
    expect(named("GET", "/api/v1/models").header("sec-fetch-site", "same-origin").send(), 200);
    assert_eq!(expect(portal.ask("GET", session).send(), 200), json!({ "error": "SessionNotFound" }));
    expect(portal.ask("GET", "/api/stop").send(), 200);
    portal.running.finish().expect_exit(0);
}

#[test]
fn before_the_token_little_is_read() {
    let portal = with_token();
    let login = json!({ "token": "x".repeat(1 << 20) });
    refused(&portal.ask("POST", "/api/v1/login").json(&login).send(), 413, "too_large", "32 KB");
    for path in ["/api/v1/sessions", "/api/copilot/session/start/mock-model", "/api/nope"] {
        let mut stream = TcpStream::connect(("127.0.0.1", portal.port)).unwrap();
        let host = format!("127.0.0.1:{}", portal.port);
        // The body never comes.
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: 15000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401", "{path}");
    }
}

#[test]
fn connections_that_show_no_token_shut_nobody_out() {
    let portal = with_token();
    let stream = portal
        .ask("GET", "/api/v1/stream")
        .header("authorization", &format!("Bearer {TOKEN}"))
        .header("connection", "keep-alive");
    let mut stream = stream.stream();
    assert_eq!(stream.next().unwrap().event.as_deref(), Some("hello"));
    let mut idle: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = TcpStream::connect(("127.0.0.1", portal.port)).unwrap();
            let begun = if at % 2 == 0 { "" } else { "POST /api/v1/login HTTP/1.1\r\nhost: x" };
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    let login = portal.ask("POST", "/api/v1/login").json(&json!({ "token": TOKEN })).send();
    assert_eq!(login.status, 204);
    // The oldest made room, and answers nothing.
    let mut told = Vec::new();
    let _ = idle[0].read_to_end(&mut told);
    assert!(told.is_empty());
    let open = portal.ask("POST", "/api/v1/sessions").json(&json!({ "workspace": portal.scratch.work() }));
    expect(open.header("authorization", &format!("Bearer {TOKEN}")).send(), 201);
    assert_eq!(stream.next().unwrap().event.as_deref(), Some("session"), "who was admitted stays");
}
