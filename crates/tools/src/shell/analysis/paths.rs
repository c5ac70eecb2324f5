//! Which arguments are paths, and where they lead.

use std::path::{Path, PathBuf};

use super::links;
use super::visitor::Visitor;
use super::words::Arg;
use crate::paths::{absolute, resolve};

/// Devices that hold no data.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// Whether all paths of a command are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Known,
    Unknown,
}

/// An argument that is a path if it looks like one.
pub(super) fn note_argument(visitor: &mut Visitor<'_>, arg: &Arg) -> Certainty {
    if !arg.is_known {
        return Certainty::Unknown;
    }
    if is_path(visitor, &arg.text) { note_path(visitor, arg) } else { note_links(visitor, arg) }
}

/// A path in a flag: `--file=/etc/x`, `-f/etc/x`.
pub(super) fn note_flag(visitor: &mut Visitor<'_>, arg: &Arg) -> Certainty {
    if !arg.is_known {
        return Certainty::Unknown;
    }
    let value = match arg.text.split_once('=') {
        Some((_, value)) => value,
        None => arg.text.find(['/', '~']).map_or("", |at| &arg.text[at..]),
    };
    // A slash alone is more often a separator (`cut -d/`) than the root.
    if value.contains('/') && value != "/" || value == ".." {
        note_path(visitor, &Arg::literal(value))
    } else {
        Certainty::Known
    }
}

/// The source of an input redirection.
pub(super) fn note_input(visitor: &mut Visitor<'_>, arg: &Arg) {
    let certainty = if arg.is_known { note_path(visitor, arg) } else { Certainty::Unknown };
    visitor.facts.is_tainted |= certainty == Certainty::Unknown;
}

/// The target of an output redirection.
pub(super) fn note_output(visitor: &mut Visitor<'_>, arg: &Arg) {
    if arg.exact().is_some_and(is_device) {
        return;
    }
    visitor.facts.has_write_redirection = true;
    visitor.facts.note_possible_path(&arg.text);
    if !arg.is_known || (visitor.places.is_empty() && !Path::new(&arg.text).is_absolute()) {
        visitor.facts.is_tainted = true;
        return;
    }
    let root = vec![PathBuf::from("/")];
    for place in if visitor.places.is_empty() { root } else { visitor.places.clone() } {
        visitor.facts.note_write(resolve(&absolute(&place, literal_part(arg))));
        match behind(&place, arg) {
            Some(targets) => targets.into_iter().for_each(|target| visitor.facts.note_write(target)),
            None => visitor.facts.is_opaque = true,
        }
    }
}

/// A place that the line goes to or reads.
pub(super) fn note_path(visitor: &mut Visitor<'_>, arg: &Arg) -> Certainty {
    if is_device(&arg.text) {
        return Certainty::Known;
    }
    visitor.facts.note_possible_path(&arg.text);
    let literal = literal_part(arg);
    let places = match (Path::new(literal).is_absolute(), visitor.places.as_slice()) {
        (true, _) => vec![PathBuf::from("/")],
        (false, []) => return Certainty::Unknown,
        (false, places) => places.to_vec(),
    };
    for place in places {
        // Joined and not tidied by name: `link/..` is the parent of where the link leads.
        visitor.facts.note_read(resolve(&place.join(literal)));
    }
    note_links(visitor, arg)
}

/// The links that a pattern can stand for.
fn note_links(visitor: &mut Visitor<'_>, arg: &Arg) -> Certainty {
    for place in visitor.places.clone() {
        let Some(targets) = behind(&place, arg) else { return Certainty::Unknown };
        targets.into_iter().for_each(|target| visitor.facts.note_read(target));
    }
    Certainty::Known
}

/// The trees that a program walks through links too.
pub(super) fn note_tree(visitor: &mut Visitor<'_>, arg: &Arg) -> Certainty {
    if visitor.places.is_empty() || !arg.is_known {
        return Certainty::Unknown;
    }
    for place in visitor.places.clone() {
        let Some(targets) = links::in_tree(&resolve(&place.join(literal_part(arg)))) else {
            return Certainty::Unknown;
        };
        targets.into_iter().for_each(|target| visitor.facts.note_read(target));
    }
    Certainty::Known
}

/// Targets of the names that a pattern can match, outside of its own directory; `None` if unknown.
fn behind(place: &Path, arg: &Arg) -> Option<Vec<PathBuf>> {
    let Some(at) = arg.glob_at else { return Some(Vec::new()) };
    let directory = resolve(&place.join(literal_part(arg)));
    let names = links::behind_pattern(place, &arg.text, at)?;
    let targets = names.iter().map(|name| resolve(name));
    Some(targets.filter(|target| !target.starts_with(&directory)).collect())
}

/// The directory under which everything lies that a pattern can stand for.
fn literal_part(arg: &Arg) -> &str {
    match arg.glob_at {
        None => &arg.text,
        Some(at) => match arg.text[..at].rfind('/') {
            Some(0) => "/",
            Some(slash) => &arg.text[..slash],
            None => ".",
        },
    }
}

fn is_path(visitor: &Visitor<'_>, text: &str) -> bool {
    if text.is_empty() || text == "-" || text.contains("://") {
        return false;
    }
    if text.contains(char::is_whitespace) {
        // A sentence can begin with a slash; a path that exists in part is taken for one.
        return text.starts_with('/') && first_component_exists(text) || exists(visitor, text);
    }
    text.contains('/') || matches!(text, "." | "..") || has_extension(text) || exists(visitor, text)
}

fn first_component_exists(text: &str) -> bool {
    let first = text.trim_start_matches('/').split('/').next().unwrap_or_default();
    !first.is_empty() && Path::new("/").join(first).symlink_metadata().is_ok()
}

fn exists(visitor: &Visitor<'_>, text: &str) -> bool {
    visitor.places.iter().any(|place| place.join(text).symlink_metadata().is_ok())
}

fn has_extension(text: &str) -> bool {
    const LONGEST: usize = 8;
    let Some((name, extension)) = text.rsplit_once('.') else { return false };
    let is_word =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    is_word(name)
        && (1..=LONGEST).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_device(text: &str) -> bool {
    DEVICES.contains(&text)
        || text.strip_prefix("/dev/fd/").is_some_and(|fd| fd.bytes().all(|byte| byte.is_ascii_digit()))
}
