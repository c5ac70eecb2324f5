//! GitHub Copilot CLI, and whatever else has its flags: Hangar itself does.

use super::{has_files, is_json, uuid_of, with_system};
use crate::adapter::{Adapter, AgentProfile, ForeignModels, TurnContext};
use crate::capabilities::{Capabilities, EFFORT_LEVELS};
use crate::invocation::{AgentCommandLine, Argument};
use crate::login::{ConfigFile, IgnoredValue, LoginFile, LoginQuestion, LoginSources};
use crate::options::{AgentOption, AgentOptions};
use crate::probe::{ModelListing, OptionalFlag, Probe, Substitute};
use crate::runtime::{AgentCard, AgentOrder, RehearsalStage, ShellTool};
use crate::translate::Translator;
use crate::usage::Counting;

/// Default number of steps of autopilot in a turn. Copilot's own default is 5, which ends most work half done.
const AUTOPILOT_STEPS: u32 = 50;
/// Takes the id of a new session from outside. Version 1.0.36 does not have it yet.
const SESSION_ID: &str = "--session-id";
/// Leaves a count of tokens in a file, which stdout has not.
const USAGE_FILE: &str = "--usage-output-file";

pub(crate) const LOGIN: LoginSources = LoginSources {
    provider: Some("COPILOT_PROVIDER_BASE_URL"),
    variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    ignored: Some(IgnoredValue {
        prefix: "ghp_",
        warning: "holds a classic token (ghp_), which Copilot ignores without a word; use a fine-grained one with the \
                  permission \"Copilot Requests\"",
    }),
    // The token itself may lie in a key chain that is not ours to open; whose it is, is written beside it.
    file: Some(LoginFile {
        file: ConfigFile { variable: "COPILOT_HOME", directory: ".copilot", name: "config.json" },
        members: &["loggedInUsers", "logged_in_users"],
        label: "copilot login",
    }),
    own_providers: None,
    provider_args: &[],
    question: Some(LoginQuestion { program: Some("gh"), args: &["auth", "status"], in_help: None }),
    advice: "set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN, or run `copilot login`",
};

pub fn profile() -> AgentProfile {
    AgentProfile {
        card: AgentCard {
            name: "copilot".into(),
            label: "GitHub Copilot CLI".into(),
            runtime: None,
            capabilities: Capabilities {
                streaming: true,
                session_id_given: true,
                session_id_early: false,
                effort_levels: EFFORT_LEVELS.map(str::to_owned).into(),
                model_discovery: true,
                mcp_config: true,
                attachments: true,
                tool_rules: true,
                options: AgentOption::ALL.into(),
                ..Capabilities::in_a_process()
            },
            install: "npm install -g @github/copilot".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        },
        probe: Probe {
            program: "copilot",
            help: &["--help"],
            required: &["--output-format", "--resume", "--autopilot", "--no-ask-user", "--allow-all"],
            optional: &[
                OptionalFlag { name: SESSION_ID, without: |able| able.session_id_given = false },
                OptionalFlag { name: USAGE_FILE, without: |able| able.input_tokens = false },
            ],
            stand_in: Some(Substitute {
                program: "gh",
                leading: &["copilot"],
                question: &["extension", "list"],
                answer: "gh-copilot",
                doubt: "`gh copilot` is used in place of `copilot`; it may lack the flags that are needed",
            }),
            models: ModelListing::Catalogue,
            login: LOGIN,
        },
        // On stdout and in the file: since the session began.
        counting: Counting::SinceBegun,
        echoes_prompt: true,
        speaks_at_start: true,
        foreign_models: Some(ForeignModels { names: &["sonnet", "opus", "haiku"], owner: "Claude Code" }),
    }
}

pub struct Copilot;

impl Adapter for Copilot {
    fn invocation(&self, order: &AgentOrder, turn: &TurnContext<'_>) -> AgentCommandLine {
        let mut args: Vec<Argument> = Vec::new();
        let mut flag = |name: &str, value: &str| args.push(format!("{name}={value}").into());
        flag("--output-format", "json");
        // A person who prompts it is not waited for: it ends its turn, unless steps were asked for.
        let goes_on = !order.is_attended || order.limits.steps.is_some();
        if goes_on {
            flag("--max-autopilot-continues", &order.limits.steps.unwrap_or(AUTOPILOT_STEPS).to_string());
        }
        let mut session_id = None;
        match (turn.agent_session, uuid_of(order)) {
            (Some(id), _) => flag("--resume", id),
            // Starts the session, or continues one whose first turn was ended before any output.
            (None, Some(id)) if turn.has(SESSION_ID) => {
                flag(SESSION_ID, id);
                session_id = Some(id.to_owned());
            }
            // The session was begun without an id and never told one. The last one here is most likely it.
            (None, _) if turn.before > 0 => args.push("--continue".into()),
            (None, _) => {}
        }
        let mut flag = |name: &str, value: &str| args.push(format!("{name}={value}").into());
        if let Some(model) = &order.model {
            flag("--model", model);
        }
        if let Some(effort) = &order.effort {
            flag("--effort", effort);
        }
        for tool in &order.tools.allow {
            flag("--allow-tool", tool);
        }
        for tool in &order.tools.deny {
            flag("--deny-tool", tool);
        }
        if !order.tools.available.is_empty() {
            flag("--available-tools", &order.tools.available.join(","));
        }
        if !order.tools.excluded.is_empty() {
            flag("--excluded-tools", &order.tools.excluded.join(","));
        }
        for dir in &order.add_dirs {
            flag("--add-dir", &dir.display().to_string());
        }
        for file in order.attachments.iter().filter(|_| turn.before == 0) {
            flag("--attachment", &file.display().to_string());
        }
        args.extend(option_flags(&order.options).into_iter().map(Argument::from));
        if let Some(config) = &order.mcp_config {
            args.push(mcp_config(config, order));
        }
        if has_files(order) && turn.has(USAGE_FILE) {
            args.push(Argument::Report { before: format!("{USAGE_FILE}=") });
        }
        args.push("-s".into());
        if goes_on {
            args.push("--autopilot".into());
        }
        args.extend(["--no-ask-user", "--no-auto-update"].map(Argument::from));
        if order.tools == Default::default() {
            args.push("--allow-all".into());
        }
        if !order.secret_variables.is_empty() {
            args.push(format!("--secret-env-vars={}", order.secret_variables.join(",")).into());
        }
        args.extend(order.extra.iter().map(Argument::from));
        let prompt = with_system(turn.prompt, order, turn.agent_session.is_some());
        AgentCommandLine { session_id, ..AgentCommandLine::new(args, prompt) }
    }

    fn translator(&self, turn: &TurnContext<'_>) -> Box<dyn Translator> {
        Box::new(crate::translate::copilot::CopilotTranslator::new(turn.agent_session.is_some()))
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        order.env.extend(rehearsal(stage));
    }
}

/// Variables that make it, and whatever follows its conventions, use the scripted model.
pub fn rehearsal(stage: &RehearsalStage) -> Vec<(String, String)> {
    let RehearsalStage { model_url, home } = stage;
    [
        ("COPILOT_HOME", home.join("copilot").display().to_string()),
        ("COPILOT_AUTO_UPDATE", "false".to_owned()),
        ("COPILOT_OFFLINE", "true".to_owned()),
        ("COPILOT_MODEL", "mock-model".to_owned()),
        ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
        ("COPILOT_PROVIDER_BASE_URL", format!("{model_url}/v1")),
        ("COPILOT_PROVIDER_API_KEY", "rehearsal".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Flags for the switches of a session.
fn option_flags(options: &AgentOptions) -> Vec<String> {
    let AgentOptions { stream, builtin_mcp, persona, experimental, .. } = options;
    let mut flags = Vec::new();
    if options.is_bare() || options.without_agents_md() {
        flags.push("--no-custom-instructions".to_owned());
    }
    if options.is_bare() || *builtin_mcp == Some(false) {
        flags.push("--disable-builtin-mcps".to_owned());
    }
    if let Some(stream) = stream {
        flags.push(format!("--stream={}", if *stream { "on" } else { "off" }));
    }
    if let Some(persona) = persona {
        flags.push(format!("--agent={persona}"));
    }
    if let Some(experimental) = experimental {
        flags.push(if *experimental { "--experimental" } else { "--no-experimental" }.to_owned());
    }
    flags
}

/// A file with its sign, without which newer versions refuse it. JSON goes by a file too where there can be one: it may
/// hold secrets, and others can see command lines.
fn mcp_config(config: &str, order: &AgentOrder) -> Argument {
    let flag = "--additional-mcp-config=";
    match (is_json(config), has_files(order)) {
        (true, true) => Argument::Input { before: format!("{flag}@"), text: config.to_owned() },
        (true, false) => format!("{flag}{config}").into(),
        (false, _) => format!("{flag}@{}", config.trim_start().trim_start_matches('@')).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ID: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001";
    static ALL_FLAGS: BTreeSet<String> = BTreeSet::new();
    const FIRST: TurnContext<'_> =
        TurnContext { prompt: "go", agent_session: None, before: 0, lacks: &ALL_FLAGS };

    fn order() -> AgentOrder {
        AgentOrder::new(ID.to_owned(), "/work".into())
    }

    /// All flags of a turn.
    #[track_caller]
    fn check(order: &AgentOrder, turn: &TurnContext<'_>, expected: &str) {
        let args = Copilot.invocation(order, turn).args;
        let args: Vec<_> = args.iter().map(Argument::to_string).collect();
        assert_eq!(args.join(" "), expected);
    }

    /// The flags that an order has on top of those that every turn has.
    #[track_caller]
    fn check_more(wish: impl FnOnce(&mut AgentOrder), expected: &str) {
        let mut order = order();
        wish(&mut order);
        let always = format!("--output-format=json --max-autopilot-continues=50 --session-id={ID}");
        let last = "-s --autopilot --no-ask-user --no-auto-update";
        check(&order, &FIRST, &format!("{always} {expected}").replace("..", last));
    }

    #[test]
    fn without_any_rule_everything_is_allowed() {
        check_more(|_| {}, ".. --allow-all");
    }

    #[test]
    fn each_rule_about_tools_takes_the_place_of_allowing_all() {
        let rules = || vec!["shell(git:*)".to_owned(), "write".to_owned()];
        check_more(|order| order.tools.allow = rules(), "--allow-tool=shell(git:*) --allow-tool=write ..");
        check_more(|order| order.tools.deny = rules(), "--deny-tool=shell(git:*) --deny-tool=write ..");
        check_more(|order| order.tools.available = rules(), "--available-tools=shell(git:*),write ..");
        check_more(|order| order.tools.excluded = rules(), "--excluded-tools=shell(git:*),write ..");
    }

    #[test]
    fn an_mcp_configuration_is_json_or_a_file_with_its_sign() {
        for (given, passed) in [
            (r#"{"mcpServers":{}}"#, r#"{"mcpServers":{}}"#),
            ("@/etc/mcp.json", "@/etc/mcp.json"),
            ("/etc/mcp.json", "@/etc/mcp.json"),
        ] {
            check_more(
                |order| order.mcp_config = Some(given.to_owned()),
                &format!("--additional-mcp-config={passed} .. --allow-all"),
            );
        }
        let json = r#"{"mcpServers":{}}"#;
        let with_files = |order: &mut AgentOrder| {
            order.mcp_config = Some(json.to_owned());
            order.scratch = Some("/scratch".into());
        };
        let file = format!("--additional-mcp-config=@<{json}> --usage-output-file=<report> .. --allow-all");
        check_more(with_files, &file);
    }

    #[test]
    fn model_effort_and_directories_are_passed() {
        check_more(
            |order| {
                order.model = Some("gpt-5".to_owned());
                order.effort = Some("xhigh".to_owned());
                order.add_dirs = vec!["/more".into()];
                order.attachments = vec!["/more/a.png".into()];
                order.extra = vec!["--experimental".to_owned()];
            },
            "--model=gpt-5 --effort=xhigh --add-dir=/more --attachment=/more/a.png .. --allow-all --experimental",
        );
    }

    #[test]
    fn a_session_is_resumed_by_its_name_and_by_the_last_one_only_where_it_has_none() {
        let steps = "--output-format=json --max-autopilot-continues=7";
        let last = "-s --autopilot --no-ask-user --no-auto-update --allow-all";
        let check = |id: &str, agent_session: Option<&str>, before: u32, expected: &str| {
            let mut order = AgentOrder::new(id.to_owned(), "/work".into());
            order.limits.steps = Some(7);
            let turn = TurnContext { agent_session, before, ..FIRST };
            check(&order, &turn, &format!("{steps} {expected}{last}"));
        };
        check(ID, None, 0, &format!("--session-id={ID} "));
        check(ID, Some("abc"), 1, "--resume=abc ");
        // It was ended before any output: the same id starts the session or continues it.
        check(ID, None, 1, &format!("--session-id={ID} "));
        check("no-uuid", None, 0, "");
        check("no-uuid", None, 1, "--continue ");
    }

    #[test]
    fn a_person_who_prompts_it_turn_by_turn_gets_one_turn() {
        let mut order = order();
        order.is_attended = true;
        let first =
            format!("--output-format=json --session-id={ID} -s --no-ask-user --no-auto-update --allow-all");
        check(&order, &FIRST, &first);
        order.limits.steps = Some(3);
        let steps = format!(
            "--output-format=json --max-autopilot-continues=3 --session-id={ID} -s --autopilot --no-ask-user \
             --no-auto-update --allow-all"
        );
        check(&order, &FIRST, &steps);
    }

    #[test]
    fn switches_have_flags() {
        let check = |wish: fn(&mut AgentOptions), flags: &str| {
            check_more(|order| wish(&mut order.options), &format!("{flags} .. --allow-all"));
        };
        check(|options| options.bare = Some(true), "--no-custom-instructions --disable-builtin-mcps");
        check(|options| options.agents_md = Some(false), "--no-custom-instructions");
        check(|options| options.builtin_mcp = Some(false), "--disable-builtin-mcps");
        check(|options| options.stream = Some(false), "--stream=off");
        check(|options| options.persona = Some("reviewer".to_owned()), "--agent=reviewer");
        check(|options| options.experimental = Some(true), "--experimental");
        check_more(|order| order.options.agents_md = Some(true), ".. --allow-all");
    }

    #[test]
    fn a_version_without_a_flag_is_not_given_it() {
        let lacks = BTreeSet::from([SESSION_ID.to_owned(), USAGE_FILE.to_owned()]);
        let mut order = order();
        order.scratch = Some("/scratch".into());
        let always = "--output-format=json --max-autopilot-continues=50";
        let last = "-s --autopilot --no-ask-user --no-auto-update --allow-all";
        let old = TurnContext { lacks: &lacks, ..FIRST };
        check(&order, &old, &format!("{always} {last}"));
        assert_eq!(Copilot.invocation(&order, &old).session_id, None);
        assert_eq!(Copilot.invocation(&order, &FIRST).session_id.as_deref(), Some(ID));
        check(
            &order,
            &TurnContext { agent_session: Some("abc"), before: 1, ..old },
            &format!("{always} --resume=abc {last}"),
        );
        check(&order, &TurnContext { before: 1, ..old }, &format!("{always} --continue {last}"));
    }

    #[test]
    fn instructions_of_the_host_go_before_the_first_prompt_and_no_other() {
        let mut order = order();
        order.system = Some("be brief".to_owned());
        let stdin = |turn: &TurnContext<'_>| Copilot.invocation(&order, turn).stdin.unwrap();
        assert_eq!(stdin(&FIRST), "<system>\nbe brief\n</system>\n\ngo");
        assert_eq!(stdin(&TurnContext { agent_session: Some(ID), before: 1, ..FIRST }), "go");
    }
}
