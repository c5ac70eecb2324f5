//! One command with its arguments: what it is called, what it runs in turn, and whether it only reads.

use super::paths::{self, Certainty};
use super::programs::{self, Operands};
use super::variables::Values;
use super::visitor::Visitor;
use super::words::Arg;
use super::{git, shorten};

/// Directories whose programs are known by their names alone.
const SYSTEM_DIRECTORIES: [&str; 7] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// Programs whose identifier has their first argument in it.
const WITH_SUBCOMMAND: [&str; 19] = [
    "bundle", "cargo", "composer", "dotnet", "flutter", "gh", "glab", "go", "gradle", "mix", "mvn", "npm",
    "npx", "pip", "pip3", "pnpm", "poetry", "swift", "yarn",
];

/// A program that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Flags that take the next argument as their value.
    flags_with_value: &'static [&'static str],
    /// Arguments of its own before the command.
    operands: usize,
    /// Variables for the command may come before it.
    takes_variables: bool,
    /// It does nothing but run the command.
    is_transparent: bool,
}

const fn wrapper(name: &'static str, flags_with_value: &'static [&'static str]) -> Wrapper {
    Wrapper { name, flags_with_value, operands: 0, takes_variables: false, is_transparent: true }
}

const WRAPPERS: [Wrapper; 29] = [
    wrapper("builtin", &[]),
    wrapper("busybox", &[]),
    wrapper("exec", &["-a"]),
    wrapper("ionice", &["-c", "-n", "-p", "--class", "--classdata"]),
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("nohup", &[]),
    wrapper("setsid", &[]),
    wrapper("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"]),
    Wrapper { operands: 1, ..wrapper("timeout", &["-k", "-s", "--kill-after", "--signal"]) },
    Wrapper { takes_variables: true, ..wrapper("env", &["-u", "--unset"]) },
    Wrapper { is_transparent: false, ..wrapper("time", &["-f", "-o", "--format", "--output"]) },
    Wrapper {
        is_transparent: false,
        takes_variables: true,
        ..wrapper(
            "sudo",
            &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-r", "-t", "-U", "--user", "--group"],
        )
    },
    Wrapper { is_transparent: false, ..wrapper("doas", &["-u", "-C"]) },
    Wrapper { is_transparent: false, operands: 1, ..wrapper("chroot", &[]) },
    Wrapper { is_transparent: false, operands: 1, ..wrapper("flock", &["-w", "-E", "--timeout"]) },
    Wrapper {
        is_transparent: false,
        ..wrapper("strace", &["-e", "-o", "-p", "-s", "-u", "-E", "-P", "-O", "-S"])
    },
    Wrapper { is_transparent: false, operands: 1, ..wrapper("chrt", &["-T", "-P", "-D"]) },
    Wrapper { is_transparent: false, ..wrapper("dbus-run-session", &[]) },
    Wrapper { is_transparent: false, operands: 1, ..wrapper("faketime", &[]) },
    Wrapper { is_transparent: false, ..wrapper("ltrace", &["-e", "-o", "-p", "-s", "-u"]) },
    Wrapper { is_transparent: false, ..wrapper("nsenter", &["-t", "--target"]) },
    Wrapper { is_transparent: false, ..wrapper("prlimit", &["-o", "--output"]) },
    Wrapper {
        is_transparent: false,
        ..wrapper(
            "setpriv",
            &["--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--ruid", "--euid"],
        )
    },
    Wrapper {
        is_transparent: false,
        ..wrapper("systemd-run", &["-p", "-u", "--unit", "-E", "--uid", "--gid"])
    },
    Wrapper { is_transparent: false, operands: 1, ..wrapper("taskset", &[]) },
    Wrapper { is_transparent: false, ..wrapper("valgrind", &[]) },
    Wrapper { is_transparent: false, ..wrapper("xvfb-run", &["-n", "-s", "-e", "-f", "-w"]) },
    Wrapper { is_transparent: false, ..wrapper("unshare", &[]) },
    Wrapper {
        is_transparent: false,
        ..wrapper("xargs", &["-I", "-i", "-n", "-P", "-L", "-l", "-d", "-a", "-E", "-e", "-s", "--arg-file"])
    },
];

impl Visitor<'_> {
    /// Notes a simple command and whatever it runs.
    pub(super) fn run(&mut self, args: &[Arg]) {
        let Some((name, rest)) = args.split_first() else { return };
        let Some(written) = name.exact() else {
            self.facts.is_opaque = true;
            self.facts.is_elaborate = true;
            self.note_command(shorten(&name.text), false);
            // Any of these can be the program.
            return rest
                .iter()
                .take_while(|arg| arg.is_choice)
                .for_each(|arg| self.note_command(shorten(&arg.text), false));
        };
        let program = match written.rsplit_once('/') {
            Some((directory, base)) if SYSTEM_DIRECTORIES.contains(&directory) => base,
            Some(_) => {
                paths::note_path(self, name);
                written
            }
            None => written,
        };
        if self.functions.contains(written) {
            self.facts.is_elaborate = true;
            return self.note_ordinary(program, rest, false);
        }
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) {
            return self.run_wrapped(wrapper, rest);
        }
        match program {
            "bash" | "sh" | "dash" | "zsh" | "ksh" => self.run_shell(program, rest),
            "eval" => self.run_eval(rest),
            "trap" => self.run_trap(rest),
            "command" => self.run_command_builtin(rest),
            "source" | "." => {
                self.variables.lose_track();
                self.note_ordinary(program, rest, false);
            }
            "cd" => self.change_directory(rest),
            "pushd" | "popd" => {
                self.places.clear();
                self.note_ordinary(program, rest, false);
            }
            "su" | "runuser" => self.run_as_user(program, rest),
            "watch" => self.run_watch(rest),
            "find" => self.run_find(rest),
            "fd" | "fdfind" => self.run_fd(program, rest),
            "git" => self.run_git(rest),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" | "let" | "printf" | "declare"
            | "typeset" | "local" | "export" | "readonly" | "test" | "[" | "wait" => {
                self.run_builtin(program, rest);
            }
            _ => self.note_ordinary(program, rest, programs::is_read_only(program, rest)),
        }
    }

    /// A command without tricks: its name, its paths and its addresses.
    fn note_ordinary(&mut self, program: &str, rest: &[Arg], read_only: bool) {
        let identifier = match rest.first() {
            Some(first) if WITH_SUBCOMMAND.contains(&program) && first.exact().is_some() => {
                format!("{program} {}", first.text)
            }
            _ => program.to_owned(),
        };
        let operands = programs::operands(program);
        let read_only = self.note_arguments(program, operands, rest, read_only);
        self.note_command(identifier, read_only);
    }

    /// Notes paths and addresses; says whether the command still only reads, now that they are known.
    fn note_arguments(&mut self, program: &str, operands: Operands, rest: &[Arg], read_only: bool) -> bool {
        if operands == Operands::Texts {
            // A pattern lists names, whichever command receives them.
            let lists = |arg: &&Arg| match arg.glob_at {
                Some(at) => arg.text[..at].contains('/'),
                None => !arg.is_known && arg.text.contains('/') && arg.text.contains(['*', '?', '[']),
            };
            let known =
                rest.iter().filter(lists).all(|arg| paths::note_argument(self, arg) == Certainty::Known);
            return read_only && known;
        }
        // In an unknown directory, every relative path is unknown, and so is the default one.
        let mut certainty = if self.places.is_empty() { Certainty::Unknown } else { Certainty::Known };
        if program == "dd" {
            for (_, value) in rest.iter().filter_map(|arg| arg.text.split_once('=')) {
                paths::note_argument(self, &Arg::literal(value));
            }
        }
        for arg in programs::file_arguments(program, operands, rest) {
            let is_flag = arg.text.starts_with('-') && arg.text.len() > 1;
            let one = match (is_flag, read_only) {
                (true, true) => paths::note_flag(self, arg),
                // The meaning of another program's flag is unknown, and most are no paths.
                (true, false) => Certainty::Known,
                (false, _) => paths::note_argument(self, arg),
            };
            if one == Certainty::Unknown {
                certainty = Certainty::Unknown;
            }
        }
        if read_only && programs::follows_links(program, rest) && !self.knows_trees(program, rest) {
            certainty = Certainty::Unknown;
        }
        let read_only = read_only && certainty == Certainty::Known;
        if !read_only {
            rest.iter().for_each(|arg| self.note_urls(&arg.text));
        }
        read_only
    }

    /// Notes where the links lead that a program goes through; says whether all of them could be found.
    fn knows_trees(&mut self, program: &str, rest: &[Arg]) -> bool {
        let trees = programs::trees(program, rest);
        trees.iter().all(|tree| paths::note_tree(self, tree) == Certainty::Known)
    }

    fn note_urls(&mut self, text: &str) {
        for scheme in [
            "https://", "http://", "ftp://", "ftps://", "sftp://", "ssh://", "git://", "rsync://", "wss://",
            "ws://",
        ] {
            let Some(at) = text.find(scheme) else { continue };
            let end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
            let url = text[at..].split(end).next().unwrap_or_default();
            if url.len() > scheme.len() && !self.facts.possible_urls.iter().any(|known| known == url) {
                self.facts.possible_urls.push(url.to_owned());
            }
            return;
        }
    }

    fn run_wrapped(&mut self, wrapper: &Wrapper, rest: &[Arg]) {
        let mut is_plain = wrapper.is_transparent;
        let mut operands = wrapper.operands;
        let mut at = 0;
        while let Some(arg) = rest.get(at) {
            let text = &arg.text;
            if !arg.is_known {
                // It may be a flag, a variable or the command itself.
                self.facts.is_opaque = true;
                break;
            }
            if text == "--" {
                at += 1;
                break;
            }
            if text.starts_with('-') && text.len() > 1 {
                let takes_value = wrapper.flags_with_value.contains(&text.as_str());
                if wrapper.name == "env" && (text.starts_with("-S") || text.starts_with("--s")) {
                    // It splits a text into a command by rules of its own.
                    self.facts.is_opaque = true;
                }
                is_plain &= wrapper.name != "env" || matches!(text.as_str(), "-i" | "-u" | "--unset" | "-0");
                at += if takes_value { 2 } else { 1 };
            } else if wrapper.takes_variables && text.contains('=') {
                let name = text.split('=').next().unwrap_or_default();
                self.note_variable(name);
                self.facts.is_elaborate = true;
                at += 1;
            } else if operands > 0 {
                operands -= 1;
                at += 1;
            } else {
                break;
            }
        }
        let command = rest.get(at..).unwrap_or_default();
        self.note_command(wrapper.name, is_plain);
        if wrapper.name == "xargs" && !command.is_empty() {
            // Further arguments come from the input.
            let mut command = command.to_vec();
            command.push(Arg::unknown("…"));
            return self.run(&command);
        }
        if wrapper.name == "time" && !is_plain && command.is_empty() {
            return;
        }
        self.run(command);
    }

    fn run_shell(&mut self, program: &str, rest: &[Arg]) {
        let mut has_script = false;
        let mut is_plain = matches!(program, "bash" | "sh" | "dash");
        let mut args = rest.iter();
        let mut operand = None;
        while let Some(arg) = args.next() {
            let flags =
                arg.exact().and_then(|text| text.strip_prefix(['-', '+'])).filter(|text| !text.is_empty());
            let Some(flags) = flags else {
                operand = Some(arg);
                break;
            };
            match flags {
                "-" | "-norc" | "-noprofile" | "-posix" => {}
                "-rcfile" | "-init-file" => {
                    is_plain = false;
                    args.next();
                }
                long if long.starts_with('-') => is_plain = false,
                short => {
                    has_script |= short.contains('c');
                    is_plain &= short.bytes().all(|flag| b"ceuxo".contains(&flag));
                    if short.ends_with(['o', 'O']) {
                        args.next();
                    }
                }
            }
        }
        match operand {
            Some(script) if has_script => {
                self.note_command(program, is_plain);
                self.run_text(script);
            }
            // A file, or whatever comes from the input.
            Some(_) | None => {
                let is_version = matches!(rest, [only] if only.exact() == Some("--version"));
                self.note_ordinary(program, rest, is_version);
            }
        }
    }

    /// A script in an argument, for a shell of its own.
    fn run_text(&mut self, script: &Arg) {
        match script.exact() {
            Some(text) => {
                let text = text.to_owned();
                self.aside(|visitor| visitor.visit_script(&text));
            }
            None => self.facts.is_opaque = true,
        }
    }

    fn run_as_user(&mut self, program: &str, rest: &[Arg]) {
        self.note_command(program, false);
        let script = rest.iter().position(|arg| matches!(arg.exact(), Some("-c" | "--command")));
        match script.map(|at| rest.get(at + 1)) {
            Some(Some(script)) => self.run_text(script),
            // Another spelling, or a shell that reads its input.
            Some(None) | None => self.facts.is_opaque = true,
        }
    }

    /// Runs its arguments as a script, repeatedly.
    fn run_watch(&mut self, rest: &[Arg]) {
        self.note_command("watch", false);
        let takes_value = |arg: &Arg| matches!(arg.exact(), Some("-n" | "--interval" | "-q" | "--equexit"));
        let mut start = 0;
        while let Some(arg) = rest.get(start).filter(|arg| arg.text.starts_with('-')) {
            start += if takes_value(arg) { 2 } else { 1 };
        }
        let texts: Option<Vec<&str>> = rest.get(start..).unwrap_or_default().iter().map(Arg::exact).collect();
        match texts {
            Some(texts) => self.run_text(&Arg::literal(texts.join(" "))),
            None => self.facts.is_opaque = true,
        }
    }

    fn run_eval(&mut self, rest: &[Arg]) {
        self.facts.is_elaborate = true;
        let texts: Option<Vec<&str>> = rest.iter().map(Arg::exact).collect();
        match texts {
            Some(texts) => {
                self.note_command("eval", true);
                self.visit_script(&texts.join(" "));
            }
            None => {
                self.facts.is_opaque = true;
                self.variables.lose_track();
                self.note_command("eval", false);
            }
        }
    }

    fn run_trap(&mut self, rest: &[Arg]) {
        self.facts.is_elaborate = true;
        let action = rest.iter().find(|arg| !arg.text.starts_with('-') || !arg.is_known);
        match action.map(Arg::exact) {
            None => self.note_command("trap", true),
            Some(Some(script)) => {
                let script = script.to_owned();
                self.note_command("trap", true);
                self.visit_script(&script);
            }
            Some(None) => {
                self.facts.is_opaque = true;
                self.note_command("trap", false);
            }
        }
    }

    fn run_command_builtin(&mut self, rest: &[Arg]) {
        match rest.first().and_then(Arg::exact) {
            Some("-v" | "-V") => self.note_command("command", true),
            Some("-p" | "--") => {
                self.note_command("command", true);
                self.run(&rest[1..]);
            }
            _ => {
                self.note_command("command", true);
                self.run(rest);
            }
        }
    }

    fn change_directory(&mut self, rest: &[Arg]) {
        let target = rest.iter().find(|arg| !matches!(arg.exact(), Some("-L" | "-P" | "-e" | "--")));
        let home = match self.variables.values("HOME") {
            Values::Known(homes) if homes.len() == 1 => homes.first().cloned(),
            Values::Known(_) | Values::Unknown => None,
        };
        let target = match target {
            None => home.map(Arg::literal),
            Some(arg) => arg.exact().filter(|text| *text != "-").map(Arg::literal),
        };
        let from = std::mem::take(&mut self.places);
        let mut read_only = true;
        if let Some(target) = target {
            self.places = from.clone();
            read_only = paths::note_path(self, &target) == Certainty::Known;
            let to: Vec<_> =
                from.iter().map(|place| crate::paths::resolve(&place.join(&target.text))).collect();
            // A directory that cannot be entered leaves the shell where it was.
            let stays = to.iter().any(|place| !place.is_dir());
            self.places = to;
            if stays {
                self.places.extend(from);
            }
        }
        self.note_command("cd", read_only);
    }

    fn run_find(&mut self, rest: &[Arg]) {
        let mut own = Vec::new();
        let mut args = rest.iter();
        let mut commands = Vec::new();
        while let Some(arg) = args.next() {
            if matches!(arg.exact(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
                let command: Vec<Arg> = args
                    .by_ref()
                    .take_while(|arg| !matches!(arg.exact(), Some(";" | "+")))
                    .cloned()
                    .collect();
                commands.push(command);
            } else {
                own.push(arg.clone());
            }
        }
        self.note_ordinary("find", &own, programs::is_read_only("find", &own));
        let before = self.facts.commands.len();
        commands.iter().for_each(|command| self.run(command));
        // The program that it runs gets the names of links too, and reads their targets.
        let reads = self.facts.commands[before..].iter().all(|command| command.read_only);
        let only_files = own.windows(2).any(|pair| pair[0].text == "-type" && pair[1].text == "f");
        if !commands.is_empty() && reads && !only_files {
            self.facts.is_opaque |= !self.knows_trees("find", &own);
        }
    }

    fn run_fd(&mut self, program: &str, rest: &[Arg]) {
        let runs = |arg: &Arg| matches!(arg.exact(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
        let at = rest.iter().position(runs);
        let own = &rest[..at.unwrap_or(rest.len())];
        self.note_ordinary(program, own, at.is_none() && programs::is_read_only(program, own));
        if let Some(at) = at {
            self.run(&rest[at + 1..]);
        }
    }

    fn run_git(&mut self, rest: &[Arg]) {
        let call = git::GitCall::read(rest);
        if call.sets_configuration {
            // It can name programs to run, so it is more than the command behind it.
            self.note_command("git -c", false);
        }
        if let Some(directory) = call.directory {
            paths::note_path(self, directory);
        }
        let read_only = self.note_arguments("git", Operands::Files, call.arguments, call.is_read_only());
        let identifier = match call.subcommand {
            Some(subcommand) => format!("git {subcommand}"),
            None => "git".to_owned(),
        };
        self.facts.is_opaque |= call.is_unclear;
        self.note_command(identifier, read_only && !call.is_unclear);
    }

    /// Builtins that set variables or evaluate their arguments.
    fn run_builtin(&mut self, program: &str, rest: &[Arg]) {
        // The index of an array is evaluated, which runs commands in it.
        let hides = rest.iter().any(Arg::hides_substitution);
        let names_variable = rest.iter().any(|arg| matches!(arg.text.as_bytes(), [b'-', b'v' | b'R', ..]));
        self.facts.is_tainted |= hides;
        self.facts.is_opaque |= hides && (names_variable || !matches!(program, "printf" | "test" | "["));
        let operands = || rest.iter().filter(|arg| !arg.text.starts_with('-') || !arg.is_known);
        match program {
            "read" | "mapfile" | "readarray" | "getopts" => {
                // `mapfile -C` runs what it is given.
                let runs = |arg: &Arg| !arg.is_known || arg.text.starts_with('-') && arg.text.contains('C');
                self.facts.is_opaque |= matches!(program, "mapfile" | "readarray") && rest.iter().any(runs);
                for arg in operands() {
                    self.assign_unknown(arg);
                }
            }
            "printf" => {
                if let Some(at) = rest.iter().position(|arg| arg.text.starts_with("-v")) {
                    let attached = rest[at].text.strip_prefix("-v").filter(|name| !name.is_empty());
                    match attached {
                        Some(name) => self.assign_unknown(&Arg::literal(name)),
                        None => rest.get(at + 1).into_iter().for_each(|arg| self.assign_unknown(arg)),
                    }
                }
            }
            "let" => {
                for arg in operands() {
                    match arg.exact() {
                        Some(expression) => self.visit_arithmetic(expression),
                        None => self.facts.evaluates_anything = true,
                    }
                }
            }
            "unset" => {
                for arg in operands() {
                    self.assign_unknown(arg);
                }
            }
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                // With `-i` values are calculated, with `-n` they are names, and with others they are changed.
                let attributes = rest.iter().filter(|arg| arg.text.starts_with('-'));
                self.facts.evaluates_anything |=
                    attributes.clone().any(|arg| arg.text.contains(['i', 'n', 'l', 'u', 'c']));
                // Assignments proper were seen by the parser; `"$name=value"` was not.
                for arg in operands() {
                    match arg.exact().and_then(|text| text.split_once('=')) {
                        Some((name, _)) => self.assign_unknown(&Arg::literal(name)),
                        None if !arg.is_known => self.assign_unknown(arg),
                        None => {}
                    }
                }
            }
            "test" | "[" => {
                self.facts.evaluates_anything |= names_variable && rest.iter().any(|arg| !arg.is_known);
            }
            _ => {}
        }
        let is_test = matches!(program, "test" | "[");
        let operands = if is_test { Operands::Files } else { Operands::Texts };
        // A variable as operand of a test is no danger: only what the file system says is asked.
        let known: Vec<Arg> = rest.iter().filter(|arg| arg.is_known).cloned().collect();
        let read_only = self.note_arguments(program, operands, &known, true);
        self.note_command(program, read_only);
    }

    fn assign_unknown(&mut self, arg: &Arg) {
        match arg.exact() {
            Some(name) => {
                let name = name.split('[').next().unwrap_or_default();
                self.note_variable(name);
                self.variables.assign(name, Values::Unknown);
            }
            None => {
                // It may be any name, and an index that is calculated.
                self.facts.evaluates_anything = true;
                self.variables.lose_track();
            }
        }
    }
}
