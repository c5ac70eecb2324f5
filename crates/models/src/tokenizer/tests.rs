use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

use super::count;

static O200K: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::o200k_base().unwrap());

/// `text` counts as in the reference implementation.
fn check(text: &str) {
    assert_eq!(count(text), O200K.encode_ordinary(text).len(), "{text:?}");
}

#[test]
fn known_counts() {
    assert_eq!(count(""), 0);
    assert_eq!(count("hello world"), 2);
    assert_eq!(count("Übergrößenträger"), 5);
    assert_eq!(count("<|endoftext|>"), 7);
}

#[test]
fn every_token_has_its_rank_and_pairs_of_bytes_that_are_none_have_no_rank() {
    let ranks: HashMap<Vec<u8>, u32> =
        (0..).map_while(|rank| O200K.decode_bytes(&[rank]).ok().zip(Some(rank))).collect();
    assert_eq!(ranks.len(), 199_998);
    for (token, rank) in &ranks {
        assert_eq!(super::O200K.rank(token), Some(*rank), "{token:?}");
    }
    for pair in (0..=u16::MAX).map(u16::to_be_bytes) {
        assert_eq!(super::O200K.rank(&pair), ranks.get(&pair[..]).copied(), "{pair:?}");
    }
}

#[test]
fn prose_code_and_scripts_count_like_the_reference() {
    for text in [
        "It's we'll THEY'RE I'd he'ſ 'tis O'Brien don''t '",
        "fn main() {\n    let x = 10_000;\r\n\treturn x / 3; // done\n}\n\n\n",
        "   leading\n \n  \t trailing   ",
        "camelCaseHTTPServer2XMLParser snake_case SCREAMING_CASE",
        "日本語のテキスト、中文文本 한국어 ไทย हिन्दी العربية עברית",
        "e\u{301}a\u{300} \u{301}\u{302} ǅenan ʰa ªº Ⅷ ½ ٣٤٥٦",
        "a\u{a0}b\u{3000}c\u{2028}d\u{85}e",
        "////\n//!/\r\n+++---*** 😀👩‍👩‍👧 ✓",
        "\n",
        " ",
        "  ",
        "\r\n\r\n",
        " \n ",
        "x ",
        "x\n\n y",
        "'",
        "'s",
        " 's",
    ] {
        check(text);
    }
}

#[test]
fn a_long_piece_without_a_break_counts_like_the_reference() {
    check(&"QUJDREVGR0hJSktMTU5PUA".repeat(200));
    check(&"a".repeat(3000));
    check(&"=".repeat(3000));
}

#[test]
fn a_piece_that_is_counted_in_stretches_is_nearly_right() {
    for text in ["QUJDREVGR0hJSktMTU5PUA".repeat(2000), "x".repeat(40_001)] {
        let (counted, exact) = (count(&text), O200K.encode_ordinary(&text).len());
        assert!(counted.abs_diff(exact) <= 4, "{counted} instead of {exact}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_counts_like_the_reference(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn text_dense_in_rules_counts_like_the_reference(text in r"[a-cA-Cäǅʰª́1٣ \t\r\n'/.sStTrRvVeElLmMdDſ\u{3000}]{0,40}") {
        check(&text);
    }
}
