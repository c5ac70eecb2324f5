//! Shell scripts that run to their end or their time limit, with the end of what they wrote.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::group::{ProcessGroup, command_in_own_session, exit_code, unique_mark};

/// Size of the tail of a script's output that is kept.
pub const KEPT_OUTPUT: usize = 8 << 10;
/// Time that output is still read if a background process of the script holds it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Failure of a script.
#[derive(Debug)]
pub enum ScriptFailure {
    /// The shell could not be run.
    Broken(io::Error),
    Exited {
        code: i32,
        output: String,
    },
    /// The time limit ended it, and everything it had started.
    TimedOut {
        output: String,
    },
}

/// Runs a script with `sh` and these variables alone. The result is the end of its output, standard error included.
pub async fn run_script<K: AsRef<OsStr>, V: AsRef<OsStr>>(
    script: &str,
    directory: &Path,
    variables: impl IntoIterator<Item = (K, V)>,
    limit: Duration,
) -> Result<String, ScriptFailure> {
    let mut command = command_in_own_session("sh");
    command.arg("-c").arg(format!("exec 2>&1\n{script}")).current_dir(directory);
    command.env_clear().envs(variables);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let spawned = ProcessGroup::spawn(&mut command, unique_mark("script"));
    let (mut child, mut group) = spawned.map_err(ScriptFailure::Broken)?;
    let mut tail = Vec::new();
    let stdout = child.stdout.take();
    let ended = {
        let read = async {
            if let Some(stdout) = stdout {
                read_tail(stdout, &mut tail).await;
            }
        };
        tokio::pin!(read);
        let wait = async {
            tokio::select! {
                biased;
                () = &mut read => child.wait().await,
                status = child.wait() => {
                    let _ = tokio::time::timeout(OUTPUT_GRACE, &mut read).await;
                    status
                }
            }
        };
        tokio::time::timeout(limit, wait).await
    };
    let output = String::from_utf8_lossy(&tail).trim().to_owned();
    match ended {
        Ok(Ok(status)) => {
            group.leader_ended();
            match exit_code(status) {
                0 => Ok(output),
                code => Err(ScriptFailure::Exited { code, output }),
            }
        }
        Ok(Err(error)) => Err(ScriptFailure::Broken(error)),
        Err(_) => {
            group.kill();
            Err(ScriptFailure::TimedOut { output })
        }
    }
}

/// Reads a stream to its end and keeps its last bytes.
async fn read_tail(mut from: impl AsyncRead + Unpin, tail: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        tail.extend_from_slice(&buffer[..length]);
        let surplus = tail.len().saturating_sub(KEPT_OUTPUT);
        tail.drain(..surplus);
    }
}
