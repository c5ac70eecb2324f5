//! Extensions of sessions on this machine: where they are, and the Node process that runs each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use hangar_custom::extensions::{DIR, Extension, ExtensionPlaces, PROJECT_DIR};
use hangar_process::credentials::{Child, is_withheld};
use hangar_protocol::data::ExtensionSource;
use hangar_server::{
    ExtensionHost, ExtensionSession, LaunchPlan, NewExtensionLocation, SandboxedProgram, UserSettings,
};

use super::opener::Front;
use crate::args::RunArgs;
use crate::compose::Extensions;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::trust::is_trusted;
use crate::{credentials, custom, flags};

const BOOTSTRAP: &str = include_str!("extension/bootstrap.mjs");
const RESOLVER: &str = include_str!("extension/resolver.mjs");
const SDK: &str = include_str!("extension/sdk.mjs");

/// Variable that lets the project's extensions run where its folder is not trusted.
const ALLOWS_PROJECT: &str = "GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS";

pub(super) struct NodeExtensions {
    settings: Settings,
    flags: Extensions,
    secrets: Vec<String>,
    sdk: Option<PathBuf>,
    front: Front,
}

impl NodeExtensions {
    pub(super) fn new(settings: Settings, args: &RunArgs, front: Front) -> Self {
        let sdk = args.extensions.extension_sdk_path.clone();
        let secrets = args.permissions.secret_env_vars.clone();
        Self { flags: flags::extensions(args), settings, secrets, sdk, front }
    }

    /// Whether programs of the session's project may run. A program that asks for extensions trusts its directory.
    fn trusts(&self, directory: &Path) -> bool {
        self.front == Front::Program
            || is_trusted(&self.settings, self.flags.trust, directory)
            || self.settings.var(ALLOWS_PROJECT) == Some("true")
    }

    fn home(&self, session: Option<&ExtensionSession>) -> PathBuf {
        let named = session.and_then(|session| session.spec.identity.config_dir.clone());
        named.unwrap_or_else(|| self.settings.home.clone())
    }

    fn places(&self, session: Option<&ExtensionSession>) -> ExtensionPlaces {
        let mut settings = self.settings.clone();
        settings.home = self.home(session);
        let directory = session.map(|session| session.directory.as_path());
        let given = session.and_then(|session| session.spec.customization.plugin_dirs.as_deref());
        let dirs = self.flags.plugin_dirs.iter().chain(given.into_iter().flatten());
        let dirs: Vec<PathBuf> =
            dirs.map(|dir| directory.map_or_else(|| dir.clone(), |directory| directory.join(dir))).collect();
        ExtensionPlaces {
            project: directory.filter(|directory| self.trusts(directory)).map(root),
            plugins: custom::load_plugins(&settings, &dirs).0,
            home: settings.home,
            session: session.and_then(|session| session.session_dir.clone()),
        }
    }

    /// Names of variables with secrets, beside the known ones.
    fn ours(&self) -> Vec<String> {
        let mut ours = credentials::ours(&self.settings);
        ours.extend(self.secrets.iter().cloned());
        ours
    }
}

impl ExtensionHost for NodeExtensions {
    fn find(&self, session: Option<&ExtensionSession>) -> (Vec<Extension>, Vec<String>) {
        self.places(session).find()
    }

    fn launch(&self, session: &ExtensionSession, extension: &Extension) -> Result<LaunchPlan, String> {
        let node = on_path(&self.settings, "node").ok_or(
            "Node.js is not installed: there is no `node` on the PATH, and extensions need version 20.6 or newer",
        )?;
        let sdk = session.spec.client.extension_sdk.as_ref().or(self.sdk.as_ref());
        // A folder that is none falls back to the built-in module, as the protocol has it.
        let sdk = sdk.map(|sdk| session.directory.join(sdk)).filter(|sdk| sdk.join("extension.js").is_file());
        let program = match extension.source {
            ExtensionSource::Project => SandboxedProgram::OfProject,
            ExtensionSource::User | ExtensionSource::Plugin | ExtensionSource::Session => {
                SandboxedProgram::OfUser
            }
        };
        let mut needed = vec![extension.path.clone()];
        needed.extend(sdk.clone());
        let sandbox = (session.confine)(program, &needed)?;
        let mut env = credentials::environment(&self.settings, Child::Helper, &self.ours());
        let own: [(&str, OsString); 3] = [
            ("SESSION_ID", session.id.clone().into()),
            ("EXTENSION_PATH", extension.path.clone().into()),
            ("COPILOT_EXTENSION_PARENT_PID", std::process::id().to_string().into()),
        ];
        env.retain(|(name, _)| name != "COPILOT_SDK_PATH" && own.iter().all(|(own, _)| name != own));
        env.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
        env.extend(sdk.map(|sdk| ("COPILOT_SDK_PATH".into(), sdk.into_os_string())));
        let args =
            ["--no-warnings".into(), "--import".into(), bootstrap().into(), extension.path.clone().into()];
        Ok(LaunchPlan { program: node.into_os_string(), args: args.into(), env, sandbox })
    }

    fn withheld(&self, _session: &ExtensionSession, names: &[String]) -> Vec<(String, String)> {
        let ours = self.ours();
        let is_kept = |name: &String| is_withheld(name, Child::Helper, &ours);
        let mut names: Vec<&String> = names.iter().filter(|name| is_kept(name)).collect();
        names.sort();
        names.dedup();
        let value = |name: &String| std::env::var(name).ok().filter(|value| !value.is_empty());
        names.into_iter().filter_map(|name| Some((name.clone(), value(name)?))).collect()
    }

    fn folder(&self, session: &ExtensionSession, location: NewExtensionLocation) -> Result<PathBuf, String> {
        match location {
            NewExtensionLocation::Project => Ok(root(&session.directory).join(PROJECT_DIR)),
            NewExtensionLocation::User => Ok(self.home(Some(session)).join(DIR)),
            NewExtensionLocation::Session => {
                let dir = session.session_dir.as_ref();
                dir.map(|dir| dir.join(DIR))
                    .ok_or_else(|| "a client keeps the folder of this session".to_owned())
            }
        }
    }
}

/// Whether the sessions of a terminal load extensions: with the feature, or with the user's setting for all experiments.
pub(super) fn are_on(settings: &Settings) -> anyhow::Result<bool> {
    Ok(settings.features()?.is_on("extensions") || UserSettings::of(&settings.home).is_on("experimental"))
}

/// A program on the PATH.
fn on_path(settings: &Settings, name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(settings.var("PATH")?).map(|dir| dir.join(name)).find(is_program)
}

/// The top of a project.
fn root(directory: &Path) -> PathBuf {
    Repository::find(directory).map_or_else(|| directory.to_path_buf(), |repository| repository.root)
}

/// The module that runs before an extension, with the two that it names, as one address. Nothing is read from disk, so a
/// sandbox that hides the home does not hide it.
fn bootstrap() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| {
        let text = BOOTSTRAP.replace("\"RESOLVER\"", &format!("\"{}\"", address(RESOLVER)));
        address(&text.replace("\"SDK\"", &format!("\"{}\"", address(SDK))))
    })
}

/// A module as an address.
fn address(module: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(module);
    format!("data:text/javascript;base64,{encoded}")
}
