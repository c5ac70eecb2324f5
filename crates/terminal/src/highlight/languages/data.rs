//! Languages of data, configuration, queries, markup and style sheets.

use super::super::rules::{
    BlockComment, Case, Feature, Grammar, Holes, Language, LexicalRules, Quote, block, quote,
};
use super::words;

const C_BLOCK: &[BlockComment] = &[block("/*", "*/")];
const QUOTES: &[Quote] = &[quote("\""), quote("'")];

pub(super) static ALL: &[Language] = &[
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson", "geojson", "webmanifest", "ipynb"],
        files: &[".babelrc", ".eslintrc", ".prettierrc", "composer.lock", "flake.lock"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["//"],
            blocks: C_BLOCK,
            quotes: QUOTES,
            constants: words![true false null],
            keys: ":",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["toml"],
        files: &["cargo.lock", "pipfile", "poetry.lock", "uv.lock"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[
                quote("\"\"\"").over_lines(),
                quote("'''").raw().over_lines(),
                quote("\""),
                quote("'").raw(),
            ],
            constants: words![true false inf nan],
            word: "-.",
            keys: "=",
            features: &[Feature::Sections],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["yaml", "yml"],
        files: &[".clang-format", ".clang-tidy"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"").over_lines(), quote("'").doubled().over_lines()],
            constants: words![true false null yes no on off True False Null Yes No On Off ~],
            word: "-./",
            keys: ":",
            sigils: "&*!",
            features: &[Feature::Yaml, Feature::BlankBeforeComment, Feature::BlankBeforeQuote],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &[
            "ini",
            "cfg",
            "conf",
            "properties",
            "editorconfig",
            "gitconfig",
            "service",
            "desktop",
            "env",
            "dotenv",
        ],
        files: &[".editorconfig", ".gitconfig", ".gitmodules", ".npmrc", ".env", "setup.cfg"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#", ";"],
            quotes: QUOTES,
            constants: words![true false yes no on off],
            word: "-./",
            keys: "=:",
            features: &[Feature::Sections, Feature::BlankBeforeComment, Feature::BlankBeforeQuote],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["hcl", "terraform", "tf", "tfvars", "nomad"],
        files: &[".terraform.lock.hcl"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#", "//"],
            blocks: C_BLOCK,
            quotes: &[quote("\"").with(Holes::Template)],
            heredoc: Some("<<"),
            keywords: words![data dynamic for if import in locals module moved output provider provisioner resource terraform variable],
            constants: words![true false null],
            types: words![any bool list map number object set string tuple],
            word: "-",
            keys: "=",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["nix"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            blocks: C_BLOCK,
            quotes: &[
                quote("''").raw().over_lines().with(Holes::Template),
                quote("\"").over_lines().with(Holes::Template),
            ],
            keywords: words![assert else if import in inherit let or rec then with],
            constants: words![true false null builtins],
            word: "-'",
            keys: "=",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["graphql", "gql"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"\"\"").over_lines(), quote("\"")],
            keywords: words![directive enum extend fragment implements input interface mutation on query repeatable scalar schema
                subscription type union],
            constants: words![true false null],
            definitions: words![enum fragment input interface on scalar type union],
            case: Case::Types,
            sigils: "$",
            keys: ":",
            features: &[Feature::Decorators],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["protobuf", "proto", "proto3"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["//"],
            blocks: C_BLOCK,
            quotes: QUOTES,
            keywords: words![enum extend extensions group import map max message oneof option optional package public repeated required
                reserved returns rpc service stream syntax to weak],
            constants: words![true false],
            types: words![bool bytes double fixed32 fixed64 float int32 int64 sfixed32 sfixed64 sint32 sint64 string uint32 uint64],
            functions: words![rpc],
            definitions: words![message enum service],
            case: Case::Types,
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["sql", "mysql", "postgres", "postgresql", "pgsql", "plsql", "sqlite", "tsql", "ddl"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["--"],
            blocks: C_BLOCK,
            quotes: &[quote("'").doubled().over_lines(), quote("\"").doubled(), quote("`").raw()],
            keywords: words![add all alter analyze and any as asc begin between by cascade case check collate column commit conflict
                constraint create cross cube database declare default delete desc distinct do drop else end escape except exists
                explain fetch filter first following for foreign from full function grant group having if ilike in index inner insert
                intersect into is join key last lateral left like limit natural not nothing nulls of offset on or order outer over
                partition preceding primary procedure range recursive references release rename replace restrict returning returns
                revoke right rollback rows savepoint select set table temporary then to transaction trigger truncate unbounded union
                unique update using vacuum values view when where window with without],
            constants: words![true false null current_timestamp current_date],
            types: words![bigint bigserial binary bit blob boolean bool bytea char date datetime decimal double float int integer interval
                json jsonb money numeric real serial smallint text time timestamp timestamptz tinyint uuid varbinary varchar],
            case: Case::Ignored,
            sigils: "$@",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &[
            "html",
            "htm",
            "xhtml",
            "xml",
            "svg",
            "vue",
            "svelte",
            "astro",
            "xsd",
            "xsl",
            "xslt",
            "plist",
            "csproj",
            "rss",
            "handlebars",
            "hbs",
            "jinja",
            "jinja2",
            "erb",
            "ejs",
        ],
        files: &["pom.xml"],
        grammar: Grammar::Code(&LexicalRules {
            blocks: &[block("<!--", "-->"), block("<![CDATA[", "]]>")],
            features: &[Feature::Document],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["css", "scss", "sass", "less", "pcss", "postcss"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            // Without the blank it would also be in addresses without quotes.
            comments: &["// "],
            blocks: C_BLOCK,
            quotes: QUOTES,
            word: "-",
            sigils: "$",
            features: &[Feature::Styles],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["dockerfile", "docker", "containerfile"],
        files: &["dockerfile", "containerfile"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"").with(Holes::Dollar), quote("'")],
            heredoc: Some("<<"),
            keywords: words![add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal user
                volume workdir],
            case: Case::Ignored,
            word: "-./:",
            sigils: "$",
            keys: "=",
            features: &[Feature::Instructions, Feature::BlankBeforeComment, Feature::BlankBeforeQuote],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["makefile", "make", "mk", "mak", "just"],
        files: &["makefile", "gnumakefile", "justfile"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"").with(Holes::Dollar), quote("'")],
            keywords: words![define else endef endif export ifdef ifeq ifndef ifneq include override unexport vpath],
            word: "-./",
            sigils: "$",
            features: &[Feature::Targets, Feature::Instructions, Feature::BlankBeforeQuote],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["cmake"],
        files: &["cmakelists.txt"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"").over_lines().with(Holes::Dollar)],
            keywords: words![else elseif endforeach endfunction endif endmacro endwhile foreach function if macro return set while],
            constants: words![ON OFF TRUE FALSE],
            sigils: "$",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["markdown", "md", "mdx", "mkd", "qmd", "rmd"],
        files: &["readme", "changelog", "contributing"],
        grammar: Grammar::Markdown,
    },
    Language { names: &["diff", "patch", "udiff"], files: &[], grammar: Grammar::Diff },
];
