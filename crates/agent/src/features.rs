//! Feature flags: one table, and which of them are on. A feature that is off is absent, not refused: the model does not
//! see its tools, and its modes cannot be entered.

use hangar_protocol::data::Mode;
use serde::Serialize;

/// Maturity of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Maturity {
    On,
    /// Off by default.
    Experimental,
    Off,
}

impl Maturity {
    pub fn as_str(self) -> &'static str {
        match self {
            Maturity::On => "on",
            Maturity::Experimental => "experimental",
            Maturity::Off => "off",
        }
    }
}

#[derive(Debug)]
pub struct Feature {
    pub name: &'static str,
    pub stage: Maturity,
    pub about: &'static str,
    /// Tools that exist only with it.
    tools: &'static [&'static str],
    mode: Option<Mode>,
}

/// All features.
const FEATURES: &[Feature] = &[
    Feature {
        name: "ask-user",
        stage: Maturity::On,
        about: "the model asks the user questions",
        tools: &["ask_user"],
        mode: None,
    },
    Feature {
        name: "autopilot",
        stage: Maturity::On,
        about: "work without anyone watching, until task_complete",
        tools: &["task_complete"],
        mode: Some(Mode::Autopilot),
    },
    Feature {
        name: "extensions",
        stage: Maturity::Experimental,
        about: "programs of the user, of plugins and of trusted projects join the session of a terminal",
        // Clients may ask for them where they are off.
        tools: &[],
        mode: None,
    },
    Feature {
        name: "memory",
        stage: Maturity::Experimental,
        about: "the model keeps notes about the repository for later sessions",
        // Clients may ask for it where it is off.
        tools: &[],
        mode: None,
    },
    Feature {
        name: "plan",
        stage: Maturity::On,
        about: "plan first, change nothing, hand the plan in",
        tools: &["exit_plan_mode"],
        mode: Some(Mode::Plan),
    },
    Feature {
        name: "sql",
        stage: Maturity::On,
        about: "a database of the session's own, with its todos",
        tools: &["sql"],
        mode: None,
    },
    Feature {
        name: "web",
        stage: Maturity::On,
        about: "pages of the web are fetched, and searched for where the provider does that",
        tools: &["web_fetch", "web_search"],
        mode: None,
    },
    Feature {
        name: "websockets",
        stage: Maturity::On,
        about: "models that listen on a WebSocket are spoken to there, where a client carries the requests",
        tools: &[],
        mode: None,
    },
];

/// A feature, as it is shown to people.
#[derive(Debug, Serialize)]
pub struct FeatureState {
    pub name: &'static str,
    pub stage: Maturity,
    pub enabled: bool,
    pub about: &'static str,
}

/// The features that are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(Vec<&'static str>);

#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not a feature; there are {}", known())]
pub struct UnknownFeature {
    name: String,
}

fn known() -> String {
    FEATURES.iter().map(|feature| feature.name).collect::<Vec<_>>().join(", ")
}

impl Default for Features {
    fn default() -> Self {
        Self(
            FEATURES
                .iter()
                .filter(|feature| feature.stage == Maturity::On)
                .map(|feature| feature.name)
                .collect(),
        )
    }
}

impl Features {
    /// All features, and whether each is on.
    pub fn states(&self) -> Vec<FeatureState> {
        let state = |feature: &Feature| FeatureState {
            name: feature.name,
            stage: feature.stage,
            enabled: self.is_on(feature.name),
            about: feature.about,
        };
        FEATURES.iter().map(state).collect()
    }

    /// Turns all experimental features on.
    pub fn switch_experimental(&mut self) {
        for feature in FEATURES.iter().filter(|feature| feature.stage == Maturity::Experimental) {
            if !self.is_on(feature.name) {
                self.0.push(feature.name);
            }
        }
    }

    /// Switches features by a list: `websockets,-sql` turns one on and one off.
    pub fn switch(&mut self, list: &str) -> Result<(), UnknownFeature> {
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, on) = match word.strip_prefix('-') {
                Some(name) => (name, false),
                None => (word.strip_prefix('+').unwrap_or(word), true),
            };
            let found = FEATURES.iter().find(|feature| feature.name.eq_ignore_ascii_case(name));
            let feature = found.ok_or_else(|| UnknownFeature { name: name.to_owned() })?;
            self.0.retain(|known| *known != feature.name);
            if on {
                self.0.push(feature.name);
            }
        }
        Ok(())
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// Tools of features that are off.
    pub fn absent_tools(&self) -> impl Iterator<Item = &'static str> {
        FEATURES.iter().filter(|feature| !self.is_on(feature.name)).flat_map(|feature| feature.tools).copied()
    }

    /// The feature that a mode needs, if it is off.
    pub fn absent_mode(&self, mode: Mode) -> Option<&'static str> {
        let feature = FEATURES.iter().find(|feature| feature.mode == Some(mode))?;
        (!self.is_on(feature.name)).then_some(feature.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, on: &[&str], off: &[&str]) {
        let mut features = Features::default();
        features.switch(list).unwrap();
        for name in on {
            assert!(features.is_on(name), "{name}: {features:?}");
        }
        for name in off {
            assert!(!features.is_on(name), "{name}: {features:?}");
        }
    }

    #[test]
    fn a_list_switches_parts_on_and_off() {
        check("", &["sql", "web", "plan", "websockets"], &[]);
        check("-websockets,-sql", &["web"], &["sql", "websockets"]);
        check("-sql, +sql", &["sql"], &[]);
        check(" -WEBSOCKETS ,", &[], &["websockets"]);
    }

    #[test]
    fn what_is_off_takes_its_tools_and_modes_along() {
        let mut features = Features::default();
        features.switch("-plan,-web").unwrap();
        assert_eq!(
            features.absent_tools().collect::<Vec<_>>(),
            ["exit_plan_mode", "web_fetch", "web_search"]
        );
        assert_eq!(features.absent_mode(Mode::Plan), Some("plan"));
        assert_eq!(features.absent_mode(Mode::Autopilot), None);
        assert_eq!(features.absent_mode(Mode::Interactive), None);
    }

    #[test]
    fn a_name_that_means_nothing_is_refused_with_those_that_do() {
        let error = Features::default().switch("warp").unwrap_err().to_string();
        assert!(error.contains("`warp`") && error.contains("websockets"), "{error}");
    }
}
