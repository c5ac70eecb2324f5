//! Anthropic messages.

pub(crate) mod decode;
pub(crate) mod request;
#[cfg(test)]
mod tests;
