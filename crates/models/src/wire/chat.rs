//! OpenAI chat completions, and what the servers that imitate them make of it.

pub(crate) mod decode;
pub(crate) mod request;
#[cfg(test)]
mod tests;
