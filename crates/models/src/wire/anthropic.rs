//! Anthropic messages.

pub(crate) mod binding;
pub(crate) mod decode;
pub(crate) mod request;
#[cfg(test)]
mod tests;
