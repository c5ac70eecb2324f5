mod corpus;
mod places;
mod unread;

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
        std::fs::create_dir(cwd.with_file_name("far")).unwrap();
        std::fs::write(cwd.with_file_name("far").join("key.txt"), "").unwrap();
        symlink("../far", cwd.join("away")).unwrap();
        let home = cwd.join("home").into_os_string();
        let env =
            [("HOME", home), ("EMPTY", OsString::new()), ("LINE", "a b".into()), ("ETC", "/etc".into())];
        let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { dir, cwd, env }
    }

    fn analyze(&self, text: &str) -> Analysis {
        analyze(text, LineContext { cwd: &self.cwd, env: &self.env })
    }

    /// Commands with `+` if they only read and `-` if not; `!` paths outside, `>` targets, `@` addresses, `?` if something
    /// was not read.
    fn show(&self, text: &str) -> String {
        let analysis = self.analyze(text);
        let mut words: Vec<String> = analysis
            .commands
            .iter()
            .filter(|command| !analysis.is_opaque || command.identifier != text)
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
fn what_only_reads_is_known() {
    check(&[
        ("cut -d / -f1 a.txt", "cut+"),
        ("sort -t / -k2 a.txt", "sort+"),
        ("find . -name /etc", "find+"),
        ("grep -A 3 foo a.txt", "grep+"),
        ("grep -c /x a.txt", "grep+"),
        ("jq -r .a/.b package.json", "jq+"),
        ("bash -o pipefail -c 'ls | head'", "bash+ ls+ head+"),
        ("ls", "ls+"),
        ("ls -la sub", "ls+"),
        ("cat a.txt", "cat+"),
        ("head -n 5 a.txt", "head+"),
        ("tail -20 a.txt", "tail+"),
        ("wc -l a.txt", "wc+"),
        ("grep -rn foo sub", "grep+"),
        ("grep -rn /api/v1 sub", "grep+"),
        ("rg TODO", "rg+"),
        ("rg -e /x -e y sub", "rg+"),
        ("find . -name '*.rs' -type f", "find+"),
        ("find . -type f -exec grep -l x {} +", "find+ grep+"),
        ("sed -n 1,20p a.txt", "sed+"),
        ("sed 's/a/b/g' a.txt", "sed+"),
        ("sort a.txt | uniq -c | sort -rn", "sort+ uniq+"),
        ("diff a.txt sub/b.txt", "diff+"),
        ("cut -d/ -f1 a.txt", "cut+"),
        ("tr / _", "tr+"),
        ("echo hi", "echo+"),
        (r"printf '%s\n' x", "printf+"),
        ("pwd", "pwd+"),
        ("which ls", "which+"),
        ("env", "env+"),
        ("date +%F", "date+"),
        ("stat a.txt", "stat+"),
        ("test -f a.txt", "test+"),
        ("[ -f a.txt ] && echo yes", "[+ echo+"),
        ("[[ -f a.txt ]] && ls", "ls+"),
        ("true", "true+"),
        ("command -v cargo", "command+"),
        ("cargo --version", "cargo --version+"),
        ("node -v", "node+"),
        ("jq .name package.json", "jq+"),
        ("cd sub && ls", "cd+ ls+"),
        ("cd sub && cat ../a.txt", "cd+ cat+"),
        ("cat a.txt | head -3", "cat+ head+"),
        ("ls; pwd", "ls+ pwd+"),
        ("/bin/ls sub", "ls+"),
        (r#""ls" sub"#, "ls+"),
        ("l''s", "ls+"),
        (r"\ls", "ls+"),
        (r"$'\x6cs' sub", "ls+"),
        ("echo {a,b}.txt", "echo+"),
        ("cat sub/*.rs", "cat+"),
        ("cat ~/notes", "cat+"),
        ("cat $HOME/notes", "cat+"),
        (r#"cat "$PWD/a.txt""#, "cat+"),
        ("f=a.txt; cat $f", "cat+"),
        (r#"for f in a.txt sub/b; do cat "$f"; done"#, "cat+"),
        ("for i in 1 2 3; do echo $i; done", "echo+"),
        ("for ((i=0;i<3;i++)); do echo $i; done", "echo+"),
        ("if [ -d sub ]; then ls sub; else echo no; fi", "[+ ls+ echo+"),
        (r#"while read -r line; do echo "$line"; done < a.txt"#, "read+ echo+"),
        ("case $EMPTY in x) ls;; *) pwd;; esac", "ls+ pwd+"),
        ("time ls", "ls+"),
        ("timeout 5 ls", "timeout+ ls+"),
        ("nice -n 5 ls", "nice+ ls+"),
        ("env FOO=1 ls", "env+ ls+"),
        ("bash -c 'ls sub'", "bash+ ls+"),
        (r#"bash -c "cat a.txt | wc -l""#, "bash+ cat+ wc+"),
        ("ls $(pwd)/sub", "pwd+ ls-"),
        (r#"echo "$(git status)""#, "git status+ echo+"),
        ("echo `pwd`", "pwd+ echo+"),
        ("cat <(ls)", "ls+ cat+"),
        (r#"cat <<< "$HOME""#, "cat+"),
        ("cat <<'EOF'\n$(rm x)\nEOF", "cat+"),
        ("ls >/dev/null 2>&1", "ls+"),
        ("ls 2>&1 | cat", "ls+ cat+"),
        ("echo x >&2", "echo+"),
        ("ls &", "ls+"),
        ("(cd sub; ls)", "cd+ ls+"),
        ("{ ls; pwd; }", "ls+ pwd+"),
        ("eval ls", "eval+ ls+"),
        ("x=$((1+2)); echo $x", "echo+"),
        ("LC_ALL=C sort a.txt", "sort+"),
    ]);
}

#[test]
fn git_is_judged_by_its_command() {
    check(&[
        ("git stash list --output=x", "git stash-"),
        ("git reflog show --output=x", "git reflog-"),
        ("git remote -v add x y", "git remote-"),
        ("git diff --no-index /etc/passwd a.txt", "git diff+ !/etc/passwd"),
        ("git -c user.name=x -C sub commit", "git -c- git commit-"),
        ("git status", "git status+"),
        ("git status --short", "git status+"),
        ("git log --oneline -5", "git log+"),
        ("git diff HEAD~1 -- sub", "git diff+"),
        ("git show HEAD:a.txt", "git show+"),
        ("git -C sub status", "git status+"),
        ("git --no-pager log", "git log+"),
        ("git branch", "git branch+"),
        ("git branch -a -vv", "git branch+"),
        ("git branch --list 'x*'", "git branch+"),
        ("git branch --contains HEAD", "git branch+"),
        ("git remote -v", "git remote+"),
        ("git remote get-url origin", "git remote+"),
        ("git stash list", "git stash+"),
        ("git config --get user.name", "git config+"),
        ("git tag -l 'v*'", "git tag+"),
        ("git rev-parse --show-toplevel", "git rev-parse+"),
        ("git grep foo", "git grep+"),
        ("git blame a.txt", "git blame+"),
        ("git", "git+"),
        ("git --version", "git+"),
        ("git push", "git push-"),
        ("git push origin main", "git push-"),
        ("git commit -m 'x'", "git commit-"),
        ("git -C sub push", "git push-"),
        ("git --no-pager push", "git push-"),
        ("git -c core.pager=evil status", "git -c- git status-"),
        ("git -c alias.x='!rm y' x", "git -c- git x-"),
        ("git --exec-path=. status", "git status-"),
        ("git --git-dir=evil status", "git status-"),
        ("git log --output=x", "git log-"),
        ("git log --outp=x", "git log-"),
        ("git diff --ext-diff", "git diff-"),
        ("git grep -O foo", "git grep-"),
        ("git grep --open-files-in-pager=evil foo", "git grep-"),
        ("git branch newb", "git branch-"),
        ("git branch -d old", "git branch-"),
        ("git branch -m new", "git branch-"),
        ("git remote add x y", "git remote-"),
        ("git stash", "git stash-"),
        ("git config user.name x", "git config-"),
        ("git tag v1", "git tag-"),
        ("git checkout .", "git checkout-"),
        ("git clone https://example.com/x.git", "git clone- @https://example.com/x.git"),
        ("git $SUB", "git+"),
        ("git pu''sh", "git push-"),
        ("GIT_PAGER=evil git log", "git log-"),
        ("git -C out status", "git status+ !/etc"),
    ]);
}

#[test]
fn what_writes_or_runs_something_does_not_only_read() {
    check(&[
        ("bash -o pipefail -c 'rm x'", "bash+ rm-"),
        ("bash +x -c 'rm x'", "bash+ rm-"),
        ("bash --rcfile evil -c ls", "bash- ls+"),
        ("su -c 'rm x'", "su- rm-"),
        ("su", "?"),
        ("watch -n 1 rm x", "watch- rm-"),
        ("watch 'ls; rm x'", "watch- ls+ rm-"),
        ("strace -o log rm x", "strace- rm-"),
        ("flock lock rm x", "flock- rm-"),
        ("sudo env X=1 timeout 5 rm x", "sudo- env+ timeout+ rm-"),
        (r#"find . -exec sh -c 'rm "$1"' _ {} \;"#, "find+ sh+ rm-"),
        ("touch x", "touch-"),
        ("rm -rf sub", "rm-"),
        ("ls; touch x", "ls+ touch-"),
        ("ls && rm -rf foo", "ls+ rm-"),
        ("ls || rm x", "ls+ rm-"),
        ("ls | tee out.log", "ls+ tee-"),
        ("ls\nrm x", "ls+ rm-"),
        ("ls & rm x", "ls+ rm-"),
        ("cp a.txt b", "cp-"),
        ("mv a b", "mv-"),
        ("mkdir x", "mkdir-"),
        ("npm install", "npm install-"),
        ("npm run build", "npm run-"),
        ("cargo build", "cargo build-"),
        ("docker ps", "docker-"),
        ("python3 -c 'print(1)'", "python3-"),
        ("node -e '1'", "node-"),
        ("find . -delete", "find-"),
        (r"find . -exec rm {} \;", "find+ rm-"),
        ("find . -name x -execdir rm {} +", "find+ rm-"),
        ("find . -fprint x", "find-"),
        ("find . -fls x", "find-"),
        (r"find . -ok rm {} \;", "find+ rm-"),
        ("fd -x rm", "fd- rm-"),
        ("fd foo --exec rm", "fd- rm-"),
        ("sed -i s/a/b/ a.txt", "sed-"),
        ("sed -n 'w out' a.txt", "sed-"),
        ("sed 's/a/b/w out' a.txt", "sed-"),
        ("sed -f script a.txt", "sed-"),
        ("sed --in-place=.bak p a.txt", "sed-"),
        ("sort -o a.txt b", "sort-"),
        ("sort -ro a.txt", "sort-"),
        ("sort --outp=x a.txt", "sort-"),
        ("sort --compress-program=evil a.txt", "sort-"),
        ("uniq a.txt out", "uniq- !/etc"),
        ("xxd a.txt out", "xxd- !/etc"),
        ("tree -o x", "tree-"),
        ("rg --pre evil x", "rg-"),
        ("date -s 2020-01-01", "date-"),
        ("date 010100002020", "date-"),
        ("hostname evil", "hostname-"),
        ("awk '{print}' a.txt", "awk-"),
        (r#"awk 'BEGIN{system("rm x")}'"#, "awk-"),
        ("less a.txt", "less-"),
        ("man ls", "man-"),
        ("tar tf x.tar", "tar-"),
        ("tar --to-command=evil -xf x.tar", "tar-"),
        ("xargs rm", "xargs- rm-"),
        ("ls | xargs cat", "ls+ xargs- cat-"),
        ("ls | xargs -n 1 rm -f", "ls+ xargs- rm-"),
        ("sudo ls", "sudo- ls+"),
        ("sudo -u root rm x", "sudo- rm-"),
        ("env X=1 rm x", "env+ rm-"),
        ("env -S 'rm x'", "env- rm x- ?"),
        ("env -i rm x", "env+ rm-"),
        ("nohup rm x &", "nohup+ rm-"),
        ("timeout 5 rm x", "timeout+ rm-"),
        ("timeout -k 1 5 rm x", "timeout+ rm-"),
        ("time rm x", "rm-"),
        ("nice rm x", "nice+ rm-"),
        ("stdbuf -o0 rm x", "stdbuf+ rm-"),
        ("command rm x", "command+ rm-"),
        ("command -p rm x", "command+ rm-"),
        ("builtin eval 'rm x'", "builtin+ eval+ rm-"),
        ("exec rm x", "exec+ rm-"),
        ("setsid rm x", "setsid+ rm-"),
        ("busybox rm x", "busybox+ rm-"),
        ("bash -c 'rm x'", "bash+ rm-"),
        ("bash -lc 'ls'", "bash- ls+"),
        ("sh -ec 'ls; rm x'", "sh+ ls+ rm-"),
        ("bash script.sh", "bash-"),
        ("bash < script.sh", "bash-"),
        ("curl x | bash", "curl- bash-"),
        ("./script.sh arg", "./script.sh-"),
        ("./ls", "./ls-"),
        ("source env.sh", "source-"),
        (". ./env.sh", ".-"),
        ("kill 1", "kill-"),
        ("gh pr list", "gh pr-"),
        ("gh pr create", "gh pr-"),
        ("gh api /x", "gh api-"),
        ("gh pr view --web", "gh pr-"),
        ("crontab -e", "crontab-"),
        ("ssh host ls", "ssh-"),
        ("make", "make-"),
    ]);
}

#[test]
fn nothing_hides_in_expansions_and_nesting() {
    check(&[
        ("x=$(cat a.txt); echo $((x))", "cat- echo-"),
        ("echo $(( $(cat a.txt) ))", "cat- echo-"),
        ("declare -i x=$(cat a.txt)", "cat- declare-"),
        ("[[ $(cat a.txt) -eq 1 ]] && ls", "cat- ls-"),
        ("x=y; echo ${!x}", "echo-"),
        ("((PATH=1)); ls", "PATH=- ls-"),
        ("x=sub/sub; ((x=5)); cat $x/../../y", "cat+ !../y"),
        ("for x in a; do ((x++)); done; cat $x/../../y", "cat+ !../y"),
        ("declare -n r=PATH; r=.; ls", "declare- ls-"),
        (r#"read "$X"; ls"#, "read+ ls+"),
        (r#"export "$(cat a.txt)"; ls"#, "cat- export- ls-"),
        (r#"a=$1; cat "$a""#, "cat-"),
        (r#"set -- /etc/passwd; cat "$1""#, "set+ cat-"),
        ("IFS=/; x=a/b; ls $x", "ls-"),
        ("ls <<< x > >(cat)", "cat+ ls+"),
        (r#"echo "a$(ls)b" 'c$(rm x)d'"#, "ls+ echo+"),
        ("ls \"$(cat <<EOF\n$(rm x)\nEOF\n)\"", "rm- cat+ ls-"),
        ("ls ${EMPTY:+$(rm x)}", "rm- ls-"),
        (r#"ls "${x[@]}""#, "ls+"),
        ("ls ${#x} ${x%%*/} ${x#a}", "ls-"),
        ("echo {1..3}{a,b}", "echo+"),
        ("ls $(rm x)", "rm- ls-"),
        (r#"ls "$(rm x)""#, "rm- ls-"),
        ("ls `rm x`", "rm- ls-"),
        (r#"ls "`rm x`""#, "rm- ls-"),
        ("echo $(echo $(rm x))", "rm- echo+"),
        (r#"echo "${a:-$(rm x)}""#, "rm- echo+"),
        ("echo ${a:=$(rm x)}", "rm- echo+"),
        ("echo ${a//x/$(rm x)}", "rm- echo+"),
        ("echo ${a:$(rm x):1}", "rm- echo-"),
        ("echo ${a[$(rm x)]}", "rm- echo-"),
        ("echo $((1+$(rm x)))", "rm- echo-"),
        ("((a=$(rm x)))", "rm-"),
        ("a=$(rm x)", "rm-"),
        ("a[$(rm x)]=1", "rm-"),
        ("a=(1 $(rm x))", "rm-"),
        ("cat <(rm x)", "rm- cat+"),
        ("ls > >(rm x)", "rm- ls+"),
        ("cat <<EOF\n$(rm x)\nEOF", "rm- cat+"),
        ("cat <<-EOF\n\t`rm x`\nEOF", "rm- cat+"),
        ("cat <<< $(rm x)", "rm- cat+"),
        ("f() { rm x; }; f", "rm- f-"),
        ("ls() { rm x; }; ls", "rm- ls-"),
        ("function g { rm x; }", "rm-"),
        ("( rm x )", "rm-"),
        ("( (rm x) )", "rm-"),
        ("((rm x) )", "rm-"),
        ("{ rm x; }", "rm-"),
        ("! rm x", "rm-"),
        ("if rm x; then ls; fi", "rm- ls+"),
        ("if ls; then rm x; elif touch y; then :; else mv a b; fi", "ls+ rm- touch- :+ mv-"),
        ("while rm x; do ls; done", "rm- ls+"),
        ("until ls; do rm x; done", "ls+ rm-"),
        ("for f in $(rm x); do ls; done", "rm- ls+"),
        ("case $(rm x) in a) ls;; esac", "rm- ls+"),
        ("case a in $(rm x)) ls;; esac", "rm- ls+"),
        ("case a in a) rm x;; esac", "rm-"),
        ("[[ -f $(rm x) ]]", "rm-"),
        ("[[ a == $(rm x) ]]", "rm-"),
        ("coproc rm x", "rm-"),
        ("trap 'rm x' EXIT", "trap+ rm-"),
        ("eval 'rm x'", "eval+ rm-"),
        ("eval rm x", "eval+ rm-"),
        (r#"eval "ls; rm x""#, "eval+ ls+ rm-"),
        (r#"eval "$CODE""#, "eval+"),
        ("eval $(cat a.txt)", "cat- eval- ?"),
        (r#"bash -c "eval 'rm x'""#, "bash+ eval+ rm-"),
        (r#"bash -c 'bash -c "rm x"'"#, "bash+ rm-"),
        ("$EMPTY rm x", "rm-"),
        ("$UNSET rm x", "rm-"),
        ("CMD=rm; $CMD x", "rm-"),
        (r#"CMD="rm -f"; $CMD x"#, "rm-"),
        ("$LINE", "a-"),
        ("${CMD:-rm} x", "rm-"),
        (r#""$(echo rm)" x"#, r#"echo- "$(echo rm)"- ?"#),
        ("`echo rm` x", "echo- `echo rm`- ?"),
        (r#"r""m x"#, "rm-"),
        (r"r\m x", "rm-"),
        ("'rm' x", "rm-"),
        ("$'rm' x", "rm-"),
        (r"$'\x72\x6d' x", "rm-"),
        (r#"$"rm" x"#, "rm-"),
        ("{rm,x}", "rm-"),
        ("/bin/r? x", "/bin/r?- ?"),
        ("l* x", "l*- ?"),
        ("ls #; rm x", "ls+"),
        ("ls # comment\nrm x", "ls+ rm-"),
        ("ls \\\n; rm x", "ls+ rm-"),
        ("ls;;rm x", "?"),
        ("ls | | rm", "?"),
        ("echo 'unterminated", "?"),
        (r#"echo "unterminated"#, "?"),
        ("ls (", "?"),
        ("alias ls=rm; ls", "alias- ls+"),
        ("shopt -s expand_aliases", "shopt-"),
        ("hash -p ./evil ls", "hash-"),
        ("enable -f evil.so ls", "enable-"),
        ("test -v 'a[$(rm x)]'", "test- ?"),
        ("[[ -v 'a[$(rm x)]' ]]", "?"),
        ("printf -v 'a[$(rm x)]' x", "printf- ?"),
        ("read 'a[$(rm x)]'", "read- ?"),
        ("x='a[$(rm x)]'; ((x))", "?"),
        ("x=$(echo 'a[$(rm x)]'); ((x))", "echo- ?"),
        ("x=a; x=\"$x b\"; echo \"$x\"", "echo+"),
        ("x=a; x=\"$x b\"; cat $x", "cat-"),
        ("x=$(wc -l < a.txt); ((x > 3)) && ls", "wc- ls-"),
        ("echo 'see $(pwd)'", "echo+"),
        ("let 'a[$(rm x)]=1'", "rm- let- ?"),
        ("unset 'a[$(rm x)]'", "unset- ?"),
        ("declare 'a[$(rm x)]=1'", "declare- ?"),
        ("echo ${a@P}", "echo- ?"),
        ("echo ${!a}", "echo-"),
        ("rm\u{a0}x", "rm\u{a0}x-"),
        ("\u{ff4c}\u{ff53}", "\u{ff4c}\u{ff53}-"),
        ("ls\r", "ls\r-"),
        ("echo ${ rm x; }", "echo- ?"),
        ("echo ${| rm x; }", "echo- ?"),
        ("x=\"$(cat <<'E'\nit's `done` $(now)\nE\n)\"; ls", "cat+ ls+"),
        ("cat <<'E' $(rm x)\nE\n", "?"),
        ("cat <<E \"`rm x`\"\nE\n", "?"),
        ("cat <<E \"a\n$(rm x)\"\nE\n", "?"),
        ("echo $(( 1 # $(rm x)\n ))", "?"),
        ("`echo \\$(rm x)`", "rm- echo- ?"),
        ("echo `echo \\$(rm x)`", "rm- echo- ?"),
        ("echo ${x:-<(rm x)}", "echo- ?"),
        ("(((ls '$(rm x)'; ls)))", "rm- ls+"),
        ("$! rm x", "$!- ?"),
        ("C=ls; $C; C=rm; $C x", "ls- rm- ?"),
        ("C=ls; timeout 5 $C; C=rm; timeout 5 $C x", "timeout- ls- rm- ?"),
        ("env A-B=1 rm x", "env+ rm-"),
        ("select x in a; do rm y; done", "?"),
    ]);
}

#[test]
fn builtins_that_run_something_are_seen_through() {
    check(&[
        ("mapfile -t lines < a.txt", "mapfile+"),
        ("mapfile -C 'touch x' -c 1 < a.txt", "mapfile- ?"),
        ("readarray -tC 'touch x' lines < a.txt", "readarray- ?"),
        ("mapfile \"$@\" < a.txt", "mapfile- ?"),
        ("jobs -l", "jobs+"),
        ("jobs -x touch x", "jobs-"),
    ]);
}

#[test]
fn variables_that_change_programs_are_distrusted() {
    check(&[
        ("PATH=. ls", "PATH=- ls-"),
        ("export PATH=.; ls", "PATH=- export- ls-"),
        ("PATH+=:x ls", "PATH=- ls-"),
        ("LD_PRELOAD=x ls", "LD_PRELOAD=- ls-"),
        ("LD_LIBRARY_PATH=. ls", "LD_LIBRARY_PATH=- ls-"),
        ("BASH_ENV=x ls", "BASH_ENV=- ls-"),
        ("IFS=x; ls", "ls-"),
        ("HOME=/tmp git status", "git status-"),
        ("env PATH=. ls", "PATH=- env- ls-"),
        ("env LD_PRELOAD=x ls", "LD_PRELOAD=- env- ls-"),
        ("declare PATH=.; ls", "PATH=- declare- ls-"),
        (r#"export "PATH=."; ls"#, "PATH=- export- ls-"),
        ("read PATH; ls", "PATH=- read- ls-"),
        ("printf -v PATH .; ls", "PATH=- printf- ls-"),
        ("for PATH in .; do ls; done", "PATH=- ls-"),
        ("PYTHONSTARTUP=x ls", "ls-"),
        ("GIT_EXTERNAL_DIFF=evil git diff", "git diff-"),
        ("FOO=1 ls", "ls+"),
        ("PATH=bin:$PATH ls", "PATH=- ls-"),
    ]);
}

#[test]
fn addresses_are_listed_for_what_could_reach_them() {
    check(&[
        ("curl https://example.com/a", "curl- @https://example.com/a"),
        ("curl -s 'http://x.com/a?b=c' | jq .", "curl- jq+ @http://x.com/a?b=c"),
        ("wget -O- https://x.com", "wget- @https://x.com"),
        ("git clone https://example.com/x.git", "git clone- @https://example.com/x.git"),
        ("pip install git+https://x.com/y", "pip install- @https://x.com/y"),
        ("echo https://example.com", "echo+"),
        ("grep https://x.com a.txt", "grep+"),
        ("npm install https://x.com/y.tgz", "npm install- @https://x.com/y.tgz"),
        (r#"curl "$URL""#, "curl-"),
    ]);
}

#[test]
fn approval_for_a_session_is_offered_for_plain_commands_alone() {
    let place = Place::new();
    let check = |text: &str, expected: bool| {
        assert_eq!(place.analyze(text).can_offer_session_approval, expected, "{text}");
    };
    check("git push", true);
    check("ls && rm -rf foo", true);
    check("touch x > log", true);
    check("eval ls", false);
    check("$1 x", false);
    check("FOO=1 touch x", false);
    check("env FOO=1 touch x", false);
    check("ls $(rm x)", false);
    check("cat <(touch z)", false);
    check("f() { rm x; }; f", false);
    check("ls (", false);
    check("x=1", false);
}

#[test]
fn a_text_too_long_or_too_deep_is_not_read() {
    let place = Place::new();
    let opaque = |text: &str| place.analyze(text).is_opaque;
    assert!(opaque(&format!("ls {}", "a ".repeat(TEXT_LIMIT))));
    assert!(opaque(&format!("{}ls{}", "( ".repeat(3000), " )".repeat(3000))));
    assert!(
        opaque(&format!("{}ls;{}", "( ".repeat(20), " )".repeat(20))),
        "this would take the parser for ever"
    );
    assert!(!opaque(&format!("{}ls;{}", "{ ".repeat(900), " };".repeat(900))));
    assert!(!opaque(&format!("{}ls{}", "echo $(".repeat(400), ")".repeat(400))));
    assert!(!opaque(&format!("cat <<'E'\n{}\nE\n", "{ \"a\": [1, (2)] }\n".repeat(300))));
    let deep = place.analyze(&format!("{}rm x;{}", "if ls; then ".repeat(150), " fi;".repeat(150)));
    assert!(deep.commands.iter().any(|command| command.identifier == "rm"));
}

/// Pieces that commands are made of, good and bad.
const PIECES: [&str; 58] = [
    "ls",
    "rm",
    "git",
    "x",
    "-o",
    "--output=x",
    "/etc/passwd",
    "..",
    "a.txt",
    "$X",
    "${X:-y}",
    "$(",
    ")",
    "`",
    "(",
    "((",
    "))",
    "{",
    "}",
    "[[",
    "]]",
    "[",
    "]",
    "\"",
    "'",
    "$'",
    "\\",
    "\\x41",
    "|",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "\n",
    " ",
    " ",
    " ",
    ">",
    ">>",
    "<",
    "<<",
    "<<E",
    "E\n",
    "<<<",
    "<(",
    ">(",
    "2>&1",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    "=",
];

proptest! {
    #[test]
    fn reading_never_panics(text in ".{0,200}") {
        Place::new().analyze(&text);
    }

    #[test]
    fn reading_what_almost_is_a_command_never_panics(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..30),
    ) {
        Place::new().analyze(&pieces.concat());
    }

    #[test]
    fn what_is_added_in_a_list_takes_nothing_away(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..12),
    ) {
        let place = Place::new();
        let text = pieces.concat();
        let alone = place.analyze(&text);
        let both = place.analyze(&format!("touch y\n{text}\n"));
        // Either reading is right where the text is broken; where it is not, nothing may get lost behind another.
        if !alone.is_opaque && !both.is_opaque {
            prop_assert!(both.commands.iter().any(|command| command.identifier == "touch"));
            for command in &alone.commands {
                prop_assert!(both.commands.iter().any(|other| other.identifier == command.identifier));
            }
        }
    }
}
