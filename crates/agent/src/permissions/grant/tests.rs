use hangar_protocol::permission::PossibleUrl;

use super::*;

/// `git push; !ls`: the commands, `!` before one that only reads, `>path` a redirection, `@url` a URL.
fn access(line: &str) -> AccessRequest {
    let mut request = ShellRequest { full_command_text: line.to_owned(), ..ShellRequest::default() };
    let mut writes = Vec::new();
    for part in line.split("; ") {
        if let Some(path) = part.strip_prefix('>') {
            request.has_write_file_redirection = true;
            writes.push(path.into());
        } else if let Some(url) = part.strip_prefix('@') {
            request.possible_urls.push(PossibleUrl { url: url.to_owned() });
        } else {
            let (identifier, read_only) = part.strip_prefix('!').map_or((part, false), |name| (name, true));
            request.commands.push(ShellCommand { identifier: identifier.to_owned(), read_only });
        }
    }
    AccessRequest { request: PermissionRequest::Shell(request), reads: Vec::new(), writes }
}

fn policy(allow: &str) -> Policy {
    let allow = if allow.is_empty() { Vec::new() } else { Rule::parse_list(allow).unwrap() };
    Policy { allow, roots: vec!["/w".into()], ..Policy::default() }
}

/// Reads as `reads /w, writes /w, git content, network`; what is not granted is left out.
fn told(policy: &Policy, line: &str) -> String {
    let Grant::Limited(limits) = policy.grant(&access(line)) else { return "full".to_owned() };
    let list =
        |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    let mut told = match &limits.directories {
        None => "reads everything".to_owned(),
        Some(directories) => format!("reads {}", list(directories)),
    };
    match &limits.writes {
        Writes::Nothing => {}
        Writes::Within(directories) => told += &format!(", writes {}", list(directories)),
        Writes::Anywhere => told += ", writes anywhere",
    }
    match limits.git {
        GitWrites::Nothing => {}
        GitWrites::Content => told += ", git content",
        GitWrites::Settings => told += ", git settings",
    }
    if limits.network {
        told += ", network";
    }
    told
}

#[track_caller]
fn check(allow: &str, line: &str, expected: &str) {
    assert_eq!(told(&policy(allow), line), expected);
}

#[test]
fn a_command_that_only_reads_may_read_the_allowed_directories_whatever_rules_there_are() {
    check("", "!ls; !git status", "reads /w");
    check("shell, write, url", "!cat", "reads /w");
}

#[test]
fn a_command_under_a_rule_may_write_the_allowed_directories() {
    check("shell(sort)", "sort", "reads /w, writes /w");
    check("shell", "make", "reads /w, writes /w");
    check("write", "!echo; >/w/src/a", "reads /w, writes /w");
}

#[test]
fn a_rule_about_one_file_allows_a_redirection_to_it_alone() {
    check("write(a)", "!echo; >/w/src/a", "reads /w, writes /w/src/a");
}

#[test]
fn git_writes_its_own_files_and_settings_only_by_commands_that_are_there_for_that() {
    check("shell(git:*)", "git commit", "reads /w, writes /w, git content");
    check("shell(git:*)", "git config", "reads /w, writes /w, git content");
    check("shell(git:*)", "git push", "reads /w, writes /w, git settings, network");
    check("shell(git:*), shell(sort)", "git commit; sort", "reads /w, writes /w, git content");
    check("shell(sort)", "sort; !git status", "reads /w, writes /w");
}

#[test]
fn the_network_takes_a_url_that_is_allowed_or_a_rule_that_names_a_command_of_the_network() {
    check("shell(curl), url(example.com)", "curl; @https://example.com", "reads /w, writes /w, network");
    check("shell(curl)", "curl", "reads /w, writes /w");
    check("shell(npm:*)", "npm install", "reads /w, writes /w, network");
    check("shell(git push)", "git push", "reads /w, writes /w, git settings, network");
    check("shell", "npm install", "reads /w, writes /w");
    let everywhere = Policy { allow_all_urls: true, ..policy("shell") };
    assert_eq!(told(&everywhere, "make"), "reads /w, writes /w, network");
}

#[test]
fn flags_that_allow_everything_mean_it() {
    assert_eq!(told(&Policy { allow_all_tools: true, ..policy("") }, "rm; >/etc/x"), "full");
    let paths = Policy { allow_all_paths: true, ..policy("shell(cp)") };
    assert_eq!(told(&paths, "!ls"), "reads everything");
    assert_eq!(told(&paths, "cp"), "reads everything, writes anywhere");
}
