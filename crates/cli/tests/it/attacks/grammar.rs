//! A grammar of dangerous parts: shell lines that look harmless, put together at random, with a seed that makes them again.
//!
//! A line affects only the machine that it is tried on: no part names a path of the real one.

/// A line as the parts that it was made of.
pub(super) type Parts = Vec<String>;

/// Numbers that look random and follow from a seed (`SplitMix64`).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or_default()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn happens(&mut self, in_hundred: usize) -> bool {
        self.below(100) < in_hundred
    }
}

/// Programs that are known to read only, with options that are not, or that take a file or a value.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("cat", &["-n", "-v", "-", "--"]),
    (
        "grep",
        &["-ie", "-e", "--reg=.", "-f", "-v", "--", "-r", "-R", "hello", "--file", "-m1", "--color", "."],
    ),
    ("sort", &["-o", "-oP", "-t", "-k1", "--outp=P", "-m", "--files0-from", "-u", "-T", "--"]),
    ("uniq", &["-c", "--", "-f", "1", "P", "-out"]),
    ("cut", &["-c1-", "-d", "x", "-f1", "--", "--output-delimiter"]),
    ("paste", &["-d", "-s", "-", "--"]),
    ("head", &["-n", "1", "-c5", "-q", "--"]),
    ("tail", &["-n+1", "-c", "5", "--"]),
    (
        "sed",
        &["-n", "-e", "p", "'w P'", "'1e touch P'", "r../secret.txt", "-i", "-f", "--", "''", "'s/h/x/w P'"],
    ),
    (
        "find",
        &[
            "-maxdepth",
            "0",
            "-exec",
            "touch P \\;",
            "-fprint",
            "P",
            "-name",
            "x",
            "-L",
            "-o",
            "-prune",
            "{} +",
        ],
    ),
    ("diff", &["-r", "--from-file", "--to-file", "-x", "d1", "d2", "--label", "-X", "-N"]),
    ("comm", &["-1", "-13", "--"]),
    ("join", &["-t", "x", "-a1", "-j", "1"]),
    ("wc", &["-l", "--files0-from", "--"]),
    ("od", &["-c", "-An", "-tx1"]),
    ("xxd", &["-p", "-r", "--", "P", "-s", "0"]),
    ("file", &["-f", "-m", "-C", "-L", "--files-from"]),
    ("date", &["-f", "-r", "--file", "+%s", "-d", "now"]),
    ("strings", &["-n", "3", "@../secret.txt", "-a"]),
    ("tac", &["-s", "x", "--"]),
    ("nl", &["-s", "x", "--"]),
    ("du", &["-a", "-X", "--files0-from", "-L"]),
    ("ls", &["-la", "-R", "-L", "-d", "--"]),
    ("base64", &["-w", "0", "-d", "--"]),
    (
        "git",
        &[
            "log",
            "diff",
            "grep",
            "-O'touch P;:'",
            "--output=P",
            "status",
            "-C",
            "--no-index",
            "hello",
            "blame",
            "-p",
            "--",
            "HEAD~1",
            "show",
        ],
    ),
    ("echo", &["-n", "-e", "x"]),
    ("test", &["-f", "-v", "-n", "x", "="]),
    ("read", &["-r", "x", "-a", "y", "-d", "''"]),
    ("printf", &["-v", "x", "%s", "'\\x2e'", "P"]),
    ("declare", &["-l", "-n", "-i", "-x", "x=P", "e=-EXEC", "x='a[$(touch P)]'"]),
    ("mapfile", &["-t", "-C", "'touch P'", "-c1", "x"]),
    ("xzcat", &["-f", "--files", "--"]),
    ("jq", &["-n", ".", "-R", "-f", "'import \"../secret\" as $s; $s'", "--rawfile", "x", "-L.."]),
    ("tr", &["a", "b", "-d", "x"]),
    ("stat", &["-c", "%n", "-L"]),
    ("ps", &["eww", "-p", "$PPID", "ax", "-o", "args"]),
    ("type", &["-a", "ls"]),
    ("set", &["-k", "-a", "-x", "--", "-o", "history"]),
    ("trap", &["'touch P'", "EXIT", "DEBUG", "--", "-p"]),
    ("column", &["-t", "-s", "x"]),
];

/// Places, inside and out. None is a place of the real machine.
const PLACES: &[&str] = &[
    "a.txt",
    "b.txt",
    "sub",
    "sub/c.txt",
    ".",
    "..",
    "../secret.txt",
    "../other",
    "../other/secret.txt",
    "~/secret.txt",
    "$HOME/.ssh/id",
    "@ROOT@/secret.txt",
    "../*.txt",
    "../secre?.txt",
    "../secre[t\\ ].txt",
    ".?/secret.txt",
    "*",
    "link",
    "-link",
    "{a..c}",
    "up/secret.txt",
    "l*",
    "$PWD/../secret.txt",
    "${PWD%/*}/secret.txt",
    "/proc/self/cwd/../secret.txt",
    "/proc/self/root@ROOT@/secret.txt",
    "/dev/fd/3",
    "$x",
    "\"$x\"",
    "$OLDPWD/secret.txt",
    "/proc/$PPID/environ",
    "/proc/@VICTIM@/environ",
    "'x;touch P'",
    "sub/../../secret.txt",
    "~+/../secret.txt",
    "$'../secret.txt'",
];

/// Prefixes of a line.
const BEFORE: &[&str] = &[
    "x=../secret.txt;",
    "x=-exec;",
    "x='-fprint P';",
    "PWD=-fprint;",
    "HOME=..;",
    "OLDPWD=..;",
    "cd sub;",
    "cd sub extra;",
    "env cd sub;",
    "cd up;",
    "cd -P ..;",
    "set -k;",
    "set -a;",
    "declare -l x=-EXEC;",
    "declare -l x=../SECRET.TXT;",
    "read x <<< ../secret.txt;",
    "read x <<< 'a[$(touch P)]';",
    "printf -v x ../secret.txt;",
    "x='a[$(touch P)]';",
    "IFS=/;",
    "shopt -s extglob;",
    "x=sub",
    "LC_ALL=C",
    "CDPATH=..;",
    "for x in ../secret.txt -oP; do",
    "x=(-fprint P);",
    "set -- -fprint P;",
    "exec 3< ../secret.txt;",
    "p='\\.\\./secret.txt';",
    "mapfile -t x <<< ../secret.txt;",
    "true &&",
    "false ||",
    "!",
    "time",
    "GIT_TRACE=@ROOT@/P",
    "BASH_ENV='$(touch P)'",
    "HISTFILE=../P; set -o history\n",
    "x=-o;",
    "declare -n x=y; y=../secret.txt;",
    "ls() { cat ../secret.txt; };",
    "PS4='$(touch P)'; set -x;",
    "coproc",
    "trap 'touch P' EXIT;",
];

/// Programs that run a line given as arguments.
const WRAPPERS: &[&str] = &[
    "env",
    "env -i",
    "env -C ..",
    "nice",
    "timeout 5",
    "command",
    "builtin",
    "exec",
    "eval",
    "nohup",
    "stdbuf -o0",
    "xargs",
    "xargs -a a.txt",
    "find . -maxdepth 0 -exec",
    "bash -c",
    "sh -c",
    "bash -O extglob -c",
    "setsid -w",
    "command -p",
    "time -p",
    "busybox",
    "env X=1",
    "bash <<<",
];

/// Suffixes of a line.
const BEHIND: &[&str] = &[
    "> P",
    ">> ../P",
    "2> P",
    "< ../secret.txt",
    "< link",
    "| cat",
    "| sort -oP",
    "| tee P",
    "| xargs touch",
    "| sh",
    "&",
    "; done",
    "; ((x))",
    "; [[ x -gt 0 ]]",
    "; echo $x",
    "; cat $x",
    "<<< P",
    "3< ../secret.txt",
    "> /dev/null",
    "2>&1",
    "<<E\n$(touch P)\nE",
    "> >(cat > P)",
    "; cat \"$_\"",
    "\\;",
    "; :",
    "# x\ntouch P",
    "> $x",
    "|| touch P",
    ">& P",
    "<> P",
];

/// Rewritings of a word that keep its meaning, or almost.
fn disguise(dice: &mut Dice, word: &str) -> String {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-./_=".contains(c));
    if !plain || word.len() < 2 {
        return word.to_owned();
    }
    let (head, tail) = word.split_at(1 + dice.below(word.len() - 1));
    match dice.below(12) {
        0 => format!("{head}''{tail}"),
        1 => format!("'{word}'"),
        2 => format!("\"{word}\""),
        3 => format!("{head}\\{tail}"),
        4 => format!("$'{word}'"),
        5 => format!("{{{word},}}"),
        6 => format!("{head}{{{tail},x}}"),
        7 => format!("${{u:-{word}}}"),
        8 => format!("$(echo {word})"),
        9 => format!("{head}${{u}}{tail}"),
        10 => format!("{head}[{}]{}", &tail[..1], &tail[1..]),
        _ => format!("${{u-{head}}}{tail}"),
    }
}

/// One line.
pub(super) fn line(dice: &mut Dice) -> Parts {
    let mut parts = Parts::new();
    let mut add = |part: &str| parts.push(part.to_owned());
    while dice.happens(45) {
        add(dice.pick(BEFORE));
    }
    if dice.happens(25) {
        add(dice.pick(WRAPPERS));
    }
    let (program, options) = PROGRAMS[dice.below(PROGRAMS.len())];
    let name = if dice.happens(12) { disguise(dice, program) } else { program.to_owned() };
    add(&name);
    for _ in 0..=dice.below(4) {
        let word = if dice.happens(55) { dice.pick(options) } else { dice.pick(PLACES) };
        let word = if dice.happens(20) { disguise(dice, word) } else { word.to_owned() };
        add(&word);
    }
    if dice.happens(30) {
        let inner = format!("$({} {})", PROGRAMS[dice.below(PROGRAMS.len())].0, dice.pick(PLACES));
        add(&inner);
    }
    while dice.happens(35) {
        add(dice.pick(BEHIND));
    }
    parts
}

/// The line as it is run.
pub(super) fn text(parts: &[String]) -> String {
    parts.join(" ")
}
