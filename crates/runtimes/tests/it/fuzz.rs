//! Hostile and broken output: no panic, and no line that leaves no trace.

use hangar_peer::{LineSplitter, ReadLine};
use hangar_runtimes::translate::{Translation, Translator, claude, codex, copilot, opencode};
use proptest::prelude::*;
use serde_json::Value;

fn translators() -> Vec<Box<dyn Translator>> {
    vec![
        Box::<claude::ClaudeTranslator>::default(),
        Box::<codex::CodexTranslator>::default(),
        Box::<copilot::CopilotTranslator>::default(),
        Box::<opencode::OpencodeTranslator>::default(),
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

/// A recorded run for each of the translators, in their order.
const RUNS: [&str; 4] = ["claude-c-tools", "codex-c-tools", "copilot-c-bash", "opencode-c-tools"];

/// Result of a byte stream that comes in pieces: an entry for each event, then the facts.
fn told(translator: &mut dyn Translator, pieces: &[&[u8]]) -> (Vec<String>, String) {
    let (mut splitter, mut said) = (LineSplitter::new(10 << 20), Translation::default());
    for piece in pieces {
        splitter.push(piece);
        while let Some(ReadLine::Text(line)) = splitter.next_line() {
            translator.line(&String::from_utf8_lossy(&line), &mut said);
        }
    }
    if let Some(line) = splitter.finish() {
        translator.line(&String::from_utf8_lossy(&line), &mut said);
    }
    (said.events.iter().map(|event| format!("{event:?}")).collect(), format!("{:?}", said.facts))
}

fn run(name: &str) -> Vec<u8> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    std::fs::read(dir.join(format!("{name}.jsonl"))).unwrap()
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
            let mut said = Translation::default();
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
            let mut said = Translation::default();
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
            let mut said = Translation::default();
            for (pick, cut, whole) in &picks {
                let line = pick.get(&lines);
                let end = if *whole { line.len() } else { line.floor_char_boundary(cut.index(line.len() + 1)) };
                translator.line(&line[..end], &mut said);
            }
            translator.end(&mut said);
        }
    }

    #[test]
    fn where_a_stream_is_cut_into_pieces_makes_no_difference(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        for (n, name) in RUNS.iter().enumerate() {
            let bytes = run(name);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            let whole = told(translators()[n].as_mut(), &[&bytes]);
            prop_assert_eq!(told(translators()[n].as_mut(), &pieces), whole);
        }
    }

    #[test]
    fn a_stream_that_breaks_off_tells_all_of_its_whole_lines(cut in any::<prop::sample::Index>()) {
        for (n, name) in RUNS.iter().enumerate() {
            let bytes = run(name);
            let cut = cut.index(bytes.len());
            let lines = bytes[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let (whole, _) = told(translators()[n].as_mut(), &[&bytes[..lines]]);
            let (broken, _) = told(translators()[n].as_mut(), &[&bytes[..cut]]);
            prop_assert!(broken.starts_with(&whole));
        }
    }
}
