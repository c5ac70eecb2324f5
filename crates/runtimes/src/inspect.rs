//! A look at an installed program: its version, and a mark of what its help says.

use std::process::{Output, Stdio};
use std::time::Duration;

use hangar_process::{Group, MARK, command_in_own_session};

use crate::cli_runtime::Located;
use crate::surroundings::Surroundings;

/// How long a program may take to answer. Some need seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn version(located: &Located, surroundings: &Surroundings) -> Result<String, String> {
    let output = ask(located, &["--version"], surroundings).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("failed: {why}"));
    }
    // A number with dots, wherever it stands in the line.
    let number = first
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    Ok(number.unwrap_or(first).trim_end_matches('.').to_owned())
}

/// Changes when the help does. A program without help has none.
pub(crate) async fn help_hash(
    located: &Located,
    args: &[&str],
    surroundings: &Surroundings,
) -> Option<String> {
    let output = ask(located, args, surroundings).await.ok()?;
    // Some print their help on stderr.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (!text.is_empty()).then(|| format!("{:016x}", fnv1a(&text)))
}

/// Good enough to notice a change; nobody is kept from anything by it.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

async fn ask(located: &Located, args: &[&str], surroundings: &Surroundings) -> Result<Output, String> {
    let mark = format!("{}.", uuid::Uuid::new_v4());
    let mut command = command_in_own_session(&located.program);
    command.args(&located.leading).args(args).env_clear().envs(&surroundings.vars).env(MARK, &mark);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let unable = |error: std::io::Error| format!("could not be run: {error}");
    let child = command.spawn().map_err(unable)?;
    // Dropped at the end, with whatever the program left behind.
    let _group = Group::guarded(&child, mark);
    match tokio::time::timeout(PATIENCE, child.wait_with_output()).await {
        Ok(output) => output.map_err(unable),
        Err(_) => Err(format!("said nothing for {} s", PATIENCE.as_secs())),
    }
}
