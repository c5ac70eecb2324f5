use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Shows the pieces of code with their roles.
fn shown(mut lexer: Lexer, code: &str) -> String {
    let mut shown = String::new();
    for line in code.lines() {
        for (range, role) in lexer.line(line) {
            let text = &line[range];
            let name = match role {
                None | Some(Syntax::Operator | Syntax::Punctuation) => {
                    shown.push_str(text);
                    continue;
                }
                Some(Syntax::Comment) => "comment",
                Some(Syntax::Keyword) => "key",
                Some(Syntax::String) => "str",
                Some(Syntax::Number) => "num",
                Some(Syntax::Constant) => "const",
                Some(Syntax::Function) => "fn",
                Some(Syntax::Type) => "type",
                Some(Syntax::Variable) => "var",
                Some(Syntax::Attribute) => "attr",
                Some(Syntax::Tag) => "tag",
                Some(Syntax::Heading) => "head",
                Some(Syntax::Inserted) => "ins",
                Some(Syntax::Deleted) => "del",
            };
            shown.push_str(&format!("{name}‹{text}›"));
        }
        shown.push('\n');
    }
    shown
}

fn check(language: &str, code: &str, expected: Expect) {
    let language = languages::by_info(language).unwrap_or_else(|| panic!("{language} is not known"));
    expected.assert_eq(&shown(Lexer::new(language), code));
}

#[test]
fn rust() {
    check(
        "rust",
        "/* a /* b */\n c */ #[derive(Debug)]\nfn main<'a>(x: &'a str) -> Option<u32> {\n    let c = 'x'; let n = '\\n'; // one\n    println!(\"hi {x:?} {{}} \\u{1F600}\", 1_000.5e-3);\n    r#\"raw \" \\ \"#; b\"x\"; x.type_of(MAX); Self::new(0..10);\n    \"two\n lines\";\n}",
        expect![[r##"
            comment‹/* a /* b */›
            comment‹ c */› attr‹#[derive(Debug)]›
            key‹fn› fn‹main›<key‹'a›>(x: &key‹'a› type‹str›) -> type‹Option›<type‹u32›> {
                key‹let› c = str‹'x'›; key‹let› n = str‹'\n'›; comment‹// one›
                fn‹println!›(str‹"hi ›const‹{x:?}›str‹ ›const‹{{}}›str‹ ›const‹\u{1F600}›str‹"›, num‹1_000.5e-3›);
                str‹r#"raw " \ "#›; str‹b"x"›; x.fn‹type_of›(const‹MAX›); key‹Self›::fn‹new›(num‹0›..num‹10›);
                str‹"two›
            str‹ lines"›;
            }
        "##]],
    );
}

#[test]
fn python() {
    check(
        "py",
        "@app.route('/x')\nclass A(Base):\n    \"\"\"Doc\n    it's\"\"\"\n    def f(self, x: int = 0x1F) -> None:\n        return f\"{x + len('a')!r} {{}}\" + r'\\d' # y\n",
        expect![[r#"
            attr‹@app.route›(str‹'/x'›)
            key‹class› type‹A›(type‹Base›):
                str‹"""Doc›
            str‹    it's"""›
                key‹def› fn‹f›(key‹self›, x: type‹int› = num‹0x1F›) -> const‹None›:
                    key‹return› str‹f"›{x + fn‹len›(str‹'a'›)!r}str‹ ›const‹{{}}›str‹"› + str‹r'\d'› comment‹# y›
        "#]],
    );
}

#[test]
fn javascript_and_its_elements() {
    check(
        "tsx",
        "const re = /[/\"]+/g, q = a / b / c;\nconst s = `a ${f({ x: `${1}` })} b\n${c}`;\nexport function App<T>({ items }: Props) {\n  const [n, setN] = useState<number>(0);\n  return (\n    <List.Item key={n} onClick={() => setN(n < 2 ? 1 : 2)} title=\"it's\">\n      it's {items.map((i) => <b>{i}</b>)} &amp; <br/> more\n    </List.Item>\n  ); // done\n}",
        expect![[r#"
        key‹const› re = str‹/[/"]+/g›, q = a / b / c;
        key‹const› s = str‹`a ›${fn‹f›({ x: str‹`›${num‹1›}str‹`› })}str‹ b›
        ${c}str‹`›;
        key‹export› key‹function› fn‹App›<type‹T›>({ items }: type‹Props›) {
          key‹const› [n, setN] = useState<type‹number›>(num‹0›);
          key‹return› (
            tag‹<List.Item› attr‹key›={n} attr‹onClick›={() => fn‹setN›(n < num‹2› ? num‹1› : num‹2›)} attr‹title›=str‹"it's"›tag‹>›
              it's {items.fn‹map›((i) => tag‹<b>›{i}tag‹</b>›)} const‹&amp;› tag‹<br/>› more
            tag‹</List.Item>›
          ); comment‹// done›
        }
    "#]],
    );
    check(
        "ts",
        "let x = <Foo>y; type A = 'a' | \"b\"; @Input() name?: string = null;",
        expect![[r#"
        key‹let› x = <type‹Foo›>y; key‹type› type‹A› = str‹'a'› | str‹"b"›; attr‹@Input›() name?: type‹string› = const‹null›;
    "#]],
    );
}

#[test]
fn data() {
    check(
        "json",
        "{ \"a\\\"b\": \"c: d\", \"n\": [1.5e+3, true, null] } // x",
        expect![[r#"
        { attr‹"a\"b"›: str‹"c: d"›, attr‹"n"›: [num‹1.5e+3›, const‹true›, const‹null›] } comment‹// x›
    "#]],
    );
    check(
        "toml",
        "[package.\"x\"] # c\nname = \"a # b\"\n\"quoted key\" = 'c:\\x'\na.b-c = { version = \"1\", on = true }\nt = \"\"\"\nx = 1\n\"\"\"",
        expect![[r#"
        head‹[package."x"]› comment‹# c›
        attr‹name› = str‹"a # b"›
        attr‹"quoted key"› = str‹'c:\x'›
        attr‹a.b-c› = { attr‹version› = str‹"1"›, attr‹on› = const‹true› }
        attr‹t› = str‹"""›
        str‹x = 1›
        str‹"""›
    "#]],
    );
    check(
        "yaml",
        "---\nname: it's # c\non:\n  - push\n  - key: 12\n    url: http://x#y\nrun: |\n  echo \"a: b\"\n\n  # text\nflow: { a: 1, \"b\": [x, 'y'] }\nref: *base",
        expect![[r#"
            ---
            attr‹name›: str‹it's› comment‹# c›
            attr‹on›:
              - str‹push›
              - attr‹key›: num‹12›
                attr‹url›: str‹http://x#y›
            attr‹run›: |
            str‹  echo "a: b"›

            str‹  # text›
            attr‹flow›: { attr‹a›: num‹1›, attr‹"b"›: [x, str‹'y'›] }
            attr‹ref›: var‹*base›
        "#]],
    );
    check(
        "ini",
        "; c\n[core]\neditor = it's vi # x\non = true",
        expect![[r#"
        comment‹; c›
        head‹[core]›
        attr‹editor› = it's vi comment‹# x›
        attr‹on› = const‹true›
    "#]],
    );
    check(
        "hcl",
        "resource \"aws_x\" \"y\" {\n  name = \"${var.a}-b\" # c\n  text = <<-EOT\n    name = 1\n  EOT\n}",
        expect![[r#"
        key‹resource› str‹"aws_x"› str‹"y"› {
          attr‹name› = str‹"›${var.a}str‹-b"› comment‹# c›
          attr‹text› = str‹<<-EOT›
        str‹    name = 1›
        str‹  EOT›
        }
    "#]],
    );
    check(
        "nix",
        "{ pkgs ? import <nixpkgs> { } }: rec {\n  a' = ''\n    x ${pkgs.b}\n  '';\n}",
        expect![[r#"
        { pkgs ? key‹import› <nixpkgs> { } }: key‹rec› {
          attr‹a'› = str‹''›
        str‹    x ›${pkgs.b}
        str‹  ''›;
        }
    "#]],
    );
    check(
        "graphql",
        "type Query { user(id: ID!): User @deprecated } # c\nquery Q($id: ID = \"x\") { ...F }",
        expect![[r#"
        key‹type› type‹Query› { fn‹user›(attr‹id›: const‹ID›!): type‹User› attr‹@deprecated› } comment‹# c›
        key‹query› type‹Q›(var‹$id›: const‹ID› = str‹"x"›) { ...type‹F› }
    "#]],
    );
    check(
        "proto",
        "syntax = \"proto3\";\nmessage A { repeated string b = 1; } // c\nrpc Get(A) returns (B);",
        expect![[r#"
        key‹syntax› = str‹"proto3"›;
        key‹message› type‹A› { key‹repeated› type‹string› b = num‹1›; } comment‹// c›
        key‹rpc› fn‹Get›(type‹A›) key‹returns› (type‹B›);
    "#]],
    );
    check(
        "sql",
        "SELECT count(*), 'it''s' FROM t -- c\nwhere id = 1 AND x IS NULL;",
        expect![[r#"
        key‹SELECT› fn‹count›(*), str‹'it›const‹''›str‹s'› key‹FROM› t comment‹-- c›
        key‹where› id = num‹1› key‹AND› x key‹IS› const‹NULL›;
    "#]],
    );
}

#[test]
fn shells() {
    check(
        "bash",
        "$ FOO=bar ls -la --all \"$HOME/${x:-y} $(cat 'a b' | wc -l)\" # c\nif [ \"$1\" = x ]; then echo it\\'s #no; fi\ncat <<'EOF' > f.txt\n  $x it's\nEOF\nfor i in a b; do git commit -m 'x\ny' && ./run.sh 2>&1; done\nfoo() { return 1; }",
        expect![[r#"
            $ var‹FOO›=bar ls attr‹-la› attr‹--all› str‹"›var‹$HOME›str‹/›var‹${x:-y}›str‹ ›$(fn‹cat› str‹'a b'› | fn‹wc› attr‹-l›)str‹"› comment‹# c›
            key‹if› [ str‹"›var‹$1›str‹"› = x ]; key‹then› fn‹echo› itconst‹\'›s comment‹#no; fi›
            fn‹cat› str‹<<'EOF'› > f.txt
            str‹  $x it's›
            str‹EOF›
            key‹for› i key‹in› a b; key‹do› fn‹git› commit attr‹-m› str‹'x›
            str‹y'› && fn‹./run.sh› num‹2›>&num‹1›; key‹done›
            fn‹foo›() { key‹return› num‹1›; }
        "#]],
    );
    check(
        "powershell",
        "function Get-It($x) { # c\n  Get-Item -Path \"$x\\y\" | foreach { $_.Name } }",
        expect![[r#"
        key‹function› fn‹Get-It›(var‹$x›) { comment‹# c›
          fn‹Get-Item› attr‹-Path› str‹"›var‹$x›str‹\y"› | key‹foreach› { var‹$_›.Name } }
    "#]],
    );
    check(
        "dockerfile",
        "FROM rust:1.9 AS build # c\nRUN echo \"$A\" && from x\nENV A=b",
        expect![[r#"
        key‹FROM› rust:1.9 key‹AS› build comment‹# c›
        key‹RUN› echo str‹"›var‹$A›str‹"› && from x
        key‹ENV› attr‹A›=b
    "#]],
    );
    check(
        "make",
        "CC ?= gcc\nall: main.o $(OBJ) # c\n\t$(CC) -o $@ \"x\"\nifeq ($(A),b)",
        expect![[r#"
        attr‹CC› ?= gcc
        fn‹all›: main.o var‹$(OBJ)› comment‹# c›
        	var‹$(CC)› -o var‹$@› str‹"x"›
        key‹ifeq› (var‹$(A)›,b)
    "#]],
    );
}

#[test]
fn languages_with_braces() {
    check(
        "go",
        "package main\nfunc (s *Server) Run(ctx context.Context) error {\n\tx := `raw\n\\n` + \"a\\n\" + string('b')\n\treturn nil // c\n}\ntype A struct{}",
        expect![[r#"
        key‹package› main
        key‹func› (s *type‹Server›) fn‹Run›(ctx context.type‹Context›) type‹error› {
        	x := str‹`raw›
        str‹\n`› + str‹"a›const‹\n›str‹"› + type‹string›(str‹'b'›)
        	key‹return› const‹nil› comment‹// c›
        }
        key‹type› type‹A› key‹struct›{}
    "#]],
    );
    check(
        "c",
        "#include <stdio.h>\n# define MAX 10\nstatic int f(const char *s) { return printf(\"%d\\n\", 'a' + 0xFFu); } /* c */",
        expect![[r#"
        key‹#include› str‹<stdio.h>›
        key‹# define› const‹MAX› num‹10›
        key‹static› type‹int› fn‹f›(key‹const› type‹char› *s) { key‹return› fn‹printf›(str‹"%d›const‹\n›str‹"›, str‹'a'› + num‹0xFFu›); } comment‹/* c */›
    "#]],
    );
    check(
        "cpp",
        "auto s = R\"x(a \" )y)x\"; int n = 1'000; std::vector<Foo> v; // c",
        expect![[r#"
        key‹auto› s = str‹R"x(a " )y)x"›; type‹int› n = num‹1'000›; std::type‹vector›<type‹Foo›> v; comment‹// c›
    "#]],
    );
    check(
        "c#",
        "var s = $\"a {x + \"b\"} {{c}}\" + @\"c:\\\"; [Test] public void Run() => Foo(); // c",
        expect![[r#"
            key‹var› s = str‹$"a ›{x + str‹"b"›}str‹ ›const‹{{›str‹c›const‹}}›str‹"› + str‹@"c:\"›; [type‹Test›] key‹public› type‹void› fn‹Run›() => fn‹Foo›(); comment‹// c›
        "#]],
    );
    check(
        "java",
        "@Override public List<String> f(int a) { return new Foo(\"\"\"\n  a \"b\"\n  \"\"\"); }",
        expect![[r#"
        attr‹@Override› key‹public› type‹List›<type‹String›> fn‹f›(type‹int› a) { key‹return› key‹new› type‹Foo›(str‹"""›
        str‹  a "b"›
        str‹  """›); }
    "#]],
    );
    check(
        "kotlin",
        "data class A(val x: Int)\nfun f() = \"a ${x.map { it }} $y\" // c",
        expect![[r#"
        key‹data› key‹class› type‹A›(key‹val› x: type‹Int›)
        key‹fun› fn‹f›() = str‹"a ›${x.map { it }}str‹ ›var‹$y›str‹"› comment‹// c›
    "#]],
    );
    check(
        "swift",
        "@main struct A { let s = #\"a \"b\"\"#; func f() -> Int { \"x \\(y + 1)\".count } }",
        expect![[r##"
        attr‹@main› key‹struct› type‹A› { key‹let› s = str‹#"a "b""#›; key‹func› fn‹f›() -> type‹Int› { str‹"x ›\(y + num‹1›)str‹"›.count } }
    "##]],
    );
    check(
        "scala",
        "def f(x: Int) = s\"a $x ${y}\" + 'c' // d",
        expect![[r#"
        key‹def› fn‹f›(x: type‹Int›) = str‹s"a ›var‹$x›str‹ ›${y}str‹"› + str‹'c'› comment‹// d›
    "#]],
    );
    check(
        "zig",
        "const s = \\\\a \" b\n;\npub fn f(x: u8) !void { @import(\"x\"); }",
        expect![[r#"
        key‹const› s = str‹\\a " b›
        ;
        key‹pub› key‹fn› fn‹f›(x: type‹u8›) !type‹void› { attr‹@import›(str‹"x"›); }
    "#]],
    );
    check(
        "php",
        "<?php $x = \"a $y\"; echo <<<EOT\n it's\nEOT;\nfunction f(?int $a): string {} # c",
        expect![[r#"
        <?key‹php› var‹$x› = str‹"a ›var‹$y›str‹"›; key‹echo› str‹<<<EOT›
        str‹ it's›
        str‹EOT›;
        key‹function› fn‹f›(?type‹int› var‹$a›): type‹string› {} comment‹# c›
    "#]],
    );
    check(
        "css",
        "@media print { a:hover, .b > #c { color: #fff; margin: -1.5em 10% } }\n.x {\n  --y: 1px;\n  background: url(\"x\") red; /* c */\n}",
        expect![[r#"
        key‹@media› tag‹print› { tag‹a›:tag‹hover›, tag‹.b› > tag‹#c› { attr‹color›: num‹#fff›; attr‹margin›: -num‹1.5em› num‹10%› } }
        tag‹.x› {
          var‹--y›: num‹1px›;
          attr‹background›: fn‹url›(str‹"x"›) red; comment‹/* c */›
        }
    "#]],
    );
}

#[test]
fn languages_with_words() {
    check(
        "ruby",
        "class A < B\n  attr_reader :name\n  def f?(x) = \"a #{x.y { |z| z }} b\" # c\n  x = <<~SQL\n    it's\n  SQL\n  @a =~ /b\"/i ? nil : {a: 1}\nend\n=begin\nx\n=end\n1",
        expect![[r#"
        key‹class› type‹A› < type‹B›
          key‹attr_reader› const‹:name›
          key‹def› fn‹f?›(x) = str‹"a ›#{x.y { |z| z }}str‹ b"› comment‹# c›
          x = str‹<<~SQL›
        str‹    it's›
        str‹  SQL›
          var‹@a› =~ str‹/b"/i› ? const‹nil› : {a: num‹1›}
        key‹end›
        comment‹=begin›
        comment‹x›
        comment‹=end›
        num‹1›
    "#]],
    );
    check(
        "lua",
        "local s = [==[ a ]] b ]==] -- c\n--[[ d\n]] function M.f(x) return nil end",
        expect![[r#"
        key‹local› s = str‹[==[ a ]] b ]==]› comment‹-- c›
        comment‹--[[ d›
        comment‹]]› key‹function› M.fn‹f›(x) key‹return› const‹nil› key‹end›
    "#]],
    );
    check(
        "elixir",
        "defmodule A.B do\n  @doc \"\"\"\n  x\n  \"\"\"\n  def f!(x), do: {:ok, \"a #{x}\"} # c\nend",
        expect![[r#"
        key‹defmodule› type‹A›.type‹B› key‹do›
          attr‹@doc› str‹"""›
        str‹  x›
        str‹  """›
          key‹def› fn‹f!›(x), key‹do›: {const‹:ok›, str‹"a ›#{x}str‹"›} comment‹# c›
        key‹end›
    "#]],
    );
    check(
        "haskell",
        "f' :: Maybe Int -> Char -- c\nf' x = case x of { Just n -> 'a'; _ -> '\\n' } {- d {- e -} -}",
        expect![[r#"
        f' :: type‹Maybe› type‹Int› -> type‹Char› comment‹-- c›
        f' x = key‹case› x key‹of› { type‹Just› n -> str‹'a'›; _ -> str‹'\n'› } comment‹{- d {- e -} -}›
    "#]],
    );
    check(
        "r",
        "x <- c(1, TRUE) # c\nf.g <- function(a) 'b'",
        expect![[r#"
        x <- fn‹c›(num‹1›, const‹TRUE›) comment‹# c›
        f.g <- key‹function›(a) str‹'b'›
    "#]],
    );
    check(
        "perl",
        "my @a = (1, $b{x}); sub f { return \"a $x\" =~ /'/; } # c",
        expect![[r#"
            key‹my› var‹@a› = (num‹1›, var‹$b›{x}); key‹sub› fn‹f› { key‹return› str‹"a ›var‹$x›str‹"› =~ str‹/'/›; } comment‹# c›
        "#]],
    );
}

#[test]
fn markup() {
    check(
        "html",
        "<!DOCTYPE html>\n<!-- a\nb --><a href=\"x\ny\" disabled>it's &lt; 1 < 2</a>\n<script>\nlet x = '</b>';\n</script><style>a { color: red }</style><br/>",
        expect![[r#"
        tag‹<!DOCTYPE› attr‹html›tag‹>›
        comment‹<!-- a›
        comment‹b -->›tag‹<a› attr‹href›=str‹"x›
        str‹y"› attr‹disabled›tag‹>›it's const‹&lt;› 1 < 2tag‹</a>›
        tag‹<script>›
        key‹let› x = str‹'</b>'›;
        tag‹</script><style>a› { attr‹color›: red }tag‹</style><br/>›
    "#]],
    );
    check(
        "xml",
        "<?xml version='1.0'?><a:b c=\"d\"/>",
        expect![[r#"
        tag‹<?xml› attr‹version›=str‹'1.0'›tag‹?><a:b› attr‹c›=str‹"d"›tag‹/>›
    "#]],
    );
    check(
        "md",
        "# Head\n> quote `a` **b** [c](d) [e]\n- item\n1. two\n```rust\nlet x = 1;\n```\n~~~\nit's\n~~~\ntext ``",
        expect![[r#"
        head‹# Head›
        comment‹> ›quote str‹`a`› **b** fn‹[c]›str‹(d)› [e]
        key‹-› item
        key‹1.› two
        ```attr‹rust›
        key‹let› x = num‹1›;
        ```
        ~~~
        str‹it's›
        ~~~
        text ``
    "#]],
    );
    check(
        "diff",
        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z",
        expect![[r#"
        head‹--- a›
        head‹+++ b›
        attr‹@@ -1 +1 @@›
        del‹-x›
        ins‹+y›
         z
    "#]],
    );
}

#[test]
fn the_languages_of_answers_are_known() {
    let names = "rust py python js ts typescript tsx jsx json jsonc yaml yml toml sh bash shell console zsh fish go golang c \
        cpp c++ java kotlin swift ruby php sql html css scss xml diff markdown md dockerfile Dockerfile makefile make \
        lua perl r scala elixir haskell zig nix graphql proto protobuf ini csharp c# dart vue svelte powershell \
        terraform hcl rust,ignore js{1,2}";
    let unknown: Vec<_> =
        names.split_whitespace().filter(|name| languages::by_info(name).is_none()).collect();
    assert_eq!(unknown, [""; 0]);
    for name in ["", "text", "plain", "txt", "output", "unknown"] {
        assert!(languages::by_info(name).is_none(), "{name}");
    }
}

#[test]
fn every_name_is_of_one_language() {
    let mut names: Vec<_> = languages::all().flat_map(|language| language.names).collect();
    names.sort_unstable();
    let doubled: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
}

#[test]
fn files_are_known_by_name() {
    for (path, name) in [
        ("src/a.py", Some("python")),
        ("Makefile", Some("makefile")),
        ("Dockerfile.dev", Some("dockerfile")),
        ("x/Cargo.lock", Some("toml")),
        ("README", Some("markdown")),
        ("readme.json", Some("json")),
        (".bashrc", Some("bash")),
        ("a.TSX", Some("javascript")),
        ("notes", None),
        ("", None),
        ("/", None),
    ] {
        let found = languages::by_path(Path::new(path)).map(|language| language.names[0]);
        assert_eq!(found, name, "{path}");
    }
}

#[test]
fn roles_become_styles() {
    let theme = Theme::ansi();
    let spans = Highlighter::for_path("a.rs", &theme).line("let x = \"a\";");
    let texts: Vec<_> = spans.iter().map(|span| span.text.as_str()).collect();
    assert_eq!(texts, ["let", " x = ", "\"a\"", ";"]);
    assert_eq!((spans[0].style, spans[2].style), (theme.syntax.keyword, theme.syntax.string));
    assert_eq!(Highlighter::for_path("notes", &theme).line("let x"), [Span::new("let x", theme.text)]);
}

#[test]
fn lines_beyond_the_bounds_are_plain() {
    let long = format!("let x = \"{}\";", "a".repeat(LONGEST_LINE));
    let mut highlighter = Highlighter::for_language("rust", &Theme::ansi());
    assert_eq!(highlighter.line("let x = 1;").len(), 4);
    assert_eq!(highlighter.line(&long).len(), 1);
    let mut highlighter = Highlighter::for_language("rust", &Theme::ansi());
    let last = (0..=MOST_LINES).map(|_| highlighter.line("1;").len()).last();
    assert_eq!(last, Some(1));
}

/// Marks that open, close and escape in some language.
const MARKS: &[&str] = &[
    "\"",
    "'",
    "`",
    "\"\"\"",
    "/*",
    "*/",
    "//",
    "#",
    "<<EOF",
    "EOF",
    "${",
    "#{",
    "$(",
    "}",
    ")",
    "{",
    "(",
    "<a",
    "</a>",
    ">",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "[[",
    "]]",
    "[=[",
    "r#\"",
    "\"#",
    "\\",
    "/",
    "[",
    "]",
    "- a: |",
    "  ",
    "\t",
    "```md",
    "```",
    "fn ",
    "x",
    "漢",
    "é",
    "1.",
    "0x",
    "@",
    ":",
    "=",
    "=begin",
    "R\"(",
    "$",
    "&",
    ";",
    "!",
    ".",
    "-",
    "<",
    "if ",
    "--",
    "{-",
    "\u{301}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_is_only_split_and_state_is_bounded(
        lines in prop::collection::vec(prop::collection::vec(prop::sample::select(MARKS), 0..12), 0..12)
    ) {
        for language in languages::all() {
            let mut lexer = Lexer::new(language);
            for line in &lines {
                let line = line.concat();
                let pieces = lexer.line(&line);
                let text: String = pieces.iter().map(|(range, _)| &line[range.clone()]).collect();
                prop_assert_eq!(&text, &line);
                if let Lexer::Code(code) = &lexer {
                    prop_assert!(code.stack.len() <= 16);
                }
            }
        }
    }

    #[test]
    fn any_text_can_be_read(text in "\\PC{0,40}") {
        for language in languages::all() {
            let pieces = Lexer::new(language).line(&text);
            prop_assert_eq!(pieces.last().map_or(0, |(range, _)| range.end), text.len());
        }
    }
}
