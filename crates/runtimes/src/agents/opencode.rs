//! opencode, `run --format json`.

use super::with_system;
use crate::capabilities::Capabilities;
use crate::cli_runtime::{Adapter, Located, Turn};
use crate::runtime::{Auth, Card, Order, ShellTool, Stage};
use crate::surroundings::Surroundings;
use crate::translate::Translator;
use crate::turn::Invocation;
use crate::usage::Counting;

pub struct Opencode(Card);

impl Default for Opencode {
    fn default() -> Self {
        Self(Card {
            name: "opencode".into(),
            label: "opencode".into(),
            capabilities: Capabilities { cost: true, ..Capabilities::in_a_process() },
            install: "npm install -g opencode-ai".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        })
    }
}

impl Adapter for Opencode {
    fn card(&self) -> &Card {
        &self.0
    }

    fn locate(&self, surroundings: &Surroundings) -> Option<Located> {
        surroundings.program(&self.0.name, "opencode").as_deref().map(Located::program)
    }

    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation {
        let mut args: Vec<String> = ["run", "--format", "json", "--thinking"].map(str::to_owned).into();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(model) = &order.model {
            flag("-m", model);
        }
        if let Some(id) = turn.agent_session {
            flag("-s", id);
        }
        if order.tools == Default::default() {
            args.push("--auto".to_owned());
        }
        args.extend(order.extra.iter().cloned());
        // By stdin: prompts among the arguments reach the model in quotes that nobody wrote.
        Invocation::new(args, with_system(turn.prompt, order, turn.agent_session.is_some()))
    }

    fn help(&self) -> &'static [&'static str] {
        &["run", "--help"]
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
        let provider = serde_json::json!({
            "share": "disabled",
            "autoupdate": false,
            "provider": { "rehearsal": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "rehearsal",
                "options": { "baseURL": format!("{}/v1", stage.model_url), "apiKey": "rehearsal" },
                "models": { "mock-model": { "name": "mock-model" } },
            } },
        });
        let home = stage.home.display().to_string();
        let settings = [
            ("HOME", home.clone()),
            ("XDG_DATA_HOME", format!("{home}/.local/share")),
            ("XDG_CONFIG_HOME", format!("{home}/.config")),
            ("XDG_STATE_HOME", format!("{home}/.local/state")),
            ("XDG_CACHE_HOME", format!("{home}/.cache")),
            ("OPENCODE_CONFIG_CONTENT", provider.to_string()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ];
        order.env.extend(settings.map(|(name, value)| (name.to_owned(), value)));
        order.model.get_or_insert_with(|| "rehearsal/mock-model".to_owned());
    }

    fn translator(&self) -> Box<dyn Translator> {
        Box::new(crate::translate::opencode::Opencode::default())
    }

    fn counting(&self) -> Counting {
        Counting::PerTurn
    }

    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>) {
        let file = surroundings.home.join(".local/share/opencode/auth.json");
        let auth = if file.exists() { Auth::Found("auth.json".to_owned()) } else { Auth::Unknown };
        (auth, Vec::new())
    }
}
