//! OpenAI chat completions, and the variants of compatible servers.

pub(crate) mod decode;
pub(crate) mod request;
#[cfg(test)]
mod tests;
