//! The credential of a provider for one call. It may come from a command.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hangar_agent::model::{ModelError, ModelErrorKind};
use hangar_agent::request_proxy::TokenSource;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::config::Auth;
use crate::secret::Secret;

const COMMAND_TIME: Duration = Duration::from_secs(10);
/// Limit of a key command's output; keys are far shorter.
const COMMAND_OUTPUT: u64 = 64 * 1024;
/// Time for which a printed key is reused. A key that the provider refuses is dropped at once.
const FRESH_FOR: Duration = Duration::from_secs(300);

/// Credential of a call, and the header that it is sent in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Credential {
    None,
    /// The header that the kind of provider expects.
    Key(Secret),
    Bearer(Secret),
}

pub(crate) struct Credentials {
    /// The provider's name.
    provider: String,
    auth: Auth,
    /// Asked before every call, in place of what is configured.
    tokens: Option<Arc<dyn TokenSource>>,
    printed: Mutex<Option<(Secret, Instant)>>,
}

impl Credentials {
    pub(crate) fn new(provider: &str, auth: Auth, tokens: Option<Arc<dyn TokenSource>>) -> Self {
        Self { provider: provider.to_owned(), auth, tokens, printed: Mutex::new(None) }
    }

    /// Whether it comes from a command, and so overrides custom headers of the same name.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.auth, Auth::Command(_))
    }

    pub(crate) async fn current(&self) -> Result<Credential, ModelError> {
        if let Some(tokens) = &self.tokens {
            let token = tokens.token(&self.provider).await.map_err(|message| {
                let message = format!("no token for the model provider: {message}");
                ModelError::new(ModelErrorKind::Configuration, message)
            })?;
            return Ok(Credential::Bearer(Secret::new(token)));
        }
        let command = match &self.auth {
            Auth::None => return Ok(Credential::None),
            Auth::ApiKey(key) => return Ok(Credential::Key(key.clone())),
            Auth::Bearer(token) => return Ok(Credential::Bearer(token.clone())),
            Auth::Command(command) => command,
        };
        // Held while the command runs, so that calls at the same time run it once.
        let mut printed = self.printed.lock().await;
        if let Some((key, since)) = &*printed
            && since.elapsed() < FRESH_FOR
        {
            return Ok(Credential::Key(key.clone()));
        }
        let key = run(command).await.map_err(CommandError::into_model_error)?;
        *printed = Some((key.clone(), Instant::now()));
        Ok(Credential::Key(key))
    }

    /// The provider refused the credential: the next call runs the command again.
    pub(crate) async fn refused(&self) {
        *self.printed.lock().await = None;
    }
}

#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("the API key command could not be run: {0}")]
    Run(#[from] std::io::Error),
    #[error("the API key command did not end within {} s", COMMAND_TIME.as_secs())]
    Time,
    #[error("the API key command failed: {0}")]
    Failed(ExitStatus),
    #[error("the API key command printed no key")]
    Empty,
    #[error("the API key command printed something that is not a key")]
    NotAKey,
}

impl CommandError {
    fn into_model_error(self) -> ModelError {
        ModelError::new(ModelErrorKind::Configuration, self.to_string())
    }
}

async fn run(command: &str) -> Result<Secret, CommandError> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    shell.process_group(0);
    let mut group = ShellGroup(shell.spawn()?);
    let work = async {
        let mut output = Vec::new();
        if let Some(stdout) = group.0.stdout.take() {
            stdout.take(COMMAND_OUTPUT).read_to_end(&mut output).await?;
        }
        Ok::<_, std::io::Error>((group.0.wait().await?, output))
    };
    let (status, output) =
        tokio::time::timeout(COMMAND_TIME, work).await.map_err(|_| CommandError::Time)??;
    if !status.success() {
        return Err(CommandError::Failed(status));
    }
    let key = str::from_utf8(&output).map_err(|_| CommandError::NotAKey)?.trim();
    match key {
        "" => Err(CommandError::Empty),
        _ if reqwest::header::HeaderValue::from_str(key).is_err() => Err(CommandError::NotAKey),
        _ => Ok(Secret::new(key)),
    }
}

/// A shell and its children. Dropping it kills all of them.
struct ShellGroup(Child);

impl Drop for ShellGroup {
    fn drop(&mut self) {
        // The id is gone once the shell was waited for; after that its group cannot be identified safely.
        #[cfg(unix)]
        if let Some(pid) = self.0.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // A group that has already ended is not a failure.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(command: &str, expected: Result<&str, &str>) {
        let current = Credentials::new("test", Auth::Command(command.into()), None).current().await;
        let current = current.map_err(|error| error.message);
        match expected {
            Ok(key) => assert_eq!(current, Ok(Credential::Key(Secret::new(key)))),
            Err(message) => assert_eq!(current, Err(message.to_owned())),
        }
    }

    #[tokio::test]
    async fn a_command_prints_the_key() {
        check("echo '  sk-1234  '", Ok("sk-1234")).await;
    }

    #[tokio::test]
    async fn a_command_that_fails_or_prints_nothing_is_an_error() {
        check("echo key; exit 3", Err("the API key command failed: exit status: 3")).await;
        check("true", Err("the API key command printed no key")).await;
        check("printf 'a\\nb'", Err("the API key command printed something that is not a key")).await;
    }

    #[tokio::test]
    async fn the_key_is_used_again_until_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("runs");
        let command = format!("echo x >> '{0}'; wc -l < '{0}'", file.display());
        let credentials = Credentials::new("test", Auth::Command(command), None);
        let key = |text: &str| Credential::Key(Secret::new(text));
        assert_eq!(credentials.current().await.unwrap(), key("1"));
        assert_eq!(credentials.current().await.unwrap(), key("1"));
        credentials.refused().await;
        assert_eq!(credentials.current().await.unwrap(), key("2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_hangs_is_ended() {
        // The paused clock jumps to the limit once only the command is left to wait for.
        check("sleep 1000 & sleep 1000", Err("the API key command did not end within 10 s")).await;
    }
}
