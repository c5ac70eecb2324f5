//! The GitHub logins that clients hand over for keeping: `accounts.json` in the home folder, for its owner's eyes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::document::JsonDocument;

/// Logins that are kept. More than a person has.
const MAX_ACCOUNTS: usize = 32;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub host: String,
    pub login: String,
    pub token: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("host", &self.host)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

/// All of them, the one in use last.
pub struct Accounts(PathBuf);

impl Accounts {
    pub fn of(home: &Path) -> Self {
        Self(home.join("accounts.json"))
    }

    pub fn all(&self) -> Vec<Account> {
        let document = JsonDocument::open(self.0.clone());
        serde_json::from_value(document.value["accounts"].clone()).unwrap_or_default()
    }

    /// The login in use.
    pub fn current(&self) -> Option<Account> {
        self.all().pop()
    }

    /// Adds a login, which is the one in use from here on.
    pub(crate) fn add(&self, account: Account) -> std::io::Result<()> {
        let mut all = self.all();
        all.retain(|known| (&known.host, &known.login) != (&account.host, &account.login));
        all.push(account);
        let surplus = all.len().saturating_sub(MAX_ACCOUNTS);
        all.drain(..surplus);
        self.write(&all)
    }

    /// Forgets a login. Returns how many are left.
    pub(crate) fn remove(&self, host: &str, login: &str) -> std::io::Result<usize> {
        let mut all = self.all();
        all.retain(|known| (known.host.as_str(), known.login.as_str()) != (host, login));
        self.write(&all)?;
        Ok(all.len())
    }

    fn write(&self, all: &[Account]) -> std::io::Result<()> {
        let mut document = JsonDocument::open(self.0.clone());
        document.value["accounts"] = json!(all);
        document.save()
    }
}
