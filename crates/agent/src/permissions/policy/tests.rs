use expect_test::{Expect, expect};
use hangar_protocol::permission::{PossibleUrl, ShellCommand};
use proptest::prelude::*;

use super::*;

fn policy(allow: &str, deny: &str) -> Policy {
    let rules = |text: &str| if text.is_empty() { Vec::new() } else { Rule::parse_list(text).unwrap() };
    Policy { allow: rules(allow), deny: rules(deny), roots: vec!["/w".into()], ..Policy::default() }
}

/// `git push; ls`: the commands, `!` before one that only reads, `>path` a redirection, `@url` a URL, `/path` a path.
fn shell(script: &str) -> AccessRequest {
    let mut request = ShellRequest { full_command_text: script.to_owned(), ..ShellRequest::default() };
    let mut access = (Vec::new(), Vec::new());
    for part in script.split("; ") {
        if let Some(path) = part.strip_prefix('>') {
            request.has_write_file_redirection = true;
            access.1.push(path.into());
        } else if let Some(url) = part.strip_prefix('@') {
            request.possible_urls.push(PossibleUrl { url: url.to_owned() });
        } else if part.starts_with('/') {
            access.0.push(part.into());
        } else {
            let (identifier, read_only) = match part.strip_prefix('!') {
                Some(identifier) => (identifier, true),
                None => (part, false),
            };
            request.commands.push(ShellCommand { identifier: identifier.to_owned(), read_only });
        }
    }
    AccessRequest { request: PermissionRequest::Shell(request), reads: access.0, writes: access.1 }
}

fn read(path: &str) -> AccessRequest {
    let request =
        PermissionRequest::Read { tool_call_id: None, intention: String::new(), path: path.to_owned() };
    AccessRequest { request, reads: vec![path.into()], writes: Vec::new() }
}

fn write(path: &str) -> AccessRequest {
    let request = PermissionRequest::Write {
        tool_call_id: None,
        intention: String::new(),
        file_name: path.to_owned(),
        diff: String::new(),
        new_file_contents: None,
        can_offer_session_approval: true,
    };
    AccessRequest { request, reads: Vec::new(), writes: vec![path.into()] }
}

fn fetch(url: &str) -> AccessRequest {
    let request =
        PermissionRequest::Url { tool_call_id: None, intention: String::new(), url: url.to_owned() };
    AccessRequest { request, reads: Vec::new(), writes: Vec::new() }
}

fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow => "allow".to_owned(),
        Verdict::Deny { rules } => super::super::texts::denied_by_rules(rules),
        Verdict::Ask { doubt } => format!("ask {doubt:?}"),
    }
}

fn check(policy: &Policy, access: &AccessRequest, expect: Expect) {
    expect.assert_eq(&told(&policy.decide(access)));
}

#[test]
fn without_rules_reading_is_free_and_changing_is_not() {
    let bare = policy("", "");
    check(&bare, &read("/w/a"), expect!["allow"]);
    check(&bare, &write("/w/a"), expect!["ask Tool"]);
    check(&bare, &shell("!ls; !git status"), expect!["allow"]);
    check(&bare, &shell("!ls; touch"), expect!["ask Tool"]);
    check(&bare, &shell("!echo; >/w/f"), expect!["ask Tool"]);
}

#[test]
fn every_command_of_a_script_must_be_allowed() {
    let git = policy("shell(git:*)", "");
    check(&git, &shell("git push"), expect!["allow"]);
    check(&git, &shell("gitea"), expect!["ask Tool"]);
    check(&git, &shell("git push; rm"), expect!["ask Tool"]);
    check(&git, &shell("git push; !cat"), expect!["allow"]);
    check(&git, &shell("git log; >/w/out"), expect!["ask Tool"]);
    check(&policy("shell(git:*),write", ""), &shell("git log; >/w/out"), expect!["allow"]);
    check(&policy("shell", ""), &shell("anything"), expect!["allow"]);
}

#[test]
fn what_could_not_be_analysed_needs_the_broadest_rule_and_meets_every_denial() {
    let mut opaque = shell("!ls");
    if let PermissionRequest::Shell(shell) = &mut opaque.request {
        shell.opaque = true;
    }
    check(&policy("", ""), &opaque, expect!["ask Tool"]);
    check(&policy("shell(ls)", ""), &opaque, expect!["ask Tool"]);
    check(&policy("shell", ""), &opaque, expect!["allow"]);
    let all = Policy { allow_all_tools: true, ..policy("", "shell(rm)") };
    check(
        &all,
        &opaque,
        expect!["Permission to run this tool was denied due to the following rules: `shell(rm)`"],
    );
}

#[test]
fn a_redirection_is_a_write_whatever_the_shell_may_run() {
    check(&policy("shell", ""), &shell("anything; >/w/f"), expect!["ask Tool"]);
    check(&policy("shell,write", ""), &shell("anything; >/w/f"), expect!["allow"]);
}

#[test]
fn denying_wins_over_allowing_everything() {
    let all = Policy {
        allow_all_tools: true,
        allow_all_paths: true,
        allow_all_urls: true,
        ..policy("", "shell(git push)")
    };
    check(
        &all,
        &shell("!ls; git push"),
        expect!["Permission to run this tool was denied due to the following rules: `shell(git push)`"],
    );
    check(&all, &shell("git pull"), expect!["allow"]);
    let all = Policy { allow_all_tools: true, ..policy("", "write(.env)") };
    check(
        &all,
        &write("/w/.env"),
        expect!["Permission to run this tool was denied due to the following rules: `write(.env)`"],
    );
    check(
        &all,
        &shell("!echo; >/w/.env"),
        expect!["Permission to run this tool was denied due to the following rules: `write(.env)`"],
    );
}

#[test]
fn allowing_all_tools_is_not_leaving_the_workspace() {
    let tools = Policy { allow_all_tools: true, ..policy("", "") };
    check(&tools, &read("/etc/hostname"), expect![[r#"ask Path("/etc/hostname")"#]]);
    check(&tools, &write("/var/a"), expect![[r#"ask Path("/var/a")"#]]);
    check(&tools, &shell("!cat; /etc/hostname"), expect![[r#"ask Path("/etc/hostname")"#]]);
    check(&tools, &shell("curl; @http://h/"), expect!["allow"]);
    let paths = Policy { allow_all_paths: true, ..tools };
    check(&paths, &write("/var/a"), expect!["allow"]);
}

#[test]
fn urls_have_rules_of_their_own() {
    check(&policy("", ""), &fetch("https://example.com/"), expect![[r#"ask Url("https://example.com/")"#]]);
    check(&policy("url(example.com)", ""), &fetch("https://example.com/"), expect!["allow"]);
    check(&policy("shell(curl)", ""), &shell("curl; @https://h/"), expect![[r#"ask Url("https://h/")"#]]);
    check(
        &Policy { allow_all_urls: true, ..policy("", "url(evil.org)") },
        &fetch("https://evil.org/x"),
        expect!["Permission to run this tool was denied due to the following rules: `url(evil.org)`"],
    );
}

#[test]
fn an_approval_lasts_for_what_it_named() {
    let mut policy = policy("", "");
    policy.approvals = vec![SessionApproval::Commands(vec!["npm test".to_owned()]), SessionApproval::Write];
    check(&policy, &shell("npm test"), expect!["allow"]);
    check(&policy, &shell("npm publish"), expect!["ask Tool"]);
    check(&policy, &write("/w/a"), expect!["allow"]);
}

fn any_rules() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(vec![
        "shell",
        "shell(git:*)",
        "shell(git push)",
        "write",
        "write(.env)",
        "read",
        "url(h.org)",
    ]);
    prop::collection::vec(rule, 0..4).prop_map(|rules| rules.join(","))
}

fn any_access() -> impl Strategy<Value = AccessRequest> {
    prop_oneof![
        prop::collection::vec(
            prop::sample::select(vec![
                "git push",
                "git",
                "!ls",
                "rm",
                ">/w/.env",
                ">/x/y",
                "@https://h.org/",
                "/etc/p"
            ]),
            1..4
        )
        .prop_map(|parts| shell(&parts.join("; "))),
        prop::sample::select(vec!["/w/a", "/w/.env", "/etc/p"]).prop_map(read),
        prop::sample::select(vec!["/w/a", "/w/.env", "/etc/p"]).prop_map(write),
        Just(fetch("https://h.org/")),
    ]
}

proptest! {
    #[test]
    fn a_denied_request_stays_denied_whatever_is_allowed(
        allow in any_rules(), deny in any_rules(), all in any::<[bool; 3]>(), access in any_access()
    ) {
        let strict = policy("", &deny);
        let lenient = Policy {
            allow_all_tools: all[0],
            allow_all_paths: all[1],
            allow_all_urls: all[2],
            ..policy(&allow, &deny)
        };
        let denied = matches!(strict.decide(&access), Verdict::Deny { .. });
        prop_assert_eq!(matches!(lenient.decide(&access), Verdict::Deny { .. }), denied);
    }

    #[test]
    fn one_more_rule_to_allow_never_takes_anything_away(
        allow in any_rules(), more in any_rules(), access in any_access()
    ) {
        let before = policy(&allow, "").decide(&access);
        let mut wider = policy(&allow, "");
        wider.allow.extend(policy(&more, "").allow);
        if before == Verdict::Allow {
            prop_assert_eq!(wider.decide(&access), Verdict::Allow);
        }
    }
}

#[test]
fn a_careful_policy_asks_about_what_is_harmless_too() {
    let careful = Policy { asks_about_reads: true, ..policy("", "") };
    let asks = |policy: &Policy, access: &AccessRequest| matches!(policy.decide(access), Verdict::Ask { .. });
    assert!(asks(&careful, &read("/w/a")) && asks(&careful, &shell("!ls")));
    let approved = Policy { approvals: vec![SessionApproval::Read], ..careful.clone() };
    assert!(!asks(&approved, &read("/w/a")));
    let trusting = Policy { allow_all_tools: true, ..careful };
    assert!(!asks(&trusting, &read("/w/a")) && !asks(&trusting, &shell("!ls")));
}

#[track_caller]
fn check_sampling(policy: &Policy, verdict: &str) {
    let said = match policy.decide_sampling("s") {
        Verdict::Allow => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Ask { .. } => "ask",
    };
    assert_eq!(said, verdict);
}

#[test]
fn a_server_may_ask_the_model_by_rule_or_by_an_approval_of_just_that() {
    let rule = |text: &str| Rule::parse(text).unwrap();
    check_sampling(&Policy::default(), "ask");
    check_sampling(&Policy { allow_all_tools: true, ..Policy::default() }, "allow");
    check_sampling(&Policy { allow: vec![rule("s")], ..Policy::default() }, "allow");
    check_sampling(&Policy { allow: vec![rule("s(echo)")], ..Policy::default() }, "ask");
    let denied = Policy { allow_all_tools: true, deny: vec![rule("s")], ..Policy::default() };
    check_sampling(&denied, "deny");
    let approved = |approval: serde_json::Value| Policy {
        approvals: SessionApproval::parse(&approval).into_iter().collect(),
        ..Policy::default()
    };
    let sampling = |server: &str| serde_json::json!({ "kind": "mcp-sampling", "serverName": server });
    check_sampling(&approved(sampling("s")), "allow");
    check_sampling(&approved(sampling("other")), "ask");
    check_sampling(
        &approved(serde_json::json!({ "kind": "mcp", "serverName": "s", "toolName": null })),
        "ask",
    );
}

#[test]
fn what_may_be_done_is_told_in_a_sentence() {
    let check = |policy: Policy, reachable: bool, expected: Option<&str>| {
        assert_eq!(policy.told(reachable).as_deref(), expected);
    };
    let all = |deny: &str| Policy { allow_all_tools: true, allow_all_paths: true, ..policy("", deny) };
    check(policy("", ""), true, None);
    check(all(""), false, Some("all tool calls are allowed."));
    check(all("shell(git push)"), true, Some("all tool calls are allowed; refused always: shell(git push)."));
    check(
        policy("shell(git:*), write", ""),
        false,
        Some(
            "allowed without asking: shell(git:*), write; reading in the working directory is allowed; nobody can be \
             asked, so everything else is refused.",
        ),
    );
    let many: Vec<String> = (0..30).map(|n| format!("shell(c{n})")).collect();
    let told = policy(&many.join(", "), "").told(true).unwrap();
    assert!(told.contains("shell(c19), and more") && !told.contains("shell(c20)"), "{told}");
}
