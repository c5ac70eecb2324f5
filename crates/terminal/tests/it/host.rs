//! Questions of the program itself: lists, texts, and waits.

use expect_test::{Expect, expect};
use hangar_terminal::input::Input;

use crate::script::{check, step};
use crate::session::Session;

const PROVIDERS: &str = r#"host:{"title":"Which provider?","text":"Keys that are set come first.","items":[["anthropic","Anthropic","ANTHROPIC_API_KEY is set"],["local","A model on this machine","Ollama, LM Studio"],["scripted","The scripted model","a demo"]]}"#;

#[test]
fn an_item_is_picked_by_its_number() {
    check(
        PROVIDERS,
        expect![[r#"
            $ hangar

            Which provider?
            Keys that are set come first.
            ❯ 1. Anthropic                ANTHROPIC_API_KEY is set
              2. A model on this machine  Ollama, LM Studio
              3. The scripted model       a demo
            a number or enter picks; esc goes back
        "#]],
    );
    check(
        &format!("{PROVIDERS}\n3"),
        expect![[r#"
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Picked("scripted"))
        "#]],
    );
    check(
        &format!("{PROVIDERS}\ndown\nenter"),
        expect![[r#"
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Picked("local"))
        "#]],
    );
    check(
        &format!("{PROVIDERS}\nesc"),
        expect![[r#"
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Back)
        "#]],
    );
}

#[test]
fn a_long_list_is_searched() {
    let items: Vec<String> =
        (1..=40).map(|n| format!(r#"["m{n}","model-{n}","$1.00 in, $2.00 out"]"#)).collect();
    let models = format!(r#"host:{{"title":"Which model?","items":[{}]}}"#, items.join(","));
    check(
        &models,
        expect![[r#"
            $ hangar

            Which model?
            ❯ model-1   $1.00 in, $2.00 out
              model-2   $1.00 in, $2.00 out
              model-3   $1.00 in, $2.00 out
              model-4   $1.00 in, $2.00 out
              model-5   $1.00 in, $2.00 out
              model-6   $1.00 in, $2.00 out
              model-7   $1.00 in, $2.00 out
              model-8   $1.00 in, $2.00 out
              model-9   $1.00 in, $2.00 out
              model-10  $1.00 in, $2.00 out
              model-11  $1.00 in, $2.00 out
              model-12  $1.00 in, $2.00 out
              model-13  $1.00 in, $2.00 out
              model-14  $1.00 in, $2.00 out
              model-15  $1.00 in, $2.00 out
              model-16  $1.00 in, $2.00 out
              model-17  $1.00 in, $2.00 out
              model-18  $1.00 in, $2.00 out
              model-19  $1.00 in, $2.00 out
              model-20  $1.00 in, $2.00 out
            enter picks · esc back · type to search · 20 more
        "#]],
    );
    check(
        &format!("{models}\ntype:39\nscreen\nenter"),
        expect![[r#"
            $ hangar

            Which model?
            ❯ model-39  $1.00 in, $2.00 out
              ❯ 39▮
            enter picks · esc back · type to search
            ===
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Picked("m39"))
        "#]],
    );
    check(
        &format!("size:40x10\n{models}\ndown\ndown\ndown\ndown\ndown\ndown\ndown\ndown"),
        expect![[r#"
            $ hangar
            Which model?
              model-3   $1.00 in, $2.00 out
              model-4   $1.00 in, $2.00 out
              model-5   $1.00 in, $2.00 out
              model-6   $1.00 in, $2.00 out
              model-7   $1.00 in, $2.00 out
              model-8   $1.00 in, $2.00 out
            ❯ model-9   $1.00 in, $2.00 out
            enter picks · esc back · type to search…
        "#]],
    );
}

#[test]
fn a_secret_is_never_on_the_screen() {
    let key =
        r#"host:{"title":"The key","text":"It is kept in a file that only you can read.","hidden":true}"#;
    check(
        &format!("{key}\ntype:sk-\npaste:secret\\n\nbackspace\ntype:t\nscreen\nenter"),
        expect![[r#"
            $ hangar

            The key
            It is kept in a file that only you can read.
              ❯ •••••••••▮
            enter sends; esc goes back
            ===
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Typed(9 characters))
        "#]],
    );
    check(
        &format!("size:40x10\n{key}\ntype:{}", "x".repeat(60)),
        expect![[r#"
            $ hangar

            The key
            It is kept in a file that only you can
            read.
              ❯ •••••••••••••••••••••••••••••••••••▮
            enter sends; esc goes back
        "#]],
    );
}

#[test]
fn a_wait_is_stopped_by_esc() {
    let wait = r#"host:{"title":"One moment","text":"Asking for the models."}"#;
    check(
        &format!("{wait}\nx\nenter\nscreen\nesc"),
        expect![[r#"
            $ hangar

            One moment
            Asking for the models.
            esc stops
            ===
            $ hangar

            ❯ ▮
            opening the session …
            ---
            Answer(Back)
        "#]],
    );
}

#[test]
fn a_question_that_comes_unasked_leaves_the_keys_to_the_draft() {
    let unasked = PROVIDERS.replace(r#""title""#, r#""unasked":true,"title""#);
    check(
        &format!("type:fix\n{unasked}\n1\nwait:300\n1"),
        expect![[r#"
            $ hangar

            ❯ fix1▮
            opening the session …
            ---
            Answer(Picked("anthropic"))
        "#]],
    );
}

/// The question and the effects of lines, where nothing can be redrawn.
fn check_lines(question: &str, lines: &[&str], expected: Expect) {
    let mut session = Session::new(80, 24);
    step(&mut session, question);
    let mut told = String::new();
    for line in lines {
        session.give(Input::Line((*line).to_owned()));
    }
    if let Some((_, rows)) = session.state.dialog_rows() {
        rows.iter().for_each(|row| told.push_str(&format!("{}\n", row.text())));
    }
    expected.assert_eq(&format!("{told}{}", session.log.join("\n")));
}

#[test]
fn lines_pick_by_number_by_name_and_by_a_part_of_it() {
    check_lines(
        PROVIDERS,
        &[],
        expect![[r#"
            Which provider?
            Keys that are set come first.
            1. Anthropic  ANTHROPIC_API_KEY is set
            2. A model on this machine  Ollama, LM Studio
            3. The scripted model  a demo
            a number or a name picks; an empty line goes back
        "#]],
    );
    check_lines(PROVIDERS, &["2"], expect![[r#"Answer(Picked("local"))"#]]);
    check_lines(PROVIDERS, &["anthropic"], expect![[r#"Answer(Picked("anthropic"))"#]]);
    check_lines(
        PROVIDERS,
        &["model"],
        expect![[r#"
        Which provider?
        Keys that are set come first.
        1. A model on this machine  Ollama, LM Studio
        2. The scripted model  a demo
        a number or a name picks; an empty line goes back
    "#]],
    );
    check_lines(
        PROVIDERS,
        &["nothing of that kind"],
        expect![[r#"
        Which provider?
        Keys that are set come first.
        1. Anthropic  ANTHROPIC_API_KEY is set
        2. A model on this machine  Ollama, LM Studio
        3. The scripted model  a demo
        a number or a name picks; an empty line goes back
    "#]],
    );
    check_lines(PROVIDERS, &[""], expect!["Answer(Back)"]);
}

#[test]
fn plugins_are_listed_with_what_they_bring() {
    check(
        r#"
        ready
        type:/plugin
        enter
        enter
        reply:session.plugins.list:{"plugins":[{"name":"tidy","path":"/p/tidy","agents":["reviewer"],"skills":[],"commands":["tidy"],"mcpServers":["s"],"hooks":true},{"name":"empty","path":"/p/empty"}]}
        "#,
        expect![[r#"
            $ hangar
            ∙ tidy (/p/tidy)
                agents: reviewer
                commands: tidy
                MCP servers: s
                hooks
              empty (/p/empty)
                brings nothing
              `hangar plugin` installs and updates plugins for later
              sessions; --plugin-dir DIR loads one for this session.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.plugins.list {}
        "#]],
    );
    check(
        r#"
        ready
        type:/plugin
        enter
        enter
        reply:session.plugins.list:{"plugins":[]}
        "#,
        expect![[r#"
            $ hangar
            ∙ No plugin is loaded.
              `hangar plugin` installs and updates plugins for later
              sessions; --plugin-dir DIR loads one for this session.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.plugins.list {}
        "#]],
    );
}
