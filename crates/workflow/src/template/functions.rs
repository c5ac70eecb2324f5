//! Functions of Go templates and filters of Liquid.

use serde_json::Value;

use super::Language;
use super::value::{compare, is_equal, length, number};

const GO_KEYWORDS: &[&str] =
    &["if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"];
const GO_FUNCTIONS: &[&str] = &[
    "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print", "printf",
    "println", "html", "js", "urlquery", "toJSON", "join", "lower", "upper",
];
const LIQUID_FILTERS: &[&str] = &[
    "abs",
    "append",
    "at_least",
    "at_most",
    "capitalize",
    "ceil",
    "compact",
    "concat",
    "default",
    "divided_by",
    "downcase",
    "escape",
    "first",
    "floor",
    "join",
    "json",
    "last",
    "lstrip",
    "map",
    "minus",
    "modulo",
    "newline_to_br",
    "plus",
    "prepend",
    "remove",
    "remove_first",
    "replace",
    "replace_first",
    "reverse",
    "round",
    "rstrip",
    "size",
    "slice",
    "sort",
    "split",
    "strip",
    "strip_html",
    "strip_newlines",
    "times",
    "to_json",
    "truncate",
    "truncatewords",
    "uniq",
    "upcase",
    "url_encode",
    "where",
];

pub(super) fn is_go_word(word: &str) -> bool {
    GO_KEYWORDS.contains(&word) || GO_FUNCTIONS.contains(&word)
}

pub(super) fn is_go_function(name: &str) -> bool {
    GO_FUNCTIONS.contains(&name)
}

pub(super) fn is_liquid_filter(name: &str) -> bool {
    LIQUID_FILTERS.contains(&name)
}

type Outcome = Result<Value, String>;

fn text(value: impl Into<String>) -> Outcome {
    Ok(Value::String(value.into()))
}

/// Calls a function of Go. `and` and `or` are not here: they do not evaluate all their arguments.
pub(super) fn go(name: &str, arguments: &[Value]) -> Outcome {
    let print = |value: &Value| Language::Go.print(value);
    match (name, arguments) {
        ("not", [value]) => Ok(Value::Bool(!Language::Go.is_true(value))),
        ("eq", [first, others @ ..]) if !others.is_empty() => {
            Ok(Value::Bool(others.iter().any(|other| is_equal(first, other))))
        }
        ("ne", [a, b]) => Ok(Value::Bool(!is_equal(a, b))),
        ("lt" | "le" | "gt" | "ge", [a, b]) => {
            let order = compare(a, b).ok_or("these two cannot be compared")?;
            Ok(Value::Bool(match name {
                "lt" => order.is_lt(),
                "le" => order.is_le(),
                "gt" => order.is_gt(),
                _ => order.is_ge(),
            }))
        }
        ("len", [value]) => match value {
            // Go counts bytes.
            Value::String(text) => Ok(Value::from(text.len())),
            other => length(other).map(Value::from).ok_or_else(|| "this has no length".to_owned()),
        },
        ("index", [value, keys @ ..]) => keys.iter().try_fold(value.clone(), |value, key| index(&value, key)),
        ("slice", [value, bounds @ ..]) => slice(value, bounds),
        ("print", all) => text(all.iter().map(print).collect::<Vec<_>>().join(" ")),
        ("println", all) => text(all.iter().map(print).collect::<Vec<_>>().join(" ") + "\n"),
        ("printf", [Value::String(format), rest @ ..]) => text(printf(format, rest)),
        ("html", [value]) => text(escape(&print(value))),
        ("js", [value]) => text(print(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")),
        ("urlquery", [value]) => text(url_encode(&print(value))),
        ("toJSON", [value]) => text(value.to_string()),
        ("lower", [value]) => text(print(value).to_lowercase()),
        ("upper", [value]) => text(print(value).to_uppercase()),
        ("join", [Value::String(separator), Value::Array(items)]) => {
            text(items.iter().map(print).collect::<Vec<_>>().join(separator))
        }
        ("join", [Value::String(_), Value::Null]) => text(""),
        _ => Err(format!("`{name}` does not take these arguments")),
    }
}

pub(super) fn index(value: &Value, key: &Value) -> Outcome {
    let found = match (value, key) {
        (Value::Array(items), Value::Number(at)) => at.as_u64().and_then(|at| items.get(at as usize)),
        (Value::Object(map), Value::String(name)) => map.get(name),
        _ => None,
    };
    found.cloned().ok_or_else(|| format!("there is nothing at `{}`", Language::Go.print(key)))
}

fn slice(value: &Value, bounds: &[Value]) -> Outcome {
    let bound = |at: usize| bounds.get(at).and_then(Value::as_u64).map(|bound| bound as usize);
    let from = bound(0).unwrap_or(0);
    match value {
        Value::String(text) => {
            let to = bound(1).unwrap_or(text.len());
            text.get(from..to).map(Value::from).ok_or_else(|| "the slice is out of range".to_owned())
        }
        Value::Array(items) => {
            let to = bound(1).unwrap_or(items.len());
            let part = items.get(from..to).ok_or_else(|| "the slice is out of range".to_owned())?;
            Ok(Value::Array(part.to_vec()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("this has no slices".to_owned())
        }
    }
}

/// `%s`, `%d`, `%v`, `%q` and `%%`; widths are read over.
fn printf(format: &str, arguments: &[Value]) -> String {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let verb = characters.by_ref().find(|c| c.is_alphabetic() || *c == '%');
        match verb {
            Some('%') | None => out.push('%'),
            Some('q') => out.push_str(&arguments.next().map(Value::to_string).unwrap_or_default()),
            Some(_) => {
                out.push_str(&arguments.next().map(|value| Language::Go.print(value)).unwrap_or_default());
            }
        }
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn url_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| match byte {
            b' ' => "+".to_owned(),
            byte if plain(byte) => (byte as char).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// Calls a filter or an operator of Liquid.
pub(super) fn liquid(name: &str, arguments: &[Value]) -> Outcome {
    let (input, rest) = arguments.split_first().ok_or_else(|| format!("`{name}` needs an input"))?;
    let found = operator(name, input, rest)
        .or_else(|| text_filter(name, input, rest))
        .or_else(|| list_filter(name, input, rest));
    found.unwrap_or_else(|| arithmetic(name, input, rest))
}

fn print(value: &Value) -> String {
    Language::Liquid.print(value)
}

fn argument(name: &str, rest: &[Value], at: usize) -> Result<String, String> {
    rest.get(at).map(print).ok_or_else(|| format!("`{name}` needs {} arguments", at + 1))
}

/// Comparisons, and the filters that are like them. `None` if it is another one.
fn operator(name: &str, input: &Value, rest: &[Value]) -> Option<Outcome> {
    let first = || argument(name, rest, 0);
    let result = match name {
        "==" | "!=" => {
            let other = rest.first().unwrap_or(&Value::Null);
            let empty = |value: &Value| matches!(value, Value::String(text) if text.is_empty());
            let equal = is_equal(input, other) || (empty(other) && length(input) == Some(0));
            Ok(Value::Bool(equal == (name == "==")))
        }
        "<" | "<=" | ">" | ">=" => {
            let order = rest.first().and_then(|other| compare(input, other));
            Ok(Value::Bool(order.is_some_and(|order| match name {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            })))
        }
        "contains" => Ok(Value::Bool(match input {
            Value::Array(items) => {
                rest.first().is_some_and(|wanted| items.iter().any(|item| is_equal(item, wanted)))
            }
            Value::String(text) => first().is_ok_and(|wanted| text.contains(&wanted)),
            Value::Object(map) => first().is_ok_and(|wanted| map.contains_key(&wanted)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        })),
        "not" => Ok(Value::Bool(!Language::Liquid.is_true(input))),
        "default" => {
            let empty = !Language::Liquid.is_true(input) || length(input) == Some(0);
            Ok(if empty { rest.first().cloned().unwrap_or(Value::Null) } else { input.clone() })
        }
        _ => return None,
    };
    Some(result)
}

/// Filters of texts. `None` if it is another one.
fn text_filter(name: &str, input: &Value, rest: &[Value]) -> Option<Outcome> {
    let words = print(input);
    let with_one = |made: &dyn Fn(&str, &str) -> String| {
        argument(name, rest, 0).map(|one| Value::String(made(&words, &one)))
    };
    let with_two = |made: &dyn Fn(&str, &str, &str) -> String| {
        let (one, two) = (argument(name, rest, 0)?, argument(name, rest, 1)?);
        Ok(Value::String(made(&words, &one, &two)))
    };
    Some(match name {
        "append" => with_one(&|words, one| format!("{words}{one}")),
        "prepend" => with_one(&|words, one| format!("{one}{words}")),
        "capitalize" => {
            let mut characters = words.chars();
            let head: String = characters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
            text(head + &characters.as_str().to_lowercase())
        }
        "downcase" => text(words.to_lowercase()),
        "upcase" => text(words.to_uppercase()),
        "strip" => text(words.trim()),
        "lstrip" => text(words.trim_start()),
        "rstrip" => text(words.trim_end()),
        "strip_newlines" => text(words.replace(['\n', '\r'], "")),
        "newline_to_br" => text(words.replace('\n', "<br />\n")),
        "strip_html" => text(strip_html(&words)),
        "escape" => text(escape(&words).replace("&#34;", "&quot;")),
        "url_encode" => text(url_encode(&words)),
        "json" | "to_json" => text(input.to_string()),
        "replace" => with_two(&|words, one, two| words.replace(one, two)),
        "replace_first" => with_two(&|words, one, two| words.replacen(one, two, 1)),
        "remove" => with_one(&|words, one| words.replace(one, "")),
        "remove_first" => with_one(&|words, one| words.replacen(one, "", 1)),
        "truncate" | "truncatewords" => truncated(name, &words, rest),
        "split" => argument(name, rest, 0).map(|separator| {
            let parts: Vec<Value> = match (words.is_empty(), separator.is_empty()) {
                (true, _) => Vec::new(),
                (false, true) => words.chars().map(|c| Value::from(c.to_string())).collect(),
                (false, false) => words.split(separator.as_str()).map(Value::from).collect(),
            };
            Value::Array(parts)
        }),
        _ => return None,
    })
}

/// Filters of lists. `None` if it is another one.
fn list_filter(name: &str, input: &Value, rest: &[Value]) -> Option<Outcome> {
    let items = || match input {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    };
    Some(match name {
        "join" => {
            let separator = rest.first().map_or_else(|| " ".to_owned(), print);
            text(items().iter().map(print).collect::<Vec<_>>().join(&separator))
        }
        "size" => Ok(Value::from(length(input).unwrap_or(0))),
        "first" => Ok(items().first().cloned().unwrap_or(Value::Null)),
        "last" => Ok(items().last().cloned().unwrap_or(Value::Null)),
        "reverse" => Ok(Value::Array(items().into_iter().rev().collect())),
        "compact" => Ok(Value::Array(items().into_iter().filter(|item| !item.is_null()).collect())),
        "concat" => {
            let more = rest.first().and_then(Value::as_array);
            let joined = |more: &Vec<Value>| items().into_iter().chain(more.iter().cloned()).collect();
            more.map(|more| Value::Array(joined(more))).ok_or_else(|| "`concat` needs a list".to_owned())
        }
        "uniq" => {
            let mut seen: Vec<Value> = Vec::new();
            for item in items() {
                if !seen.iter().any(|known| is_equal(known, &item)) {
                    seen.push(item);
                }
            }
            Ok(Value::Array(seen))
        }
        "sort" => {
            let mut items = items();
            items.sort_by(|a, b| compare(a, b).unwrap_or_else(|| print(a).cmp(&print(b))));
            Ok(Value::Array(items))
        }
        "map" => {
            let value = |item: Value, member: &str| item.get(member).cloned().unwrap_or(Value::Null);
            argument(name, rest, 0)
                .map(|member| items().into_iter().map(|item| value(item, &member)).collect())
                .map(Value::Array)
        }
        "where" => argument(name, rest, 0).map(|member| {
            let fits = |item: &Value| match (item.get(&member), rest.get(1)) {
                (Some(found), Some(wanted)) => is_equal(found, wanted),
                (Some(found), None) => Language::Liquid.is_true(found),
                (None, _) => false,
            };
            Value::Array(items().into_iter().filter(fits).collect())
        }),
        "slice" => {
            let from = rest.first().and_then(Value::as_i64).unwrap_or(0);
            let count = rest.get(1).and_then(Value::as_u64).unwrap_or(1) as usize;
            let length = length(input).unwrap_or(0);
            let from =
                if from < 0 { length.saturating_sub(from.unsigned_abs() as usize) } else { from as usize };
            Ok(match input {
                Value::Array(items) => Value::Array(items.iter().skip(from).take(count).cloned().collect()),
                other => Value::String(print(other).chars().skip(from).take(count).collect()),
            })
        }
        _ => return None,
    })
}

fn truncated(name: &str, words: &str, rest: &[Value]) -> Outcome {
    let length =
        rest.first().and_then(Value::as_u64).unwrap_or(if name == "truncate" { 50 } else { 15 }) as usize;
    let ellipsis = rest.get(1).map_or_else(|| "...".to_owned(), |value| Language::Liquid.print(value));
    if name == "truncatewords" {
        let all: Vec<&str> = words.split_whitespace().collect();
        return text(match all.len() > length {
            true => all[..length].join(" ") + &ellipsis,
            false => words.to_owned(),
        });
    }
    let kept = length.saturating_sub(ellipsis.chars().count());
    text(match words.chars().count() > length {
        true => words.chars().take(kept).collect::<String>() + &ellipsis,
        false => words.to_owned(),
    })
}

fn strip_html(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

fn arithmetic(name: &str, input: &Value, rest: &[Value]) -> Outcome {
    let as_number = |value: &Value| match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    let a = as_number(input).ok_or_else(|| format!("the input of `{name}` is no number"))?;
    let b = rest.first().and_then(as_number);
    let needed = || b.ok_or_else(|| format!("`{name}` needs a number"));
    let integers = input.is_i64() && rest.first().is_some_and(Value::is_i64);
    Ok(number(match name {
        "abs" => a.abs(),
        "ceil" => a.ceil(),
        "floor" => a.floor(),
        "round" => {
            let scale = 10f64.powi(b.unwrap_or(0.0) as i32);
            (a * scale).round() / scale
        }
        "plus" => a + needed()?,
        "minus" => a - needed()?,
        "times" => a * needed()?,
        "at_least" => a.max(needed()?),
        "at_most" => a.min(needed()?),
        "divided_by" | "modulo" if needed()? == 0.0 => return Err("division by zero".to_owned()),
        "divided_by" if integers => (a / needed()?).floor(),
        "divided_by" => a / needed()?,
        "modulo" => a.rem_euclid(needed()?),
        other => return Err(format!("the filter `{other}` is not defined")),
    }))
}
