use proptest::prelude::*;

use super::*;

/// Applies the only place that is found. Panics if there are none or several.
fn applied(text: &str, old: &str, new: &str) -> (Form, String) {
    let found = find(text, old, new);
    let [NearMatch { form, place, new: Some(new) }] = found.as_slice() else {
        panic!("{old:?} in {text:?}: {found:?}")
    };
    (*form, [&text[..place.start], new, &text[place.end..]].concat())
}

fn check(form: Form, text: &str, old: &str, new: &str, expected: &str) {
    assert_eq!(applied(text, old, new), (form, expected.to_owned()));
}

#[test]
fn whitespace_at_the_ends_of_lines_does_not_count() {
    check(Form::LineEnds, "a \nb\t\nc\n", "a\nb\n", "A\n", "A\nc\n");
    check(Form::LineEnds, "a\nb\n", "a  \nb", "A", "A\n");
}

#[test]
fn a_block_is_found_at_another_depth_and_its_replacement_goes_there() {
    check(
        Form::Indentation,
        "fn f() {\n    if x {\n        y();\n    }\n}\n",
        "if x {\n    y();\n}",
        "if x {\n    z();\n    y();\n}",
        "fn f() {\n    if x {\n        z();\n        y();\n    }\n}\n",
    );
    check(Form::Indentation, "\tfoo();\n", "    foo();", "    foo();\n    bar();", "\tfoo();\n\tbar();\n");
    // Of two places with the same words, the one with the same shape.
    check(
        Form::Indentation,
        "if x:\n  a()\nb()\n\n if x:\n   a()\n   b()\n",
        "    if x:\n      a()\n    b()",
        "    c()",
        "c()\n\n if x:\n   a()\n   b()\n",
    );
}

#[test]
fn a_replacement_that_is_indented_as_the_file_stays_so() {
    let file = "def f():\n    if x:\n        return 1\n";
    let old = "def f():\n  if x:\n    return 1\n";
    let expected = "def f():\n    if y:\n        return 1\n";
    check(Form::LineTrimmed, file, old, "def f():\n    if y:\n        return 1\n", expected);
    check(Form::LineTrimmed, file, old, "def f():\n  if y:\n    return 1\n", expected);
}

#[test]
fn lines_are_found_by_their_text() {
    check(
        Form::LineTrimmed,
        "\tif x:\n\t\ta()\n\tb()\n",
        "  if x:\n     a()\n  b()\n",
        "  if y:\n     a()\n  b()\n",
        "\tif y:\n\t\ta()\n\tb()\n",
    );
    let found = find("if x:\n    a()\nelse:\n        b()\n", "if x:\na()\nelse:\nb()", "c()");
    assert!(
        matches!(found.as_slice(), [NearMatch { new: None, .. }]),
        "nobody can say where c() belongs: {found:?}"
    );
}

#[test]
fn runs_of_whitespace_are_alike() {
    check(
        Form::Whitespace,
        "let  a =\t1;\nlet b = 2;\n",
        "let a = 1;",
        "let a = 3;",
        "let a = 3;\nlet b = 2;\n",
    );
    check(Form::Whitespace, "f(a,  b) + g()\n", "f(a, b)", "f(b, a)", "f(b, a) + g()\n");
}

#[test]
fn line_numbers_are_no_part_of_the_text() {
    check(
        Form::LineNumbers,
        "one\n  two\nthree\n",
        "2.   two\n3. three",
        "2.   TWO\n3. three",
        "one\n  TWO\nthree\n",
    );
    check(Form::LineNumbers, "one\n  two\n", "2.   two", "  TWO", "one\n  TWO\n");
}

#[test]
fn escaped_characters_are_read_as_what_they_stand_for() {
    check(Form::Escapes, "a\n\t\"b\"\n", "a\\n\\t\\\"b\\\"", "a\\n\\t'b'", "a\n\t'b'\n");
}

#[test]
fn whitespace_around_the_text_does_not_count() {
    check(Form::Whitespace, "x = (a + b)\n", "\n a + b \n", " a - b ", "x = (a - b)\n");
    check(Form::Boundaries, "x = (a +\n b)\n", "  (a +\n b) ", "  (a -\n b) ", "x = (a -\n b)\n");
}

#[test]
fn a_block_is_found_by_its_first_and_last_line() {
    let text = "fn f() {\n    let a = one(1, 2);\n    let b = two(3, 4);\n    let c = three(5, 6);\n    go(a, b, c)\n}\n";
    check(
        Form::Anchors,
        text,
        "fn f() {\n    let a = one(1, 2);\n    let bb = two(3, 4);\n    let c = three(5, 6);\n    go(a, b, c)\n}",
        "fn f() {}",
        "fn f() {}\n",
    );
    let unlike = "fn f() {\n    let other = thing();\n    return it;\n    never(mind);\n    at_all();\n}";
    assert_eq!(find(text, unlike, "fn f() {}"), []);
}

#[test]
fn what_is_not_there_is_not_found() {
    for old in ["nothing", "  ", "\n\n", "b\n\na"] {
        assert_eq!(find("a\n\nb\n", old, "x"), [], "{old:?}");
    }
}

/// A line with words, at some depth.
fn line() -> impl Strategy<Value = String> {
    ("[ \t]{0,4}", "[a-c]{1,2}", "[ ]{1,2}", "[a-c(){};]{1,3}")
        .prop_map(|(i, a, s, b)| format!("{i}{a}{s}{b}"))
}

fn block() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(line(), 1..6)
}

/// A block as a model might remember it.
fn remembered(lines: &[String], how: u8) -> String {
    let change = |line: &String| match how % 5 {
        0 => format!("  {line}"),
        1 => line.trim().to_owned(),
        2 => format!("{line}  "),
        3 => line.split_whitespace().collect::<Vec<_>>().join("  "),
        _ => format!("7. {line}"),
    };
    lines.iter().map(change).collect::<Vec<_>>().join("\n")
}

proptest! {
    /// Whatever is found, every byte outside of it stays, and consists of whole lines of the file.
    #[test]
    fn text_outside_the_place_stays(before in block(), meant in block(), after in block(), how: u8) {
        let (before, after) = (before.join("\n"), after.join("\n"));
        let text = format!("{before}\nSTART\n{}\nEND\n{after}", meant.join("\n"));
        let old = format!("START\n{}\nEND", remembered(&meant, how));
        for NearMatch { place, new, .. } in find(&text, &old, "NEW") {
            let Some(new) = new else { continue };
            let changed = [&text[..place.start], &new, &text[place.end..]].concat();
            prop_assert!(changed.starts_with(&format!("{before}\n")), "{changed:?}");
            prop_assert!(changed.ends_with(&format!("\n{after}")), "{changed:?}");
            prop_assert!(changed.contains("NEW"));
        }
    }

    /// A block that the file has twice, however it is remembered, is never found once.
    #[test]
    fn what_is_there_twice_is_not_found_once(meant in block(), between in line(), how: u8) {
        let block = format!("START\n{}\nEND", meant.join("\n"));
        let text = format!("{block}\n{between}\n{block}\n");
        let old = format!("START\n{}\nEND", remembered(&meant, how));
        prop_assume!(!text.contains(&old));
        prop_assert_ne!(find(&text, &old, "NEW").len(), 1);
    }
}
