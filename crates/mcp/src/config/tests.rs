use expect_test::{Expect, expect};

use super::*;

fn check(text: &str, expected: Expect) {
    let lookup = |name: &str| (name == "PORT").then(|| "8080".to_owned());
    let said = match Layer::parse(ConfigSource::User, text) {
        Err(error) => format!("{error}\n"),
        Ok(layer) => {
            let (servers, errors) = merge(&[layer], &lookup);
            let servers = servers.iter().map(|server| {
                let reach = match &server.reach {
                    Reach::Stdio(p) => format!("{} {:?} {:?} {:?}", p.command, p.args, p.env, p.cwd),
                    Reach::Http(r) | Reach::Sse(r) => format!("{} {:?} {:?}", r.url, r.headers, r.oauth.id),
                };
                let ServerConfig { name, tools, timeout, cached, .. } = server;
                format!("{name} {} {reach} {tools:?} {timeout:?} {cached}\n", server.transport())
            });
            let errors = errors.iter().map(|error| format!("{error}\n"));
            servers.chain(errors).collect()
        }
    };
    expected.assert_eq(&said);
}

#[test]
fn both_forms_of_the_document_are_read() {
    check(
        r#"{"mcpServers": {"a": {"type": "local", "command": "x", "args": ["-p", "$PORT"], "env": {"B": "${C:-d}"}}}}"#,
        expect![[r#"
            a stdio x ["-p", "8080"] {"B": "d"} None ["*"] None true
        "#]],
    );
    check(
        r#"{"a": {"command": "x", "workingDirectory": "/w"}, "$schema": "s"}"#,
        expect![[r#"
            a stdio x [] {} Some("/w") ["*"] None true
        "#]],
    );
}

#[test]
fn remote_servers_are_told_by_type_or_url() {
    check(
        r#"{"mcpServers": {
            "a": {"url": "http://h:$PORT/mcp", "headers": {"X": "1"}, "tools": ["t"], "timeout": 500},
            "b": {"type": "sse", "url": "http://h/sse", "oauthClientId": "me", "disableToolCache": true},
            "c": {"type": "streamable-http", "url": "http://h/mcp"}}}"#,
        expect![[r#"
            a http http://h:8080/mcp {"X": "1"} None ["t"] Some(500ms) true
            b sse http://h/sse {} Some("me") ["*"] None false
            c http http://h/mcp {} None ["*"] None true
        "#]],
    );
}

#[test]
fn a_server_that_makes_no_sense_is_named_and_the_others_stay() {
    check(
        r#"{"mcpServers": {"a": {}, "b": {"type": "carrier-pigeon"}, "c": {"command": "x", "args": "no"},
            "d": {"command": "x", "timeout": -1}, "e": {"command": "ok"}, "f": 3, "g": {"type": "http"}, "h": {"url": "not one"},
            "i": {"type": "sse", "url": "file:///etc"}}}"#,
        expect![[r#"
            e stdio ok [] {} None ["*"] None true
            MCP server `a`: it has no `command`
            MCP server `b`: `carrier-pigeon` is not a type of server
            MCP server `c`: `args` is not a list
            MCP server `d`: `timeout` is not a number of milliseconds
            MCP server `f`: its configuration is not an object
            MCP server `g`: it has no `url`
            MCP server `h`: `url` is not an address of the web
            MCP server `i`: `url` is not an address of the web
        "#]],
    );
}

#[test]
fn what_is_no_configuration_is_one_sentence() {
    check("[]", expect![["not a JSON object\n"]]);
    check(r#"{"mcpServers": []}"#, expect![["`mcpServers` is not an object\n"]]);
}

#[test]
fn the_later_layer_has_the_say_over_a_name() {
    let layer = |source, command: &str| {
        let text = format!(r#"{{"s": {{"command": "{command}"}}}}"#);
        Layer::parse(source, &text).unwrap()
    };
    let (servers, _) =
        merge(&[layer(ConfigSource::User, "one"), layer(ConfigSource::Workspace, "two")], &|_| None);
    assert_eq!(servers.len(), 1);
    assert_eq!(servers[0].source, ConfigSource::Workspace);
    assert!(matches!(&servers[0].reach, Reach::Stdio(program) if program.command == "two"));
}

#[test]
fn excluded_tools_are_not_wanted() {
    let value = serde_json::json!({ "command": "x", "tools": ["*"], "excludeTools": ["rm"] });
    let server = ServerConfig::parse("s", &value, ConfigSource::User, &|_| None).unwrap();
    assert!(server.wants("ls") && !server.wants("rm"));
}
