//! The tour of the README does what it says, typed as it is written.

use hangar_test_support::{Finished, Scratch};

use crate::HANGAR;

const README: &str = include_str!("../../../../README.md");

/// The fenced blocks of the tour, each with its language.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let (_, tour) = README.split_once("## Five minutes\n").expect("the tour");
    let (tour, _) = tour.split_once("\n## ").expect("what follows the tour");
    let fenced = tour.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

/// Types a script into a shell on a machine without any configuration.
fn type_in(scratch: &Scratch, script: &str) -> Finished {
    let bin = scratch.root().join("bin");
    if std::fs::create_dir(&bin).is_ok() {
        std::os::unix::fs::symlink(HANGAR, bin.join("hangar")).expect("a link");
    }
    let script = script.replace("/tmp/tour", &scratch.work().join("tour").display().to_string());
    // Programs in somebody's home are kept from commands here, since this machine has another home.
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    scratch.run("bash").args(["-c", &format!("exec 2>&1\n{script}")]).env("PATH", path).finish()
}

/// Output with a `#` for every number and every id of a session, and no more than one empty line in a row.
fn shape(output: &str) -> String {
    let mut shape = String::new();
    for line in output.lines() {
        if line.is_empty() && shape.ends_with("\n\n") {
            continue;
        }
        let (line, id) = line.split_once("--resume=").map_or((line, ""), |(line, _)| (line, "--resume=#"));
        for letter in line.chars() {
            match letter.is_ascii_digit() {
                true if shape.ends_with('#') => {}
                true => shape.push('#'),
                false => shape.push(letter),
            }
        }
        shape.push_str(id);
        shape.push('\n');
    }
    shape
}

#[test]
fn the_tour_of_the_readme_prints_what_it_says() {
    let blocks = blocks();
    let [("sh", hello), ("sh", fix), ("", printed), ("sh", look), ("sh", _)] = blocks[..] else {
        panic!("the tour has other blocks: {blocks:#?}");
    };
    let scratch = Scratch::new();
    let said = type_in(&scratch, hello).expect_exit(0).stdout;
    assert!(said.contains("hello"), "{said}");
    let work = "cd /tmp/tour\n";
    let fixed = type_in(&scratch, &format!("{work}{fix}")).expect_exit(0).stdout;
    assert_eq!(shape(&fixed), shape(printed));
    let (look, up) = look.split_once("hangar up").expect("the portal is last, since it does not end");
    assert_eq!(up.lines().count(), 1);
    let looked = type_in(&scratch, &format!("{work}{look}")).expect_exit(2).stdout;
    for word in ["add() is wrong, fix it", "done", "ok  home: ", "BAD providers: "] {
        assert!(looked.contains(word), "{word}: {looked}");
    }
}
