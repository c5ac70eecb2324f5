//! Calls of git: which command it is, behind the flags of git itself, and whether it only reads.

use super::words::Arg;

pub(super) struct GitCall<'a> {
    pub(super) subcommand: Option<&'a str>,
    /// Of `-C`.
    pub(super) directory: Option<&'a Arg>,
    /// Behind the subcommand.
    pub(super) arguments: &'a [Arg],
    /// `-c name=value` and its like.
    pub(super) sets_configuration: bool,
    /// A flag of git itself that makes it look elsewhere for its repository or its programs.
    is_redirected: bool,
    /// The subcommand is computed.
    pub(super) is_unclear: bool,
}

/// Arguments with which a subcommand only reads.
enum Reading {
    Always,
    /// Unless one of these flags is there.
    Unless(&'static [&'static str]),
    /// Only with one of these words as the first argument, or with none at all if `""` is among them, and without the
    /// flags that [`SHOWING`] is without.
    First(&'static [&'static str]),
    /// Only with exactly this argument or none, or with these first words.
    Alone {
        only: &'static [&'static str],
        first: &'static [&'static str],
    },
    /// Only with these flags, and with other words only where a flag asks for a list.
    Listing {
        flags: &'static [&'static str],
        lists: &'static [&'static str],
    },
}

/// Flags that make a command which shows differences write or run something.
const SHOWING: &[&str] = &["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager"];

fn reading(subcommand: &str) -> Option<Reading> {
    Some(match subcommand {
        "diff" | "log" | "show" | "diff-tree" | "diff-index" | "diff-files" | "whatchanged" | "shortlog"
        | "blame" | "annotate" | "grep" | "range-diff" => Reading::Unless(SHOWING),
        "status" | "rev-parse" | "rev-list" | "ls-files" | "ls-tree" | "describe" | "name-rev"
        | "merge-base" | "show-ref" | "for-each-ref" | "check-ignore" | "check-attr" | "count-objects"
        | "cherry" | "version" | "show-branch" | "cat-file" => {
            Reading::Unless(&["--output", "--textconv", "--filters", "--exclude-existing"])
        }
        "var" => Reading::Always,
        "remote" => Reading::Alone { only: &["-v", "--verbose"], first: &["get-url"] },
        "stash" => Reading::First(&["list"]),
        "worktree" => Reading::First(&["list"]),
        "reflog" => Reading::First(&["", "show"]),
        "config" => Reading::First(&["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"]),
        "branch" => Reading::Listing {
            flags: &[
                "-a",
                "-r",
                "-v",
                "-vv",
                "-l",
                "--all",
                "--remotes",
                "--verbose",
                "--list",
                "--show-current",
                "--no-color",
                "--color",
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "--sort",
                "--format",
                "--column",
                "--no-column",
                "-i",
                "--ignore-case",
            ],
            lists: &["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"],
        },
        "tag" => Reading::Listing {
            flags: &[
                "-l",
                "--list",
                "-n",
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "--sort",
                "--format",
                "--column",
                "--no-column",
                "-i",
                "--ignore-case",
                "--no-color",
                "--color",
            ],
            lists: &[
                "-l",
                "--list",
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "-n",
            ],
        },
        _ => return None,
    })
}

/// Flags before the subcommand that take no value.
const WITHOUT_VALUE: &[&str] = &[
    "--version",
    "--help",
    "--html-path",
    "--man-path",
    "--info-path",
    "--exec-path",
    "-p",
    "--paginate",
    "--bare",
    "--no-lazy-fetch",
    "--no-advice",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
];

impl<'a> GitCall<'a> {
    pub(super) fn read(args: &'a [Arg]) -> Self {
        let mut call = GitCall {
            subcommand: None,
            directory: None,
            arguments: &[],
            sets_configuration: false,
            is_redirected: false,
            is_unclear: false,
        };
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let Some(text) = arg.exact() else {
                call.is_unclear = true;
                break;
            };
            match text {
                "-C" => {
                    // A second one starts from the first: then only the general distrust is left.
                    call.is_redirected |=
                        call.directory.is_some() || args.get(at + 1).is_none_or(|arg| !arg.is_known);
                    call.directory = args.get(at + 1);
                    at += 1;
                }
                "-c" | "--config-env" => {
                    call.sets_configuration = true;
                    at += 1;
                }
                "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {
                    call.is_redirected = true;
                    at += 1;
                }
                "--no-pager"
                | "-P"
                | "--no-optional-locks"
                | "--literal-pathspecs"
                | "--no-replace-objects" => {}
                _ if text.starts_with("--config-env=") => call.sets_configuration = true,
                _ if text.starts_with('-') => {
                    // `--version` and `--help` have no subcommand; every other flag is distrusted.
                    call.is_redirected |= text != "--version";
                    // An unknown option may take the next argument, which would make another word the subcommand.
                    call.is_unclear |= !text.contains('=') && !WITHOUT_VALUE.contains(&text);
                }
                subcommand => {
                    call.subcommand = Some(subcommand);
                    call.arguments = &args[at + 1..];
                    break;
                }
            }
            at += 1;
        }
        call
    }

    pub(super) fn is_read_only(&self) -> bool {
        if self.sets_configuration || self.is_redirected || self.is_unclear {
            return false;
        }
        let Some(subcommand) = self.subcommand else { return true };
        match reading(subcommand) {
            None => false,
            Some(Reading::Always) => true,
            Some(Reading::Unless(flags)) => !self.arguments.iter().any(|arg| is_one_of(arg, flags)),
            Some(Reading::First(words)) => {
                let first = self.arguments.first().map_or(Some(""), Arg::exact);
                first.is_some_and(|first| words.contains(&first))
                    && !self.arguments.iter().any(|arg| is_one_of(arg, SHOWING))
            }
            Some(Reading::Alone { only, first }) => match self.arguments {
                [] => true,
                [arg] if arg.exact().is_some_and(|text| only.contains(&text)) => true,
                [arg, ..] => arg.exact().is_some_and(|text| first.contains(&text)),
            },
            Some(Reading::Listing { flags, lists }) => {
                let mut lists_something = false;
                let mut has_operand = false;
                for arg in self.arguments {
                    let Some(text) = arg.exact() else { return false };
                    let name = text.split('=').next().unwrap_or_default();
                    if !text.starts_with('-') {
                        has_operand = true;
                    } else if !flags.contains(&name) {
                        return false;
                    }
                    lists_something |= lists.contains(&name);
                }
                lists_something || !has_operand
            }
        }
    }
}

/// Whether an argument is one of these flags, shortened or with a value.
fn is_one_of(arg: &Arg, flags: &[&str]) -> bool {
    let name = arg.text.split('=').next().unwrap_or_default();
    flags.iter().any(|flag| match flag.strip_prefix("--") {
        Some(long) => {
            name.strip_prefix("--").is_some_and(|given| !given.is_empty() && long.starts_with(given))
        }
        None => arg.text.starts_with(flag),
    })
}
