//! Instructions that users and repositories keep in files for every agent that works there.
//!
//! Some apply everywhere and are in the model's context from the start. Others apply to a part of the tree: they are listed
//! at the start, and added when a file of that part is touched ([`on_demand`]). No file and no text is added twice.

mod imports;
pub(crate) mod on_demand;
mod scope;
mod told;
mod tree;

use std::path::{Path, PathBuf};

use imports::Importer;
use told::{InstructionFile, SeenInstructions};

/// Maximum size of all instructions at the start. Files beyond it are named instead.
const TOTAL_LIMIT: usize = 256 * 1024;

/// Rows of a table.
const ROW_LIMIT: usize = 100;

/// Files that apply to their directory and everything below, in order.
const DIRECTORY_FILES: [&str; 4] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md"];

const REPOSITORY_FILE: &str = ".github/copilot-instructions.md";
const MODULAR_DIR: &str = ".github/instructions";

/// A place for instructions, below a project or the user's own directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    File(&'static str),
    Directory(&'static str),
}

const USER_FILE: &str = "copilot-instructions.md";
const USER_DIR: &str = "instructions";

/// Paths of the user's instructions; new ones belong in the first.
pub(crate) const USER_TARGETS: &[Target] = &[Target::File(USER_FILE), Target::Directory(USER_DIR)];

/// Paths of a project's instructions; new ones belong in the first.
pub(crate) const PROJECT_TARGETS: &[Target] = &[
    Target::File(REPOSITORY_FILE),
    Target::File(DIRECTORY_FILES[0]),
    Target::File(DIRECTORY_FILES[1]),
    Target::File(DIRECTORY_FILES[2]),
    Target::File(DIRECTORY_FILES[3]),
    Target::Directory(MODULAR_DIR),
];

/// Directories that are searched for instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstructionPlaces<'a> {
    /// The user's own directory, with `copilot-instructions.md` and `instructions/`.
    pub(crate) home: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) git_root: Option<&'a Path>,
    /// Further directories with instructions that the user has named.
    pub(crate) extra_dirs: &'a [PathBuf],
}

#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) blocks: Vec<InstructionBlock>,
    pub(crate) nested: Vec<Nested>,
    pub(crate) scoped: Vec<Scoped>,
    /// Directories whose instructions were loaded, the top of the tree first.
    dirs: Vec<PathBuf>,
    told: SeenInstructions,
}

/// Instructions that apply everywhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstructionBlock {
    /// Sources of the text; several if files are identical.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) text: String,
}

/// An `AGENTS.md` about a directory that is not on the way to the current one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    pub(crate) dir: PathBuf,
    pub(crate) path: PathBuf,
}

/// Instructions about the files that some pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scoped {
    pub(crate) globs: Vec<String>,
    /// The directory that the patterns are relative to.
    pub(crate) base: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) description: Option<String>,
}

impl Instructions {
    pub(crate) fn load(places: InstructionPlaces<'_>) -> Self {
        let root = places.git_root.unwrap_or(places.cwd);
        let dirs = directories(root, places.cwd);
        let trees =
            [root, places.cwd, places.home].into_iter().chain(places.extra_dirs.iter().map(PathBuf::as_path));
        let mut loader = Loader {
            told: SeenInstructions::within(trees),
            blocks: Vec::new(),
            scoped: Vec::new(),
            left: TOTAL_LIMIT,
        };

        loader.whole(&tree::named(places.home, USER_FILE), places.home);
        for dir in &dirs {
            loader.whole(&tree::named(dir, REPOSITORY_FILE), root);
        }
        for dir in &dirs {
            for name in DIRECTORY_FILES {
                loader.whole(&tree::named(dir, name), root);
            }
        }
        loader.modular(&places.home.join(USER_DIR), root);
        for dir in &dirs {
            loader.modular(&dir.join(MODULAR_DIR), dir);
        }
        for dir in places.extra_dirs {
            loader.modular(dir, root);
        }

        let Loader { told, blocks, scoped, .. } = loader;
        let nested = nested(places, &dirs);
        Self { blocks, nested, scoped, dirs, told }
    }

    /// Names the files of a block, those of the project relative to its top.
    fn shown(&self, sources: &[PathBuf]) -> String {
        let top = self.dirs.first().map(PathBuf::as_path);
        let name = |path: &PathBuf| {
            let path = top.and_then(|top| path.strip_prefix(top).ok()).unwrap_or(path);
            cell(&path.display()).replace('"', "&quot;")
        };
        sources.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The section of the system prompt; empty if there are no instructions.
    pub(crate) fn render(&self) -> String {
        let mut parts: Vec<String> = self
            .blocks
            .iter()
            .map(|block| {
                let (source, text) = (self.shown(&block.sources), sealed(block.text.trim()));
                format!("<custom_instruction source=\"{source}\">\n{text}\n</custom_instruction>")
            })
            .collect();
        if !self.nested.is_empty() {
            let rows =
                self.nested.iter().map(|nested| [cell(&nested.dir.display()), cell(&nested.path.display())]);
            parts.push(table(
                "Some directories have an AGENTS.md of their own. Before you change a file in one of them, view its AGENTS.md \
                 unless you have seen it, and do what it says there.",
                ["Directory", "File"],
                rows,
            ));
        }
        if !self.scoped.is_empty() {
            let rows = self.scoped.iter().map(|scoped| {
                let description = scoped.description.as_deref().unwrap_or_default();
                [cell(&scoped.globs.join(", ")), cell(&scoped.path.display()), cell(&description)]
            });
            parts.push(table(
                "These files hold rules for some files only. Before you create or change a file that a pattern matches, view \
                 the rules unless you have seen them, and keep to them.",
                ["Pattern", "File", "Description"],
                rows,
            ));
        }
        parts.join("\n\n")
    }
}

/// The top of the tree, the current directory, and those between from the inside out.
fn directories(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![root.to_owned()];
    if cwd != root {
        dirs.push(cwd.to_owned());
        if cwd.starts_with(root) {
            dirs.extend(cwd.ancestors().skip(1).take_while(|dir| *dir != root).map(Path::to_owned));
        }
    }
    dirs
}

/// Only a repository is searched: any other directory may be the start of a whole disk.
fn nested(places: InstructionPlaces<'_>, loaded: &[PathBuf]) -> Vec<Nested> {
    let below = places.git_root.map(|root| tree::directories_with("AGENTS.md", root)).unwrap_or_default();
    let extra = places.extra_dirs.iter().filter(|dir| tree::named(dir, "AGENTS.md").is_file()).cloned();
    let mut dirs: Vec<PathBuf> = below.into_iter().chain(extra).filter(|dir| !loaded.contains(dir)).collect();
    dirs.truncate(ROW_LIMIT);
    dirs.into_iter().map(|dir| Nested { path: tree::named(&dir, "AGENTS.md"), dir }).collect()
}

struct Loader {
    told: SeenInstructions,
    blocks: Vec<InstructionBlock>,
    scoped: Vec<Scoped>,
    left: usize,
}

impl Loader {
    /// Adds a file that applies everywhere, with its imports from its tree.
    fn whole(&mut self, path: &Path, tree: &Path) {
        let Some(source) = self.told.take(path) else { return };
        let text = with_imports(&source, tree, &mut self.told);
        self.block(source.real, text);
    }

    /// Adds a directory of files, each of which applies everywhere or to matching files.
    fn modular(&mut self, dir: &Path, base: &Path) {
        for path in tree::modular(dir) {
            let Some(source) = self.told.peek(&path) else { continue };
            let (front, body) = scope::split(&source.text);
            if front.for_others {
                continue;
            }
            if front.globs.is_empty() {
                self.told.note_file(&path);
                self.block(source.real, body.to_owned());
            } else if self.scoped.len() < ROW_LIMIT
                && !self.scoped.iter().any(|scoped| scoped.path == source.real)
            {
                let (globs, description) = (front.globs, front.description);
                self.scoped.push(Scoped { globs, base: base.to_owned(), path: source.real, description });
            }
        }
    }

    fn block(&mut self, source: PathBuf, text: String) {
        if text.trim().is_empty() {
            return;
        }
        if !self.told.note_text(&text) {
            let same = self.blocks.iter_mut().find(|block| block.text.trim() == text.trim());
            if let Some(block) = same {
                block.sources.push(source);
            }
            return;
        }
        let text = if text.len() <= self.left {
            self.left -= text.len();
            text
        } else {
            format!("There are more instructions in {}; view that file.", source.display())
        };
        self.blocks.push(InstructionBlock { sources: vec![source], text });
    }
}

fn with_imports(source: &InstructionFile, tree: &Path, told: &mut SeenInstructions) -> String {
    let dir = source.real.parent().unwrap_or(tree);
    match Importer::new(told, tree) {
        Some(mut importer) => importer.expand(&source.text, dir),
        None => source.text.clone(),
    }
}

/// Keeps a text inside the element that it is put into.
fn sealed(text: &str) -> String {
    text.replace("</custom_instruction", "<\\/custom_instruction")
        .replace("</system_reminder", "<\\/system_reminder")
}

fn cell(text: &impl ToString) -> String {
    let text = text.to_string().replace('|', "\\|");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn table<const N: usize>(lead: &str, head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut out = format!("{lead}\n\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests;
