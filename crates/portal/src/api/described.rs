//! The description of a route, from which that of the API is generated. Only a test does that, so only tests have it.

#[cfg(test)]
type SchemaOf = fn(&mut schemars::SchemaGenerator) -> schemars::Schema;

/// Successful response of a route.
#[cfg(test)]
pub(super) enum Answered {
    Json(u16, SchemaOf),
    Empty(u16),
    /// Server-sent events.
    Stream(&'static str),
}

#[cfg(test)]
pub(super) struct Described {
    pub(super) summary: &'static str,
    pub(super) query: Option<SchemaOf>,
    pub(super) body: Option<SchemaOf>,
    pub(super) answer: Answered,
    /// Whether the route needs no token.
    pub(super) open: bool,
}

#[cfg(test)]
impl Described {
    pub(super) fn new(summary: &'static str) -> Self {
        Self { summary, query: None, body: None, answer: Answered::Empty(204), open: false }
    }

    pub(super) fn query<T: schemars::JsonSchema>(&mut self) {
        self.query = Some(schemars::SchemaGenerator::subschema_for::<T>);
    }

    pub(super) fn body<T: schemars::JsonSchema>(&mut self) {
        self.body = Some(schemars::SchemaGenerator::subschema_for::<T>);
    }

    pub(super) fn answers<T: schemars::JsonSchema>(&mut self, status: u16) {
        self.answer = Answered::Json(status, schemars::SchemaGenerator::subschema_for::<T>);
    }

    pub(super) fn empty(&mut self, status: u16) {
        self.answer = Answered::Empty(status);
    }

    pub(super) fn streams(&mut self, what: &'static str) {
        self.answer = Answered::Stream(what);
    }

    pub(super) fn open(&mut self) {
        self.open = true;
    }
}

#[cfg(not(test))]
pub(super) struct Described;

#[cfg(not(test))]
impl Described {
    pub(super) fn new(_: &'static str) -> Self {
        Self
    }

    pub(super) fn query<T: schemars::JsonSchema>(&mut self) {}

    pub(super) fn body<T: schemars::JsonSchema>(&mut self) {}

    pub(super) fn answers<T: schemars::JsonSchema>(&mut self, _: u16) {}

    pub(super) fn empty(&mut self, _: u16) {}

    pub(super) fn streams(&mut self, _: &'static str) {}

    pub(super) fn open(&mut self) {}
}
