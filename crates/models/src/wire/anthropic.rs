//! Anthropic messages.

pub(crate) mod binding;
pub(crate) mod decode;
mod late_tools;
pub(crate) mod request;
#[cfg(test)]
mod tests;
