//! opencode, `run --format json`.

use super::with_system;
use crate::capabilities::Capabilities;
use crate::cli_runtime::{Adapter, Located, Turn};
use crate::runtime::{Auth, Card, Order};
use crate::surroundings::Surroundings;
use crate::translate::Translator;
use crate::turn::Invocation;
use crate::usage::Counting;

pub struct Opencode(Card);

impl Default for Opencode {
    fn default() -> Self {
        Self(Card {
            name: "opencode",
            label: "opencode",
            capabilities: Capabilities {
                streaming: false,
                resume: true,
                session_id_given: false,
                session_id_early: true,
                cost: true,
                input_tokens: true,
                effort_levels: Vec::new(),
                budget_cap: false,
                system_prompt: false,
                model_discovery: false,
                permission_callbacks: false,
                prompt_by_stdin: true,
                mcp_config: false,
                tool_rules: false,
                shared_process: false,
                remote: true,
            },
            install: "npm install -g opencode-ai",
        })
    }
}

impl Adapter for Opencode {
    fn card(&self) -> &Card {
        &self.0
    }

    fn locate(&self, surroundings: &Surroundings) -> Option<Located> {
        let program = surroundings.program(self.0.name, "opencode")?;
        Some(Located { program: program.display().to_string(), leading: Vec::new(), doubt: None })
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
        Invocation {
            program: String::new(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            without: Vec::new(),
            // By stdin: prompts among the arguments reach the model in quotes that nobody wrote.
            stdin: Some(with_system(turn.prompt, order, turn.agent_session.is_some())),
        }
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
