//! A view in tmux that is made wider and narrower while an answer streams: rows that are lost, rows that are there twice, and lines of
//! the shell above that are kept. Views on the alternate screen leave no rows and are not counted.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::views::View;
use super::{KEY, PATIENCE, QUIET};

const TOKENS: usize = 600;
const SHELL_LINES: usize = 80;
/// Sizes that the window goes through.
const SIZES: [(u16, u16); 5] = [(70, 30), (140, 50), (50, 20), (110, 35), (120, 40)];
const GAP: Duration = Duration::from_millis(700);

/// Tokens that are missing, tokens that are there more than once, and lines of the shell that are left.
pub(super) struct Outcome {
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) shell_lines: usize,
}

/// Server of tmux that ends with the measurement.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn say(&self, args: &[&str]) -> Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .output()
            .context("tmux is not there")?;
        if !output.status.success() {
            bail!("tmux {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Everything that was printed, with the rows above the screen.
    fn text(&self) -> Result<String> {
        self.say(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    fn wait_for(&self, text: &str) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.text()?.contains(text) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("{text:?} was not shown within {} s:\n{}", PATIENCE.as_secs(), self.text()?)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.say(&["kill-server"]);
    }
}

/// Resizes a view while it answers. `None` if it is on the alternate screen.
pub(super) fn run(view: &View) -> Result<Option<Outcome>> {
    let directory = std::env::temp_dir().join(format!("terminal-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let tmux = Tmux { socket: directory.join("socket") };
    let job = view.job();
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut line = format!(
        "stty -echo; i=0; while [ $i -lt {SHELL_LINES} ]; do echo \"shell line $i\"; i=$((i+1)); done; exec env -i TERM=tmux-256color"
    );
    let variables = job.env.iter().map(|(name, value)| format!("{name}={value}"));
    let words = variables.chain([job.program.display().to_string()]).chain(job.args.iter().cloned());
    for word in words {
        line.push(' ');
        line.push_str(&quoted(&word));
    }
    let project = job.directory.display().to_string();
    let settings = directory.join("tmux.conf");
    std::fs::write(&settings, "set -g history-limit 50000\n")?;
    let settings = settings.display().to_string();
    tmux.say(&["-f", &settings, "new-session", "-d", "-x", "120", "-y", "40", "-c", &project, &line])?;
    // Before the shell has printed its lines it may echo keys itself, onto one of them.
    tmux.wait_for(&format!("shell line {}", SHELL_LINES - 1))?;
    // Keys that come too early are lost in some.
    let began = Instant::now();
    while !tmux.text()?.contains(KEY) {
        if began.elapsed() > PATIENCE {
            bail!("no key was shown within {} s:\n{}", PATIENCE.as_secs(), tmux.text()?);
        }
        tmux.say(&["send-keys", "-l", KEY])?;
        std::thread::sleep(Duration::from_millis(300));
    }
    if tmux.say(&["display-message", "-p", "#{alternate_on}"])?.trim() == "1" {
        return Ok(None);
    }
    std::thread::sleep(QUIET);
    for _ in 0..40 {
        tmux.say(&["send-keys", "BSpace"])?;
    }
    tmux.say(&["send-keys", "-l", &format!("STREAM:{TOKENS}:8")])?;
    std::thread::sleep(Duration::from_millis(300));
    tmux.say(&["send-keys", "Enter"])?;
    tmux.wait_for("tok5 ")?;
    for (columns, rows) in SIZES {
        tmux.say(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()])?;
        std::thread::sleep(GAP);
    }
    tmux.wait_for(&format!("tok{}", TOKENS - 1))?;
    std::thread::sleep(QUIET);
    Ok(Some(count(&tmux.text()?)))
}

fn count(text: &str) -> Outcome {
    let mut seen = vec![0_usize; TOKENS];
    for word in text.split(|char: char| !char.is_ascii_alphanumeric()) {
        let number = word.strip_prefix("tok").and_then(|number| number.parse::<usize>().ok());
        if let Some(count) = number.and_then(|number| seen.get_mut(number)) {
            *count += 1;
        }
    }
    let has = |number: &usize| text.lines().any(|line| line.trim_end() == format!("shell line {number}"));
    Outcome {
        lost: seen.iter().filter(|count| **count == 0).count(),
        doubled: seen.iter().filter(|count| **count > 1).count(),
        shell_lines: (0..SHELL_LINES).filter(has).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_shell_lines_are_counted() {
        let text: String = (0..TOKENS).filter(|at| *at != 7).map(|at| format!("tok{at} ")).collect();
        let Outcome { lost, doubled, shell_lines } = count(&format!("shell line 3  \n{text}\ntok1 tok2\n"));
        assert_eq!((lost, doubled, shell_lines), (1, 2, 1));
    }
}
