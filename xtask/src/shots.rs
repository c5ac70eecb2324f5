//! `cargo xtask shots`: pictures of the terminal for the documentation, made from the real program in tmux.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{root, shell};

const COLUMNS: usize = 92;
const ROWS: usize = 30;
/// Time in which a screen has to show what it is photographed for.
const PATIENCE: Duration = Duration::from_secs(30);
const CELL: (f64, f64) = (8.4, 18.0);
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d6d9e0";
/// The 16 colours of the picture's terminal.
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d6d9e0", "#7f848e",
    "#ff7b86", "#b5e890", "#f0d399", "#7fc1ff", "#d99bea", "#7fd4de", "#ffffff",
];

/// A picture: what the model says, what is typed, and the text that shows that the screen is complete.
struct Shot {
    name: &'static str,
    script: &'static str,
    typed: &'static [&'static str],
    shows: &'static str,
}

const ANSWER: &str = r#"TOOL:bash:{"command":"grep -rn 'fn key' . | head -3","description":"Find the cache key"}
SAY:## Found it\n\nThe cache key lacks the **tenant**, so two tenants share an entry:\n\n```rust\nfn key(user: &User) -> String {\n    // the tenant is missing here\n    format!("user:{}", user.id)\n}\n```\n\n| case | before | after |\n|---|---|---|\n| same id, two tenants | shared | apart |\n| one tenant | hit | hit |\n
"#;
const CHANGE: &str = r#"TOOL:edit:{"path":"cache.rs","old_str":"    format!(\"user:{}\", user.id)","new_str":"    format!(\"user:{}:{}\", user.tenant, user.id)"}
SAY:The key has the tenant now.
"#;
const TESTS: &str = r#"TOOL:bash:{"command":"cargo test --workspace 2>&1 | tee test.log","description":"Run the tests and keep their output"}
"#;

/// File of the project.
const CACHE: &str = "fn key(user: &User) -> String {\n    // the tenant is missing here\n    format!(\"user:{}\", user.id)\n}\n";

const SHOTS: &[Shot] = &[
    Shot {
        name: "answer",
        script: ANSWER,
        typed: &["why do two tenants see each other's users?", "Enter"],
        shows: "one tenant",
    },
    Shot { name: "change", script: CHANGE, typed: &["fix the key", "Enter"], shows: "user.tenant, user.id" },
    Shot { name: "permission", script: TESTS, typed: &["run the tests", "Enter"], shows: "do not ask again" },
    Shot { name: "commands", script: "", typed: &["/re"], shows: "reset-allowed-tools" },
    Shot { name: "help", script: "", typed: &["/help", "Enter"], shows: "send the prompt" },
];

pub(crate) fn run() -> Result<()> {
    shell::run(shell::program("cargo").args(["build", "--locked", "--package", "hangar-cli"]))?;
    let program = root().join("target/debug/hangar");
    let folder = root().join("docs/pictures");
    std::fs::create_dir_all(&folder)?;
    for shot in SHOTS {
        let screen = take(shot, &program).with_context(|| format!("the picture `{}`", shot.name))?;
        let path = folder.join(format!("terminal-{}.svg", shot.name));
        std::fs::write(&path, svg(&screen)).with_context(|| format!("writing {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Server of tmux that ends with the picture.
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
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // One that is gone already needs no end.
        let _ = self.say(&["kill-server"]);
    }
}

/// Runs the program on the scripted model, types, and returns the screen with its colours.
fn take(shot: &Shot, program: &Path) -> Result<String> {
    let stage = root().join("target/shots");
    let _ = std::fs::remove_dir_all(&stage);
    let project = stage.join("shop");
    std::fs::create_dir_all(&project)?;
    // The branch on the picture is not the one that it is made on.
    shell::run(shell::program("git").args(["init", "--quiet", "--initial-branch", "main"]).arg(&project))?;
    let tmux = Tmux { socket: stage.join("tmux") };
    let home = stage.join("home");
    let script = stage.join("script");
    let text = if shot.script.is_empty() { "SAY:hello\n" } else { shot.script };
    std::fs::write(&script, text)?;
    std::fs::write(project.join("cache.rs"), CACHE)?;
    let start = format!(
        "env HANGAR_SCRIPT={script} HANGAR_HOME={home} COPILOT_HOME={home} HOME={stage} {program} --model scripted --trust-folder --allow-tool=write",
        script = script.display(),
        home = home.display(),
        stage = stage.display(),
        program = program.display()
    );
    let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
    let place = project.display().to_string();
    tmux.say(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, "-c", &place, &start])?;
    until(&tmux, "scripted")?;
    for typed in shot.typed {
        match *typed {
            key @ "Enter" => tmux.say(&["send-keys", key])?,
            text => tmux.say(&["send-keys", "-l", text])?,
        };
    }
    until(&tmux, shot.shows)?;
    // What comes after it is drawn within the same moment.
    std::thread::sleep(Duration::from_millis(600));
    tmux.say(&["capture-pane", "-e", "-p"])
}

fn until(tmux: &Tmux, text: &str) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if tmux.say(&["capture-pane", "-p"])?.contains(text) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("the screen never showed `{text}`:\n{}", tmux.say(&["capture-pane", "-p"])?)
}

/// Look of a piece of text.
#[derive(Clone, Default, PartialEq)]
struct Look {
    color: Option<String>,
    background: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// A screen as tmux prints it, as a picture.
fn svg(screen: &str) -> String {
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    let (width, height) = (COLUMNS as f64 * CELL.0 + 24.0, lines.len() as f64 * CELL.1 + 24.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    // A look lasts until it is changed, also beyond the end of a line.
    let mut look = Look::default();
    for (row, line) in lines.iter().enumerate() {
        let y = row as f64 * CELL.1 + 26.0;
        let mut column = 0;
        for (look, text) in pieces(line, &mut look) {
            let count = text.chars().count();
            let x = column as f64 * CELL.0 + 12.0;
            column += count;
            draw(&mut out, &look, &text, (x, y), count);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, look: &Look, text: &str, (x, y): (f64, f64), count: usize) {
    let plain =
        |color: &Option<String>, otherwise: &str| color.clone().unwrap_or_else(|| otherwise.to_owned());
    let (mut color, mut background) = (plain(&look.color, FOREGROUND), look.background.clone());
    if look.reverse {
        (color, background) = (plain(&look.background, BACKGROUND), Some(plain(&look.color, FOREGROUND)));
    }
    if let Some(background) = background {
        let (wide, top) = (count as f64 * CELL.0, y - 14.0);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{}\" fill=\"{background}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    for (is_on, css) in [
        (look.bold, " font-weight=\"bold\""),
        (look.italic, " font-style=\"italic\""),
        (look.underline, " text-decoration=\"underline\""),
        (look.dim, " opacity=\"0.6\""),
    ] {
        if is_on {
            style.push_str(css);
        }
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{color}\"{style} xml:space=\"preserve\">{text}</text>"
    );
}

/// Pieces of a line by their look, beginning with that of the end of the line before.
fn pieces(line: &str, look: &mut Look) -> Vec<(Look, String)> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\x1b' {
            text.push(char);
            continue;
        }
        if chars.next_if_eq(&'[').is_none() {
            continue;
        }
        let mut codes = String::new();
        for char in chars.by_ref() {
            if char.is_ascii_alphabetic() {
                break;
            }
            codes.push(char);
        }
        if !text.is_empty() {
            pieces.push((look.clone(), std::mem::take(&mut text)));
        }
        look.apply(&codes);
    }
    if !text.is_empty() {
        pieces.push((look.clone(), text));
    }
    pieces
}

impl Look {
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.reverse = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.reverse = false,
                30..=37 => self.color = Some(PALETTE[usize::from(code) - 30].to_owned()),
                90..=97 => self.color = Some(PALETTE[usize::from(code) - 82].to_owned()),
                40..=47 => self.background = Some(PALETTE[usize::from(code) - 40].to_owned()),
                100..=107 => self.background = Some(PALETTE[usize::from(code) - 92].to_owned()),
                39 => self.color = None,
                49 => self.background = None,
                38 | 48 => {
                    let color = extended(&mut codes);
                    if code == 38 { self.color = color } else { self.background = color }
                }
                _ => {}
            }
        }
    }
}

/// Colour of 256 or of 16 million.
fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<String> {
    match codes.next()? {
        2 => {
            let (red, green, blue) = (codes.next()?, codes.next()?, codes.next()?);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        5 => match codes.next()? {
            basic @ 0..16 => Some(PALETTE[usize::from(basic)].to_owned()),
            cube @ 16..232 => {
                let level = |step: u16| if step == 0 { 0 } else { 55 + step * 40 };
                let cube = cube - 16;
                Some(format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6)))
            }
            grey => {
                let level = 8 + (grey - 232) * 10;
                Some(format!("#{level:02x}{level:02x}{level:02x}"))
            }
        },
        _ => None,
    }
}
