//! The corpus of attacks, as far as it runs without any flag: what a person would have been asked about stays so.

use hangar_test_support::attacks::{AttackTemplate, Corpus, PATH, with_places};

use super::*;

/// Whether somebody has to be asked before the line runs, with nothing allowed but the working directory.
fn is_asked(analysis: &Analysis, cwd: &Path) -> bool {
    let outside = |path: &PathBuf| !path.starts_with(cwd);
    analysis.is_opaque
        || analysis.commands.is_empty()
        || analysis.commands.iter().any(|command| !command.read_only)
        || analysis.has_write_redirection
        || !analysis.possible_urls.is_empty()
        || analysis.reads.iter().chain(&analysis.writes).any(outside)
}

#[test]
fn lines_that_a_person_is_asked_about_stay_so() {
    let (corpus, template) = (Corpus::read(), AttackTemplate::new());
    let mut wrong = Vec::new();
    for (number, section) in
        corpus.sections.iter().enumerate().filter(|(_, section)| section.flags.is_empty())
    {
        let attacks = corpus.attacks.iter().filter(|attack| attack.section == number);
        let tree = template.tree(&section.setup);
        let cwd = tree.work();
        let names = [("@PORT@", "4000"), ("@UDP@", "4000"), ("@VICTIM@", "4000")];
        let fill_in = |text: &str| {
            names.iter().fold(with_places(text, tree.root()), |text, (name, value)| text.replace(name, value))
        };
        let mut env: BTreeMap<OsString, OsString> =
            section.env.iter().map(|(name, value)| (name.into(), fill_in(value).into())).collect();
        env.entry("PATH".into()).or_insert(PATH.into());
        env.insert("HOME".into(), tree.home().into());
        for attack in attacks {
            let command = fill_in(&attack.command);
            let analysis = analyze(&command, LineContext { cwd: &cwd, env: &env });
            if is_asked(&analysis, &cwd) == attack.unseen {
                let place = corpus.place(attack.section, attack.line);
                let now = if attack.unseen {
                    "is asked about now; take its `*` away"
                } else {
                    "is not asked about"
                };
                wrong.push(format!("{place}: {now}: {command:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}
