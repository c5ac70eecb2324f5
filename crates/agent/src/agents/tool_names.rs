//! Tool names in agent definitions: our own, aliases of other programs, and groups.

use super::AgentTools;

const SHELL: &[&str] = &["bash", "read_bash", "write_bash", "stop_bash", "list_bash"];
/// The shell tools of `bash` alone: running commands, without writing to them.
const BASH: &[&str] = &["bash", "read_bash", "stop_bash", "list_bash"];
const READ: &[&str] = &["view"];
const EDIT: &[&str] = &["create", "edit", "apply_patch"];
const GREP: &[&str] = &["grep", "rg"];
const SEARCH: &[&str] = &["grep", "rg", "glob"];
const AGENTS: &[&str] = &["task", "read_agent", "list_agents", "write_agent"];
const WEB: &[&str] = &["web_fetch", "web_search"];
const TODO: &[&str] = &["sql"];

/// Aliases and the tools they stand for, case-insensitive.
const ALIASES: &[(&str, &[&str])] = &[
    ("execute", SHELL),
    ("shell", SHELL),
    ("bash", BASH),
    ("powershell", BASH),
    ("read", READ),
    ("notebookread", READ),
    ("edit", EDIT),
    ("multiedit", EDIT),
    ("write", EDIT),
    ("notebookedit", EDIT),
    ("search", SEARCH),
    ("grep", GREP),
    ("agent", AGENTS),
    ("custom-agent", AGENTS),
    ("task", AGENTS),
    ("web", WEB),
    ("webfetch", WEB),
    ("websearch", WEB),
    ("todo", TODO),
    ("todos", TODO),
    ("todowrite", TODO),
    // Names that editors use. With a group in front (`search/codebase`) they mean the same.
    ("codebase", SEARCH),
    ("filesearch", &["glob"]),
    ("textsearch", GREP),
    ("readfile", READ),
    ("editfiles", &["edit", "apply_patch"]),
    ("createfile", &["create", "apply_patch"]),
    ("createdirectory", &["create", "apply_patch"]),
    ("runcommands", BASH),
    ("runinterminal", BASH),
    ("runsubagent", AGENTS),
];

/// Prefixes that editors put before a tool's name. None is the name of an MCP server.
const GROUPS: &[&str] = &["agent", "edit", "execute", "read", "runcommands", "search", "shell", "web"];

impl AgentTools {
    /// Whether the agent may use the tool of this name.
    pub fn admits(&self, tool: &str) -> bool {
        match self {
            AgentTools::Inherited => true,
            AgentTools::Only(names) => names.iter().any(|name| means(name, tool)),
        }
    }

    /// The names as they were written; `None` for all tools.
    pub fn listed(&self) -> Option<Vec<String>> {
        match self {
            AgentTools::Inherited => None,
            AgentTools::Only(names) if names.iter().any(|name| name == "*") => None,
            AgentTools::Only(names) => Some(names.clone()),
        }
    }
}

fn means(name: &str, tool: &str) -> bool {
    if name == "*" || name.eq_ignore_ascii_case(tool) {
        return true;
    }
    if let Some((server, wanted)) = name.split_once('/') {
        // The tools of an MCP server carry its name in front.
        let rest = tool.strip_prefix(server).and_then(|rest| rest.strip_prefix('-'));
        let grouped = GROUPS.contains(&server.to_ascii_lowercase().as_str());
        return rest.is_some_and(|rest| wanted == "*" || rest == wanted)
            || (grouped && stands_for(wanted, tool));
    }
    stands_for(name, tool)
}

fn stands_for(name: &str, tool: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ALIASES.iter().any(|(alias, tools)| *alias == lower && tools.contains(&tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], admitted: &[&str], refused: &[&str]) {
        let tools = AgentTools::Only(names.iter().map(|name| (*name).to_owned()).collect());
        for tool in admitted {
            assert!(tools.admits(tool), "{names:?} should admit {tool}");
        }
        for tool in refused {
            assert!(!tools.admits(tool), "{names:?} should not admit {tool}");
        }
    }

    #[test]
    fn aliases_stand_for_groups_in_any_case() {
        check(&["Bash"], &["bash", "read_bash", "list_bash"], &["view", "edit"]);
        check(&["Read", "SEARCH"], &["view", "grep", "glob"], &["bash", "create"]);
        check(&["edit"], &["create", "edit", "apply_patch"], &["view"]);
        check(&["Task"], &["task", "write_agent"], &["sql"]);
    }

    #[test]
    fn the_names_of_editors_are_known_with_and_without_their_groups() {
        check(&["search/codebase"], &["grep", "glob"], &["view", "bash"]);
        check(&["runCommands"], &["bash", "read_bash"], &["edit"]);
        check(&["edit/editFiles", "read/readFile"], &["edit", "view"], &["create"]);
        check(&["edit/createFile"], &["create"], &["edit"]);
        check(&["agent/runSubagent"], &["task"], &["bash"]);
        check(&["elsewhere/codebase", "search/*", "usages"], &[], &["grep", "view"]);
    }

    #[test]
    fn tools_of_a_server_are_named_one_by_one_or_all() {
        check(&["github/search"], &["github-search"], &["github-read", "gitea-search"]);
        check(&["github/*"], &["github-search", "github-read"], &["gitea-search"]);
    }

    #[test]
    fn none_is_none_and_a_star_is_all() {
        check(&[], &[], &["view", "bash"]);
        check(&["*"], &["view", "anything"], &[]);
        check(&["no-such-tool"], &[], &["view"]);
    }
}
