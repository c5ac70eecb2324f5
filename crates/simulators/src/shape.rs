//! Shapes of request bodies, as data: which fields an object may have, and what they hold.
//!
//! ```toml
//! [object.request]
//! model = "string!"                  # `!`: it must be there
//! system = "string | [text]"         # a string, or a list of objects of the shape `text`
//! mode = "'auto' | 'none'"           # one of these strings
//! messages = "[block]!"
//!
//! [union.block]                      # objects whose field `type` says which shape they have
//! tag = "type"
//! members = { text = "text", image = "image" }
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::facts::FactsError;
use crate::request::{Request, Strictness};

/// Number of flaws that one check reports. A body with more is invalid anyway.
const MAX_FLAWS: usize = 100;
/// Depth of nested shapes.
const MAX_DEPTH: usize = 64;

/// The shapes of one vendor's bodies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shapes {
    #[serde(rename = "object")]
    objects: BTreeMap<String, BTreeMap<String, Field>>,
    #[serde(rename = "union", default)]
    unions: BTreeMap<String, Union>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Field {
    kinds: Vec<Kind>,
    required: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Any,
    Null,
    String,
    Integer,
    Number,
    Boolean,
    /// An object that may hold anything.
    Object,
    Literal(String),
    List(Vec<Kind>),
    /// A shape or a union of shapes.
    Named(String),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Union {
    tag: String,
    members: BTreeMap<String, String>,
    /// The default member, for an object without a tag.
    default: Option<String>,
}

/// Something wrong with a body, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    pub place: Vec<BodyStep>,
    pub kind: FlawKind,
}

/// A step from the body to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyStep {
    Field(String),
    Index(usize),
    /// The member of a union that was chosen. Some vendors name it in their paths.
    Tag(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlawKind {
    Unknown,
    Missing,
    /// A value of the wrong type. `expected` and `found` are words like `string`.
    Type {
        expected: Vec<String>,
        found: &'static str,
    },
    /// A string that is not one of the allowed ones.
    Value {
        found: String,
        allowed: Vec<String>,
    },
    /// An object whose tag names no member.
    Tag {
        tag: String,
        found: String,
        allowed: Vec<String>,
    },
}

impl Flaw {
    /// `messages.0.content`, with the chosen members of unions if `tags`.
    pub fn dotted(&self, tags: bool) -> String {
        let part = |place: &BodyStep| match place {
            BodyStep::Field(name) => Some(name.clone()),
            BodyStep::Index(index) => Some(index.to_string()),
            BodyStep::Tag(tag) => tags.then(|| tag.clone()),
        };
        self.place.iter().filter_map(part).collect::<Vec<_>>().join(".")
    }

    /// `messages[0].content`.
    pub fn bracketed(&self) -> String {
        let mut path = String::new();
        for place in &self.place {
            match place {
                BodyStep::Field(name) if path.is_empty() => path.push_str(name),
                BodyStep::Field(name) => path.extend([".", name]),
                BodyStep::Index(index) => path.push_str(&format!("[{index}]")),
                BodyStep::Tag(_) => {}
            }
        }
        path
    }
}

impl Shapes {
    pub fn parse(text: &str) -> Result<Self, FactsError> {
        let shapes: Self = toml::from_str(text)?;
        Ok(shapes)
    }

    /// Flaws of `value` as an object of the shape `name`, including unknown fields.
    pub fn flaws(&self, name: &str, value: &Value) -> Vec<Flaw> {
        let mut check = Check { shapes: self, place: Vec::new(), flaws: Vec::new() };
        check.named(name, value);
        check.flaws
    }

    /// Unknown fields that a lenient simulator ignores. `Err` is the first flaw that makes it refuse the request.
    pub(crate) fn ignored(&self, request: &Request) -> Result<Vec<Flaw>, Flaw> {
        let flaws = self.flaws("request", &request.body);
        let ignores = |flaw: &Flaw| {
            let foreign = matches!(flaw.kind, FlawKind::Unknown | FlawKind::Tag { .. });
            foreign && request.strictness == Strictness::Lenient
        };
        match flaws.iter().find(|flaw| !ignores(flaw)) {
            Some(flaw) => Err(flaw.clone()),
            None => Ok(flaws),
        }
    }

    /// The shapes that are referenced but not defined, for a test of the table.
    pub fn undefined(&self) -> Vec<String> {
        let fields = self.objects.values().flat_map(BTreeMap::values);
        let named = fields.flat_map(|field| field.kinds.iter().flat_map(Kind::names));
        let members = self.unions.values().flat_map(|union| union.members.values().map(String::as_str));
        named.chain(members).filter(|name| !self.has(name)).map(str::to_owned).collect()
    }

    /// A member of a union may be `object`, which may hold anything.
    fn has(&self, name: &str) -> bool {
        name == "object" || self.objects.contains_key(name) || self.unions.contains_key(name)
    }
}

struct Check<'a> {
    shapes: &'a Shapes,
    place: Vec<BodyStep>,
    flaws: Vec<Flaw>,
}

impl Check<'_> {
    fn flaw(&mut self, kind: FlawKind) {
        if self.flaws.len() < MAX_FLAWS {
            self.flaws.push(Flaw { place: self.place.clone(), kind });
        }
    }

    fn at(&mut self, place: BodyStep, check: impl FnOnce(&mut Self)) {
        if self.place.len() < MAX_DEPTH {
            self.place.push(place);
            check(self);
            self.place.pop();
        }
    }

    fn named(&mut self, name: &str, value: &Value) {
        let shapes = self.shapes;
        let Value::Object(object) = value else {
            return self.flaw(wrong_type(&["object".to_owned()], value));
        };
        if let Some(union) = shapes.unions.get(name) {
            self.union(union, object, value);
        } else if let Some(fields) = shapes.objects.get(name) {
            self.object(fields, object);
        }
    }

    fn union(&mut self, union: &Union, object: &Map<String, Value>, value: &Value) {
        let found = object.get(&union.tag).and_then(Value::as_str).or(union.default.as_deref());
        let Some(found) = found else {
            return self.at(BodyStep::Field(union.tag.clone()), |check| check.flaw(FlawKind::Missing));
        };
        match union.members.get(found) {
            Some(member) => self.at(BodyStep::Tag(found.to_owned()), |check| check.named(member, value)),
            None => self.flaw(FlawKind::Tag {
                tag: union.tag.clone(),
                found: found.to_owned(),
                allowed: union.members.keys().cloned().collect(),
            }),
        }
    }

    fn object(&mut self, fields: &BTreeMap<String, Field>, object: &Map<String, Value>) {
        for (name, value) in object {
            self.at(BodyStep::Field(name.clone()), |check| match fields.get(name) {
                None => check.flaw(FlawKind::Unknown),
                Some(field) => check.kinds(&field.kinds, value),
            });
        }
        for (name, _) in fields.iter().filter(|(name, field)| field.required && !object.contains_key(*name)) {
            self.at(BodyStep::Field(name.clone()), |check| check.flaw(FlawKind::Missing));
        }
    }

    /// The alternative is chosen by the type of the value, so that flaws inside it are reported at their position.
    fn kinds(&mut self, kinds: &[Kind], value: &Value) {
        if kinds.iter().any(|kind| kind.takes(value)) {
            return;
        }
        for kind in kinds {
            match (kind, value) {
                (Kind::List(items), Value::Array(values)) => {
                    for (index, value) in values.iter().enumerate() {
                        self.at(BodyStep::Index(index), |check| check.kinds(items, value));
                    }
                    return;
                }
                (Kind::Named(name), Value::Object(_)) => return self.named(name, value),
                _ => {}
            }
        }
        let allowed: Vec<String> = kinds.iter().filter_map(Kind::literal).collect();
        match value {
            Value::String(found) if !allowed.is_empty() => {
                self.flaw(FlawKind::Value { found: found.clone(), allowed });
            }
            _ => self.flaw(wrong_type(&kinds.iter().map(Kind::word).collect::<Vec<_>>(), value)),
        }
    }
}

fn wrong_type(expected: &[String], value: &Value) -> FlawKind {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    FlawKind::Type { expected: expected.to_vec(), found }
}

impl Kind {
    /// Whether the value is valid and need not be checked further.
    fn takes(&self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Null => value.is_null(),
            Self::String => value.is_string(),
            Self::Integer => value.is_u64() || value.is_i64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Literal(literal) => value == literal,
            Self::List(_) | Self::Named(_) => false,
        }
    }

    fn literal(&self) -> Option<String> {
        if let Self::Literal(literal) = self { Some(literal.clone()) } else { None }
    }

    fn word(&self) -> String {
        let word = match self {
            Self::Any => "any",
            Self::Null => "null",
            Self::String | Self::Literal(_) => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object | Self::Named(_) => "object",
            Self::List(_) => "array",
        };
        word.to_owned()
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Named(name) => vec![name],
            Self::List(items) => items.iter().flat_map(Self::names).collect(),
            Self::Any
            | Self::Null
            | Self::String
            | Self::Integer
            | Self::Number
            | Self::Boolean
            | Self::Object
            | Self::Literal(_) => Vec::new(),
        }
    }
}

impl TryFrom<String> for Field {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (kinds, required) = text.strip_suffix('!').map_or((&*text, false), |kinds| (kinds, true));
        Ok(Self { kinds: alternatives(kinds)?, required })
    }
}

fn alternatives(text: &str) -> Result<Vec<Kind>, String> {
    let mut kinds = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, c) in text.char_indices().chain([(text.len(), '|')]) {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            '|' if depth == 0 => {
                kinds.push(kind(text[start..at].trim())?);
                start = at + 1;
            }
            _ => {}
        }
    }
    Ok(kinds)
}

fn kind(text: &str) -> Result<Kind, String> {
    if let Some(items) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return alternatives(items).map(Kind::List);
    }
    if let Some(literal) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Ok(Kind::Literal(literal.to_owned()));
    }
    Ok(match text {
        "any" => Kind::Any,
        "null" => Kind::Null,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "object" => Kind::Object,
        name if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            Kind::Named(name.to_owned())
        }
        _ => return Err(format!("`{text}` is no kind of value")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SHAPES: &str = r#"
        [object.request]
        model = "string!"
        mode = "'auto' | 'none'"
        content = "string | [block] | null"
        limit = "integer"
        [object.text]
        type = "string!"
        text = "string!"
        [union.block]
        tag = "type"
        members = { text = "text" }
    "#;

    fn check(body: &Value, expected: &[(&str, FlawKind)]) {
        let flaws = Shapes::parse(SHAPES).unwrap().flaws("request", body);
        let told: Vec<_> = flaws.iter().map(|flaw| (flaw.bracketed(), flaw.kind.clone())).collect();
        let expected: Vec<_> =
            expected.iter().map(|(place, kind)| ((*place).to_owned(), kind.clone())).collect();
        assert_eq!(told, expected, "{body}");
    }

    #[test]
    fn a_body_of_the_right_shape_has_no_flaws() {
        check(
            &json!({"model": "m", "mode": "auto", "content": [{"type": "text", "text": "t"}], "limit": 3}),
            &[],
        );
        check(&json!({"model": "m", "content": null}), &[]);
    }

    #[test]
    fn each_flaw_is_told_where_it_is() {
        let text = |word: &str| word.to_owned();
        check(&json!({"model": "m", "x": 1}), &[("x", FlawKind::Unknown)]);
        check(&json!({}), &[("model", FlawKind::Missing)]);
        check(
            &json!({"model": 1, "limit": 1.5}),
            &[
                ("model", FlawKind::Type { expected: vec![text("string")], found: "integer" }),
                ("limit", FlawKind::Type { expected: vec![text("integer")], found: "number" }),
            ],
        );
        let allowed = vec![text("auto"), text("none")];
        check(
            &json!({"model": "m", "mode": "x"}),
            &[("mode", FlawKind::Value { found: text("x"), allowed })],
        );
        check(
            &json!({"model": "m", "content": [{"type": "text", "text": "", "y": 1}, {"type": "z"}, {}]}),
            &[
                ("content[0].y", FlawKind::Unknown),
                (
                    "content[1]",
                    FlawKind::Tag { tag: text("type"), found: text("z"), allowed: vec![text("text")] },
                ),
                ("content[2].type", FlawKind::Missing),
            ],
        );
    }

    #[test]
    fn paths_are_written_as_vendors_write_them() {
        let body = json!({"model": "m", "content": [{"type": "text", "text": "", "y": 1}]});
        let flaws = Shapes::parse(SHAPES).unwrap().flaws("request", &body);
        assert_eq!(flaws[0].dotted(true), "content.0.text.y");
        assert_eq!(flaws[0].dotted(false), "content.0.y");
    }

    #[test]
    fn a_table_that_names_a_missing_shape_is_noticed() {
        let shapes = Shapes::parse("[object.a]\nx = '[b]'\ny = 'string'").unwrap();
        assert_eq!(shapes.undefined(), ["b"]);
        assert!(Shapes::parse("[object.a]\nx = 'two words'").is_err());
    }
}
