//! What holds for every policy and every request.

use proptest::collection::vec;
use proptest::prelude::*;

use super::policy::tests::{fetch, mcp, read, shell, write};
use super::{Approval, Policy, Rule, Verdict};
use crate::tool::AccessRequest;

fn any_rule() -> impl Strategy<Value = Rule> {
    let texts = vec![
        "shell",
        "shell(git:*)",
        "shell(git push)",
        "shell(rm)",
        "write",
        "write(a)",
        "write(/w/a)",
        "read",
        "read(a)",
        "url",
        "url(x.com)",
        "url(https://*.x.com)",
        "memory",
        "gh",
        "gh(search)",
    ];
    proptest::sample::select(texts).prop_map(|text| text.parse().unwrap())
}

fn any_approval() -> impl Strategy<Value = Approval> {
    prop_oneof![
        Just(Approval::Read),
        Just(Approval::Write),
        Just(Approval::Commands { command_identifiers: vec!["git push".to_owned()] }),
        Just(Approval::Mcp { server_name: "gh".to_owned(), tool_name: None }),
        Just(Approval::Url { domain: "x.com".to_owned() }),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (vec(any_rule(), 0..4), vec(any_rule(), 0..3), flags, vec(any_approval(), 0..2)).prop_map(
        |(allow, deny, (allow_all_tools, allow_all_paths, allow_all_urls), approvals)| Policy {
            allow,
            deny,
            allow_all_tools,
            allow_all_paths,
            allow_all_urls,
            roots: vec!["/w".into()],
            approvals,
        },
    )
}

fn any_access() -> impl Strategy<Value = AccessRequest> {
    let words =
        vec!["git push!", "git status", "rm!", "ls", "> /w/a", "< /w/a", "< /etc/a", "https://a.x.com/", "?"];
    prop_oneof![
        vec(proptest::sample::select(words), 1..4).prop_map(|words| shell(&words)),
        proptest::sample::select(vec!["/w/a", "/w/b", "/etc/a"]).prop_map(read),
        proptest::sample::select(vec!["/w/a", "/w/b", "/etc/a"]).prop_map(write),
        proptest::sample::select(vec!["https://x.com/", "http://a.x.com/"]).prop_map(fetch),
        Just(mcp("gh", "search")),
    ]
}

fn without_denials(policy: &Policy) -> Policy {
    Policy { deny: Vec::new(), ..policy.clone() }
}

proptest! {
    #[test]
    fn a_denial_depends_on_deny_rules_alone(policy in any_policy(), other in any_policy(), access in any_access()) {
        let other = Policy { deny: policy.deny.clone(), ..other };
        match (policy.decide(&access), other.decide(&access)) {
            (Verdict::Deny { rules: one }, Verdict::Deny { rules: two }) => prop_assert_eq!(one, two),
            (Verdict::Deny { .. }, _) | (_, Verdict::Deny { .. }) => prop_assert!(false, "allow rules changed a denial"),
            _ => {}
        }
    }

    #[test]
    fn a_policy_without_deny_rules_denies_nothing(policy in any_policy(), access in any_access()) {
        let is_denied = matches!(without_denials(&policy).decide(&access), Verdict::Deny { .. });
        prop_assert!(!is_denied);
    }

    #[test]
    fn more_allowance_takes_nothing_away(
        policy in any_policy(), rule in any_rule(), approval in any_approval(), access in any_access()
    ) {
        if policy.decide(&access) == Verdict::Allow {
            let mut wider = vec![policy.clone(); 6];
            wider[0].allow.push(rule);
            wider[1].approve(approval);
            wider[2].allow_all_tools = true;
            wider[3].allow_all_paths = true;
            wider[4].allow_all_urls = true;
            wider[5].roots.push("/etc".into());
            for policy in wider {
                prop_assert_eq!(policy.decide(&access), Verdict::Allow);
            }
        }
    }

    #[test]
    fn more_denial_allows_nothing_new(policy in any_policy(), rule in any_rule(), access in any_access()) {
        let mut narrower = policy.clone();
        narrower.deny.push(rule);
        if narrower.decide(&access) == Verdict::Allow {
            prop_assert_eq!(policy.decide(&access), Verdict::Allow);
        }
    }

    #[test]
    fn nothing_outside_the_roots_is_allowed_unless_all_paths_are(policy in any_policy(), access in any_access()) {
        let outside = access.reads.iter().chain(&access.writes).any(|path| !policy.is_within_roots(path));
        let approved = policy.approvals.contains(&Approval::Read);
        if outside && !policy.allow_all_paths && !approved {
            prop_assert_ne!(policy.decide(&access), Verdict::Allow);
        }
    }

    #[test]
    fn every_text_is_a_rule_that_is_written_back_or_an_error(text in "[a-z(),:* ./]{0,20}") {
        if let Ok(rule) = text.parse::<Rule>() {
            prop_assert_eq!(rule.to_string(), text.trim());
        }
        let _ = Rule::parse_list(&text);
    }
}
