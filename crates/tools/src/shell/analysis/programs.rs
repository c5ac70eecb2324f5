//! The programs that only read, and the flags with which they do not.

use super::sed;
use super::words::Arg;

/// What the arguments of a program are that are no flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Mere texts, whatever they look like.
    Texts,
    Files,
    /// A pattern or script, and then files.
    PatternAndFiles,
}

use Operands::{Files, PatternAndFiles, Texts};

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
    /// These first words, and these flags are not among the rest.
    Subcommands(&'static [(&'static str, &'static [&'static str])]),
    If(fn(&[Arg]) -> bool),
}

const fn entry(name: &'static str, operands: Operands, allows: Allows) -> Program {
    Program { name, operands, allows }
}

use Allows::{Everything, Except, If, Only, Subcommands};

const VERSION: &[&str] = &["--version"];

const GITHUB: &[(&str, &[&str])] = &[
    ("pr", &["list", "view", "diff", "status", "checks"]),
    ("issue", &["list", "view", "status"]),
    ("repo", &["list", "view"]),
    ("run", &["list", "view"]),
    ("release", &["list", "view"]),
    ("workflow", &["list", "view"]),
    ("label", &["list"]),
];

const PROGRAMS: &[Program] = &[
    // Of the shell itself.
    entry(":", Texts, Everything),
    entry("break", Texts, Everything),
    entry("continue", Texts, Everything),
    entry("echo", Texts, Everything),
    entry("exit", Texts, Everything),
    entry("false", Texts, Everything),
    entry("jobs", Texts, Everything),
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
    entry("df", Files, Everything),
    entry("diff", Files, Everything),
    entry("dir", Files, Everything),
    entry("dirname", Texts, Everything),
    entry("du", Files, Everything),
    entry("egrep", PatternAndFiles, Everything),
    entry("expand", Files, Everything),
    entry("fd", PatternAndFiles, Except("xX", &["exec", "exec-batch"])),
    entry("fdfind", PatternAndFiles, Except("xX", &["exec", "exec-batch"])),
    entry("fgrep", PatternAndFiles, Everything),
    entry("file", Files, Except("C", &["compile"])),
    entry("find", Files, If(find_only_reads)),
    entry("fmt", Files, Everything),
    entry("fold", Files, Everything),
    entry("grep", PatternAndFiles, Everything),
    entry("head", Files, Everything),
    entry("hexdump", Files, Everything),
    entry("join", Files, Everything),
    entry("jq", PatternAndFiles, Everything),
    entry("ls", Files, Everything),
    entry("md5sum", Files, Everything),
    entry("nl", Files, Everything),
    entry("od", Files, Everything),
    entry("paste", Files, Everything),
    entry("readlink", Files, Everything),
    entry("realpath", Files, Everything),
    entry("rev", Files, Everything),
    entry("rg", PatternAndFiles, Except("z", &["pre", "pre-glob", "hostname-bin", "search-zip"])),
    entry("sed", PatternAndFiles, If(sed_only_reads)),
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
    entry("pgrep", Texts, Everything),
    entry("pidof", Texts, Everything),
    entry("printenv", Texts, Everything),
    entry("ps", Texts, Everything),
    entry("pstree", Texts, Everything),
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
    entry("gh", Files, Subcommands(GITHUB)),
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
    entry("npm", Files, Only(&["--version", "-v"])),
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
    entry("ag", PatternAndFiles, Only(VERSION)),
    entry("awk", PatternAndFiles, Only(VERSION)),
    entry("gawk", PatternAndFiles, Only(VERSION)),
    entry("mawk", PatternAndFiles, Only(VERSION)),
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
    // What cannot be told may be a flag that matters.
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
        Subcommands(known) => match args {
            [group, action, ..] => {
                let (Some(group), Some(action)) = (group.exact(), action.exact()) else { return false };
                let is_known =
                    known.iter().any(|(name, actions)| *name == group && actions.contains(&action));
                is_known && all_known && !flags().any(|arg| is_among(&arg.text, "w", &["web"]))
            }
            _ => false,
        },
        If(only_reads) => all_known && only_reads(args),
    }
}

/// The arguments that can name files: a pattern is none, nor is the value of a flag that holds one.
pub(super) fn file_arguments(operands: Operands, args: &[Arg]) -> impl Iterator<Item = &Arg> {
    let takes_pattern = |arg: &Arg| matches!(arg.exact(), Some("-e" | "--regexp" | "--expression"));
    let in_flag = |arg: &Arg| {
        let text = arg.text.as_str();
        text.starts_with("--regexp=")
            || text.starts_with("--expression=")
            || text.starts_with("-e") && text.len() > 2
    };
    let has_pattern_flag = args.iter().any(|arg| takes_pattern(arg) || in_flag(arg));
    let mut pattern_is_due = operands == PatternAndFiles && !has_pattern_flag;
    let mut value_is_pattern = false;
    args.iter().filter(move |arg| {
        if operands != PatternAndFiles {
            return true;
        }
        let is_flag = arg.text.starts_with('-') && arg.text.len() > 1;
        if std::mem::replace(&mut value_is_pattern, takes_pattern(arg)) || in_flag(arg) {
            return false;
        }
        if pattern_is_due && !is_flag {
            pattern_is_due = false;
            return false;
        }
        true
    })
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
        // Commands it runs were taken out and are judged for themselves.
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
