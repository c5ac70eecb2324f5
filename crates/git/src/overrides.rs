//! `-c` settings that override those of the repository, so that no program it names is run.

/// Settings for every repository. An empty helper clears the list of helpers before it.
const FIXED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "sequence.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Settings that a clone lacks: it needs a transport and the user's own way to log in. There is no repository yet that could
/// have named a program.
const NOT_FOR_CLONES: &[&str] = &["core.sshCommand=", "credential.helper=", "protocol.allow="];

/// Settings of a clone.
pub(crate) fn of_clone() -> Vec<String> {
    let kept = |setting: &&&str| !NOT_FOR_CLONES.iter().any(|name| setting.starts_with(name));
    FIXED.iter().filter(kept).map(|setting| (*setting).to_owned()).collect()
}

/// Most drivers that are disabled one by one. A repository with more is refused.
const MAX_DRIVERS: usize = 500;

/// Filters that may run when files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filters {
    /// None: for inspecting a repository.
    Off,
    /// Filters of the user or system configuration, such as Git LFS: for checkouts that are worked in.
    User,
}

/// Reason why a configuration cannot be made safe.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    #[error("its configuration has more than {MAX_DRIVERS} drivers")]
    Many,
    #[error("its configuration has a driver called `{0}`, which cannot be disabled")]
    Name(String),
}

/// One setting and its scope.
struct Setting<'a> {
    of_user: bool,
    section: &'a str,
    /// The name between section and variable, as it is written.
    driver: &'a str,
    variable: String,
    value: &'a str,
}

/// Computes the settings for `-c` from the output of `git config --list -z --show-scope`.
pub(crate) fn overrides(listing: &str, filters: Filters) -> Result<Vec<String>, Unsafe> {
    let mut settings: Vec<String> = FIXED.iter().map(|setting| (*setting).to_owned()).collect();
    if filters == Filters::Off {
        settings.push("core.attributesFile=/dev/null".to_owned());
    }
    let found = parse(listing);
    let mut drivers: Vec<(&str, &str)> = found.iter().map(|found| (found.section, found.driver)).collect();
    drivers.sort_unstable();
    drivers.dedup();
    if drivers.len() > MAX_DRIVERS {
        return Err(Unsafe::Many);
    }
    for (section, driver) in drivers {
        // `-c` takes everything up to the first of these for the name.
        if driver.contains('=') {
            return Err(Unsafe::Name(driver.to_owned()));
        }
        let of_user = |variable: &str| {
            let mut same = found.iter().filter(|found| {
                found.of_user
                    && (found.section, found.driver) == (section, driver)
                    && found.variable == variable
            });
            same.next_back().map(|found| found.value)
        };
        let mut set = |variable: &str, value: &str| {
            settings.push(format!("{section}.{driver}.{variable}={value}"));
        };
        match section {
            "filter" => {
                let kept = |variable: &str| of_user(variable).filter(|_| filters == Filters::User);
                for variable in ["clean", "smudge", "process"] {
                    let given = found.iter().any(|found| {
                        (found.section, found.driver) == (section, driver) && found.variable == variable
                    });
                    // A filter with a process uses nothing else, not even if that is empty: none is made up.
                    if given || variable != "process" {
                        set(variable, kept(variable).unwrap_or_default());
                    }
                }
                set("required", kept("required").unwrap_or("false"));
            }
            "hook" => set("enabled", "false"),
            _ => {}
        }
    }
    Ok(settings)
}

fn parse(listing: &str) -> Vec<Setting<'_>> {
    let mut fields = listing.split('\0');
    let mut found = Vec::new();
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        // A setting without `=` has no value, and means yes.
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        let Some((section, rest)) = name.split_once('.') else { continue };
        let Some((driver, variable)) = rest.rsplit_once('.') else { continue };
        if matches!(section, "filter" | "hook") {
            let of_user = matches!(scope, "system" | "global");
            found.push(Setting { of_user, section, driver, variable: variable.to_lowercase(), value });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the driver overrides for a list of `scope name=value`.
    #[track_caller]
    fn check(filters: Filters, settings: &[&str], expected: &[&str]) {
        let listing: String = settings
            .iter()
            .map(|setting| {
                let (scope, rest) = setting.split_once(' ').unwrap();
                let (name, value) = rest.rsplit_once('=').unwrap();
                format!("{scope}\0{name}\n{value}\0")
            })
            .collect();
        let found = overrides(&listing, filters).unwrap();
        let drivers = found.iter().filter(|setting| setting.starts_with("filter."));
        assert_eq!(drivers.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn filters_of_a_repository_are_switched_off() {
        let off = ["filter.x y.clean=", "filter.x y.smudge=", "filter.x y.required=false"];
        let process = ["filter.p.clean=", "filter.p.smudge=", "filter.p.process=", "filter.p.required=false"];
        for filters in [Filters::Off, Filters::User] {
            check(filters, &["local filter.x y.clean=evil", "local filter.x y.required=true"], &off);
            check(filters, &["worktree filter.p.process=evil"], &process);
        }
        check(Filters::Off, &["global filter.x y.clean=mine"], &off);
    }

    #[test]
    fn filters_of_the_user_stay_as_the_user_has_them() {
        check(
            Filters::User,
            &[
                "global filter.lfs.clean=lfs clean",
                "global filter.lfs.process=lfs process",
                "local filter.lfs.clean=evil",
                "local filter.lfs.process=evil",
            ],
            &[
                "filter.lfs.clean=lfs clean",
                "filter.lfs.smudge=",
                "filter.lfs.process=lfs process",
                "filter.lfs.required=false",
            ],
        );
        check(
            Filters::User,
            &["system filter.f.clean=mine", "local filter.f.process=evil"],
            &["filter.f.clean=mine", "filter.f.smudge=", "filter.f.process=", "filter.f.required=false"],
        );
    }

    #[test]
    fn what_cannot_be_switched_off_is_refused() {
        let listing = "local\0filter.a=b.clean\nevil\0";
        assert_eq!(overrides(listing, Filters::Off), Err(Unsafe::Name("a=b".to_owned())));
        let many: String = (0..=MAX_DRIVERS).map(|n| format!("local\0filter.{n}.clean\nx\0")).collect();
        assert_eq!(overrides(&many, Filters::Off), Err(Unsafe::Many));
    }
}
