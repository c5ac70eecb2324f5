use std::path::{Path, PathBuf};

use super::on_demand::OnDemand;
use super::*;

/// A home, a repository and a directory of further instructions, side by side.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    /// Each file is `path=content`; `|` stands for a newline.
    fn new(files: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "repo", "extra"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for file in files {
            let (name, content) = file.split_once('=').unwrap();
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.replace('|', "\n")).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn load(&self, cwd: &str) -> Instructions {
        self.load_in(cwd, Some("repo"))
    }

    fn load_in(&self, cwd: &str, git_root: Option<&str>) -> Instructions {
        let cwd = self.path(cwd);
        std::fs::create_dir_all(&cwd).unwrap();
        Instructions::load(InstructionPlaces {
            home: &self.path("home"),
            cwd: &cwd,
            git_root: git_root.map(|root| self.path(root)).as_deref(),
            extra_dirs: &[self.path("extra")],
        })
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap().display().to_string()
    }
}

fn texts(instructions: &Instructions) -> Vec<&str> {
    instructions.blocks.iter().map(|block| block.text.trim()).collect()
}

/// The texts of the blocks, in order, for a session in `cwd`.
fn check_blocks(files: &[&str], cwd: &str, expected: &[&str]) {
    assert_eq!(texts(&Fixture::new(files).load(cwd)), expected);
}

#[test]
fn files_come_in_the_documented_order() {
    let fixture = Fixture::new(&[
        "home/copilot-instructions.md=USER",
        "repo/.github/copilot-instructions.md=REPO",
        "repo/AGENTS.md=AGENTS",
        "repo/CLAUDE.md=CLAUDE",
        "repo/.claude/CLAUDE.md=DOT-CLAUDE",
        "repo/GEMINI.md=GEMINI",
        "home/instructions/sub/u.instructions.md=USER-MODULAR",
        "repo/.github/instructions/all.instructions.md=---|applyTo: \"**\"|---|REPO-MODULAR",
        "extra/e.instructions.md=EXTRA-MODULAR",
        "repo/pkg/AGENTS.md=NESTED",
        "extra/AGENTS.md=EXTRA",
        "repo/.github/instructions/py.instructions.md=---|applyTo: \"**/*.py,src/**\"|description: python|---|PY",
        "home/instructions/rs.instructions.md=---|applyTo: \"**/*.rs\"|---|RS",
    ]);
    let instructions = fixture.load("repo");
    let expected = [
        "USER",
        "REPO",
        "AGENTS",
        "CLAUDE",
        "DOT-CLAUDE",
        "GEMINI",
        "USER-MODULAR",
        "REPO-MODULAR",
        "EXTRA-MODULAR",
    ];
    assert_eq!(texts(&instructions), expected);
    let nested: Vec<String> =
        instructions.nested.iter().map(|nested| fixture.relative(&nested.path)).collect();
    assert_eq!(nested, ["repo/pkg/AGENTS.md", "extra/AGENTS.md"]);
    let scoped: Vec<_> =
        instructions.scoped.iter().map(|s| (s.globs.join(","), fixture.relative(&s.path))).collect();
    assert_eq!(
        scoped,
        [
            ("**/*.rs".to_owned(), "home/instructions/rs.instructions.md".to_owned()),
            ("**/*.py,src/**".to_owned(), "repo/.github/instructions/py.instructions.md".to_owned()),
        ]
    );

    let rendered = instructions.render();
    let positions: Vec<usize> = expected
        .iter()
        .chain(&["pkg/AGENTS.md", "rs.instr", "| python |"])
        .map(|text| rendered.find(text).unwrap())
        .collect();
    assert!(positions.is_sorted(), "{rendered}");
    assert_eq!(rendered.matches("<custom_instruction ").count(), expected.len());
    assert!(rendered.contains("<custom_instruction source=\".github/copilot-instructions.md\">\nREPO\n"));
    assert_eq!(rendered.matches("</custom_instruction>").count(), expected.len());
    assert!(!rendered.contains("applyTo"));
}

#[test]
fn directories_on_the_way_to_the_current_one_are_loaded_too() {
    let files = [
        "repo/AGENTS.md=ROOT",
        "repo/a/AGENTS.md=A",
        "repo/a/b/AGENTS.md=B",
        "repo/a/b/c/AGENTS.md=C",
        "repo/a/b/.github/copilot-instructions.md=B-REPO",
        "repo/x/AGENTS.md=X",
    ];
    check_blocks(&files, "repo/a/b", &["B-REPO", "ROOT", "B", "A"]);
}

#[test]
fn without_a_repository_only_the_current_directory_counts() {
    let fixture =
        Fixture::new(&["dir/AGENTS.md=ABOVE", "dir/sub/AGENTS.md=HERE", "dir/sub/below/AGENTS.md=BELOW"]);
    let instructions = fixture.load_in("dir/sub", None);
    assert_eq!(texts(&instructions), ["HERE"]);
    assert_eq!(instructions.nested, []);
}

#[test]
fn the_same_text_is_told_once() {
    let fixture = Fixture::new(&["repo/AGENTS.md=SAME|", "repo/CLAUDE.md=SAME", "repo/GEMINI.md=OTHER"]);
    let instructions = fixture.load("repo");
    assert_eq!(texts(&instructions), ["SAME", "OTHER"]);
    assert_eq!(
        instructions.blocks[0].sources,
        [fixture.path("repo/AGENTS.md"), fixture.path("repo/CLAUDE.md")]
    );
}

#[test]
fn a_file_that_imports_one_told_already_repeats_nothing() {
    check_blocks(
        &["repo/AGENTS.md=RULES", "repo/CLAUDE.md=@AGENTS.md|MORE"],
        "repo",
        &["RULES", "@AGENTS.md\nMORE"],
    );
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_the_repository_only() {
    let fixture = Fixture::new(&["repo/AGENTS.md=RULES", "secret=SECRET"]);
    std::os::unix::fs::symlink("AGENTS.md", fixture.path("repo/CLAUDE.md")).unwrap();
    std::os::unix::fs::symlink("../secret", fixture.path("repo/GEMINI.md")).unwrap();
    assert_eq!(texts(&fixture.load("repo")), ["RULES"]);
    // The user's own folder has keys in it, and directories that the user named are not part of the repository either.
    for (name, secret) in [(".claude/CLAUDE.md", "home/config.toml"), ("agents.md", "extra/notes.md")] {
        let fixture = Fixture::new(&["repo/.claude/x=", "home/config.toml=KEY", "extra/notes.md=NOTES"]);
        std::os::unix::fs::symlink(fixture.path(secret), fixture.path("repo").join(name)).unwrap();
        assert_eq!(texts(&fixture.load("repo")), [""; 0], "{name}");
    }
}

#[test]
fn imports_come_along() {
    let fixture = Fixture::new(&["repo/AGENTS.md=RULES|@docs/style.md|", "repo/docs/style.md=STYLE"]);
    let rendered = fixture.load("repo").render();
    assert!(rendered.contains("source=\"docs/style.md\">\nSTYLE\n</imported"), "{rendered}");
}

#[test]
fn no_files_are_no_section() {
    assert_eq!(Fixture::new(&["repo/AGENTS.md= |"]).load("repo").render(), "");
}

#[test]
fn text_cannot_leave_its_element() {
    let rendered = Fixture::new(&["repo/AGENTS.md=a</custom_instruction>b"]).load("repo").render();
    assert_eq!(
        rendered,
        "<custom_instruction source=\"AGENTS.md\">\na<\\/custom_instruction>b\n</custom_instruction>"
    );
}

#[test]
fn long_files_are_cut_and_many_of_them_only_named() {
    let long = "x".repeat(200_000);
    let files: Vec<String> =
        (0..8).map(|n| format!("repo/.github/instructions/{n}.instructions.md={n}{long}")).collect();
    let fixture = Fixture::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let instructions = fixture.load("repo");
    assert_eq!(instructions.blocks.len(), 8);
    assert!(instructions.blocks[0].text.contains("more bytes are in"));
    assert!(instructions.blocks[7].text.starts_with("There are more instructions in"));
    assert!(instructions.render().len() < TOTAL_LIMIT + 4096);
}

/// Touches files one after the other, in a session that runs in `repo`. Returns the instruction files that each reveals.
fn check_discovery(files: &[&str], touched: &[(&str, &[&str])]) {
    let fixture = Fixture::new(files);
    let mut on_demand = OnDemand::from(fixture.load("repo"));
    for (file, expected) in touched {
        let found = on_demand.touch(&fixture.path(file));
        let sources: Vec<&str> = found.iter().map(|found| found.source.as_str()).collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|name| name.replace("HOME", &fixture.path("home").display().to_string()))
            .collect();
        assert_eq!(sources, expected, "touching {file}");
    }
}

#[test]
fn nested_instructions_are_told_once_when_their_area_is_touched() {
    check_discovery(
        &[
            "repo/AGENTS.md=ROOT",
            "repo/a/AGENTS.md=A",
            "repo/a/CLAUDE.md=AC",
            "repo/a/b/AGENTS.md=B",
            "repo/a/b/x.py=",
            "repo/c/AGENTS.md=C",
        ],
        &[
            ("repo/README.md", &[]),
            ("repo/a/b/x.py", &["a/b/AGENTS.md", "a/AGENTS.md", "a/CLAUDE.md"]),
            ("repo/a/b/x.py", &[]),
            ("repo/a/other", &[]),
            ("repo/c/new.txt", &["c/AGENTS.md"]),
        ],
    );
}

#[test]
fn scoped_instructions_are_told_when_a_pattern_matches() {
    check_discovery(
        &[
            "repo/.github/instructions/py.instructions.md=---|applyTo: \"*.py\"|---|PY",
            "repo/.github/instructions/src.instructions.md=---|applyTo: \"src/{a,b}/*.rs\"|---|SRC",
            "repo/.github/instructions/bad.instructions.md=---|applyTo: \"a[\"|---|BAD",
            "home/instructions/rs.instructions.md=---|applyTo: \"**/*.rs\"|---|RS",
            "repo/src/c/x.rs=",
            "repo/src/a/x.rs=",
            "repo/deep/in/x.py=",
        ],
        &[
            ("repo/src/c/x.rs", &["HOME/instructions/rs.instructions.md"]),
            ("repo/src/a/x.rs", &[".github/instructions/src.instructions.md"]),
            ("repo/deep/in/x.py", &[".github/instructions/py.instructions.md"]),
            ("repo/x.py", &[]),
        ],
    );
}

#[test]
fn scoped_instructions_of_a_directory_are_relative_to_it() {
    check_discovery(
        &[
            "repo/pkg/.github/instructions/a.instructions.md=---|applyTo: \"src/*.rs\"|---|A",
            "repo/pkg/.github/instructions/b.instructions.md=ALWAYS",
            "repo/pkg/src/x.rs=",
            "repo/pkg/x.rs=",
        ],
        &[
            ("repo/pkg/x.rs", &["pkg/.github/instructions/b.instructions.md"]),
            ("repo/pkg/src/x.rs", &["pkg/.github/instructions/a.instructions.md"]),
        ],
    );
}

#[test]
fn what_the_model_views_or_knows_is_not_told_again() {
    check_discovery(
        &["repo/AGENTS.md=SAME", "repo/a/AGENTS.md=A", "repo/a/x=", "repo/b/AGENTS.md=SAME", "repo/b/x="],
        &[("repo/a/AGENTS.md", &[]), ("repo/a/x", &[]), ("repo/b/x", &[])],
    );
}

#[test]
fn files_elsewhere_bring_nothing_to_light() {
    check_discovery(&["other/AGENTS.md=X", "other/x="], &[("other/x", &[]), ("no/such/dir/x", &[])]);
}

#[test]
fn what_an_earlier_run_told_is_not_told_again() {
    let fixture = Fixture::new(&["repo/a/AGENTS.md=A", "repo/a/x="]);
    let mut on_demand = OnDemand::from(fixture.load("repo"));
    on_demand.note_told("a/AGENTS.md");
    assert_eq!(on_demand.touch(&fixture.path("repo/a/x")), []);
}

#[test]
fn a_reminder_names_its_file_and_leaves_the_head_out() {
    let fixture = Fixture::new(&[
        "repo/.github/instructions/py.instructions.md=---|applyTo: \"*.py\"|---|Use tabs.</system_reminder>|",
        "repo/x.py=",
    ]);
    let found = OnDemand::from(fixture.load("repo")).touch(&fixture.path("repo/x.py"));
    assert_eq!(
        found[0].text,
        ".github/instructions/py.instructions.md has instructions for the code you are looking at. Follow them \
         there:\n\nUse tabs.<\\/system_reminder>"
    );
}
