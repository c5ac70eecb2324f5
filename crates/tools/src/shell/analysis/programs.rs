//! The programs that only read, and the flags with which they do not.

use super::sed;
use super::words::Arg;

/// Meaning of a program's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Mere texts, whatever they look like.
    Texts,
    Files,
    /// A pattern or script, and then files. The letters are those of the short flags that take a value.
    PatternAndFiles(&'static str),
}

use Operands::{Files, PatternAndFiles, Texts};

/// Of `grep` and its kin.
const GREP: Operands = PatternAndFiles("ABCmefdD");
const RIPGREP: Operands = PatternAndFiles("ABCmefgtTjMEr");
const FD: Operands = PatternAndFiles("etdESc");
const JQ: Operands = PatternAndFiles("Lf");
const SED: Operands = PatternAndFiles("efl");
const AWK: Operands = PatternAndFiles("Fvf");

struct Program {
    name: &'static str,
    operands: Operands,
    allows: Allows,
}

enum Allows {
    Everything,
    /// Letters of short flags and names of long ones that write or run something.
    Except(&'static str, &'static [&'static str]),
    /// At most this many files, since a further one is written.
    Operands(usize),
    /// Exactly these single arguments.
    Only(&'static [&'static str]),
    If(fn(&[Arg]) -> bool),
}

const fn entry(name: &'static str, operands: Operands, allows: Allows) -> Program {
    Program { name, operands, allows }
}

use Allows::{Everything, Except, If, Only};

const VERSION: &[&str] = &["--version"];

const PROGRAMS: &[Program] = &[
    // Of the shell itself.
    entry(":", Texts, Everything),
    entry("break", Texts, Everything),
    entry("continue", Texts, Everything),
    entry("echo", Texts, Everything),
    entry("exit", Texts, Everything),
    entry("false", Texts, Everything),
    entry("jobs", Texts, Except("x", &[])),
    entry("pwd", Texts, Everything),
    entry("return", Texts, Everything),
    entry("set", Texts, Everything),
    entry("shift", Texts, Everything),
    entry("times", Texts, Everything),
    entry("true", Texts, Everything),
    entry("type", Texts, Everything),
    // Files and directories.
    entry("b2sum", Files, Everything),
    entry("base32", Files, Everything),
    entry("base64", Files, Everything),
    entry("basename", Texts, Everything),
    entry("bzcat", Files, Everything),
    entry("cat", Files, Everything),
    entry("cksum", Files, Everything),
    entry("cmp", Files, Everything),
    entry("column", Files, Everything),
    entry("comm", Files, Everything),
    entry("cut", Files, Everything),
    entry("diff", Files, Everything),
    entry("dir", Files, Everything),
    entry("dirname", Texts, Everything),
    entry("du", Files, Except("", &["files0-from"])),
    entry("egrep", GREP, Everything),
    entry("expand", Files, Everything),
    entry("fd", FD, Except("xX", &["exec", "exec-batch"])),
    entry("fdfind", FD, Except("xX", &["exec", "exec-batch"])),
    entry("fgrep", GREP, Everything),
    entry("file", Files, Except("C", &["compile"])),
    entry("find", Files, If(find_only_reads)),
    entry("fmt", Files, Everything),
    entry("fold", Files, Everything),
    entry("grep", GREP, Everything),
    entry("head", Files, Everything),
    entry("hexdump", Files, Everything),
    entry("join", Files, Everything),
    // These flags have two values, of which the second is a file.
    entry("jq", JQ, Except("", &["rawfile", "slurpfile", "argfile"])),
    entry("ls", Files, Everything),
    entry("md5sum", Files, Everything),
    entry("nl", Files, Everything),
    entry("od", Files, Everything),
    entry("paste", Files, Everything),
    entry("readlink", Files, Everything),
    entry("realpath", Files, Everything),
    entry("rev", Files, Everything),
    entry("rg", RIPGREP, Except("z", &["pre", "pre-glob", "hostname-bin", "search-zip"])),
    entry("sed", SED, If(sed_only_reads)),
    entry("sha1sum", Files, Everything),
    entry("sha224sum", Files, Everything),
    entry("sha256sum", Files, Everything),
    entry("sha384sum", Files, Everything),
    entry("sha512sum", Files, Everything),
    entry("shasum", Files, Everything),
    entry("sort", Files, Except("oT", &["output", "temporary-directory", "compress-program", "files0-from"])),
    entry("stat", Files, Everything),
    entry("strings", Files, Everything),
    entry("sum", Files, Everything),
    entry("tac", Files, Everything),
    entry("tail", Files, Everything),
    entry("tr", Texts, Everything),
    entry("tree", Files, Except("oR", &["output"])),
    entry("unexpand", Files, Everything),
    entry("uniq", Files, Allows::Operands(1)),
    entry("vdir", Files, Everything),
    entry("wc", Files, Except("", &["files0-from"])),
    entry("xxd", Files, Allows::Operands(1)),
    entry("xzcat", Files, Everything),
    entry("zcat", Files, Everything),
    // The machine and its processes.
    entry("arch", Texts, Everything),
    entry("cal", Texts, Everything),
    entry("date", Texts, If(date_only_reads)),
    entry("expr", Texts, Everything),
    entry("free", Texts, Everything),
    entry("getconf", Texts, Everything),
    entry("groups", Texts, Everything),
    entry("hostname", Texts, Only(&["", "-f", "-s", "-i", "-I", "--fqdn", "--short"])),
    entry("id", Texts, Everything),
    entry("locale", Texts, Everything),
    entry("lsblk", Files, Everything),
    entry("lscpu", Texts, Everything),
    entry("nproc", Texts, Everything),
    entry("printenv", Texts, Everything),
    entry("seq", Texts, Everything),
    entry("sleep", Texts, Everything),
    entry("tty", Texts, Everything),
    entry("uname", Texts, Everything),
    entry("uptime", Texts, Everything),
    entry("users", Texts, Everything),
    entry("whereis", Texts, Everything),
    entry("which", Texts, Everything),
    entry("who", Texts, Everything),
    entry("whoami", Texts, Everything),
    // Other services and tools.
    entry("gh", Texts, Only(VERSION)),
    entry("bun", Files, Only(VERSION)),
    entry("cargo", Files, Only(&["--version", "-V"])),
    entry("clang", Files, Only(VERSION)),
    entry("cmake", Files, Only(VERSION)),
    entry("deno", Files, Only(&["--version", "-V"])),
    entry("docker", Files, Only(&["--version", "-v"])),
    entry("dotnet", Files, Only(VERSION)),
    entry("g++", Files, Only(VERSION)),
    entry("gcc", Files, Only(VERSION)),
    entry("go", Files, Only(&["version"])),
    entry("java", Files, Only(&["--version", "-version"])),
    entry("javac", Files, Only(&["--version", "-version"])),
    entry("make", Files, Only(&["--version", "-v"])),
    entry("node", Files, Only(&["--version", "-v"])),
    entry("perl", Files, Only(&["--version", "-v"])),
    entry("php", Files, Only(&["--version", "-v"])),
    entry("pip", Files, Only(&["--version", "-V"])),
    entry("pip3", Files, Only(&["--version", "-V"])),
    entry("python", Files, Only(&["--version", "-V"])),
    entry("python3", Files, Only(&["--version", "-V"])),
    entry("ruby", Files, Only(&["--version", "-v"])),
    entry("rustc", Files, Only(&["--version", "-V"])),
    entry("rustup", Files, Only(&["--version", "-V"])),
    entry("tsc", Files, Only(&["--version", "-v"])),
    // Not only readers, but known to take a script before their files.
    entry("ag", GREP, Only(VERSION)),
    entry("awk", AWK, Only(VERSION)),
    entry("gawk", AWK, Only(VERSION)),
    entry("mawk", AWK, Only(VERSION)),
];

fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

pub(super) fn operands(name: &str) -> Operands {
    program(name).map_or(Files, |program| program.operands)
}

pub(super) fn is_read_only(name: &str, args: &[Arg]) -> bool {
    let Some(program) = program(name) else { return false };
    let flags = || args.iter().filter(|arg| arg.text.starts_with('-') && arg.text.len() > 1);
    let operands = || args.iter().filter(|arg| !arg.text.starts_with('-') || arg.text.len() == 1);
    // An unknown word may be a flag that matters.
    let all_known = args.iter().all(|arg| arg.is_known);
    match &program.allows {
        Everything => all_known || program.operands == Texts,
        Except(short, long) => all_known && !flags().any(|arg| is_among(&arg.text, short, long)),
        Allows::Operands(limit) => all_known && operands().count() <= *limit,
        Only(words) => match args {
            [] => words.contains(&""),
            [arg] => arg.exact().is_some_and(|text| words.contains(&text)),
            _ => false,
        },
        If(only_reads) => all_known && only_reads(args),
    }
}

/// Whether a program goes where links lead in the directories that it walks through.
pub(super) fn follows_links(name: &str, args: &[Arg]) -> bool {
    let has = |short: &str, long: &[&str]| {
        args.iter().any(|arg| arg.text.starts_with('-') && is_among(&arg.text, short, long))
    };
    match name {
        "grep" | "egrep" | "fgrep" => has("R", &["dereference-recursive"]),
        "rg" | "fd" | "fdfind" => has("L", &["follow"]),
        "du" => has("L", &["dereference"]),
        "ls" | "dir" | "vdir" => has("L", &["dereference"]) && has("R", &["recursive"]),
        "tree" => has("l", &[]),
        "diff" => has("r", &["recursive"]),
        "find" => args.iter().any(|arg| matches!(arg.text.as_str(), "-L" | "-follow")),
        _ => false,
    }
}

/// Start directories of a program that follows links: its operands, or the current directory.
pub(super) fn trees(name: &str, args: &[Arg]) -> Vec<Arg> {
    let is_flag = |arg: &Arg| arg.text.starts_with('-');
    let named: Vec<Arg> = match name {
        // Its directories come before what it looks for.
        "find" => {
            let is_option = |arg: &&Arg| matches!(arg.text.as_str(), "-L" | "-H" | "-P");
            let begins_expression = |arg: &Arg| is_flag(arg) || matches!(arg.text.as_str(), "(" | "!");
            args.iter().skip_while(is_option).take_while(|arg| !begins_expression(arg)).cloned().collect()
        }
        _ => file_arguments(name, operands(name), args)
            .into_iter()
            .filter(|arg| !is_flag(arg))
            .cloned()
            .collect(),
    };
    if named.is_empty() { vec![Arg::literal(".")] } else { named }
}

/// Flags whose value is a text, even if it looks like a path.
const TEXT_FLAGS: &[(&str, &[&str])] = &[
    ("column", &["-s", "-o", "--separator"]),
    ("cut", &["-d", "--delimiter"]),
    ("find", &["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-printf"]),
    ("join", &["-t"]),
    ("paste", &["-d", "--delimiters"]),
    ("sort", &["-t", "--field-separator"]),
    ("stat", &["-c", "--format", "--printf"]),
];

/// Flags that give the pattern, or that need none.
const PATTERN_FLAGS: [&str; 9] =
    ["-e", "-f", "--regexp", "--expression", "--file", "--from-file", "--files", "--type-list", "--filter"];

/// Long flags of searching programs whose value is the next argument. Of others it is not known whether they have one.
const FLAGS_WITH_VALUE: [&str; 16] = [
    "--after-context",
    "--before-context",
    "--context",
    "--exclude",
    "--exclude-dir",
    "--glob",
    "--iglob",
    "--include",
    "--max-columns",
    "--max-count",
    "--max-depth",
    "--replace",
    "--sort",
    "--threads",
    "--type",
    "--type-not",
];

/// Long flags of searching programs that have no value.
const FLAGS_WITHOUT_VALUE: [&str; 20] = [
    "--ignore-case",
    "--recursive",
    "--dereference-recursive",
    "--follow",
    "--line-number",
    "--fixed-strings",
    "--word-regexp",
    "--hidden",
    "--no-ignore",
    "--count",
    "--files-with-matches",
    "--invert-match",
    "--extended-regexp",
    "--perl-regexp",
    "--no-heading",
    "--only-matching",
    "--quiet",
    "--no-filename",
    "--with-filename",
    "--multiline",
];

/// The arguments that can name files: a pattern is none, nor is the value of a flag that holds a text.
pub(super) fn file_arguments<'a>(name: &str, operands: Operands, args: &'a [Arg]) -> Vec<&'a Arg> {
    let text_flags =
        TEXT_FLAGS.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, flags)| flags);
    let is_flag = |arg: &Arg| arg.text.starts_with('-') && arg.text.len() > 1;
    let gives_pattern = |arg: &Arg| {
        let name = arg.text.split('=').next().unwrap_or_default();
        PATTERN_FLAGS.contains(&name) || is_flag(arg) && !name.starts_with("--") && name.starts_with("-e")
    };
    let mut pattern_is_due = match operands {
        PatternAndFiles(_) => !args.iter().any(gives_pattern),
        Texts | Files => false,
    };
    let mut files = Vec::new();
    let mut former: Option<&Arg> = None;
    for arg in args {
        let behind = former.replace(arg).filter(|former| is_flag(former)).map(|former| former.text.as_str());
        if behind.is_some_and(|flag| text_flags.contains(&flag)) {
            continue;
        }
        if let PatternAndFiles(value_flags) = operands {
            if matches!(behind, Some("-e" | "--regexp" | "--expression"))
                || arg.text.starts_with("--regexp=")
                || arg.text.starts_with("--expression=")
                || arg.text.starts_with("-e")
            {
                continue;
            }
            // After an unknown flag, either this word or the next is the pattern, and the other may be a file.
            let is_value = match behind {
                Some(flag) if flag.starts_with("--") => match flag {
                    _ if flag == "--" || flag.contains('=') || FLAGS_WITHOUT_VALUE.contains(&flag) => {
                        Some(false)
                    }
                    _ if FLAGS_WITH_VALUE.contains(&flag) => Some(true),
                    _ => None,
                },
                Some(flag) => Some(flag.chars().last().is_some_and(|letter| value_flags.contains(letter))),
                None => Some(false),
            };
            if pattern_is_due && !is_flag(arg) && is_value != Some(true) {
                pattern_is_due = false;
                if is_value == Some(false) {
                    continue;
                }
            }
        }
        files.push(arg);
    }
    files
}

/// Whether a flag is one of these: a letter in a bunch of short ones, or a long one that may be shortened.
fn is_among(flag: &str, short: &str, long: &[&str]) -> bool {
    match flag.strip_prefix("--") {
        Some(name) => {
            let name = name.split('=').next().unwrap_or_default();
            !name.is_empty() && long.iter().any(|long| long.starts_with(name))
        }
        None => flag.chars().any(|letter| short.contains(letter)),
    }
}

fn find_only_reads(args: &[Arg]) -> bool {
    !args.iter().any(|arg| {
        let text = arg.text.as_str();
        // Commands that it runs were removed and are judged separately.
        matches!(text, "-delete" | "-fls" | "-exec" | "-execdir" | "-ok" | "-okdir")
            || text.starts_with("-fprint")
            || text == "-files0-from"
    })
}

fn sed_only_reads(args: &[Arg]) -> bool {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.text.as_str() {
            "-e" | "--expression" => scripts.extend(args.next()),
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "--quiet" | "--silent" | "--regexp-extended"
            | "-nE" | "-nr" | "-En" | "-rn" | "--posix" | "--separate" | "--null-data" | "--" => {}
            flag if flag.starts_with('-') && flag.len() > 1 => return false,
            _ => operands.push(arg),
        }
    }
    if scripts.is_empty() && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    scripts.iter().all(|script| script.exact().is_some_and(sed::is_harmless)) && !scripts.is_empty()
}

/// `date` sets the clock if it is given a time.
fn date_only_reads(args: &[Arg]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.text.as_str() {
            "-u" | "--utc" | "--universal" | "-R" | "--rfc-email" => {}
            "-d" | "--date" | "-r" | "--reference" => drop(args.next()),
            text if text.starts_with('+') => {}
            text if ["--date=", "--reference=", "-I", "--iso-8601", "--rfc-3339="]
                .iter()
                .any(|flag| text.starts_with(flag)) => {}
            _ => return false,
        }
    }
    true
}
