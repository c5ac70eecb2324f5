//! Instructions of MCP servers: in the system prompt as far as they are known when the conversation begins, and in
//! messages from then on. Changing the system prompt would cost the provider's prefix cache, and models that bind their
//! reasoning to it refuse the change.

use crate::prompt::mcp;

const SEPARATOR: &str = "\n\n";

#[derive(Debug, Default)]
pub(super) struct McpInstructions {
    current: Option<String>,
    /// The part of the system prompt, once that is fixed.
    fixed: Option<Option<String>>,
    /// The instructions that the model was last told, in either place.
    told: Option<String>,
}

impl McpInstructions {
    pub(super) fn set(&mut self, instructions: Option<String>) {
        self.current = instructions;
    }

    /// Fixes the section of the system prompt. A resumed conversation keeps the one that it had, if the rest of its
    /// system prompt is still `prompt`.
    pub(super) fn freeze(&mut self, prompt: &str, before: Option<&str>) {
        if self.fixed.is_some() {
            return;
        }
        let rest = before.and_then(|before| before.strip_prefix(prompt));
        let kept = match rest {
            Some("") => Some(None),
            Some(rest) => {
                let rest = rest.strip_prefix(SEPARATOR).filter(|rest| rest.starts_with(mcp::BEGIN));
                rest.map(|rest| Some(rest.to_owned()))
            }
            None => None,
        };
        let fixed = kept.unwrap_or_else(|| self.current.clone());
        self.told.clone_from(&fixed);
        self.fixed = Some(fixed);
    }

    pub(super) fn in_system(&self) -> Option<&str> {
        self.fixed.as_ref().unwrap_or(&self.current).as_deref()
    }

    /// Instructions that changed since the model was told.
    pub(super) fn news(&self) -> Option<String> {
        if self.fixed.is_none() || self.current == self.told {
            return None;
        }
        let text = self.current.as_deref().unwrap_or("The MCP servers give no instructions any more.");
        Some(format!("<system_reminder>\n{text}\n</system_reminder>"))
    }

    /// Notes that the changed instructions were part of a message.
    pub(super) fn told(&mut self) {
        if self.fixed.is_some() {
            self.told.clone_from(&self.current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn what_comes_late_is_news_and_the_system_prompt_stays() {
        let mut mcp = McpInstructions::default();
        mcp.set(instructions("one"));
        mcp.freeze("system", None);
        assert_eq!((mcp.in_system(), mcp.news()), (Some("one"), None));
        mcp.set(instructions("two"));
        let news = mcp.news().unwrap();
        assert!(news.contains("\ntwo\n"), "{news}");
        mcp.told();
        assert_eq!((mcp.in_system(), mcp.news()), (Some("one"), None));
    }

    #[test]
    fn a_resumed_conversation_keeps_its_system_prompt() {
        let check = |before: &str, in_system: Option<&str>, news: bool| {
            let mut mcp = McpInstructions::default();
            mcp.set(instructions("now"));
            mcp.freeze("system", Some(before));
            assert_eq!((mcp.in_system(), mcp.news().is_some()), (in_system, news), "{before:?}");
        };
        check("system\n\n<mcp_server_instructions>then", Some("<mcp_server_instructions>then"), true);
        check("system", None, true);
        // Another system prompt starts over.
        check("another", Some("now"), false);
        check("system\n\nwith an end", Some("now"), false);
    }
}
