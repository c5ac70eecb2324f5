//! Languages that are compiled.

use super::super::rules::{
    BlockComment, Case, Feature, Grammar, Holes, Language, LexicalRules, Quote, StringPrefix, block, nested,
    quote,
};
use super::words;

const C_BLOCK: &[BlockComment] = &[block("/*", "*/")];
const NESTED_BLOCK: &[BlockComment] = &[nested("/*", "*/")];
const C_QUOTES: &[Quote] = &[quote("\""), quote("'")];
const TRIPLE_QUOTES: &[Quote] = &[quote("\"\"\"").over_lines(), quote("\""), quote("'")];
const C_PREFIXES: &[(&str, StringPrefix)] = &[
    ("l", StringPrefix::Plain),
    ("u", StringPrefix::Plain),
    ("u8", StringPrefix::Plain),
    ("r", StringPrefix::Delimiter),
];

/// Rules that the languages with braces share.
const BRACES: LexicalRules = LexicalRules {
    comments: &["//"],
    blocks: C_BLOCK,
    quotes: C_QUOTES,
    case: Case::TypesAndCalls,
    ..LexicalRules::NONE
};

pub(super) static ALL: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["//"],
            blocks: NESTED_BLOCK,
            quotes: &[quote("\"").over_lines().with(Holes::Format)],
            prefixes: &[
                ("b", StringPrefix::Holes(Holes::None)),
                ("c", StringPrefix::Holes(Holes::None)),
                ("r", StringPrefix::Hashes),
                ("br", StringPrefix::Hashes),
                ("cr", StringPrefix::Hashes),
            ],
            keywords: words![as async await break const continue crate dyn else enum extern fn for gen if impl in let loop macro_rules
                match mod move mut pub ref return self Self static struct super trait type union unsafe use where while yield],
            constants: words![true false],
            types: words![bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64],
            functions: words![fn],
            definitions: words![struct enum trait type union],
            case: Case::Types,
            features: &[Feature::Attributes, Feature::Lifetimes, Feature::Macros],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["go", "golang"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            quotes: &[quote("\""), quote("'"), quote("`").raw().over_lines()],
            keywords: words![break case chan const continue default defer else fallthrough for func go goto if import interface map
                package range return select struct switch type var],
            constants: words![true false nil iota],
            types: words![any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string
                uint uint8 uint16 uint32 uint64 uintptr],
            functions: words![func],
            definitions: words![type],
            ..BRACES
        }),
    },
    Language {
        names: &["c", "h"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            prefixes: C_PREFIXES,
            keywords: words![alignas alignof auto break case const constexpr continue default do else enum extern for goto if inline
                register restrict return sizeof static static_assert struct switch typedef typeof union volatile while _Atomic _Generic],
            constants: words![true false NULL nullptr],
            types: words![bool char double float int long short signed unsigned void size_t ssize_t ptrdiff_t int8_t int16_t int32_t
                int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t FILE],
            definitions: words![struct enum union],
            features: &[Feature::Preprocessor],
            ..BRACES
        }),
    },
    Language {
        names: &[
            "cpp",
            "c++",
            "cc",
            "cxx",
            "hpp",
            "hh",
            "hxx",
            "cu",
            "objective-c",
            "objc",
            "m",
            "mm",
            "arduino",
            "ino",
        ],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            prefixes: C_PREFIXES,
            keywords: words![alignas alignof and asm auto break case catch class co_await co_return co_yield concept const consteval
                constexpr constinit const_cast continue decltype default delete do dynamic_cast else enum explicit export extern final
                for friend goto if inline mutable namespace new noexcept not operator or override private protected public
                register reinterpret_cast requires return sizeof static static_assert static_cast struct switch template this
                thread_local throw try typedef typeid typename union using virtual volatile while],
            constants: words![true false nullptr NULL nil YES NO],
            types: words![bool char char8_t char16_t char32_t double float int long short signed unsigned void wchar_t size_t int8_t
                int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t string vector],
            definitions: words![class struct enum union concept],
            features: &[Feature::Preprocessor],
            ..BRACES
        }),
    },
    Language {
        names: &["csharp", "c#", "cs"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            quotes: &[
                quote("\"\"\"").raw().over_lines(),
                quote("$@\"").until("\"").doubled().over_lines().with(Holes::Braces),
                quote("@\"").until("\"").doubled().over_lines(),
                quote("$\"").until("\"").with(Holes::Braces),
                quote("\""),
                quote("'"),
            ],
            keywords: words![abstract as async await base break case catch checked class const continue default delegate do else enum
                event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock nameof namespace new
                operator out override params partial private protected public readonly record ref required return sealed set sizeof
                stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual volatile when where while
                with yield],
            constants: words![true false null],
            types: words![bool byte char decimal double dynamic float int long nint nuint object sbyte short string uint ulong ushort void],
            definitions: words![class struct interface enum record],
            features: &[Feature::Preprocessor],
            ..BRACES
        }),
    },
    Language {
        names: &["java"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            quotes: TRIPLE_QUOTES,
            keywords: words![abstract assert break case catch class const continue default do else enum extends final finally for goto
                if implements import instanceof interface native new non package permits private protected public record return
                sealed static strictfp super switch synchronized this throw throws transient try var volatile when while yield],
            constants: words![true false null],
            types: words![boolean byte char double float int long short void],
            definitions: words![class interface enum record extends implements],
            case: Case::Types,
            features: &[Feature::Decorators],
            ..BRACES
        }),
    },
    Language {
        names: &["kotlin", "kt", "kts"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            blocks: NESTED_BLOCK,
            quotes: &[
                quote("\"\"\"").raw().over_lines().with(Holes::Dollar),
                quote("\"").with(Holes::Dollar),
                quote("'"),
            ],
            keywords: words![abstract actual annotation as break by catch class companion const constructor continue crossinline data do
                else enum expect external final finally for fun get if import in infix init inline inner interface internal is
                lateinit noinline object open operator out override package private protected public reified return sealed set super
                suspend tailrec this throw try typealias val value var vararg when where while],
            constants: words![true false null],
            functions: words![fun],
            definitions: words![class interface object typealias],
            case: Case::Types,
            features: &[Feature::Decorators],
            ..BRACES
        }),
    },
    Language {
        names: &["swift"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            blocks: NESTED_BLOCK,
            quotes: &[
                quote("\"\"\"").over_lines().with(Holes::Parenthesis),
                quote("\"").with(Holes::Parenthesis),
            ],
            keywords: words![actor any as associatedtype async await break case catch class continue convenience default defer deinit do
                else enum extension fallthrough fileprivate final for func get guard if import in indirect init inout internal is
                isolated lazy let mutating nonisolated nonmutating open operator optional override precedencegroup private protocol
                public repeat required rethrows return self Self set some static struct subscript super switch throw throws try
                typealias unowned var weak where while willSet didSet],
            constants: words![true false nil],
            functions: words![func],
            definitions: words![class struct enum protocol extension actor typealias associatedtype],
            case: Case::Types,
            features: &[Feature::Decorators, Feature::HashStrings, Feature::Preprocessor],
            ..BRACES
        }),
    },
    Language {
        names: &["dart"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            quotes: &[
                quote("\"\"\"").over_lines().with(Holes::Dollar),
                quote("'''").over_lines().with(Holes::Dollar),
                quote("\"").with(Holes::Dollar),
                quote("'").with(Holes::Dollar),
            ],
            prefixes: &[("r", StringPrefix::Raw)],
            keywords: words![abstract as assert async await base break case catch class const continue covariant default deferred do
                else enum export extends extension external factory final finally for get hide if implements import in interface is
                late library mixin new on operator part required rethrow return sealed set show static super switch sync this
                throw try typedef var when while with yield],
            constants: words![true false null],
            types: words![bool double dynamic int num void],
            definitions: words![class enum mixin extension typedef extends implements],
            case: Case::Types,
            features: &[Feature::Decorators],
            ..BRACES
        }),
    },
    Language {
        names: &["scala", "sc", "sbt"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            blocks: NESTED_BLOCK,
            quotes: &[quote("\"\"\"").raw().over_lines(), quote("\"")],
            prefixes: &[
                ("s", StringPrefix::Holes(Holes::Dollar)),
                ("f", StringPrefix::Holes(Holes::Dollar)),
                ("raw", StringPrefix::RawHoles(Holes::Dollar)),
            ],
            keywords: words![abstract case catch class def derives do else end enum export extends extension final finally for given if
                implicit import inline lazy match new object opaque open override package private protected return sealed super
                then this throw trait transparent try type using val var while with yield],
            constants: words![true false null],
            functions: words![def],
            definitions: words![class trait object enum type extends],
            case: Case::Types,
            features: &[Feature::Decorators, Feature::Characters],
            ..BRACES
        }),
    },
    Language {
        names: &["zig", "zon"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            blocks: &[],
            quotes: &[quote("\\\\").raw().until("\n"), quote("\""), quote("'")],
            keywords: words![addrspace align allowzero and anyframe anytype asm async await break callconv catch comptime const continue
                defer else enum errdefer error export extern fn for if inline linksection noalias noinline nosuspend opaque or
                orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var
                volatile while],
            constants: words![true false null undefined],
            types: words![anyerror anyopaque bool c_int f16 f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 usize void],
            functions: words![fn],
            case: Case::Types,
            features: &[Feature::Decorators],
            ..BRACES
        }),
    },
    Language {
        names: &["haskell", "hs", "elm", "purescript", "purs"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["--"],
            blocks: &[nested("{-", "-}")],
            quotes: &[quote("\"")],
            keywords: words![as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr
                instance let mdo module newtype of pattern port qualified rec then type where],
            constants: words![otherwise],
            case: Case::Types,
            word: "'",
            features: &[Feature::Characters],
            ..LexicalRules::NONE
        }),
    },
    Language {
        names: &["ocaml", "ml", "mli", "fsharp", "fs", "f#", "fsx"],
        files: &[],
        grammar: Grammar::Code(&LexicalRules {
            comments: &["//"],
            blocks: &[nested("(*", "*)")],
            quotes: &[quote("\"\"\"").raw().over_lines(), quote("\"").over_lines()],
            keywords: words![and as assert async begin class do done downto else end exception external for fun function functor if in
                include inherit inline let lazy match member method module mutable namespace new object of open private rec sig
                static struct task then to try type use val virtual when while with yield],
            constants: words![true false null],
            types: words![bool char float int list option string unit],
            case: Case::Types,
            features: &[Feature::Characters],
            ..LexicalRules::NONE
        }),
    },
];
