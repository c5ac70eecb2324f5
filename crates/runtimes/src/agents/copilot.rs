//! GitHub Copilot CLI, and whatever else has its flags: Hangar itself does.

use futures_util::future::BoxFuture;

use super::{has_files, is_json, uuid_of, with_system};
use crate::capabilities::{Capabilities, EFFORT_LEVELS};
use crate::cli_runtime::{Adapter, Keeper, Located, StandIn, Turn};
use crate::invocation::{Argument, Invocation};
use crate::runtime::{Auth, Card, Model, Order, ShellTool, Stage};
use crate::surroundings::Surroundings;
use crate::translate::Translator;
use crate::usage::Counting;

/// Steps that autopilot may take in a turn, if nobody says. Its own default is 5, which ends most work half done.
const AUTOPILOT_STEPS: u32 = 50;
/// Where it looks for a token, in this order.
const TOKENS: [&str; 3] = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"];
/// Names of models that another agent understands and this one does not.
const SHORTHANDS: [&str; 3] = ["sonnet", "opus", "haiku"];
/// Set where it uses another provider than GitHub, which needs no token of GitHub's.
const OWN_PROVIDER: &str = "COPILOT_PROVIDER_BASE_URL";

pub struct Copilot(Card);

impl Default for Copilot {
    fn default() -> Self {
        Self(Card {
            name: "copilot".into(),
            label: "GitHub Copilot CLI".into(),
            capabilities: capabilities(),
            install: "npm install -g @github/copilot".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        })
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        streaming: true,
        session_id_given: true,
        session_id_early: false,
        effort_levels: EFFORT_LEVELS.map(str::to_owned).into(),
        model_discovery: true,
        mcp_config: true,
        tool_rules: true,
        ..Capabilities::in_a_process()
    }
}

impl Adapter for Copilot {
    fn card(&self) -> &Card {
        &self.0
    }

    fn locate(&self, surroundings: &Surroundings) -> Option<Located> {
        surroundings.program(&self.0.name, "copilot").as_deref().map(Located::program)
    }

    fn stand_in(&self, surroundings: &Surroundings) -> Option<StandIn> {
        // Whoever configured a program means that one.
        if surroundings.programs.contains_key(&*self.0.name) {
            return None;
        }
        let gh = surroundings.on_path("gh")?;
        let doubt = "`gh copilot` is used in place of `copilot`; it may lack the flags that are needed";
        let located = Located {
            leading: vec!["copilot".to_owned()],
            doubt: Some(doubt.to_owned()),
            ..Located::program(&gh)
        };
        Some(StandIn { located, question: &["extension", "list"], answer: "gh-copilot" })
    }

    fn needs(&self) -> &'static [&'static str] {
        &["--output-format", "--session-id", "--resume", "--autopilot", "--no-ask-user", "--allow-all"]
    }

    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation {
        let mut args: Vec<Argument> = Vec::new();
        let mut flag = |name: &str, value: &str| args.push(format!("{name}={value}").into());
        flag("--output-format", "json");
        flag("--max-autopilot-continues", &order.limits.steps.unwrap_or(AUTOPILOT_STEPS).to_string());
        match (turn.agent_session, uuid_of(order)) {
            (Some(id), _) => flag("--resume", id),
            // Begins it, or goes on with what a turn began that was ended before it said a word.
            (None, Some(id)) => flag("--session-id", id),
            // The session was begun without an id and never told one. The last one here is most likely it.
            (None, None) if turn.before > 0 => args.push("--continue".into()),
            (None, None) => {}
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
        if let Some(config) = &order.mcp_config {
            args.push(mcp_config(config, order));
        }
        if has_files(order) {
            args.push(Argument::Report { before: "--usage-output-file=".to_owned() });
        }
        args.extend(["-s", "--autopilot", "--no-ask-user", "--no-auto-update"].map(Argument::from));
        if order.tools == Default::default() {
            args.push("--allow-all".into());
        }
        args.extend(order.extra.iter().map(Argument::from));
        Invocation::new(args, with_system(turn.prompt, order, turn.agent_session.is_some()))
    }

    fn translator(&self, turn: &Turn<'_>) -> Box<dyn Translator> {
        Box::new(crate::translate::copilot::Copilot::new(turn.agent_session.is_some()))
    }

    fn counting(&self) -> Counting {
        // On stdout and in the file: since the session began.
        Counting::SinceBegun
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
        order.env.extend(rehearsal(stage));
    }

    fn echoes_prompt(&self) -> bool {
        true
    }

    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>) {
        if surroundings.var(OWN_PROVIDER).is_some() {
            return (Auth::Found(OWN_PROVIDER.to_owned()), Vec::new());
        }
        let is_classic = |name: &&str| surroundings.var(name).is_some_and(|token| token.starts_with("ghp_"));
        let warn = |name: &&str| {
            format!(
                "{name} holds a classic token (ghp_), which Copilot ignores without a word; use a fine-grained one with the \
                 permission \"Copilot Requests\""
            )
        };
        let (classic, others): (Vec<&str>, Vec<&str>) = TOKENS.into_iter().partition(is_classic);
        let found = match surroundings.first_var(&others) {
            Some((name, _)) => Auth::Found(name.to_owned()),
            // The token itself may lie in a key chain that is not ours to open; whose it is, is written beside it.
            None if has_login(surroundings) => Auth::Found("copilot login".to_owned()),
            None => classic.first().map_or(Auth::Missing, |name| Auth::Found((*name).to_owned())),
        };
        (found, classic.iter().map(warn).collect())
    }

    fn keeper(&self) -> Option<Keeper> {
        Some(Keeper { program: "gh", question: &["auth", "status"] })
    }

    fn login(&self) -> &'static str {
        "set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN, or run `copilot login`"
    }

    fn warnings(&self, order: &Order, surroundings: &Surroundings) -> Vec<String> {
        let mut warnings = self.auth(&surroundings.with(&order.env)).1;
        if let Some(model) = order.model.as_deref().filter(|model| SHORTHANDS.contains(model)) {
            warnings.push(format!(
                "`{model}` is a name of Claude Code's; Copilot wants the whole name of a model"
            ));
        }
        warnings
    }

    fn models(&self, surroundings: &Surroundings) -> BoxFuture<'static, Option<Vec<Model>>> {
        (surroundings.catalogue.0)()
    }
}

/// Whether somebody has logged in with it.
fn has_login(surroundings: &Surroundings) -> bool {
    let home =
        surroundings.var("COPILOT_HOME").map_or_else(|| surroundings.home.join(".copilot"), Into::into);
    let config = std::fs::read_to_string(home.join("config.json")).unwrap_or_default();
    // It begins with remarks that JSON does not know.
    let json: String = config.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let config: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    ["loggedInUsers", "logged_in_users"]
        .iter()
        .any(|name| config[*name].as_array().is_some_and(|users| !users.is_empty()))
}

/// Variables that make it, and whatever follows its conventions, use the scripted model.
pub fn rehearsal(stage: &Stage) -> Vec<(String, String)> {
    let Stage { model_url, home } = stage;
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

/// A file with its sign, without which newer versions refuse it. JSON goes by a file too where there can be one: it may
/// hold secrets, and others can see command lines.
fn mcp_config(config: &str, order: &Order) -> Argument {
    let flag = "--additional-mcp-config=";
    match (is_json(config), has_files(order)) {
        (true, true) => Argument::Input { before: format!("{flag}@"), text: config.to_owned() },
        (true, false) => format!("{flag}{config}").into(),
        (false, _) => format!("{flag}@{}", config.trim_start().trim_start_matches('@')).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001";
    const FIRST: Turn<'_> = Turn { prompt: "go", agent_session: None, before: 0 };

    fn order() -> Order {
        Order::new(ID.to_owned(), "/work".into())
    }

    /// All flags of a turn.
    #[track_caller]
    fn check(order: &Order, turn: &Turn<'_>, expected: &str) {
        let args = Copilot::default().invocation(order, turn).args;
        let args: Vec<_> = args.iter().map(Argument::to_string).collect();
        assert_eq!(args.join(" "), expected);
    }

    /// The flags that an order has on top of those that every turn has.
    #[track_caller]
    fn check_more(wish: impl FnOnce(&mut Order), expected: &str) {
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
        let with_files = |order: &mut Order| {
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
                order.extra = vec!["--experimental".to_owned()];
            },
            "--model=gpt-5 --effort=xhigh --add-dir=/more .. --allow-all --experimental",
        );
    }

    #[test]
    fn a_session_is_resumed_by_its_name_and_by_the_last_one_only_where_it_has_none() {
        let steps = "--output-format=json --max-autopilot-continues=7";
        let last = "-s --autopilot --no-ask-user --no-auto-update --allow-all";
        let check = |id: &str, agent_session: Option<&str>, before: u32, expected: &str| {
            let mut order = Order::new(id.to_owned(), "/work".into());
            order.limits.steps = Some(7);
            let turn = Turn { prompt: "go", agent_session, before };
            check(&order, &turn, &format!("{steps} {expected}{last}"));
        };
        check(ID, None, 0, &format!("--session-id={ID} "));
        check(ID, Some("abc"), 1, "--resume=abc ");
        // It was ended before it said a word: the same name begins the session or goes on with it.
        check(ID, None, 1, &format!("--session-id={ID} "));
        check("no-uuid", None, 0, "");
        check("no-uuid", None, 1, "--continue ");
    }

    #[test]
    fn instructions_of_the_host_go_before_the_first_prompt_and_no_other() {
        let mut order = order();
        order.system = Some("be brief".to_owned());
        let stdin = |turn: &Turn<'_>| Copilot::default().invocation(&order, turn).stdin.unwrap();
        assert_eq!(stdin(&FIRST), "<system>\nbe brief\n</system>\n\ngo");
        assert_eq!(stdin(&Turn { agent_session: Some(ID), before: 1, ..FIRST }), "go");
    }
}
