//! What the program is built from: every crate comes from the registry, under a licence that we may pass on, and none is
//! one that we decided against. Advisories need the network and are left to who updates dependencies.

use std::collections::BTreeSet;

use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};

const LICENCES: &[&str] = &["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Zlib"];

/// Crates that must not come back, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("openssl-sys", "one TLS stack: rustls with ring"),
    ("native-tls", "one TLS stack: rustls with ring"),
    ("aws-lc-sys", "one TLS stack: rustls with ring"),
    ("serde_yaml", "no longer maintained"),
    ("serde_yml", "unsound and no longer maintained"),
];

/// What is wrong with the crates that `cargo metadata` resolved.
pub(crate) fn problems(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let used: BTreeSet<&str> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let used = packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    used.flat_map(package_problems).collect()
}

fn package_problems(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
        problems.push(format!("{name} is banned: {reason}"));
    }
    // A crate of the workspace has no source.
    if let Some(source) = package["source"].as_str().filter(|source| !source.starts_with("registry+")) {
        problems.push(format!("{name} comes from {source}, not from the registry"));
    }
    match package["license"].as_str() {
        Some(licence) if may_be_passed_on(licence) => {}
        Some(licence) => {
            problems.push(format!("{name} has the licence `{licence}`, which is not one of ours to pass on"));
        }
        None => problems.push(format!("{name} names no licence")),
    }
    problems
}

fn may_be_passed_on(licence: &str) -> bool {
    let accepted = |wanted: &LicenseReq| {
        wanted.license.id().is_some_and(|id| LICENCES.contains(&id.name)) && wanted.addition.is_none()
    };
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(accepted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(package: Value, problem: Option<&str>) {
        let mut package = package;
        package["id"] = json!("it");
        let metadata = json!({ "packages": [package], "resolve": { "nodes": [{ "id": "it" }] } });
        assert_eq!(problems(&metadata).first().map(String::as_str), problem);
    }

    #[test]
    fn one_of_several_licences_is_enough_where_there_is_a_choice() {
        check(json!({ "name": "a", "license": "GPL-3.0-only OR MIT" }), None);
        check(json!({ "name": "a", "license": "MIT/Apache-2.0" }), None);
        check(
            json!({ "name": "a", "license": "MIT AND GPL-3.0-only" }),
            Some("a has the licence `MIT AND GPL-3.0-only`, which is not one of ours to pass on"),
        );
    }

    #[test]
    fn a_crate_without_a_licence_is_refused() {
        check(json!({ "name": "a" }), Some("a names no licence"));
    }

    #[test]
    fn a_crate_from_elsewhere_is_refused() {
        check(
            json!({ "name": "a", "license": "MIT", "source": "git+ssh://host/a" }),
            Some("a comes from git+ssh://host/a, not from the registry"),
        );
    }

    #[test]
    fn a_banned_crate_is_refused() {
        check(
            json!({ "name": "native-tls", "license": "MIT", "source": "registry+x" }),
            Some("native-tls is banned: one TLS stack: rustls with ring"),
        );
    }

    #[test]
    fn a_crate_of_another_platform_is_not_looked_at() {
        let metadata = json!({ "packages": [{ "id": "it", "name": "a" }], "resolve": { "nodes": [] } });
        assert!(problems(&metadata).is_empty());
    }
}
