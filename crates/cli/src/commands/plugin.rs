//! `hangar plugin`: installed plugins and their marketplaces, with the command names of Copilot CLI.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{CommandFactory as _, Subcommand};
use hangar_plugins::{DIRECT_WARNING, Installation, Installed, Listed, PluginError, Plugins, Removal};
use serde_json::{Value, json};

use super::print_line;
use crate::exit::Exit;
use crate::output::remark;
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginSubcommand {
    /// Install a plugin
    Install {
        /// plugin@marketplace, owner/repo, owner/repo:path, a git URL or a directory
        source: String,
    },
    /// Uninstall a plugin
    #[command(visible_alias = "remove")]
    Uninstall {
        /// Plugin name, name@marketplace, or the id of its source
        name: String,
    },
    /// Update a plugin, or all with --all
    Update {
        /// Plugin name, name@marketplace, or the id of its source; omit it with --all
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
    Enable {
        /// Plugin name, name@marketplace, or the id of its source
        name: String,
    },
    /// Disable a plugin in later sessions
    Disable {
        /// Plugin name, name@marketplace, or the id of its source
        name: String,
    },
    /// Add, remove, list, browse and update marketplaces
    Marketplace {
        #[command(subcommand)]
        command: Option<MarketplaceSubcommand>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceSubcommand {
    /// Add a marketplace
    Add {
        /// owner/repo, a git URL, or a directory with a marketplace.json
        source: String,
    },
    /// Remove a marketplace
    Remove {
        /// Marketplace name
        name: String,
        /// Also uninstall the plugins that came from it
        #[arg(short, long)]
        force: bool,
    },
    /// List the marketplaces
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the plugins that a marketplace offers
    Browse {
        /// Marketplace name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch the list of a marketplace again, or of all
    Update {
        /// Marketplace name; all without one
        name: Option<String>,
    },
}

pub(crate) fn run(settings: &Settings, command: Option<PluginSubcommand>) -> Result<Exit> {
    let Some(command) = command else { return help(&["plugin"]) };
    if let PluginSubcommand::Marketplace { command: None } = &command {
        return help(&["plugin", "marketplace"]);
    }
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
            PluginSubcommand::Update { name: None, all: true } => update_all(&plugins).await,
            PluginSubcommand::Update { name: None, all: false } => {
                bail!(
                    "Failed to update plugin: missing plugin name. Use --all to update all installed plugins."
                )
            }
            PluginSubcommand::List { json } => list(&plugins.list()?, json),
            PluginSubcommand::Enable { name } => switch(&plugins, name, true),
            PluginSubcommand::Disable { name } => switch(&plugins, name, false),
            PluginSubcommand::Marketplace { command: Some(command) } => {
                marketplace(&plugins, command, &cwd).await
            }
            PluginSubcommand::Marketplace { command: None } => Ok(()),
        }
    })?;
    Ok(Exit::Done)
}

/// Prints the help of a command that has subcommands and was given none.
fn help(path: &[&str]) -> Result<Exit> {
    let mut command = crate::args::Cli::command();
    // Names of parents are part of the usage only once the tree is built.
    command.build();
    let found = path.iter().try_fold(&mut command, |command, name| command.find_subcommand_mut(name));
    let text = found.map(|command| command.render_help().to_string());
    print_line(text.unwrap_or_default().trim_end())?;
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
            "Enabled \"{}\". It is loaded live from {}, so edits take effect on the next session — nothing was copied.",
            plugin.spec(),
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
        return format!(
            "Plugin \"{}\" is always loaded live from {path}; there is nothing to update.",
            plugin.spec()
        );
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
    match plugins.list()?.len() {
        0 => return print_line("No plugins installed."),
        1 => print_line("Updating 1 installed plugin...")?,
        count => print_line(&format!("Updating {count} installed plugins..."))?,
    }
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
    let version = |plugin: &Installed| {
        plugin.version.as_ref().map(|version| format!(" (v{version})")).unwrap_or_default()
    };
    let (live, copied): (Vec<&Installed>, Vec<&Installed>) =
        installed.iter().partition(|plugin| plugin.is_live());
    if !copied.is_empty() {
        print_line("Installed plugins:")?;
    }
    for plugin in &copied {
        let state = if plugin.enabled { "" } else { " [disabled]" };
        print_line(&format!("  • {}{}{state}", plugin.spec(), version(plugin)))?;
    }
    if !live.is_empty() {
        let gap = if copied.is_empty() { "" } else { "\n" };
        print_line(&format!("{gap}Live Plugins (loaded from a local marketplace directory, never copied):"))?;
    }
    for plugin in live {
        let state = if plugin.enabled { "enabled" } else { "disabled" };
        print_line(&format!("  • {}{} ({state})", plugin.spec(), version(plugin)))?;
        print_line(&format!("      from {}", plugin.path.display()))?;
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
        true => {
            let done = done.to_lowercase();
            remark(&format!(
                "Warning: no plugin named \"{name}\" is currently configured, so no active plugin was {done}. Run `hangar \
                 plugin list` to see configured plugins."
            ));
            Ok(())
        }
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
        MarketplaceSubcommand::List { json } => list_marketplaces(&plugins.marketplaces()?, json),
        MarketplaceSubcommand::Browse { name, json } => browse(plugins, &name, json).await,
        MarketplaceSubcommand::Update { name } => {
            match &name {
                Some(name) => print_line(&format!("Updating marketplace \"{name}\"..."))?,
                None => print_line("Updating all marketplaces...")?,
            }
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

fn list_marketplaces(known: &[Listed], json: bool) -> Result<()> {
    if json {
        let told = known.iter().map(|known| {
            json!({ "name": known.name, "source": known.source.describe(), "isDefault": known.is_default })
        });
        return print_line(&serde_json::to_string_pretty(&told.collect::<Vec<_>>())?);
    }
    let lines = |is_default: bool, mark: &'static str| {
        let listed = known.iter().filter(move |known| known.is_default == is_default);
        listed.map(move |known| format!("  {mark} {} ({})", known.name, known.source.describe()))
    };
    print_line("Included by default:")?;
    lines(true, "◆").try_for_each(|line| print_line(&line))?;
    let mut added = lines(false, "•").peekable();
    if added.peek().is_some() {
        print_line("\nRegistered marketplaces:")?;
    }
    added.try_for_each(|line| print_line(&line))
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
