//! OpenAI responses.

pub(crate) mod decode;
pub(crate) mod request;
#[cfg(test)]
mod tests;
