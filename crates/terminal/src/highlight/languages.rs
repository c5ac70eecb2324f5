//! Languages by name and by file.

mod data;
mod programs;
mod scripts;

use std::path::Path;

use super::rules::Language;

/// Words as strings.
macro_rules! words {
    ($($word:tt)*) => { &[$(stringify!($word)),*] };
}
use words;

/// The language of an info string, whose first word names a language or an extension.
pub(super) fn by_info(info: &str) -> Option<&'static Language> {
    by_name(info.split([' ', '\t', ',', '{', ':', '(']).next().unwrap_or_default())
}

/// The language of a name or an extension, in any case.
pub(super) fn by_name(name: &str) -> Option<&'static Language> {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    all().find(|language| language.names.iter().any(is_it) || language.files.iter().any(is_it))
}

/// The language of a file: by its name, its extension, or its name without extensions.
pub(super) fn by_path(path: &Path) -> Option<&'static Language> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split('.').next().filter(|stem| !stem.is_empty());
    let extension = path.extension().and_then(|extension| extension.to_str());
    by_file(name).or_else(|| by_name(extension?)).or_else(|| by_file(stem?))
}

fn by_file(name: &str) -> Option<&'static Language> {
    all().find(|language| language.files.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

pub(super) fn all() -> impl Iterator<Item = &'static Language> {
    [programs::ALL, scripts::ALL, data::ALL].into_iter().flatten()
}
