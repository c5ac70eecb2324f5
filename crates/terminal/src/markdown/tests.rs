mod stream;

use expect_test::{Expect, expect};

use super::MarkdownStream;
use crate::gate::attacks::{ATTACKS, obeyed};
use crate::row::{Row, Style};
use crate::theme::Theme;

/// Rows as text; `⏎` marks those that the terminal may wrap.
fn shown(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{}{}\n", row.text(), if row.unwrapped { "⏎" } else { "" })).collect()
}

fn check(markdown: &str, columns: usize, expected: Expect) {
    expected.assert_eq(&shown(&MarkdownStream::render(markdown, columns, Theme::ansi())));
}

/// Text with its attributes in angle brackets.
fn check_styles(markdown: &str, expected: Expect) {
    let name = |style: Style| {
        let theme = Theme::ansi();
        let mut name = String::new();
        for (mark, on) in [
            ("b", style.bold),
            ("i", style.italic),
            ("s", style.strike),
            ("u", style.underline),
            ("d", style.dim),
            ("c", style.fg == theme.code.fg),
            ("l", style.fg == theme.link.fg),
            ("m", style.fg == theme.accent.fg),
        ] {
            if on {
                name.push_str(mark);
            }
        }
        name
    };
    let mut out = String::new();
    for row in MarkdownStream::render(markdown, 60, Theme::ansi()) {
        for span in row.spans {
            match name(span.style).as_str() {
                "" => out.push_str(&span.text),
                name => out.push_str(&format!("<{name}:{}>", span.text)),
            }
        }
        out.push('\n');
    }
    expected.assert_eq(&out);
}

#[test]
fn prose_wraps_and_blocks_have_gaps() {
    let text =
        "# Title\nSome text that is *long* enough\nfor two rows.\n\nNext.\n***\nEnd  \nbreak\\\nlast\n";
    check(
        text,
        30,
        expect![[r#"
        Title

        Some text that is long enough
        for two rows.

        Next.

        ──────────────────────────────

        End
        break
        last
    "#]],
    );
}

#[test]
fn inline_styles() {
    check_styles(
        "a **b *c*** _d_ ~~e~~ `f *g*` **h `i`** snake_case 2 * 3 * 4 &lt;&amp; \\*j\\*\n\n# K `l`\n\nM\n---\n",
        expect![[r#"
            a <b:b ><bi:c> <i:d> <s:e> <c:f *g*> <b:h ><bc:i> snake_case 2 * 3 * 4 <& *j*

            <bu:K ><buc:l>

            <b:M>
        "#]],
    );
}

#[test]
fn links_show_their_target_and_html_its_tags() {
    check_styles(
        "[a](https://b.example) <https://c.example> [https://d.example](https://d.example) ![e](f.png) <me@x.example> \
         <b>g</b>h<br>i [j] [k][l] [](m)\n\n<details>\n <summary>n</summary>\n</details>\n\n<!-- o -->\n\n[l]: https://p.example\n",
        expect![[r#"
            <ul:a> <d:(https://b.example)> <ul:https://c.example> <ul:https://d.example>
            [image: e] <d:f.png> <ul:me@x.example> <d:<b>>g<d:</b>>h
            i [j] [k][l] <d:(m)>

            <d:<details>>
            <d: <summary>n</summary>>
            <d:</details>>

            <d:<!-- o -->>

            [l]: https://p.example
        "#]],
    );
}

#[test]
fn lists_nest_and_keep_numbers_and_boxes() {
    let text = "- one\n  wrapped lazily\nor not\n- two\n  - deep item that is long\n    1. three\n    7. seven\n\n  para\n\n3) x\n\n\
                   4) y\n* [ ] open\n* [x] done\n-\n- - nested\n+\ttab";
    check(
        text,
        24,
        expect![[r#"
        • one wrapped lazily or
          not
        • two
          • deep item that is
            long
            1. three
            7. seven

          para

        3) x

        4) y
        [ ] open
        [x] done
        •
        • • nested
        • tab
    "#]],
    );
}

#[test]
fn quotes_have_a_bar() {
    check(
        "> a quote that is long\n> > deeper\n>\n> - item\nlazy\n\nafter\n> # h\n",
        20,
        expect![[r#"
        │ a quote that is
        │ long
        │ │ deeper
        │
        │ • item lazy

        after

        │ h
    "#]],
    );
}

#[test]
fn code_is_exact_and_not_wrapped() {
    let text = "Run:\n```rust title=x\nfn main() {\n\n\tlet x = \"a very long line that is wider than the screen\";\n}\n```\n\
                - item\n  ```\n    two\n  ```\n- ~~~\n  three\n  ~~~\n\n> ```\n> four\nfive\n\n    six\n\n      seven\n\n```\nopen";
    check(
        text,
        30,
        expect![[r#"
            Run:

            rust title=x
            fn main() {⏎
            ⏎
                    let x = "a very long line that is wider than the screen";⏎
            }⏎

            • item

              two⏎

            •
            three⏎

            four⏎

            five

            six⏎
            ⏎
              seven⏎

            open⏎
        "#]],
    );
}

#[test]
fn tables_fit_the_width() {
    let text = "Text:\n| Name | Count | Note |\n|:--|--:|:-:|\n| a `b` | 1 | x |\n| c\\|d | 22 | a longer note | e |\n| f |\nafter\n";
    check(
        text,
        60,
        expect![[r#"
        Text:

        ┌──────┬───────┬───────────────────┐
        │ Name │ Count │       Note        │
        ├──────┼───────┼───────────────────┤
        │ a b  │     1 │         x         │
        │ c|d  │    22 │ a longer note | e │
        │ f    │       │                   │
        └──────┴───────┴───────────────────┘

        after
    "#]],
    );
    check(
        text,
        33,
        expect![[r#"
            Text:

            ┌──────┬───────┬────────────────┐
            │ Name │ Count │      Note      │
            ├──────┼───────┼────────────────┤
            │ a b  │     1 │       x        │
            ├──────┼───────┼────────────────┤
            │ c|d  │    22 │ a longer note  │
            │      │       │      | e       │
            ├──────┼───────┼────────────────┤
            │ f    │       │                │
            └──────┴───────┴────────────────┘

            after
        "#]],
    );
    check(
        text,
        22,
        expect![[r#"
        Text:

        Name: a b
        Count: 1
        Note: x

        Name: c|d
        Count: 22
        Note: a longer note |
          e

        Name: f
        Count:
        Note:

        after
    "#]],
    );
    check(
        "a | b\nno table",
        22,
        expect![[r#"
        a | b no table
    "#]],
    );
    check(
        "> | a | b |\n> |---|---|\n> | 漢字 | x<br>y |\n",
        22,
        expect![[r#"
        │ ┌──────┬───┐
        │ │ a    │ b │
        │ ├──────┼───┤
        │ │ 漢字 │ x │
        │ │      │ y │
        │ └──────┴───┘
    "#]],
    );
}

#[test]
fn escapes_never_pass() {
    check(
        "a\u{1b}[31mb &#27;]0;t&#7; `\u{9b}1m` [c\u{202e}](d\u{200b})\n\n```x\u{1b}]0;\u{7}\n\u{1b}[2J\trest\n```\n\n<div \u{1b}>\n\n# \u{7}\n\n|\u{8}|\n|-|\n",
        80,
        expect![[r#"
            a␛[31mb ␛]0;t␇ <U+009B>1m c<U+202E> (d<U+200B>)

            x␛]0;␇
            ␛[2J    rest⏎

            <div ␛>

            ␇

            ┌───┐
            │ ␈ │
            └───┘
        "#]],
    );
}

/// Places in a document where text can stand.
const PLACES: &[&str] = &[
    "@",
    "**@**",
    "`@`",
    "[@](x)",
    "[x](@)",
    "![@](@)",
    "<@>",
    "# @",
    "- @",
    "1. [x] @",
    "> @",
    "```\n@\n```",
    "```@\nx\n```",
    "```rust\n\"@",
    "    @",
    "<div>@</div>",
    "<!-- @",
    "|@|b|\n|-|-|\n|c|@|",
    "@\n---",
    "@\n\n@",
    "\\@",
];

#[test]
fn no_attack_leaves_a_character_that_a_terminal_obeys() {
    for (name, attack) in ATTACKS {
        for place in PLACES {
            let mut stream = MarkdownStream::new(Theme::none());
            stream.push(&place.replace('@', attack));
            let open = stream.open_row(200);
            stream.finish();
            for row in stream.take_rows(60).iter().chain(&open) {
                assert_eq!(obeyed(&row.text()), None, "{name} in {place}");
            }
        }
    }
}

#[test]
fn odd_documents() {
    check("", 10, expect![[""]]);
    check("\n\n\n", 10, expect![[""]]);
    check(
        "    code first",
        10,
        expect![[r#"
        code first⏎
    "#]],
    );
    check(
        "**never closed and long",
        10,
        expect![[r#"
        **never
        closed and
        long
    "#]],
    );
    check(
        "# \n## a ##\n#no\n1. \n2. x",
        10,
        expect![[r#"


        a

        #no 1. 2.
        x
    "#]],
    );
    check(
        "a\r\nb\r\n\r\nc\rd",
        10,
        expect![[r#"
        a b

        c d
    "#]],
    );
    check(
        "- a\n\n  b\n\n\n\nc",
        1,
        expect![[r#"
        a

        b

        c
    "#]],
    );
}

#[test]
fn a_tab_between_words_is_wider_than_a_blank() {
    let text = |source: &str| {
        let rows = MarkdownStream::render(source, 40, Theme::ansi());
        rows.iter().map(|row| format!("{}|", row.text())).collect::<String>()
    };
    assert_eq!(text("name\tvalue **b\tc** `d\te`"), "name    value b    c d    e|");
    assert_eq!(text("name\t\nvalue \t x"), "name value    x|");
    assert!(!text("a\tb").contains('\t'));
}
