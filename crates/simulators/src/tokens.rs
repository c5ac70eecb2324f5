//! The one counter of the simulators. What is counted and what is reported is the same number.

use hangar_models::tokenizer;
use serde_json::Value;

use hangar_models::image::Image;

/// Tokens of a message beside its content.
const PER_MESSAGE: u64 = 4;

/// Counts for one model.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounter {
    percent: u64,
}

impl TokenCounter {
    /// `percent` is how many tokens the model makes of what is a hundred in the published vocabulary.
    pub fn new(percent: u64) -> Self {
        Self { percent }
    }

    pub fn text(&self, text: &str) -> u64 {
        self.scale(tokenizer::count(text) as u64)
    }

    /// A definition or an argument, as compact JSON.
    pub fn json(&self, value: &Value) -> u64 {
        self.text(&value.to_string())
    }

    /// Role and separators of a message.
    pub fn message(&self) -> u64 {
        PER_MESSAGE
    }

    /// An image of which `longest` pixels of the longer edge are looked at: a token for 750 of them.
    pub fn image(&self, image: Image, longest: u32) -> u64 {
        image.tokens(longest)
    }

    fn scale(&self, tokens: u64) -> u64 {
        (tokens * self.percent).div_ceil(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_scaled_and_images_are_bounded() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(TokenCounter::new(100).text(text), 10);
        assert_eq!(TokenCounter::new(130).text(text), 13);
        let counter = TokenCounter::new(100);
        assert_eq!(counter.image(Image { width: 750, height: 1000 }, 1568), 1000);
        assert_eq!(counter.image(Image { width: 8000, height: 4000 }, 1568), (1568 * 784_u64).div_ceil(750));
    }
}
