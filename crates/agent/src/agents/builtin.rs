//! The built-in agents.

use serde_json::Map;

use super::{AgentDefinition, AgentSource, AgentTools};

/// The general-purpose agent, which is like its caller.
pub const GENERAL_PURPOSE: &str = "general-purpose";

/// Agents that search, read and run: a small model does that as well, for a fraction of the cost.
pub(super) const WITH_SMALL_MODEL: [&str; 2] = ["explore", "task"];

/// All built-in agents, in the order in which the model is shown them.
pub fn definitions() -> Vec<AgentDefinition> {
    vec![
        AgentDefinition {
            tools: only(&["grep", "glob", "view", "bash"]),
            ..agent("explore", "Explore Agent", EXPLORE.0, EXPLORE.1)
        },
        agent("task", "Task Agent", TASK.0, TASK.1),
        agent(GENERAL_PURPOSE, "General Purpose Agent", GENERAL.0, GENERAL.1),
        AgentDefinition {
            tools: only(&["grep", "glob", "view", "bash"]),
            ..agent("code-review", "Code Review Agent", REVIEW.0, REVIEW.1)
        },
    ]
}

fn only(names: &[&str]) -> AgentTools {
    AgentTools::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

fn agent(name: &str, display_name: &str, description: &str, prompt: &str) -> AgentDefinition {
    AgentDefinition {
        id: name.to_owned(),
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        tools: AgentTools::Inherited,
        models: Vec::new(),
        effort: None,
        mcp_servers: Map::new(),
        skills: Vec::new(),
        briefing: String::new(),
        model_invocable: true,
        user_invocable: true,
        source: AgentSource::Builtin,
    }
}

/// Description for the model that calls an agent, and prompt of the agent itself.
type Words = (&'static str, &'static str);

const EXPLORE: Words = (
    "answers questions about a code base by searching and reading it; changes nothing. Give it one question with all \
     context. Several may run side by side.",
    "\
You are an explorer: another agent hands you one question about a code base, and you find the answer. Search broadly \
first, with several searches at once, then read only the places that matter. Change nothing: no edits, no commands with \
lasting effects. Answer in a few sentences with paths and line numbers for every claim, quote only what is needed, and say \
plainly what you could not find.",
);

const TASK: Words = (
    "runs commands such as builds, tests, linters and installations and reports what came of them: a line when all went \
     well, the whole of the errors when not.",
    "\
You are a runner: another agent hands you something to execute, a build, a test run, an installation, a check. Run it as \
asked and report. When it succeeds, one or two sentences with the numbers that matter. When it fails, give the complete \
error output and the command that led to it, and do not try to repair anything unless you were asked to. Never retry \
a command that failed for a reason that will not change.",
);

const GENERAL: Words = (
    "works like you do, with the same tools, in a context of its own. For a task of many steps that would fill yours.",
    "\
You are Hangar, a coding agent, and another agent has handed you a task of its own. Nobody but that agent reads your \
answer, and you cannot ask back, so carry the task out to the end by yourself. Finish with a report: what you did, what \
you verified and how, and what is left open.",
);

const REVIEW: Words = (
    "reviews changes and reports only what matters: bugs, security holes, lost data, broken promises. Changes nothing.",
    "\
You are a reviewer: you look at a change, staged, unstaged or on a branch, and report what would hurt. Read the diff and \
enough of the code around it to understand what it does; run tests or the build where that settles a doubt. Report bugs, \
security holes, races, lost data and broken interfaces, each with its place, why it is wrong, and how it shows. Say nothing of \
style, naming or taste. Fewer and certain beats many and vague; if nothing is wrong, say so in one sentence. Change no \
file.",
);
