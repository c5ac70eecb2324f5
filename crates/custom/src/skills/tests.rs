use std::path::Path;

use super::*;
use crate::CustomPaths;

struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn skills(&self) -> Arc<Skills> {
        let places = CustomPaths {
            home: self.path().join("home"),
            user_home: Some(self.path().join("user")),
            cwd: self.path().join("repo/sub"),
            git_root: Some(self.path().join("repo")),
            trusted: false,
        };
        let extra = vec![self.path().join("extra")];
        let wanted = SkillPlaces { places, plugins: Vec::new(), extra, discovered: true };
        Skills::load(wanted, ["off".to_owned()])
    }
}

fn skill(description: &str) -> String {
    format!("---\ndescription: {description}\n---\n\nDo {description}.\n")
}

#[test]
fn skills_are_found_everywhere_and_the_first_of_a_name_counts() {
    let fixture = Fixture::new(&[
        ("repo/sub/.github/skills/a/SKILL.md", &skill("here")),
        ("repo/.claude/skills/a/SKILL.md", &skill("above")),
        ("repo/.agents/skills/b/SKILL.md", &skill("above")),
        ("home/skills/c/SKILL.md", &skill("mine")),
        ("user/.agents/skills/d/SKILL.md", &skill("shared")),
        ("extra/e/SKILL.md", &skill("named")),
        ("repo/sub/.claude/commands/f.md", "First line.\n"),
        ("repo/sub/.claude/commands/a.md", "Lower."),
    ]);
    let list = fixture.skills().list();
    let found: Vec<(&str, &str, &str)> = list
        .iter()
        .map(|skill| (skill.name.as_str(), skill.source.as_str(), skill.description.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("a", "project", "here"),
            ("b", "inherited", "above"),
            ("c", "personal-copilot", "mine"),
            ("d", "personal-agents", "shared"),
            ("e", "custom", "named"),
            ("f", "project", "First line."),
        ]
    );
}

#[test]
fn a_skill_is_told_with_its_folder() {
    let fixture = Fixture::new(&[("home/skills/a/SKILL.md", &skill("x"))]);
    let skills = fixture.skills();
    let told = skills.called_by_model("a").unwrap();
    let base = fixture.path().join("home/skills/a");
    assert_eq!(
        told.context.content,
        format!(
            "<skill-context name=\"a\">\nBase directory for this skill: {}\n\nDo x.\n\n</skill-context>",
            base.display()
        )
    );
}

#[test]
fn a_skill_is_told_with_the_files_that_it_brings() {
    let fixture = Fixture::new(&[
        ("home/skills/a/SKILL.md", &skill("x")),
        ("home/skills/a/scripts/run.py", ""),
        ("home/skills/a/notes.md", ""),
        ("repo/sub/.claude/commands/b.md", "Alone."),
        ("repo/sub/.claude/commands/c.md", "Not a file of b."),
    ]);
    let skills = fixture.skills();
    let told = skills.called_by_model("a").unwrap().context.content;
    let base = fixture.path().join("home/skills/a");
    let list = format!("  - {0}/notes.md\n  - {0}/scripts/run.py\n\nDo x.", base.display());
    assert!(told.contains(&list), "{told}");
    assert!(!skills.called_by_model("b").unwrap().context.content.contains("c.md"));
}

#[test]
fn skills_may_be_grouped_by_one_directory() {
    let fixture = Fixture::new(&[
        ("home/skills/team/a/SKILL.md", &skill("grouped")),
        ("home/skills/team/deep/b/SKILL.md", &skill("too deep")),
        ("home/skills/c/SKILL.md", &skill("c")),
        ("home/skills/c/inner/SKILL.md", &skill("part of c")),
    ]);
    let names: Vec<String> = fixture.skills().list().into_iter().map(|skill| skill.name).collect();
    assert_eq!(names, ["c", "a"]);
}

#[test]
fn a_project_that_is_not_trusted_approves_no_tools() {
    let text = "---\ndescription: d\nallowed-tools: shell\n---\nx";
    let fixture =
        Fixture::new(&[("repo/.github/skills/theirs/SKILL.md", text), ("home/skills/mine/SKILL.md", text)]);
    let skills = fixture.skills();
    let allowed = |name: &str| skills.called_by_model(name).unwrap().invoked.allowed_tools;
    assert_eq!(allowed("theirs"), None);
    assert_eq!(allowed("mine"), Some(vec!["shell".to_owned()]));
}

#[test]
fn a_person_calls_a_skill_with_arguments() {
    let text = "---\ndescription: d\n---\nDeploy to $ARGUMENTS.\n";
    let fixture = Fixture::new(&[("repo/sub/.claude/commands/deploy.md", text)]);
    let skills = fixture.skills();
    let told = skills.called_by("/deploy prod now").unwrap();
    assert_eq!(told.invoked.content, "Deploy to prod now.\n");
    assert_eq!(told.invoked.trigger, Some(SkillTrigger::UserInvoked));
    assert!(skills.called_by("deploy prod").is_none());
    assert!(skills.called_by("/other").is_none());
}

#[test]
fn what_is_switched_off_is_listed_and_not_told() {
    let hidden = "---\ndescription: h\ndisable-model-invocation: true\nuser-invocable: false\n---\nx";
    let fixture = Fixture::new(&[
        ("home/skills/off/SKILL.md", &skill("x")),
        ("home/skills/hidden/SKILL.md", hidden),
        ("home/skills/on/SKILL.md", &skill("y")),
    ]);
    let skills = fixture.skills();
    let enabled: Vec<(String, bool)> =
        skills.list().into_iter().map(|skill| (skill.name, skill.enabled)).collect();
    assert_eq!(enabled, [("hidden".to_owned(), true), ("off".to_owned(), false), ("on".to_owned(), true)]);
    assert_eq!(skills.called_by_model("off").unwrap_err(), SkillUnavailable::Unknown);
    assert!(skills.called_by("/hidden").is_none());
    assert_eq!(skills.called_by_model("hidden").unwrap_err(), SkillUnavailable::Unknown);
    let description = skills.tool().spec().description.clone();
    assert!(description.contains("<name>on</name>"), "{description}");
    assert!(!description.contains("<name>off</name>") && !description.contains("<name>hidden</name>"));
    assert!(skills.set_enabled("off", true));
    assert!(skills.called_by_model("off").is_ok());
}

#[test]
fn the_list_for_the_model_has_a_bound() {
    let long = skill(&"words ".repeat(150));
    let names: Vec<String> = (0..100).map(|n| format!("home/skills/s{n:03}/SKILL.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
    let description = Fixture::new(&files).skills().tool().spec().description.clone();
    assert!(description.len() < 17_000, "{}", description.len());
    assert!(description.contains("more are not listed"));
}

#[test]
fn a_broken_skill_is_one_sentence() {
    let fixture = Fixture::new(&[
        ("home/skills/bad/SKILL.md", "---\nname: [\n"),
        ("home/skills/list/SKILL.md", "---\nname: [x\ndescription: }{\n---\n"),
        ("home/skills/odd/SKILL.md", "---\nname: a/b\ndescription: x\n---\n"),
        ("home/skills/ok/SKILL.md", "---\nname: two words\ndescription: x\n---\n"),
    ]);
    let skills = fixture.skills();
    let list = skills.list();
    assert_eq!(list.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["two-words"]);
    let warnings = skills.warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
}

#[test]
fn a_link_out_of_the_project_is_neither_listed_nor_told() {
    let fixture = Fixture::new(&[
        ("outside.md", &skill("outside")),
        ("outside/SKILL.md", &skill("folder")),
        ("repo/shared.md", &skill("inside")),
        ("repo/.github/skills/late/SKILL.md", &skill("late")),
    ]);
    let link = |to: &str, at: &str| {
        let at = fixture.path().join(at);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(fixture.path().join(to), at).unwrap();
    };
    link("outside.md", "repo/.github/skills/file/SKILL.md");
    link("outside", "repo/.github/skills/dir");
    link("outside.md", "repo/.claude/commands/command.md");
    link("outside.md", "extra/named/SKILL.md");
    link("repo/shared.md", "repo/.github/skills/inside/SKILL.md");
    // The user's own folder is the user's to arrange.
    link("outside.md", "home/skills/mine/SKILL.md");
    let skills = fixture.skills();
    let names: Vec<String> = skills.list().into_iter().map(|skill| skill.name).collect();
    assert_eq!(names, ["inside", "late", "mine"]);
    let warnings = skills.warnings();
    assert_eq!(warnings.iter().filter(|said| said.contains("is a link to a file outside of")).count(), 4);
    // One that becomes a link after it was listed.
    std::fs::remove_file(fixture.path().join("repo/.github/skills/late/SKILL.md")).unwrap();
    link("outside.md", "repo/.github/skills/late/SKILL.md");
    assert!(matches!(skills.called_by_model("late"), Err(SkillUnavailable::Unreadable(_))));
}
