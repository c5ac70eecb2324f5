//! Variables that hold credentials, and which children need them to work.
//!
//! Every start of a program asks here what it may see. A program that needs more is configured with it; nothing is handed
//! on because it happens to be there.

/// A child, as far as its credentials matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child<'a> {
    /// A program of the user or of the project: a shell command, a hook, an MCP server, a check of a job.
    Command,
    /// A built-in agent, by its name.
    Agent(&'a str),
    /// An agent of the Agent Client Protocol. Which models it asks, only its own settings say.
    AcpAgent,
    /// A program that logs in by other means or not at all: git, ssh, the browser.
    Helper,
}

/// A consumer of a credential.
#[derive(Debug)]
enum User {
    Commands,
    Agents(&'static [&'static str]),
    AcpAgents,
}

use User::{AcpAgents, Agents, Commands};

/// Pattern of a variable name.
#[derive(Debug)]
enum Name {
    Exact(&'static str),
    Prefix(&'static str),
}

use Name::{Exact, Prefix};

/// Agents that can ask a model of any provider, as their own settings say.
const ANY_PROVIDER: User = Agents(&["codex", "opencode"]);

/// Every variable that is known to hold a credential of ours or of an agent, with those that need it. The first row that
/// fits counts.
const CREDENTIALS: &[(Name, &[User])] = &[
    // Tokens that clients send to the SDK server.
    (Exact("COPILOT_CONNECTION_TOKEN"), &[]),
    // Collectors of telemetry; agents report to them too.
    (Exact("OTEL_EXPORTER_OTLP_HEADERS"), &[Agents(&["copilot", "claude", "codex", "opencode"]), AcpAgents]),
    (
        Exact("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
        &[Agents(&["copilot", "claude", "codex", "opencode"]), AcpAgents],
    ),
    (
        Exact("OTEL_EXPORTER_OTLP_METRICS_HEADERS"),
        &[Agents(&["copilot", "claude", "codex", "opencode"]), AcpAgents],
    ),
    (
        Exact("OTEL_EXPORTER_OTLP_LOGS_HEADERS"),
        &[Agents(&["copilot", "claude", "codex", "opencode"]), AcpAgents],
    ),
    // The model provider of Hangar, and of a Copilot CLI that has its own. What else describes it is for them alone.
    (Exact("COPILOT_PROVIDER_API_KEY"), &[Agents(&["copilot"]), AcpAgents]),
    (Exact("COPILOT_PROVIDER_BEARER_TOKEN"), &[Agents(&["copilot"]), AcpAgents]),
    (Prefix("COPILOT_PROVIDER_"), &[Agents(&["copilot"]), AcpAgents]),
    (Exact("COPILOT_GITHUB_TOKEN"), &[Agents(&["copilot"]), AcpAgents]),
    (Exact("GITHUB_TOKEN"), &[Agents(&["copilot"]), AcpAgents]),
    (Exact("GITHUB_ENTERPRISE_TOKEN"), &[Agents(&["copilot"]), AcpAgents]),
    // The GitHub CLI has these for itself, and it is a command.
    (Exact("GH_TOKEN"), &[Commands, Agents(&["copilot"]), AcpAgents]),
    (Exact("GH_ENTERPRISE_TOKEN"), &[Commands, Agents(&["copilot"]), AcpAgents]),
    (Exact("ANTHROPIC_AUTH_TOKEN"), &[Agents(&["claude"]), AcpAgents]),
    (Exact("CLAUDE_CODE_OAUTH_TOKEN"), &[Agents(&["claude"]), AcpAgents]),
    (Exact("CODEX_API_KEY"), &[Agents(&["codex"]), AcpAgents]),
    // Keys that agents share with the programs that people write with them.
    (Exact("ANTHROPIC_API_KEY"), &[Commands, Agents(&["claude"]), ANY_PROVIDER, AcpAgents]),
    (Exact("AWS_BEARER_TOKEN_BEDROCK"), &[Commands, Agents(&["claude"]), ANY_PROVIDER, AcpAgents]),
    (Exact("OPENAI_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("AZURE_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("AZURE_OPENAI_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("CEREBRAS_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("DEEPSEEK_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("GEMINI_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("GOOGLE_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("GOOGLE_GENERATIVE_AI_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("GROQ_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("MISTRAL_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("OPENCODE_API_KEY"), &[Agents(&["opencode"]), AcpAgents]),
    (Exact("OPENROUTER_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
    (Exact("XAI_API_KEY"), &[Commands, ANY_PROVIDER, AcpAgents]),
];

fn row(variable: &str) -> Option<&'static (Name, &'static [User])> {
    CREDENTIALS.iter().find(|(name, _)| match name {
        Exact(name) => variable == *name,
        Prefix(prefix) => variable.starts_with(prefix),
    })
}

/// Returns whether the value of a variable is known to be a secret.
pub fn is_credential(variable: &str) -> bool {
    matches!(row(variable), Some((Exact(_), _)))
}

/// Returns whether a child must not see a variable. `ours` are further variables that we have a secret in: only an agent that is
/// known to need such a one sees it.
pub fn is_withheld(variable: &str, child: Child<'_>, ours: &[String]) -> bool {
    let is_ours = ours.iter().any(|name| name == variable);
    let Some((_, users)) = row(variable) else { return is_ours };
    let needs = |user: &User| match (user, child) {
        (Commands, Child::Command) => !is_ours,
        (Agents(names), Child::Agent(agent)) => names.contains(&agent),
        (AcpAgents, Child::AcpAgent) => true,
        (Commands | Agents(_) | AcpAgents, _) => false,
    };
    !users.iter().any(needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which variables a child sees, where `MY_KEY` and `XAI_API_KEY` hold secrets of ours.
    #[track_caller]
    fn check(child: Child<'_>, expected: &[&str]) {
        const ALL: [&str; 12] = [
            "PATH",
            "SSH_AUTH_SOCK",
            "COPILOT_CONNECTION_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_GITHUB_TOKEN",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "OPENAI_API_KEY",
            "XAI_API_KEY",
            "MY_KEY",
        ];
        let ours = ["MY_KEY".to_owned(), "XAI_API_KEY".to_owned()];
        let seen: Vec<&str> = ALL.into_iter().filter(|name| !is_withheld(name, child, &ours)).collect();
        assert_eq!(seen, [&["PATH", "SSH_AUTH_SOCK"], expected].concat());
    }

    #[test]
    fn a_child_sees_the_credentials_that_it_needs() {
        check(Child::Helper, &[]);
        check(Child::Command, &["GH_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]);
        check(Child::Agent("claude"), &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]);
        check(Child::Agent("codex"), &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY"]);
        check(
            Child::Agent("copilot"),
            &["COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"],
        );
        check(
            Child::AcpAgent,
            &[
                "COPILOT_PROVIDER_API_KEY",
                "COPILOT_GITHUB_TOKEN",
                "GITHUB_TOKEN",
                "GH_TOKEN",
                "ANTHROPIC_API_KEY",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "OPENAI_API_KEY",
                "XAI_API_KEY",
            ],
        );
    }
}
