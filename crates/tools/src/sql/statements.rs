//! Taking a query apart into its statements. Pure.

/// The statements of a query, without the semicolons between them. Pieces with nothing but space and comments are left
/// out.
pub(crate) fn split(query: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let mut tokens = Tokens { text: query, at: 0 };
    let mut start = 0;
    // The words of the statement so far, as far as they matter for finding its end.
    let mut words: Vec<String> = Vec::new();
    let mut open_blocks = 0usize;
    let mut has_content = false;
    loop {
        let before = tokens.at;
        let Some(token) = tokens.next() else { break };
        match token {
            Token::Nothing => continue,
            Token::Semicolon if open_blocks == 0 => {
                if has_content {
                    statements.push(query[start..before].trim());
                }
                start = tokens.at;
                words.clear();
                has_content = false;
                continue;
            }
            Token::Word(word) => {
                let word = word.to_ascii_uppercase();
                // The body of a trigger has semicolons of its own; it ends with the END of its BEGIN. A CASE has an
                // END too.
                if is_trigger(&words) {
                    match word.as_str() {
                        "BEGIN" | "CASE" => open_blocks += 1,
                        "END" => open_blocks = open_blocks.saturating_sub(1),
                        _ => {}
                    }
                }
                if words.len() < WORDS_KEPT {
                    words.push(word);
                }
            }
            Token::Semicolon | Token::Other => {}
        }
        has_content = true;
    }
    if has_content {
        statements.push(query[start..].trim());
    }
    statements
}

/// `CREATE TEMPORARY TRIGGER` is the longest beginning that is looked at.
const WORDS_KEPT: usize = 3;

fn is_trigger(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    words.next() == Some("CREATE")
        && match words.next() {
            Some("TRIGGER") => true,
            Some("TEMP" | "TEMPORARY") => words.next() == Some("TRIGGER"),
            _ => false,
        }
}

/// The first word of a statement in capitals: what kind of statement it is.
pub(crate) fn keyword(statement: &str) -> String {
    nth_word(statement, 0).to_ascii_uppercase()
}

/// The words of a statement that reaches for other files, if it is one.
pub(crate) fn reaches_out(statement: &str) -> Option<String> {
    let first = nth_word(statement, 0);
    match first.to_ascii_uppercase().as_str() {
        "ATTACH" | "DETACH" => Some(first.to_owned()),
        // `VACUUM INTO` and `VACUUM main INTO` write a copy to any path.
        "VACUUM" => {
            let mut tokens = Tokens { text: statement, at: 0 };
            let into = std::iter::from_fn(|| tokens.next())
                .any(|token| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("into")));
            into.then(|| format!("{first} INTO"))
        }
        _ => None,
    }
}

fn nth_word(statement: &str, n: usize) -> &str {
    let mut tokens = Tokens { text: statement, at: 0 };
    std::iter::from_fn(|| tokens.next())
        .filter_map(|token| match token {
            Token::Word(word) => Some(word),
            _ => None,
        })
        .nth(n)
        .unwrap_or_default()
}

enum Token<'a> {
    /// Space or a comment.
    Nothing,
    Word(&'a str),
    Semicolon,
    Other,
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let (length, token) = match first {
            ';' => (1, Token::Semicolon),
            c if c.is_whitespace() => (c.len_utf8(), Token::Nothing),
            _ if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), Token::Nothing),
            _ if rest.starts_with("/*") => (closed(rest, 2, "*/"), Token::Nothing),
            // A doubled quote inside a quotation reads as the end of one and the start of the next.
            '\'' => (closed(rest, 1, "'"), Token::Other),
            '"' => (closed(rest, 1, "\""), Token::Other),
            '`' => (closed(rest, 1, "`"), Token::Other),
            '[' => (closed(rest, 1, "]"), Token::Other),
            c if c.is_alphabetic() || c == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (length, Token::Word(&rest[..length]))
            }
            c => (c.len_utf8(), Token::Other),
        };
        self.at += length;
        Some(token)
    }
}

/// The length up to and with `end`, or of everything if it never comes.
fn closed(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &[&str]) {
        assert_eq!(split(query), expected, "{query}");
    }

    #[test]
    fn statements_end_at_their_semicolons() {
        check("SELECT 1", &["SELECT 1"]);
        check(" SELECT 1 ; SELECT 2; ", &["SELECT 1", "SELECT 2"]);
        check("", &[]);
        check(" ; ;-- nothing\n/* at all */ ;", &[]);
    }

    #[test]
    fn semicolons_inside_are_not_ends() {
        check(
            "SELECT 'a;b''c;', \"x;y\", `z;`, [q;]; SELECT 2",
            &["SELECT 'a;b''c;', \"x;y\", `z;`, [q;]", "SELECT 2"],
        );
        check("SELECT 1 -- a; b\n; SELECT 2", &["SELECT 1 -- a; b", "SELECT 2"]);
        check("SELECT /* ; */ 1", &["SELECT /* ; */ 1"]);
        check("SELECT 'open; SELECT 2", &["SELECT 'open; SELECT 2"]);
    }

    #[test]
    fn a_trigger_is_one_statement() {
        let trigger = "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN \
                       UPDATE a SET x = CASE WHEN 1 THEN 2 END; DELETE FROM b; END";
        check(&format!("{trigger}; SELECT 1"), &[trigger, "SELECT 1"]);
        check("BEGIN; SELECT 1; END", &["BEGIN", "SELECT 1", "END"]);
    }

    #[test]
    fn the_keyword_is_the_first_word() {
        assert_eq!(keyword("/* c */ insert into t"), "INSERT");
        assert_eq!(keyword("(select 1)"), "SELECT");
        assert_eq!(keyword(""), "");
    }

    #[test]
    fn statements_that_reach_out_are_known() {
        assert_eq!(reaches_out("attach 'x' as y").as_deref(), Some("attach"));
        assert_eq!(reaches_out("VACUUM main INTO '/x'").as_deref(), Some("VACUUM INTO"));
        assert_eq!(reaches_out("VACUUM"), None);
        assert_eq!(reaches_out("SELECT 'attach'"), None);
    }
}
