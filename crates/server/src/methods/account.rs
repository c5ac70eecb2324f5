//! Account of the user: stored logins, remaining quota, settings, and secret values.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, Failure, Method, Reply};
use crate::accounts::{Account, Accounts};
use crate::user_settings::UserSettings;

pub(super) const METHODS: &[Method] = &[
    Method { name: "account.getQuota", run: |call| Box::pin(quota(call)) },
    Method { name: "account.getCurrentAuth", run: |call| Box::pin(current(call)) },
    // Those of a vault, with their tokens, as the protocol has it. There is none here, and a token that is kept in a
    // file is not handed out.
    Method { name: "account.getAllUsers", run: |_| Box::pin(async { Reply::of(json!([])) }) },
    Method { name: "account.login", run: |call| Box::pin(login(call)) },
    Method { name: "account.logout", run: |call| Box::pin(logout(call)) },
    Method { name: "user.settings.get", run: |call| Box::pin(settings(call)) },
    Method { name: "user.settings.set", run: |call| Box::pin(set_settings(call)) },
    // Settings are read when they are needed, so there is nothing to read again.
    Method { name: "user.settings.reload", run: |_| Box::pin(async { Reply::null() }) },
    Method { name: "secrets.addFilterValues", run: |call| Box::pin(add_secrets(call)) },
];

async fn quota(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Params {
        git_hub_token: Option<String>,
    }
    let params: Params = call.params()?;
    let snapshots = call.hub.config().account.quota(params.git_hub_token).await?;
    Reply::of(json!({ "quotaSnapshots": snapshots }))
}

fn described(account: &Account) -> Value {
    json!({ "type": "user", "host": account.host, "login": account.login })
}

async fn current(call: Call) -> Result<Reply, Failure> {
    if let Some(account) = Accounts::of(&call.hub.home()).current() {
        return Reply::of(json!({ "authInfo": described(&account) }));
    }
    Reply::of(match call.hub.config().account.given_token() {
        Some(token) => {
            json!({ "authInfo": { "type": "token", "host": "https://github.com", "token": token } })
        }
        None => json!({}),
    })
}

async fn login(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        host: String,
        login: Option<String>,
        token: String,
    }
    let Params { host, login, token } = call.params()?;
    // A token that is not good is better refused now than with the first message.
    let status = call.hub.config().account.auth(Some(token.clone())).await?;
    let login = login.or(status.login).unwrap_or_default();
    Accounts::of(&call.hub.home())
        .add(Account { host, login, token })
        .map_err(|error| Failure::new(format!("the login cannot be kept: {error}")))?;
    // Kept in a file of the home folder, for its owner alone.
    Reply::of(json!({ "storedInVault": false }))
}

async fn logout(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Params {
        auth_info: Option<AccountRef>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct AccountRef {
        host: String,
        login: String,
    }
    let params: Params = call.params()?;
    let accounts = Accounts::of(&call.hub.home());
    let who = match (params.auth_info, accounts.current()) {
        (Some(who), _) => who,
        (None, Some(current)) => AccountRef { host: current.host, login: current.login },
        (None, None) => return Reply::of(json!({ "hasMoreUsers": false })),
    };
    let left = accounts
        .remove(&who.host, &who.login)
        .map_err(|error| Failure::new(format!("the login cannot be forgotten: {error}")))?;
    Reply::of(json!({ "hasMoreUsers": left > 0 }))
}

async fn settings(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "settings": UserSettings::of(&call.hub.home()).all() }))
}

async fn set_settings(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        settings: Map<String, Value>,
    }
    let params: Params = call.params()?;
    UserSettings::of(&call.hub.home()).change(params.settings).map_err(Failure::new)?;
    // No other source overrides user settings.
    Reply::of(json!({ "shadowedKeys": [] }))
}

async fn add_secrets(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        values: Vec<String>,
    }
    let params: Params = call.params()?;
    call.hub.config().opener.hide(params.values)?;
    Reply::of(json!({ "ok": true }))
}
