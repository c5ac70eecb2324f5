//! Languages of scripts, shells and web pages.

use super::super::rules::{
    BlockComment, Case, Feature, Grammar, Holes, Language, LexicalRules, Quote, StringPrefix, block, quote,
};
use super::words;

const C_BLOCK: &[BlockComment] = &[block("/*", "*/")];
const JS_QUOTES: &[Quote] = &[quote("\""), quote("'"), quote("`").over_lines().with(Holes::Template)];

/// Rules of JavaScript and TypeScript.
const JAVASCRIPT: LexicalRules = LexicalRules {
    comments: &["//", "#!"],
    blocks: C_BLOCK,
    quotes: JS_QUOTES,
    keywords: words![abstract as asserts async await break case catch class const continue debugger declare default delete do else enum
        export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new
        of override private protected public readonly return satisfies set static super switch this throw try type typeof var
        void while with yield],
    constants: words![true false null undefined NaN Infinity],
    types: words![any bigint boolean never number object string symbol unknown],
    functions: words![function],
    definitions: words![class interface enum extends implements namespace],
    case: Case::Types,
    word: "$",
    features: &[Feature::Decorators, Feature::Patterns, Feature::Jsx],
    ..LexicalRules::NONE
};

const SHELL_QUOTES: &[Quote] = &[
    quote("$'").until("'").over_lines(),
    quote("\"").over_lines().with(Holes::Shell),
    quote("'").raw().over_lines(),
    quote("`").over_lines().with(Holes::Shell),
];

pub(super) static ALL: &[Language] = &[
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "node", "tsx", "flow"],
        files: &["jakefile"],
        grammar: Grammar::Code(&JAVASCRIPT),
    },
    Language {
        names: &["typescript", "ts", "mts", "cts"],
        files: &[],
        // `<Type>value` is a cast here, not an element.
        grammar: Grammar::Code(&LexicalRules {
            features: &[Feature::Decorators, Feature::Patterns],
            ..JAVASCRIPT
        }),
    },
    Language {
        names: &["python", "py", "py3", "python3", "pyi", "pyw", "ipython", "starlark", "bzl", "gyp"],
        files: &["sconstruct", "sconscript", "build.bazel", "wscript"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"\"\"").over_lines(), quote("'''").over_lines(), quote("\""), quote("'")],
            prefixes: &[
                ("r", StringPrefix::Raw),
                ("b", StringPrefix::Plain),
                ("u", StringPrefix::Plain),
                ("br", StringPrefix::Raw),
                ("rb", StringPrefix::Raw),
                ("f", StringPrefix::Holes(Holes::Braces)),
                ("t", StringPrefix::Holes(Holes::Braces)),
                ("fr", StringPrefix::RawHoles(Holes::Braces)),
                ("rf", StringPrefix::RawHoles(Holes::Braces)),
            ],
            keywords: words![and as assert async await break case class continue def del elif else except finally for from global if
                import in is lambda match nonlocal not or pass raise return try while with yield self cls],
            constants: words![True False None Ellipsis NotImplemented __name__ __file__],
            types: words![bool bytes complex dict float frozenset int list object set str tuple type],
            functions: words![def],
            definitions: words![class],
            case: Case::Types,
            features: &[Feature::Decorators],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &[
            "bash",
            "sh",
            "shell",
            "zsh",
            "ksh",
            "fish",
            "console",
            "shellsession",
            "terminal",
            "shell-session",
            "sh-session",
        ],
        files: &[
            ".bashrc",
            ".bash_profile",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".envrc",
            "pkgbuild",
        ],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: SHELL_QUOTES,
            heredoc: Some("<<"),
            keywords: words![and begin break case continue coproc do done elif else end esac exit export fi for foreach function if in
                local not or readonly repeat return select set switch then time trap unset until while],
            constants: words![true false],
            word: "-./+:@%,",
            sigils: "$",
            features: &[Feature::Shell, Feature::BlankBeforeComment],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["powershell", "pwsh", "ps1", "psm1", "psd1", "ps"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            blocks: &[block("<#", "#>")],
            quotes: &[
                quote("@\"").until("\"@").raw().over_lines().with(Holes::Dollar),
                quote("@'").until("'@").raw().over_lines(),
                quote("\"").doubled().over_lines().with(Holes::Dollar),
                quote("'").doubled().over_lines(),
            ],
            keywords: words![begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach
                from function if in param process return switch throw trap try until using while],
            case: Case::Ignored,
            word: "-",
            sigils: "$",
            features: &[Feature::Shell],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["ruby", "rb", "rake", "gemspec", "podspec", "crystal", "cr"],
        files: &["gemfile", "rakefile", "podfile", "vagrantfile", "brewfile", "fastfile"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            blocks: &[block("=begin", "=end")],
            quotes: &[
                quote("\"").over_lines().with(Holes::Hash),
                quote("'").over_lines(),
                quote("`").with(Holes::Hash),
            ],
            heredoc: Some("<<"),
            keywords: words![alias and attr_accessor attr_reader attr_writer begin break case class def defined do else elsif end ensure
                extend for if in include loop module next not or prepend private protected public raise redo require
                require_relative rescue retry return self super then undef unless until when while yield],
            constants: words![true false nil __FILE__ __LINE__ __dir__],
            functions: words![def],
            definitions: words![class module],
            case: Case::Types,
            word: "?",
            sigils: "$@",
            features: &[Feature::Patterns, Feature::Symbols],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["php", "phtml", "php3", "php4", "php5", "php7", "php8"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["//", "# "],
            blocks: C_BLOCK,
            quotes: &[quote("\"").over_lines().with(Holes::Dollar), quote("'").over_lines(), quote("`")],
            heredoc: Some("<<<"),
            keywords: words![abstract and array as break callable case catch class clone const continue declare default do echo else
                elseif enum extends final finally fn for foreach function global goto if implements include include_once instanceof
                insteadof interface isset list match namespace new or php print private protected public readonly require
                require_once return self static switch throw trait try unset use var while xor yield],
            constants: words![true false null TRUE FALSE NULL __DIR__ __FILE__],
            types: words![bool float int iterable mixed never object string void],
            functions: words![function fn],
            definitions: words![class interface trait enum extends implements],
            case: Case::Types,
            sigils: "$",
            features: &[Feature::Attributes],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["perl", "pl", "pm", "t"],
        files: &["makefile.pl"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            blocks: &[block("=pod", "=cut"), block("=head", "=cut")],
            quotes: &[quote("\"").over_lines().with(Holes::Dollar), quote("'").over_lines(), quote("`")],
            heredoc: Some("<<"),
            keywords: words![and bless cmp die do each else elsif eq eval exit for foreach ge given gt if keys last le local lt my ne
                next no not or our package print printf push redo require return say shift state sub unless until use values wantarray
                warn when while],
            constants: words![undef __FILE__ __LINE__ __PACKAGE__ __DATA__ __END__],
            functions: words![sub],
            definitions: words![package],
            sigils: "$@%",
            features: &[Feature::Patterns],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["lua", "luau"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["--"],
            blocks: &[block("--[[", "]]")],
            quotes: &[quote("\""), quote("'")],
            keywords: words![and break do else elseif end for function goto if in local not or repeat return then until while self],
            constants: words![true false nil],
            functions: words![function],
            features: &[Feature::LongBrackets],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["elixir", "ex", "exs", "eex", "heex"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[
                quote("\"\"\"").over_lines().with(Holes::Hash),
                quote("'''").over_lines().with(Holes::Hash),
                quote("\"").over_lines().with(Holes::Hash),
                quote("'").with(Holes::Hash),
            ],
            keywords: words![after alias and case catch cond def defdelegate defexception defguard defimpl defmacro defmodule defp
                defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue super throw try
                unless unquote use when with],
            constants: words![true false nil __MODULE__],
            functions: words![def defp defmacro defguard defdelegate],
            definitions: words![defmodule defprotocol defimpl],
            case: Case::Types,
            word: "?!",
            features: &[Feature::Decorators, Feature::Symbols],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["r", "rscript"],
        files: &[".rprofile"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            quotes: &[quote("\"").over_lines(), quote("'").over_lines(), quote("`").raw()],
            keywords: words![break else for function if in library next repeat require return while],
            constants: words![TRUE FALSE NULL NA NaN Inf T F],
            word: ".",
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["julia", "jl"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["#"],
            blocks: &[block("#=", "=#")],
            quotes: &[quote("\"\"\"").over_lines(), quote("\"")],
            keywords: words![abstract baremodule begin break catch const continue do else elseif end export finally for function global
                if import in isa let local macro module mutable primitive quote return struct try type using where while],
            constants: words![true false nothing missing Inf NaN pi],
            functions: words![function macro],
            definitions: words![struct type],
            case: Case::Types,
            word: "!",
            features: &[Feature::Characters, Feature::Decorators, Feature::Symbols],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["vim", "viml", "vimscript"],
        files: &[".vimrc", "vimrc"],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["\" "],
            quotes: &[quote("\""), quote("'").doubled()],
            keywords: words![augroup autocmd call catch command continue echo else elseif endfor endfunction endif endtry endwhile
                execute filetype finally for function if in let map nmap nnoremap noremap return set setlocal source syntax try
                unlet vnoremap while],
            functions: words![function],
            word: ":#",
            ..LexicalRules::NONE
        }),
    },
];
