//! [`SessionSpec`]: all groups together.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::group::SettingsGroup;
use crate::{
    AgentOptions, ClientOptions, ConversationOptions, CustomizationOptions, EntryOptions, IdentityOptions,
    InstructionOptions, ModelOptions, ServerOptions, ToolOptions, TraceContext, WorkspaceOptions,
};

/// Declares the groups of a specification. Those of the session are merged when another specification is adopted; those
/// of the visit are about one client and its request, and are not.
macro_rules! specification {
    (session { $($group:ident: $type:ty,)* } visit { $($visit:ident: $visit_type:ty,)* }) => {
        /// All settings of a session.
        #[derive(Debug, Clone, Default)]
        pub struct SessionSpec {
            $(pub $group: $type,)*
            $(pub $visit: $visit_type,)*
        }

        impl SessionSpec {
            /// Takes over what another specification says of the session, as opposed to its client.
            pub fn adopt(&mut self, other: Self) {
                $(self.$group.adopt(other.$group);)*
            }

            /// This specification, with the settings that it leaves open from another one.
            #[must_use]
            pub fn over(self, defaults: Self) -> Self {
                let mut all = Self { $($visit: self.$visit.clone(),)* ..defaults };
                all.adopt(self);
                all
            }

            /// Reads a member into the group that it belongs to. Members of no group change nothing.
            fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<(), A::Error> {
                let known = $(self.$group.read(name, members)? ||)* $(self.$visit.read(name, members)? ||)* false;
                if !known {
                    members.next_value::<IgnoredAny>()?;
                }
                Ok(())
            }
        }
    };
}

specification! {
    session {
        identity: IdentityOptions,
        trace: TraceContext,
        model: ModelOptions,
        tools: ToolOptions,
        workspace: WorkspaceOptions,
        instructions: InstructionOptions,
        agents: AgentOptions,
        customization: CustomizationOptions,
        servers: ServerOptions,
        conversation: ConversationOptions,
    }
    visit {
        client: ClientOptions,
        entry: EntryOptions,
    }
}

impl SessionSpec {
    /// The settings that a session can be given while it is alive; others are left out.
    #[must_use]
    pub fn updatable(self) -> Self {
        let Self {
            identity, model, tools, workspace, instructions, agents, customization, conversation, ..
        } = self;
        Self {
            identity: IdentityOptions { client_name: identity.client_name, ..IdentityOptions::default() },
            model: ModelOptions {
                name: model.name,
                effort: model.effort,
                summary: model.summary,
                verbosity: model.verbosity,
                tier: model.tier,
                capabilities: model.capabilities,
                provider: model.provider,
                ..ModelOptions::default()
            },
            tools: ToolOptions {
                available: tools.available,
                excluded: tools.excluded,
                precedence: tools.precedence,
                ..ToolOptions::default()
            },
            workspace,
            instructions: InstructionOptions { system: None, ..instructions },
            agents: AgentOptions { excluded: agents.excluded, ..AgentOptions::default() },
            customization: CustomizationOptions { plugin_dirs: None, discovery: None, ..customization },
            conversation: ConversationOptions { infinite: None, ..conversation },
            ..Self::default()
        }
    }

    /// Whether it says anything about which MCP servers there are.
    pub fn names_servers(&self) -> bool {
        let Self { servers, customization, .. } = self;
        servers.configs.is_some()
            || servers.disabled.is_some()
            || servers.github.is_some()
            || customization.discovery.is_some()
            || customization.plugin_dirs.is_some()
    }

    /// Whether a session has to be opened anew for these settings: they decide what it stands on.
    pub fn needs_reopening(&self) -> bool {
        !self.workspace.is_empty() || !self.customization.is_empty()
    }
}

impl<'de> Deserialize<'de> for SessionSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = SessionSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the options of a session")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SessionSpec, A::Error> {
                let mut spec = SessionSpec::default();
                while let Some(name) = members.next_key::<String>()? {
                    spec.read(&name, &mut members)?;
                }
                Ok(spec)
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(members: Value) -> SessionSpec {
        serde_json::from_value(members).unwrap()
    }

    #[test]
    fn members_are_read_into_their_groups() {
        let spec = read(json!({
            "sessionId": "s", "model": "m", "gitHubToken": "t", "availableTools": ["bash"], "streaming": true,
            "workingDirectory": "/w", "excludedBuiltInAgents": ["explore"], "traceparent": "p", "moon": {},
        }));
        assert_eq!(spec.entry.session_id.as_deref(), Some("s"));
        assert_eq!(spec.model.name.as_deref(), Some("m"));
        assert_eq!(spec.identity.github_token.as_deref(), Some("t"));
        assert_eq!(spec.tools.available, Some(vec!["bash".to_owned()]));
        assert_eq!(spec.conversation.streaming, Some(true));
        assert_eq!(spec.workspace.directory, Some("/w".into()));
        assert_eq!(spec.agents.excluded, Some(vec!["explore".to_owned()]));
        assert_eq!(spec.trace.traceparent.as_deref(), Some("p"));
    }

    #[test]
    fn null_is_absent() {
        let spec = read(json!({ "model": null, "tools": null, "streaming": null }));
        assert!(spec.model.is_empty() && spec.client.is_empty() && spec.conversation.is_empty());
    }

    #[test]
    fn an_error_has_the_position_of_the_member() {
        let error = serde_json::from_str::<SessionSpec>(r#"{"model":"m","streaming":"yes"}"#).unwrap_err();
        assert_eq!((error.line(), error.column()), (1, 30), "{error}");
    }

    #[test]
    fn what_another_specification_says_nothing_of_stays() {
        let mut spec = read(json!({ "model": "m", "streaming": true, "requestPermission": true }));
        spec.adopt(read(json!({ "streaming": false, "requestPermission": false, "sessionId": "s" })));
        assert_eq!((spec.model.name.as_deref(), spec.conversation.streaming), (Some("m"), Some(false)));
        assert_eq!(spec.client.permissions, Some(true), "about the other client");
        assert_eq!(spec.entry.session_id, None, "about the other request");
    }

    #[test]
    fn a_trace_is_adopted_whole() {
        let mut spec = read(json!({ "traceparent": "a", "tracestate": "b" }));
        spec.adopt(read(json!({ "traceparent": "c" })));
        assert_eq!(spec.trace, TraceContext { traceparent: Some("c".to_owned()), tracestate: None });
        spec.adopt(read(json!({ "tracestate": "d" })));
        assert_eq!(spec.trace.traceparent.as_deref(), Some("c"));
        assert_eq!(spec.trace.tracestate, None);
    }

    #[test]
    fn a_living_session_is_given_what_can_be_updated() {
        let spec = read(json!({
            "enableStreaming": true, "modelCapabilitiesOverrides": {}, "mcpServers": {}, "customAgents": [],
            "systemMessage": { "content": "x" }, "configDir": "/c",
            "infiniteSessions": {}, "tools": [],
        }))
        .updatable();
        assert_eq!(spec.conversation.streaming, Some(true));
        assert!(spec.model.capabilities.is_some());
        assert!(spec.servers.is_empty() && spec.agents.is_empty() && spec.client.is_empty());
        assert!(spec.instructions.is_empty() && spec.identity.is_empty());
        assert!(spec.conversation.infinite.is_none() && !spec.needs_reopening());
    }

    #[test]
    fn a_session_is_opened_anew_for_what_it_stands_on() {
        for (members, anew) in [
            (json!({ "workingDirectory": "/w" }), true),
            (json!({ "additionalDirectories": ["/a"] }), true),
            (json!({ "sandboxConfig": { "enabled": true } }), true),
            (json!({ "enableSkills": false }), true),
            (json!({ "isExperimentalMode": true }), true),
            (json!({ "model": "m", "streaming": true, "skipCustomInstructions": true }), false),
        ] {
            assert_eq!(read(members.clone()).updatable().needs_reopening(), anew, "{members}");
        }
    }
}
