//! Scripts of sed: whether one only prints and changes what passes through it.

use std::iter::Peekable;
use std::str::Chars;

/// False for every script that reads or writes files or runs something, and for every one not understood.
pub(super) fn is_harmless(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        skip(&mut rest, |c| c.is_whitespace() || matches!(c, ';' | '}'));
        if rest.peek().is_none() {
            return true;
        }
        if !skip_addresses(&mut rest) {
            return false;
        }
        skip(&mut rest, |c| c.is_whitespace() || c == '!');
        match rest.next() {
            Some('p' | 'd' | 'q' | '=' | 'n' | 'N' | 'P' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' | '{') => {
                // An exit code or a width.
                skip(&mut rest, |c| c.is_ascii_digit());
            }
            Some('s') => {
                let Some(delimiter) = rest.next() else { return false };
                if !skip_to(&mut rest, delimiter) || !skip_to(&mut rest, delimiter) {
                    return false;
                }
                skip(&mut rest, |c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
            }
            Some('y') => {
                let Some(delimiter) = rest.next() else { return false };
                if !skip_to(&mut rest, delimiter) || !skip_to(&mut rest, delimiter) {
                    return false;
                }
            }
            // `w`, `r`, `e` and what takes the rest of a line as text.
            _ => return false,
        }
        skip(&mut rest, |c| c == ' ' || c == '\t');
        if !matches!(rest.peek(), None | Some(';' | '\n' | '}')) && !follows_block(script, &rest) {
            return false;
        }
    }
}

/// Behind `{` a command may follow at once.
fn follows_block(script: &str, rest: &Peekable<Chars<'_>>) -> bool {
    let left = rest.clone().count();
    let read = script.chars().count() - left;
    script.chars().take(read).filter(|c| !matches!(c, ' ' | '\t')).last() == Some('{')
}

fn skip_addresses(rest: &mut Peekable<Chars<'_>>) -> bool {
    loop {
        match rest.peek() {
            Some('/') => {
                rest.next();
                if !skip_to(rest, '/') {
                    return false;
                }
                skip(rest, |c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                rest.next();
                let Some(delimiter) = rest.next() else { return false };
                if !skip_to(rest, delimiter) {
                    return false;
                }
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | '~' | '+' | ',' | ' ') => {
                rest.next();
            }
            _ => return true,
        }
    }
}

fn skip(rest: &mut Peekable<Chars<'_>>, is_skipped: impl Fn(char) -> bool) {
    while rest.next_if(|c| is_skipped(*c)).is_some() {}
}

/// Goes behind the next delimiter that no backslash takes its meaning from.
fn skip_to(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> bool {
    if delimiter == '\\' || delimiter == '\n' {
        return false;
    }
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            // In brackets a delimiter may or may not end the expression, depending on the sed.
            '[' => return false,
            c if c == delimiter => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn scripts_that_only_filter_are_harmless() {
        for script in [
            "p",
            "1,5p",
            "$p",
            "$!d",
            "/foo/p",
            "/a/,/b/d",
            "s/a/b/",
            "s/a/b/g;s|c|d|2p",
            "5q",
            "1~2p",
            "\\,x,p",
            "/a/{p;d}",
            "/a/ { p ; }",
            "y/abc/xyz/",
            "s/\\/x/y/",
            "",
            "=",
            "1{p}",
            "s/a/w/",
            "10,20 p",
        ] {
            assert!(is_harmless(script), "{script}");
        }
    }

    #[test]
    fn scripts_that_touch_files_or_run_something_are_not() {
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e ls",
            "1e",
            "r /etc/passwd",
            "R x",
            "W x",
            "p;w x",
            "p\nw x",
            "/a/{w x\n}",
            "a text",
            "i\\x",
            "c x",
            "s/[/]w x",
            "s/a/b",
            "s",
            "pw x",
            "p w x",
            "\\",
            "/a",
            "ps/a/b/e",
            "{e",
            "b;e",
            "F",
            "v",
            "Q",
            "z",
            ":a",
            "s/a/b/gw x",
            "y/a/b/w x",
            "/x/I,+2w y",
        ] {
            assert!(!is_harmless(script), "{script}");
        }
    }
}
