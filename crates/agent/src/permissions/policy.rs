//! The decision on one request.
//!
//! A denial wins over everything. Then every path and URL of the request must be within bounds, and only then does it
//! matter whether the tool itself may run: broad permission to use tools is not permission to leave the workspace.

use std::path::{Path, PathBuf};

use hangar_protocol::permission::{PermissionRequest, ShellRequest};
use serde_json::{Value, json};

use super::Rule;
use crate::tool::AccessRequest;

/// Number of rules of each kind that the model is told.
const RULES_TOLD: usize = 20;

#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
    pub allow_all_tools: bool,
    pub allow_all_paths: bool,
    pub allow_all_urls: bool,
    /// Whether to ask about harmless calls too: reading within bounds, and read-only commands.
    pub asks_about_reads: bool,
    /// Directories that tools may touch, links resolved.
    pub roots: Vec<PathBuf>,
    /// Bounds of the sandbox. Tools that run outside it are held to them as well, whatever else is allowed.
    pub confinement: Option<SandboxBounds>,
    /// Approvals for the rest of the session.
    pub approvals: Vec<SessionApproval>,
}

/// Bounds of a sandbox in terms of paths, links resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxBounds {
    pub writable: Vec<PathBuf>,
    pub denied: Vec<PathBuf>,
}

impl SandboxBounds {
    /// First path that the sandbox would not let a command use.
    fn breach<'a>(&self, access: &'a AccessRequest) -> Option<&'a PathBuf> {
        let within = |path: &Path, places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        let unwritable = access.writes.iter().find(|path| !within(path, &self.writable));
        unwritable.or_else(|| access.reads.iter().find(|path| within(path, &self.denied)))
    }
}

/// An approval for more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionApproval {
    Commands(Vec<String>),
    Write,
    Read,
    Mcp {
        server: String,
        tool: Option<String>,
    },
    /// An MCP server may ask the model.
    McpSampling {
        server: String,
    },
    Url {
        domain: String,
    },
    CustomTool(String),
    Memory,
    /// The model may manage extensions; one operation, or any.
    ExtensionManagement(Option<String>),
    /// The extension may take part in decisions.
    ExtensionPermissionAccess(String),
    /// The extension may have exactly these variables.
    ExtensionEnvAccess {
        extension: String,
        variables: Vec<String>,
    },
}

impl SessionApproval {
    /// Approval that covers requests like this one, in the form of the wire.
    pub fn covering(request: &PermissionRequest) -> Value {
        match request {
            PermissionRequest::Shell(shell) => {
                let commands: Vec<&str> =
                    shell.commands.iter().map(|command| command.identifier.as_str()).collect();
                json!({ "kind": "commands", "commandIdentifiers": commands })
            }
            PermissionRequest::Write { .. } => json!({ "kind": "write" }),
            PermissionRequest::Read { .. } => json!({ "kind": "read" }),
            PermissionRequest::Url { url, .. } => json!({ "kind": "url", "domain": url }),
            PermissionRequest::Mcp { server_name, tool_name, .. } => {
                json!({ "kind": "mcp", "serverName": server_name, "toolName": tool_name })
            }
            PermissionRequest::Memory { .. } => json!({ "kind": "memory" }),
            PermissionRequest::CustomTool { tool_name, .. } | PermissionRequest::Hook { tool_name, .. } => {
                json!({ "kind": "custom-tool", "toolName": tool_name })
            }
            PermissionRequest::ExtensionManagement { operation, .. } => {
                json!({ "kind": "extension-management", "operation": operation })
            }
            PermissionRequest::ExtensionPermissionAccess { extension_name, .. } => {
                json!({ "kind": "extension-permission-access", "extensionName": extension_name })
            }
            PermissionRequest::ExtensionEnvAccess { extension_name, environment_variables, .. } => json!({
                "kind": "extension-env-access",
                "extensionName": extension_name,
                "environmentVariables": environment_variables,
            }),
        }
    }

    /// Parses an approval of a client. An unknown one approves nothing.
    pub fn parse(approval: &Value) -> Option<Self> {
        let text = |key: &str| approval[key].as_str().map(str::to_owned);
        Some(match approval["kind"].as_str()? {
            "commands" => {
                let commands = approval["commandIdentifiers"].as_array()?;
                Self::Commands(commands.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
            }
            "write" => Self::Write,
            "read" => Self::Read,
            "mcp-sampling" => Self::McpSampling { server: text("serverName")? },
            "mcp" => Self::Mcp { server: text("serverName")?, tool: text("toolName") },
            "url" => Self::Url { domain: text("domain")? },
            "custom-tool" => Self::CustomTool(text("toolName")?),
            "memory" => Self::Memory,
            "extension-management" => Self::ExtensionManagement(text("operation")),
            "extension-permission-access" => Self::ExtensionPermissionAccess(text("extensionName")?),
            "extension-env-access" => Self::ExtensionEnvAccess {
                extension: text("extensionName")?,
                variables: {
                    let names = approval["environmentVariables"].as_array()?.iter();
                    sorted(names.filter_map(|name| name.as_str().map(str::to_owned)))
                },
            },
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny { rules: Vec<Rule> },
    Ask { doubt: AskReason },
}

/// Reason to ask the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskReason {
    /// Outside the directories that tools may touch.
    Path(PathBuf),
    Url(String),
    /// No rule allows the tool.
    Tool,
}

impl Policy {
    /// Whether tools, paths and URLs are all used without asking.
    pub fn allows_all(&self) -> bool {
        self.allow_all_tools && self.allow_all_paths && self.allow_all_urls
    }

    pub fn set_allow_all(&mut self, all: bool) {
        self.allow_all_tools = all;
        self.allow_all_paths = all;
        self.allow_all_urls = all;
    }

    /// Permissions, as the model is told them; `None` if the user will be asked about everything.
    pub fn told(&self, user_reachable: bool) -> Option<String> {
        if self.allow_all_tools && self.allow_all_paths && self.deny.is_empty() {
            return Some("all tool calls are allowed.".to_owned());
        }
        let list = |rules: &[Rule]| {
            let more = if rules.len() > RULES_TOLD { ", and more" } else { "" };
            let told: Vec<String> = rules.iter().take(RULES_TOLD).map(Rule::to_string).collect();
            told.join(", ") + more
        };
        let mut told = Vec::new();
        match (self.allow_all_tools, self.allow.is_empty()) {
            (true, _) if self.allow_all_paths => told.push("all tool calls are allowed".to_owned()),
            (true, _) => told.push("all tools are allowed, on files in the working directory".to_owned()),
            (false, false) => told.push(format!("allowed without asking: {}", list(&self.allow))),
            (false, true) => {}
        }
        if !self.deny.is_empty() {
            told.push(format!("refused always: {}", list(&self.deny)));
        }
        if !user_reachable {
            if !self.allow_all_tools {
                told.push("reading in the working directory is allowed".to_owned());
            }
            told.push("nobody can be asked, so everything else is refused".to_owned());
        }
        (!told.is_empty()).then(|| told.join("; ") + ".")
    }

    pub fn decide(&self, access: &AccessRequest) -> Verdict {
        let rules: Vec<Rule> = self.deny.iter().filter(|rule| denies(rule, access)).cloned().collect();
        if !rules.is_empty() {
            return Verdict::Deny { rules };
        }
        // The sandbox confines commands itself; it knows better than any analysis what they touch.
        let confined =
            self.confinement.as_ref().filter(|_| !matches!(access.request, PermissionRequest::Shell(_)));
        if let Some(path) = confined.and_then(|confinement| confinement.breach(access)) {
            return Verdict::Ask { doubt: AskReason::Path(path.clone()) };
        }
        if let Some(path) = access.reads.iter().chain(&access.writes).find(|path| !self.within_bounds(path)) {
            return Verdict::Ask { doubt: AskReason::Path(path.clone()) };
        }
        if let Some(path) = self.git_internal(access) {
            return Verdict::Ask { doubt: AskReason::Path(path.clone()) };
        }
        if let Some(url) = urls(access).find(|url| !self.url_allowed(url, access)) {
            return Verdict::Ask { doubt: AskReason::Url(url.to_owned()) };
        }
        if self.tool_allowed(access) { Verdict::Allow } else { Verdict::Ask { doubt: AskReason::Tool } }
    }

    /// Whether an MCP server may ask the model. It may if all its tools are allowed.
    pub fn decide_sampling(&self, server: &str) -> Verdict {
        const SAMPLING: &str = "sampling";
        let asks = |rule: &&Rule| rule.matches_mcp(server, SAMPLING);
        let rules: Vec<Rule> = self.deny.iter().filter(asks).cloned().collect();
        if !rules.is_empty() {
            return Verdict::Deny { rules };
        }
        let approved = SessionApproval::McpSampling { server: server.to_owned() };
        if self.allow_all_tools
            || self.allow.iter().any(|rule| asks(&rule))
            || self.approvals.contains(&approved)
        {
            return Verdict::Allow;
        }
        Verdict::Ask { doubt: AskReason::Tool }
    }

    /// A path in a `.git` directory, on a line that may change it and that rules would allow.
    fn git_internal<'a>(&self, access: &'a AccessRequest) -> Option<&'a PathBuf> {
        let PermissionRequest::Shell(shell) = &access.request else { return None };
        let may_change =
            shell.has_write_file_redirection || shell.commands.iter().any(|command| !command.read_only);
        if self.allow_all_tools || !may_change {
            return None;
        }
        let named = |path: &PathBuf| {
            self.allow.iter().any(|rule| *rule != Rule::Write(None) && rule.matches_write(path))
        };
        access.reads.iter().chain(&access.writes).find(|path| is_git_internal(path) && !named(path))
    }

    fn within_bounds(&self, path: &Path) -> bool {
        self.allow_all_paths || self.roots.iter().any(|root| path.starts_with(root))
    }

    fn url_allowed(&self, url: &str, access: &AccessRequest) -> bool {
        // A shell that may do anything may also reach the network; only our own fetch is held to its URL.
        let trusted_shell = self.allow_all_tools && matches!(access.request, PermissionRequest::Shell(_));
        self.allow_all_urls
            || trusted_shell
            || self.allow.iter().any(|rule| rule.matches_url(url))
            || self.approvals.iter().any(|approval| match approval {
                SessionApproval::Url { domain } => {
                    Rule::parse(&format!("url({domain})")).is_ok_and(|rule| rule.matches_url(url))
                }
                _ => false,
            })
    }

    fn tool_allowed(&self, access: &AccessRequest) -> bool {
        let approved = |wanted: &SessionApproval| self.approvals.contains(wanted);
        match &access.request {
            // Within bounds, by the check before this one.
            PermissionRequest::Read { .. } => {
                !self.asks_about_reads
                    || self.allow_all_tools
                    || self.allow.contains(&Rule::Read(None))
                    || approved(&SessionApproval::Read)
            }
            PermissionRequest::Url { .. } => true,
            PermissionRequest::Hook { .. } => false,
            _ if self.allow_all_tools => true,
            PermissionRequest::Shell(shell) => self.shell_allowed(shell, access),
            PermissionRequest::Write { .. } => self.writes_allowed(&access.writes),
            PermissionRequest::Mcp { server_name, tool_name, .. } => {
                self.allow.iter().any(|rule| rule.matches_mcp(server_name, tool_name))
                    || approved(&SessionApproval::Mcp { server: server_name.clone(), tool: None })
                    || approved(&SessionApproval::Mcp {
                        server: server_name.clone(),
                        tool: Some(tool_name.clone()),
                    })
            }
            PermissionRequest::Memory { .. } => {
                self.allow.contains(&Rule::Memory) || approved(&SessionApproval::Memory)
            }
            PermissionRequest::CustomTool { tool_name, .. } => {
                self.allow.iter().any(|rule| rule.matches_custom(tool_name))
                    || approved(&SessionApproval::CustomTool(tool_name.clone()))
            }
            PermissionRequest::ExtensionManagement { operation, .. } => {
                approved(&SessionApproval::ExtensionManagement(None))
                    || approved(&SessionApproval::ExtensionManagement(Some(operation.clone())))
            }
            PermissionRequest::ExtensionPermissionAccess { extension_name, .. } => {
                approved(&SessionApproval::ExtensionPermissionAccess(extension_name.clone()))
            }
            PermissionRequest::ExtensionEnvAccess { extension_name, environment_variables, .. } => {
                approved(&SessionApproval::ExtensionEnvAccess {
                    extension: extension_name.clone(),
                    variables: sorted(environment_variables.iter().cloned()),
                })
            }
        }
    }

    /// Every command must be harmless or allowed, and what the script writes must be allowed as a write.
    fn shell_allowed(&self, shell: &ShellRequest, access: &AccessRequest) -> bool {
        let any = self.allow.contains(&Rule::Shell(None));
        let known = !shell.opaque
            && !shell.commands.is_empty()
            && shell.commands.iter().all(|command| {
                (command.read_only && !self.asks_about_reads)
                    || self.allow.iter().any(|rule| rule.matches_command(&command.identifier))
                    || self.approves_command(&command.identifier)
            });
        (any || known) && (!shell.has_write_file_redirection || self.writes_allowed(&access.writes))
    }

    /// Whether someone approved the command for the rest of the session.
    pub(super) fn approves_command(&self, identifier: &str) -> bool {
        let approves = |approval: &SessionApproval| matches!(approval, SessionApproval::Commands(known) if known.iter().any(|known| known == identifier));
        self.approvals.iter().any(approves)
    }

    /// Whether any file within bounds may be written.
    pub(super) fn writes_anything(&self) -> bool {
        self.approvals.contains(&SessionApproval::Write) || self.allow.contains(&Rule::Write(None))
    }

    fn writes_allowed(&self, paths: &[PathBuf]) -> bool {
        // Git runs programs that are stored in a repository, so writing there takes a rule that names the file.
        let covers = |rule: &Rule, path: &Path| match rule {
            Rule::Write(None) => !is_git_internal(path),
            rule => rule.matches_write(path),
        };
        (self.writes_anything() && !paths.iter().any(|path| is_git_internal(path)))
            || (!paths.is_empty()
                && paths.iter().all(|path| self.allow.iter().any(|rule| covers(rule, path))))
    }
}

/// Names in an order of their own, so that two sets of them can be compared.
fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

fn denies(rule: &Rule, access: &AccessRequest) -> bool {
    match (rule, &access.request) {
        (Rule::Shell(_), PermissionRequest::Shell(shell)) => {
            // A line that could not be analysed may do anything, including what the rule is about.
            *rule == Rule::Shell(None)
                || shell.opaque
                || shell.commands.iter().any(|command| rule.matches_command(&command.identifier))
                || (shell.runs_unread && rule.is_mentioned_in(&shell.full_command_text))
        }
        (Rule::Write(_), PermissionRequest::Write { .. }) => {
            *rule == Rule::Write(None) || access.writes.iter().any(|path| rule.matches_write(path))
        }
        // A file that must not be written must not be written by a redirection either.
        (Rule::Write(Some(_)), PermissionRequest::Shell(_)) => {
            access.writes.iter().chain(&access.reads).any(|path| rule.matches_write(path))
        }
        (Rule::Read(_), PermissionRequest::Read { .. }) => {
            *rule == Rule::Read(None) || access.reads.iter().any(|path| rule.matches_read(path))
        }
        (Rule::Read(Some(_)), PermissionRequest::Shell(_)) => {
            access.reads.iter().any(|path| rule.matches_read(path))
        }
        (Rule::Url(_), _) => urls(access).any(|url| rule.matches_url(url)),
        (Rule::Memory, PermissionRequest::Memory { .. }) => true,
        (Rule::Named { .. }, PermissionRequest::Mcp { server_name, tool_name, .. }) => {
            rule.matches_mcp(server_name, tool_name)
        }
        (Rule::Named { .. }, PermissionRequest::CustomTool { tool_name, .. }) => {
            rule.matches_custom(tool_name)
        }
        _ => false,
    }
}

/// Whether a path is in a `.git` directory.
fn is_git_internal(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

fn urls(access: &AccessRequest) -> impl Iterator<Item = &str> {
    let (fetched, mentioned) = match &access.request {
        PermissionRequest::Url { url, .. } => (Some(url.as_str()), &[][..]),
        PermissionRequest::Shell(shell) => (None, &shell.possible_urls[..]),
        _ => (None, &[][..]),
    };
    fetched.into_iter().chain(mentioned.iter().map(|possible| possible.url.as_str()))
}

#[cfg(test)]
mod tests;
