use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

/// A directory to read command lines in: files, a subdirectory, and links that lead out of it.
struct Place {
    dir: tempfile::TempDir,
    cwd: PathBuf,
    env: BTreeMap<OsString, OsString>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(cwd.join("sub")).unwrap();
        std::fs::write(cwd.join("a.txt"), "").unwrap();
        symlink("/etc", cwd.join("out")).unwrap();
        let home = cwd.join("home").into_os_string();
        let env =
            [("HOME", home), ("EMPTY", OsString::new()), ("LINE", "a b".into()), ("ETC", "/etc".into())];
        let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { dir, cwd, env }
    }

    fn analyze(&self, text: &str) -> Analysis {
        analyze(text, Scope { cwd: &self.cwd, env: &self.env })
    }

    /// Commands with `+` if they only read and `-` if not; `!` paths outside, `>` targets, `@` addresses, `?` if something
    /// was not read.
    fn show(&self, text: &str) -> String {
        let analysis = self.analyze(text);
        let mut words: Vec<String> = analysis
            .commands
            .iter()
            .map(|command| format!("{}{}", command.identifier, if command.read_only { "+" } else { "-" }))
            .collect();
        let outside = analysis.reads.iter().filter(|path| !path.starts_with(&self.cwd));
        let base = self.dir.path().canonicalize().unwrap();
        let shown = |path: &PathBuf| match path.strip_prefix(&self.cwd) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => path
                .strip_prefix(&base)
                .map_or(path.display().to_string(), |path| format!("../{}", path.display())),
        };
        words.extend(outside.map(|path| format!("!{}", shown(path))));
        words.extend(analysis.writes.iter().map(|path| format!(">{}", shown(path))));
        if analysis.has_write_redirection && analysis.writes.is_empty() {
            words.push(">".to_owned());
        }
        words.extend(analysis.possible_urls.iter().map(|url| format!("@{url}")));
        if analysis.is_opaque {
            words.push("?".to_owned());
        }
        words.join(" ")
    }
}

fn check(cases: &[(&str, &str)]) {
    let place = Place::new();
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, expected)| (text, *expected, place.show(text)))
        .filter(|(_, expected, actual)| expected != actual)
        .map(|(text, expected, actual)| format!("{text}\n  expected {expected}\n  actual   {actual}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn print_corpus() {
    let place = Place::new();
    let corpus: Vec<(String, Vec<String>)> =
        serde_json::from_str(&std::fs::read_to_string("/tmp/shelltest/corpus.json").unwrap()).unwrap();
    for (name, lines) in corpus {
        println!("## {name}");
        for line in lines {
            let text = line
                .replace("\\n", "\n")
                .replace("\\t", "\t")
                .replace("\\r", "\r")
                .replace("\\xc2\\xa0", "\u{a0}");
            let text = if line.contains("printf") || line.contains("$'") { line.clone() } else { text };
            println!("{:<50} => {}", line, place.show(&text));
        }
    }
}
