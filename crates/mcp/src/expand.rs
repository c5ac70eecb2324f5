//! Variables in configuration: `$NAME`, `${NAME}` and `${NAME:-default}`.

/// Replaces variables by their values in `lookup`. An unknown one without a default is left as it is written, so that
/// whoever reads the error sees which.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, value) = match rest[1..].strip_prefix('{') {
            Some(inner) => match inner.split_once('}') {
                Some((body, _)) => (body.len() + 3, braced(body, lookup)),
                None => (1, None),
            },
            None => {
                let length = rest[1..].find(|c: char| !is_name(c)).unwrap_or(rest.len() - 1);
                let name = &rest[1..=length];
                let starts_well = name.starts_with(|c: char| !c.is_ascii_digit());
                (length + 1, if starts_well { lookup(name) } else { None })
            }
        };
        match value {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

fn braced(body: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    lookup(name).filter(|value| default.is_none() || !value.is_empty()).or_else(|| default.map(str::to_owned))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        assert_eq!(expand(text, &lookup), expected);
    }

    #[test]
    fn known_variables_are_replaced() {
        check("$A ${A} x$A/y", "1 1 x1/y");
    }

    #[test]
    fn a_default_stands_for_what_is_unknown_or_empty() {
        check("${B:-two} ${EMPTY:-e} ${A:-no} ${B:-}", "two e 1 ");
    }

    #[test]
    fn what_is_unknown_or_no_variable_stays() {
        check("$B ${B} $ $1 ${ ${} ${a b} $$A", "$B ${B} $ $1 ${ ${} ${a b} $1");
    }
}
