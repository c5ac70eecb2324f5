//! Surface of the view: a screen that is drawn, or plain lines where nothing can be redrawn.

use std::io::Write as _;

use anyhow::{Context, Result};
use hangar_terminal::input::Input;
use hangar_terminal::screen::{Frame, Screen};
use hangar_terminal::state::State;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::input::Input as Typed;
use super::tty::{Tty, Unfit};

/// Width of plain lines where the terminal does not tell one.
const LINE_SIZE: (usize, usize) = (80, 24);

pub(super) enum Surface {
    Screen(Box<ScreenSurface>),
    Lines(Box<LineSurface>),
}

/// A terminal whose screen is drawn.
pub(super) struct ScreenSurface {
    tty: Tty,
    screen: Screen,
}

/// A terminal that only prints: dumb ones, and those that are read aloud.
pub(super) struct LineSurface {
    lines: Lines<BufReader<Stdin>>,
    /// The dialog that was printed last.
    printed: Option<u64>,
    /// The picker that was printed last, as it was.
    listed: Option<Vec<String>>,
    /// Whether the mark of the prompt stands at the end of what was printed.
    prompted: bool,
    echo: Echo,
}

/// Echo of the terminal, which is off while a secret is typed.
#[derive(Default)]
struct Echo {
    /// Settings of the terminal before.
    before: Option<Termios>,
}

impl Echo {
    fn hide(&mut self) {
        if self.before.is_some() {
            return;
        }
        // Input that is not a terminal is not echoed.
        let Ok(before) = tcgetattr(std::io::stdin()) else { return };
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        if tcsetattr(std::io::stdin(), OptionalActions::Now, &hidden).is_ok() {
            self.before = Some(before);
        }
    }

    fn show(&mut self) {
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs no echo.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.show();
    }
}

/// Result of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    Done,
    /// The terminal has another size; it is drawn once that is quiet.
    Resized(usize, usize),
}

impl Surface {
    /// Takes the terminal. `plain` asks for lines in any case.
    pub(super) fn open(plain: bool) -> Result<Self> {
        if plain {
            return Ok(Self::lines());
        }
        match Tty::open().context("cannot use the terminal")? {
            Ok(mut tty) => {
                tty.acquire().context("cannot use the terminal")?;
                let (columns, rows) = tty.size();
                let screen = Screen::new(columns, rows, tty.abilities().caps);
                Ok(Self::Screen(Box::new(ScreenSurface { tty, screen })))
            }
            Err(Unfit::Dumb) => Ok(Self::lines()),
            Err(unfit) => anyhow::bail!("{unfit}; give a prompt with -p, or use a terminal"),
        }
    }

    fn lines() -> Self {
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Self::Lines(Box::new(LineSurface {
            lines,
            printed: None,
            listed: None,
            prompted: false,
            echo: Echo::default(),
        }))
    }

    /// Whether it only prints.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Lines(_))
    }

    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Self::Screen(surface) => surface.tty.size(),
            Self::Lines(_) => match rustix::termios::tcgetwinsize(std::io::stdout()) {
                Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
                Ok(_) | Err(_) => LINE_SIZE,
            },
        }
    }

    /// The next input of the person; `None` if the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Input> {
        match self {
            Self::Screen(surface) => surface.tty.next().await.map(Input::from),
            Self::Lines(surface) => {
                let line = surface.lines.next_line().await.ok()??;
                surface.prompted = false;
                // The list is printed again after the line, even if it has not changed.
                surface.listed = None;
                Some(Input::Line(line))
            }
        }
    }

    /// Shows the state.
    pub(super) fn draw(&mut self, state: &mut State) -> Drawn {
        match self {
            Self::Screen(surface) => {
                let (columns, rows) = surface.tty.size();
                if (columns, rows) != (surface.screen.columns(), surface.screen.rows()) {
                    surface.screen.resize(columns, rows);
                    return Drawn::Resized(columns, rows);
                }
                let bytes = surface.screen.draw(&state.frame());
                surface.write(&bytes);
                // A terminal that is gone ends the loop by its input.
                let _ = surface.tty.watch_focus(state.watches_focus());
                let _ = surface.tty.show_progress(state.watches_focus());
            }
            Self::Lines(surface) => surface.print(state),
        }
        Drawn::Done
    }

    /// Writes bytes for the terminal itself, such as a bell. Plain lines have none.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if let Self::Screen(surface) = self {
            surface.write(bytes);
        }
    }

    pub(super) fn invalidate(&mut self) {
        if let Self::Screen(surface) = self {
            surface.screen.invalidate();
        }
    }

    /// Gives the terminal back for a while.
    pub(super) fn release(&mut self) {
        if let Self::Screen(surface) = self {
            let bytes = surface.screen.suspend();
            surface.write(&bytes);
            surface.tty.release();
        }
    }

    /// Takes the terminal again.
    pub(super) fn retake(&mut self) -> std::io::Result<()> {
        if let Self::Screen(surface) = self {
            surface.tty.acquire()?;
            let (columns, rows) = surface.tty.size();
            surface.screen.resume(columns, rows);
        }
        Ok(())
    }

    /// Stops the process as Ctrl+Z does, and comes back when it is continued.
    pub(super) async fn suspend(&mut self) -> std::io::Result<()> {
        if let Self::Screen(surface) = self {
            let bytes = surface.screen.suspend();
            surface.write(&bytes);
            surface.tty.suspend().await?;
            let (columns, rows) = surface.tty.size();
            surface.screen.resume(columns, rows);
        }
        Ok(())
    }

    /// Shows the last rows and leaves the terminal as it was.
    pub(super) fn leave(&mut self, state: &mut State) {
        state.settle();
        match self {
            Self::Screen(surface) => {
                let last = Frame { tail: Vec::new(), cursor: None, overlay: None, ..state.frame() };
                let mut bytes = surface.screen.draw(&last);
                bytes.extend(surface.screen.leave(false));
                surface.write(&bytes);
                surface.tty.release();
            }
            Self::Lines(surface) => {
                surface.echo.show();
                surface.print(state);
            }
        }
    }
}

impl ScreenSurface {
    fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            // A terminal that is gone ends the loop by its input.
            let _ = self.tty.write(bytes, self.screen.has_overlay());
        }
    }
}

impl LineSurface {
    /// Prints what is new: rows that are final, a question once, and the mark of the prompt when it is the person's turn.
    fn print(&mut self, state: &mut State) {
        match state.is_hidden() {
            true => self.echo.hide(),
            false => self.echo.show(),
        }
        let mut text = String::new();
        for row in state.frame().commit {
            text.push_str(row.text().trim_end());
            text.push('\n');
        }
        let dialog = state.dialog_rows();
        if let Some((number, rows)) = &dialog
            && self.printed != Some(*number)
        {
            self.printed = Some(*number);
            for row in rows {
                text.push_str(row.text().trim_end());
                text.push('\n');
            }
        }
        let picker = state.picker_lines();
        if let Some(lines) = &picker
            && self.listed.as_ref() != Some(lines)
        {
            for line in lines {
                text.push_str(line);
                text.push('\n');
            }
        }
        self.listed.clone_from(&picker);
        let wants_input = dialog.is_some() || picker.is_some() || !state.is_working();
        if !text.is_empty() {
            let end = if self.prompted { "\n" } else { "" };
            text.insert_str(0, end);
            self.prompted = false;
        }
        if wants_input && !self.prompted {
            text.push_str("> ");
            self.prompted = true;
        }
        let mut stdout = std::io::stdout().lock();
        // A reader that is gone ends the loop by its input.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}

impl From<Typed> for Input {
    fn from(typed: Typed) -> Self {
        match typed {
            Typed::Key(key) => Self::Key(key),
            Typed::Paste { text, cut: _ } => Self::Paste(text),
            Typed::Focus { gained } => Self::Focus(gained),
            Typed::Background { red, green, blue } => Self::Background { red, green, blue },
        }
    }
}
