//! Mentions of files in a prompt: `@path`, with quotes around a path that has blanks.

/// The mention of a path as it is inserted. That of a folder is left open, so that completion continues inside.
pub fn mention(path: &str) -> String {
    let plain = !path.is_empty() && !path.starts_with('"') && !path.contains(char::is_whitespace);
    let open = path.ends_with('/');
    match (plain, open) {
        (true, true) => format!("@{path}"),
        (true, false) => format!("@{path} "),
        (false, true) => format!("@\"{}", quoted(path)),
        (false, false) => format!("@\"{}\" ", quoted(path)),
    }
}

/// Paths that a prompt mentions. Punctuation behind a path that has no quotes is not part of it.
pub fn mentions(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut before: Option<char> = None;
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        let starts = before.is_none_or(|before| before.is_whitespace() || "([{<\"'`".contains(before));
        before = Some(char);
        rest = after;
        if char != '@' || !starts {
            continue;
        }
        let (path, length) = match after.strip_prefix('"') {
            Some(inside) => {
                let (path, closed) = unquoted(inside.split('\n').next().unwrap_or_default());
                let length = closed.unwrap_or(inside.len().min(path.len())) + 1;
                (path, length)
            }
            None => {
                let word = after.split(char::is_whitespace).next().unwrap_or_default();
                (
                    word.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '>']).to_owned(),
                    word.len(),
                )
            }
        };
        if !path.is_empty() {
            paths.push(path);
        }
        let mut length = length.min(after.len());
        while !after.is_char_boundary(length) {
            length += 1;
        }
        before = after[..length].chars().next_back().or(before);
        rest = &after[length..];
    }
    paths
}

fn quoted(path: &str) -> String {
    path.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Text up to the closing quote, and the offset behind that quote if there is one.
pub(super) fn unquoted(text: &str) -> (String, Option<usize>) {
    let mut path = String::new();
    let mut chars = text.char_indices();
    while let Some((index, char)) = chars.next() {
        match char {
            '"' => return (path, Some(index + 1)),
            '\\' => path.extend(chars.next().map(|(_, escaped)| escaped)),
            char => path.push(char),
        }
    }
    (path, None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_with_blanks_is_quoted() {
        for (path, expected) in [
            ("src/main.rs", "@src/main.rs "),
            ("src/", "@src/"),
            ("my file", "@\"my file\" "),
            ("my dir/", "@\"my dir/"),
            ("a \"b\"", "@\"a \\\"b\\\"\" "),
        ] {
            assert_eq!(mention(path), expected);
        }
    }

    #[test]
    fn mentions_are_found_in_prose() {
        for (text, expected) in [
            ("see @a.rs, @b/c.rs.", "a.rs|b/c.rs"),
            ("(@a.rs) and me@host", "a.rs"),
            ("@\"my file\" @x", "my file|x"),
            ("@ @\"\" @,", ""),
            ("@\"open end", "open end"),
            ("@a\n@b", "a|b"),
        ] {
            assert_eq!(mentions(text).join("|"), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mentioned_path_is_found_again(path in "[a-z \"\\\\é/]{0,8}[a-z]") {
            prop_assert_eq!(mentions(&format!("see {}now", mention(&path))), [path]);
        }

        #[test]
        fn any_text_can_be_searched(text in "[@\"\\\\ a漢\\n.]{0,30}") {
            mentions(&text);
        }
    }
}
