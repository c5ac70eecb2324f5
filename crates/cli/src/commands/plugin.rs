//! `hangar plugin`: installed plugins and their marketplaces, with the command names of Copilot CLI.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use hangar_plugins::{DIRECT_WARNING, Installation, Installed, PluginError, Plugins, Removal};
use serde_json::{Value, json};

use super::print_line;
use crate::exit::Exit;
use crate::output::remark;
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginSubcommand {
    /// Install a plugin: plugin@marketplace, owner/repo, owner/repo:path, a git URL or a directory
    Install { source: String },
    /// Uninstall a plugin
    #[command(visible_alias = "remove")]
    Uninstall { name: String },
    /// Update a plugin, or all with --all
    Update {
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Update all installed plugins
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// List the installed plugins
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Enable a plugin in later sessions
    Enable { name: String },
    /// Disable a plugin in later sessions
    Disable { name: String },
    /// Add, remove, list, browse and update marketplaces
    Marketplace {
        #[command(subcommand)]
        command: MarketplaceSubcommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceSubcommand {
    /// Add a marketplace: owner/repo, a git URL or a directory with a marketplace.json
    Add { source: String },
    /// Remove a marketplace
    Remove {
        name: String,
        /// Also uninstall the plugins that came from it
        #[arg(short, long)]
        force: bool,
    },
    /// List the marketplaces
    List,
    /// List the plugins that a marketplace offers
    Browse {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch the list of a marketplace again, or of all
    Update { name: Option<String> },
}

pub(crate) fn run(settings: &Settings, command: PluginSubcommand) -> Result<Exit> {
    let plugins = Plugins::new(&settings.home, crate::credentials::git(), jiff::Timestamp::now);
    let cwd = std::env::current_dir().context("the working directory cannot be read")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            PluginSubcommand::Install { source } => install(&plugins, &source, &cwd).await,
            PluginSubcommand::Uninstall { name } => {
                plugins.uninstall(&name, None).map_err(failed("uninstall plugin"))?;
                print_line(&format!("Plugin \"{name}\" uninstalled successfully."))
            }
            PluginSubcommand::Update { name: Some(name), .. } => {
                let update = plugins.update(&name).await.map_err(failed("update plugin"))?;
                print_line(&updated(&update))
            }
            PluginSubcommand::Update { name: None, .. } => update_all(&plugins).await,
            PluginSubcommand::List { json } => list(&plugins.list()?, json),
            PluginSubcommand::Enable { name } => switch(&plugins, name, true),
            PluginSubcommand::Disable { name } => switch(&plugins, name, false),
            PluginSubcommand::Marketplace { command } => marketplace(&plugins, command, &cwd).await,
        }
    })?;
    Ok(Exit::Done)
}

/// Puts the words of Copilot CLI before a reason.
fn failed(what: &'static str) -> impl Fn(PluginError) -> anyhow::Error {
    move |error| anyhow::anyhow!("Failed to {what}: {error}")
}

fn skills(count: usize) -> String {
    match count {
        1 => "1 skill".to_owned(),
        count => format!("{count} skills"),
    }
}

async fn install(plugins: &Plugins, source: &str, cwd: &Path) -> Result<()> {
    let done = plugins.install(source, cwd).await.map_err(failed("install plugin"))?;
    let Installation { plugin, skills: count, .. } = &done;
    print_line(&format!("Plugin \"{}\" installed successfully. Installed {}.", plugin.name, skills(*count)))?;
    if plugin.is_live() {
        print_line(&format!(
            "It is loaded from {}, so edits take effect in the next session; nothing was copied.",
            plugin.path.display()
        ))?;
    }
    if plugin.marketplace.is_empty() {
        remark(&format!("Warning: {DIRECT_WARNING}"));
    }
    Ok(())
}

fn updated(update: &Installation) -> String {
    let Installation { plugin, skills: count, previous_version } = update;
    if plugin.is_live() {
        let path = plugin.path.display();
        return format!("Plugin \"{}\" is loaded from {path}; there is nothing to update.", plugin.spec());
    }
    let version = match (previous_version, &plugin.version) {
        (Some(old), Some(new)) if old == new => format!(" (v{new}, already at latest)"),
        (Some(old), Some(new)) => format!(" (v{old} → v{new})"),
        (None, Some(new)) => format!(" (v{new})"),
        (_, None) => String::new(),
    };
    format!("Plugin \"{}\" updated successfully{version}. Updated {}.", plugin.spec(), skills(*count))
}

async fn update_all(plugins: &Plugins) -> Result<()> {
    let mut failures = Vec::new();
    for (plugin, outcome) in plugins.update_all().await? {
        match outcome {
            Ok(update) => print_line(&updated(&update))?,
            Err(error) => failures.push(format!("Failed to update plugin \"{}\": {error}", plugin.spec())),
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => bail!(failures.join("\n")),
    }
}

fn list(installed: &[Installed], json: bool) -> Result<()> {
    if json {
        let told: Vec<Value> = installed.iter().map(describe).collect();
        return print_line(&serde_json::to_string_pretty(&told)?);
    }
    if installed.is_empty() {
        print_line("No plugins installed.\n")?;
        return print_line("Use 'hangar plugin install <source>' to install a plugin.");
    }
    print_line("Installed plugins:")?;
    for plugin in installed {
        let version = plugin.version.as_ref().map(|version| format!(" (v{version})")).unwrap_or_default();
        let state = if plugin.enabled { "" } else { " [disabled]" };
        print_line(&format!("  • {}{version}{state}", plugin.spec()))?;
        if plugin.is_live() {
            print_line(&format!("      from {}", plugin.path.display()))?;
        }
    }
    Ok(())
}

fn describe(plugin: &Installed) -> Value {
    let mut told = json!({
        "name": plugin.name,
        "marketplace": plugin.marketplace,
        "enabled": plugin.enabled,
        "source": if plugin.is_live() { "live" } else { "installed" },
        "installedFrom": plugin.source.describe(),
    });
    if let Some(version) = &plugin.version {
        told["version"] = json!(version);
    }
    told
}

fn switch(plugins: &Plugins, name: String, enabled: bool) -> Result<()> {
    let done = if enabled { "Enabled" } else { "Disabled" };
    match plugins.switch(std::slice::from_ref(&name), enabled)?.is_empty() {
        true => bail!("Plugin \"{name}\" is not installed"),
        false => print_line(&format!("{done} plugin \"{name}\".")),
    }
}

async fn marketplace(plugins: &Plugins, command: MarketplaceSubcommand, cwd: &Path) -> Result<()> {
    match command {
        MarketplaceSubcommand::Add { source } => {
            let name = plugins.add_marketplace(&source, cwd).await.map_err(failed("add marketplace"))?;
            print_line(&format!("Marketplace \"{name}\" added successfully."))
        }
        MarketplaceSubcommand::Remove { name, force } => {
            match plugins.remove_marketplace(&name, force).map_err(failed("remove marketplace"))? {
                Removal::Removed { .. } => {
                    print_line(&format!("Marketplace \"{name}\" removed successfully."))
                }
                Removal::InUse { plugins } => bail!(
                    "Marketplace \"{name}\" has installed plugins: {}; use --force to uninstall them too",
                    plugins.join(", ")
                ),
            }
        }
        MarketplaceSubcommand::List => {
            for known in plugins.marketplaces()? {
                let mark = if known.is_default { "◆" } else { "•" };
                print_line(&format!("  {mark} {} ({})", known.name, known.source.describe()))?;
            }
            Ok(())
        }
        MarketplaceSubcommand::Browse { name, json } => browse(plugins, &name, json).await,
        MarketplaceSubcommand::Update { name } => {
            let mut failures = Vec::new();
            for (name, outcome) in plugins.refresh(name.as_deref()).await? {
                match outcome {
                    Ok(()) => print_line(&format!("Marketplace \"{name}\" updated successfully."))?,
                    Err(error) => failures.push(format!("Failed to update marketplace \"{name}\": {error}")),
                }
            }
            match failures.is_empty() {
                true => Ok(()),
                false => bail!(failures.join("\n")),
            }
        }
    }
}

async fn browse(plugins: &Plugins, name: &str, json: bool) -> Result<()> {
    let offers = plugins.browse(name).await.map_err(failed("browse marketplace"))?;
    if json {
        let told = offers.iter().map(
            |offer| json!({ "name": offer.name, "description": offer.description, "marketplace": name }),
        );
        return print_line(&serde_json::to_string_pretty(&told.collect::<Vec<_>>())?);
    }
    print_line(&format!("Plugins in \"{name}\":"))?;
    for offer in &offers {
        let text = offer.description.as_ref().map(|text| format!(" - {text}")).unwrap_or_default();
        print_line(&format!("  • {}{text}", offer.name))?;
    }
    print_line(&format!("\nInstall with: hangar plugin install <plugin-name>@{name}"))
}
