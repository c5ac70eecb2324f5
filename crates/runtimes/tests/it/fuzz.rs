//! Hostile and broken output: no panic, and no line that leaves no trace.

use hangar_runtimes::translate::{Said, Translator, claude, codex, copilot, opencode};
use proptest::prelude::*;
use serde_json::Value;

fn translators() -> Vec<Box<dyn Translator>> {
    vec![
        Box::<claude::Claude>::default(),
        Box::<codex::Codex>::default(),
        Box::<copilot::Copilot>::default(),
        Box::<opencode::Opencode>::default(),
    ]
}

/// Real lines, of all agents.
fn real_lines() -> Vec<String> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    [
        "claude-c-tools",
        "claude-a-partial",
        "codex-c-tools",
        "opencode-c-tools",
        "copilot-c-bash",
        "copilot-g-500",
    ]
    .iter()
    .flat_map(|name| {
        let text = std::fs::read_to_string(dir.join(format!("{name}.jsonl"))).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    })
    .collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let name = prop::sample::select(vec![
            "type", "subtype", "message", "content", "item", "part", "usage", "data", "event", "delta", "id",
            "state",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lines_in_no_format_are_counted_and_kept(lines in prop::collection::vec("[^\n{]{1,40}", 1..6)) {
        for mut translator in translators() {
            let mut said = Said::default();
            for line in &lines {
                translator.line(line, &mut said);
            }
            translator.end(&mut said);
            let text = format!("{:?}", said.events);
            prop_assert!(said.events.len() + said.facts.malformed as usize >= lines.len(), "{text}");
        }
    }

    #[test]
    fn json_of_any_shape_harms_nothing(values in prop::collection::vec(any_json(), 1..8)) {
        for mut translator in translators() {
            let mut said = Said::default();
            for value in &values {
                translator.line(&value.to_string(), &mut said);
            }
            translator.end(&mut said);
        }
    }

    #[test]
    fn real_lines_in_any_order_and_cut_anywhere_harm_nothing(picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..30)) {
        let lines = real_lines();
        for mut translator in translators() {
            let mut said = Said::default();
            for (pick, cut, whole) in &picks {
                let line = pick.get(&lines);
                let end = if *whole { line.len() } else { line.floor_char_boundary(cut.index(line.len() + 1)) };
                translator.line(&line[..end], &mut said);
            }
            translator.end(&mut said);
        }
    }
}
