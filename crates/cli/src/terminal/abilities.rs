//! Abilities of the terminal, guessed from the environment before anything is drawn.
//!
//! Nothing is asked: an answer may take as long as the way to the terminal, or never come. Every guess errs to the side that shows
//! no garbage and loses no row.

use hangar_terminal::modes::{Keyboard, Modes};
use hangar_terminal::screen::{ColorDepth, ScreenCaps};

/// Abilities that decide what is written to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) caps: ScreenCaps,
    pub(crate) modes: Modes,
    /// Whether the terminal can be asked for its background colour.
    pub(crate) background: bool,
}

/// Terminals that can be told from the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No cursor movement at all.
    Dumb,
    LinuxConsole,
    GnuScreen,
    /// tmux, and whether it knows synchronized output.
    Tmux {
        sync: bool,
    },
    Zellij,
    /// The program xterm itself.
    Xterm,
    Kitty,
    Ghostty,
    WezTerm,
    Foot,
    Alacritty,
    Iterm,
    VsCode,
    WindowsTerminal,
    AppleTerminal,
    Konsole,
    /// GNOME Terminal and others that are built on VTE.
    Vte,
    Unknown,
}

/// Whether the environment names a terminal that can only print lines.
pub(crate) fn is_dumb(variable: impl Fn(&str) -> Option<String>) -> bool {
    kind(&variable) == Kind::Dumb
}

pub(crate) fn guess(variable: impl Fn(&str) -> Option<String>) -> Abilities {
    let kind = kind(&variable);
    let sync = match kind {
        Kind::Tmux { sync } => sync,
        Kind::Kitty | Kind::Ghostty | Kind::WezTerm | Kind::Foot | Kind::Alacritty | Kind::Iterm => true,
        Kind::VsCode | Kind::WindowsTerminal | Kind::Zellij => true,
        Kind::Dumb | Kind::LinuxConsole | Kind::GnuScreen | Kind::Xterm => false,
        Kind::AppleTerminal | Kind::Konsole | Kind::Vte | Kind::Unknown => false,
    };
    let reflow = match kind {
        Kind::Tmux { .. } | Kind::Kitty | Kind::Ghostty | Kind::WezTerm | Kind::Foot => true,
        Kind::Alacritty | Kind::Iterm | Kind::VsCode | Kind::WindowsTerminal => true,
        Kind::AppleTerminal | Kind::Konsole | Kind::Vte | Kind::Zellij => true,
        Kind::Dumb | Kind::LinuxConsole | Kind::GnuScreen | Kind::Xterm | Kind::Unknown => false,
    };
    let keyboard = match kind {
        Kind::Kitty | Kind::Ghostty | Kind::WezTerm | Kind::Foot | Kind::Alacritty | Kind::Iterm => {
            Keyboard::Kitty
        }
        // Zellij ignores what it does not know, as with the protocol switched off.
        Kind::VsCode | Kind::Zellij => Keyboard::Kitty,
        Kind::Tmux { .. } | Kind::Xterm => Keyboard::ModifyOtherKeys,
        Kind::Dumb | Kind::LinuxConsole | Kind::GnuScreen | Kind::WindowsTerminal => Keyboard::Legacy,
        Kind::AppleTerminal | Kind::Konsole | Kind::Vte | Kind::Unknown => Keyboard::Legacy,
    };
    let plain = matches!(kind, Kind::Dumb | Kind::LinuxConsole);
    // GNU screen passes the question on only in parts.
    let background = !plain && kind != Kind::GnuScreen;
    Abilities {
        caps: ScreenCaps {
            color: color(kind, &variable),
            sync,
            reflow,
            title: !plain,
            // GNU screen has one only if its user asked for it.
            alternate: !plain && kind != Kind::GnuScreen,
        },
        modes: Modes {
            paste: !plain,
            keyboard,
            focus: !plain,
            cursor: None,
            // Only some keep a stack of titles, the others ignore the sequence.
            title: !plain,
            // Elsewhere OSC 9 is a notification, which would pop up.
            progress: matches!(kind, Kind::Ghostty | Kind::WindowsTerminal),
        },
        background,
    }
}

fn kind(variable: &impl Fn(&str) -> Option<String>) -> Kind {
    let set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    // A program that only prints may run inside of anything, such as a shell of Emacs in tmux.
    if matches!(term.as_str(), "" | "dumb" | "unknown") {
        return Kind::Dumb;
    }
    // A multiplexer comes next: within it the variables of the terminal outside are still set.
    if set("TMUX") || term.starts_with("tmux") {
        return Kind::Tmux {
            sync: tmux_syncs(&program, &variable("TERM_PROGRAM_VERSION").unwrap_or_default()),
        };
    }
    // Zellij leaves TERM as it is outside.
    if set("ZELLIJ") && term != "linux" {
        return Kind::Zellij;
    }
    match term.as_str() {
        "linux" => return Kind::LinuxConsole,
        _ if set("STY") || term.starts_with("screen") => return Kind::GnuScreen,
        "xterm-kitty" => return Kind::Kitty,
        "xterm-ghostty" => return Kind::Ghostty,
        "wezterm" => return Kind::WezTerm,
        "foot" | "foot-extra" => return Kind::Foot,
        "alacritty" | "alacritty-direct" => return Kind::Alacritty,
        _ => {}
    }
    match program.as_str() {
        "ghostty" => Kind::Ghostty,
        "WezTerm" => Kind::WezTerm,
        "iTerm.app" => Kind::Iterm,
        "vscode" => Kind::VsCode,
        "Apple_Terminal" => Kind::AppleTerminal,
        _ if set("XTERM_VERSION") => Kind::Xterm,
        _ if set("WT_SESSION") => Kind::WindowsTerminal,
        _ if set("KITTY_WINDOW_ID") => Kind::Kitty,
        _ if set("ALACRITTY_WINDOW_ID") => Kind::Alacritty,
        _ if set("KONSOLE_VERSION") => Kind::Konsole,
        _ if set("VTE_VERSION") => Kind::Vte,
        _ => Kind::Unknown,
    }
}

/// Whether a tmux has synchronized output: since 3.4. Its version is like `3.3a` or `next-3.5`.
fn tmux_syncs(program: &str, version: &str) -> bool {
    let number = |text: &str| text.trim_end_matches(|char: char| !char.is_ascii_digit()).parse::<u32>().ok();
    let version = version.strip_prefix("next-").unwrap_or(version);
    let parsed = version.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    program == "tmux" && parsed.is_some_and(|version| version >= (3, 4))
}

fn color(kind: Kind, variable: &impl Fn(&str) -> Option<String>) -> ColorDepth {
    let value = |name| variable(name).unwrap_or_default();
    let term = value("TERM");
    if kind == Kind::Dumb || !value("NO_COLOR").is_empty() {
        return ColorDepth::None;
    }
    let said = matches!(value("COLORTERM").as_str(), "truecolor" | "24bit") || term.ends_with("-direct");
    match kind {
        Kind::Dumb => ColorDepth::None,
        Kind::LinuxConsole => ColorDepth::Ansi16,
        // It drops colours that it does not know, and inherits the variable from outside.
        Kind::GnuScreen if term.contains("256") => ColorDepth::Ansi256,
        Kind::GnuScreen => ColorDepth::Ansi16,
        Kind::AppleTerminal => ColorDepth::Ansi256,
        _ if said => ColorDepth::Rgb,
        Kind::Zellij => ColorDepth::Rgb,
        Kind::Kitty | Kind::Ghostty | Kind::WezTerm | Kind::Foot | Kind::Alacritty => ColorDepth::Rgb,
        Kind::Iterm | Kind::VsCode | Kind::WindowsTerminal | Kind::Konsole | Kind::Vte => ColorDepth::Rgb,
        Kind::Tmux { .. } | Kind::Xterm | Kind::Unknown if term.contains("256") => ColorDepth::Ansi256,
        Kind::Tmux { .. } | Kind::Xterm | Kind::Unknown => ColorDepth::Ansi16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Guesses from lines of `NAME=value`, and shows what was guessed.
    fn check(environment: &str, expected: Expect) {
        let variable = |name: &str| {
            environment
                .split(' ')
                .find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
        };
        let Abilities { caps, modes, background } = guess(variable);
        let dumb = if is_dumb(variable) { "dumb, " } else { "" };
        let on = [
            (caps.sync, "sync"),
            (caps.reflow, "reflow"),
            (caps.title && modes.title, "title"),
            (modes.paste && modes.focus, "paste"),
            (modes.progress, "progress"),
            (background, "background"),
        ];
        let on: Vec<&str> = on.into_iter().filter_map(|(on, name)| on.then_some(name)).collect();
        expected.assert_eq(&format!("{dumb}{:?}, {:?}, {}", caps.color, modes.keyboard, on.join(" ")));
    }

    #[test]
    fn terminals_are_known_by_their_variables() {
        check("TERM=dumb COLORTERM=truecolor", expect!["dumb, None, Legacy, "]);
        check("HOME=/", expect!["dumb, None, Legacy, "]);
        check("TERM=linux", expect!["Ansi16, Legacy, "]);
        check("TERM=xterm-256color", expect!["Ansi256, Legacy, title paste background"]);
        check("TERM=xterm", expect!["Ansi16, Legacy, title paste background"]);
        check(
            "TERM=xterm-256color XTERM_VERSION=XTerm(390)",
            expect!["Ansi256, ModifyOtherKeys, title paste background"],
        );
        check("TERM=xterm-kitty", expect!["Rgb, Kitty, sync reflow title paste background"]);
        check(
            "TERM=xterm-256color TERM_PROGRAM=ghostty NO_COLOR=1",
            expect!["None, Kitty, sync reflow title paste progress background"],
        );
        check(
            "TERM=xterm-256color VTE_VERSION=7600 COLORTERM=truecolor",
            expect!["Rgb, Legacy, reflow title paste background"],
        );
        check(
            "TERM=xterm-256color TERM_PROGRAM=Apple_Terminal COLORTERM=truecolor",
            expect!["Ansi256, Legacy, reflow title paste background"],
        );
    }

    #[test]
    fn a_multiplexer_is_known_before_the_terminal_around_it() {
        check(
            "TERM=tmux-256color TMUX=/tmp/tmux TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=3.3a VTE_VERSION=7600",
            expect!["Ansi256, ModifyOtherKeys, reflow title paste background"],
        );
        check(
            "TERM=screen-256color TMUX=/tmp/tmux TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=next-3.6 COLORTERM=truecolor",
            expect!["Rgb, ModifyOtherKeys, sync reflow title paste background"],
        );
        check(
            "TERM=xterm-kitty KITTY_WINDOW_ID=1 ZELLIJ=0 ZELLIJ_SESSION_NAME=x",
            expect!["Rgb, Kitty, sync reflow title paste background"],
        );
        check("TERM=dumb ZELLIJ=0", expect!["dumb, None, Legacy, "]);
        check("TERM=dumb TMUX=/tmp/t,1,0 TERM_PROGRAM=tmux", expect!["dumb, None, Legacy, "]);
        check(
            "TERM=screen.xterm-256color STY=1.pts KITTY_WINDOW_ID=1 COLORTERM=truecolor",
            expect!["Ansi256, Legacy, title paste"],
        );
    }
}
