//! A provider whose requests have images within limits, wherever they come from: tools, attachments, MCP servers, old
//! logs.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use hangar_agent::model::{
    Message, ModelError, ModelEvent, ModelProvider, ModelRequest, Part, ProviderFacts,
};
use parking_lot::Mutex;

use crate::fit::{Fitted, ImageLimits, READ_LIMIT, fit};

/// Images whose form is remembered. A conversation sends the same ones again with each request.
const REMEMBERED: usize = 64;

pub struct ScaledImages {
    provider: Arc<dyn ModelProvider>,
    limits: ImageLimits,
    remembered: Remembered,
}

/// Replacements of images, the latest last.
type Remembered = Arc<Mutex<VecDeque<(Key, Arc<[Part]>)>>>;

/// An image, and the longer edge that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    image: u64,
    length: usize,
    edge: u32,
}

impl ScaledImages {
    pub fn new(provider: Arc<dyn ModelProvider>, limits: ImageLimits) -> Self {
        Self { provider, limits, remembered: Arc::default() }
    }

    fn scaler(&self) -> Scaler {
        Scaler { limits: self.limits, remembered: Arc::clone(&self.remembered) }
    }
}

impl ModelProvider for ScaledImages {
    fn stream(&self, mut request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let images = request.messages.iter().map(|message| images_of(message)).sum();
        if images == 0 {
            return self.provider.stream(request);
        }
        let (provider, scaler) = (Arc::clone(&self.provider), self.scaler());
        // Reading an image takes tens of milliseconds, in which nothing else would happen here.
        let scaled = tokio::task::spawn_blocking(move || {
            scaler.fit_messages(&mut request.messages, images);
            request
        });
        let answer = async move {
            match scaled.await {
                Ok(request) => provider.stream(request),
                // The panic has been reported. Without the request there is no answer.
                Err(error) => stream::once(async move { Err(failed(&error.to_string())) }).boxed(),
            }
        };
        stream::once(answer).flatten().boxed()
    }

    fn facts(&self) -> ProviderFacts {
        self.provider.facts()
    }
}

fn failed(problem: &str) -> ModelError {
    let message = format!("The images of the request could not be read: {problem}");
    ModelError::new(hangar_agent::model::ModelErrorKind::Configuration, message)
}

fn parts_of(message: &Message) -> &[Part] {
    match message {
        Message::User(parts) | Message::Tool { parts, .. } => parts,
        Message::Assistant(_) => &[],
    }
}

fn images_of(message: &Message) -> usize {
    parts_of(message).iter().filter(|part| matches!(part, Part::Image { .. })).count()
}

struct Scaler {
    limits: ImageLimits,
    remembered: Remembered,
}

impl Scaler {
    /// Fits the images of a conversation, of which there are so many. The oldest of too many are replaced by a sentence.
    fn fit_messages(&self, messages: &mut [Arc<Message>], images: usize) {
        let mut left_out = self.limits.left_out(images);
        let shown = images.saturating_sub(left_out);
        for message in messages {
            let here = images_of(message);
            if left_out > 0 && here > 0 {
                self.leave_out(message, left_out);
                left_out = left_out.saturating_sub(here);
            }
            self.fit_message(message, shown);
        }
    }

    /// Replaces the first images of a message by a sentence.
    fn leave_out(&self, message: &mut Arc<Message>, images: usize) {
        let why = format!("[An image is left out: the model takes {} at once.]", self.limits.max_images);
        if let Message::User(parts) | Message::Tool { parts, .. } = Arc::make_mut(message) {
            let shown = parts.iter_mut().filter(|part| matches!(part, Part::Image { .. }));
            shown.take(images).for_each(|part| *part = Part::Text(why.clone()));
        }
    }

    fn fit_message(&self, message: &mut Arc<Message>, images: usize) {
        if images_of(message) == 0 {
            return;
        }
        if let Message::User(parts) | Message::Tool { parts, .. } = Arc::make_mut(message) {
            let before = std::mem::take(parts);
            for part in before {
                match part {
                    Part::Image { mime_type, data } => {
                        let fitted = self.fit_image(&data, images);
                        match &*fitted {
                            [] => parts.push(Part::Image { mime_type, data }),
                            fitted => parts.extend_from_slice(fitted),
                        }
                    }
                    part => parts.push(part),
                }
            }
        }
    }

    /// The parts to send in place of an image; none if it can be sent as it is.
    fn fit_image(&self, data: &str, images: usize) -> Arc<[Part]> {
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        let key = Key { image: hasher.finish(), length: data.len(), edge: self.limits.edge(images) };
        let known = self
            .remembered
            .lock()
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, parts)| Arc::clone(parts));
        if let Some(parts) = known {
            return parts;
        }
        let parts: Arc<[Part]> = self.parts(data, images).into();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back((key, Arc::clone(&parts)));
        parts
    }

    fn parts(&self, data: &str, images: usize) -> Vec<Part> {
        let fitted = match data.len() > READ_LIMIT / 3 * 4 {
            true => Fitted::Unusable { why: format!("is larger than {} MB", READ_LIMIT >> 20) },
            false => match BASE64.decode(data) {
                Ok(content) => fit(&content, &self.limits, images),
                Err(_) => Fitted::Unusable { why: "is not base64".to_owned() },
            },
        };
        match fitted {
            Fitted::Unchanged { .. } => Vec::new(),
            Fitted::Scaled { mime_type, data, from, to } => vec![
                Part::Text(format!("[The image was scaled from {from} to {to} pixels.]")),
                Part::Image { mime_type: mime_type.to_owned(), data: BASE64.encode(data) },
            ],
            Fitted::Unusable { why } => vec![Part::Text(format!("[An image is left out: it {why}.]"))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn scaler(max_edge: u32) -> Scaler {
        Scaler { limits: ImageLimits { max_edge, ..ImageLimits::default() }, remembered: Arc::default() }
    }

    fn image(data: &str) -> Part {
        Part::Image { mime_type: "image/png".to_owned(), data: data.to_owned() }
    }

    fn large() -> String {
        let mut data = std::io::Cursor::new(Vec::new());
        let pixels = image::DynamicImage::new_rgb8(40, 20);
        pixels.write_to(&mut data, image::ImageFormat::Png).unwrap();
        BASE64.encode(data.into_inner())
    }

    fn check(max_edge: u32, part: Part, expected: &[&str]) {
        let mut message = Arc::new(Message::User(vec![Part::Text("see".to_owned()), part.clone()]));
        let scaler = scaler(max_edge);
        for _ in 0..2 {
            scaler.fit_message(&mut message, 1);
        }
        let Message::User(parts) = &*message else { panic!() };
        let told: Vec<&str> = parts
            .iter()
            .map(|seen| match seen {
                Part::Text(text) => text.as_str(),
                Part::Image { .. } if *seen == part => "the image",
                Part::Image { .. } => "another image",
                Part::Document { .. } => "a document",
            })
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn images_are_scaled_with_a_notice_or_left_out_with_a_reason() {
        check(1568, image(PIXEL), &["see", "the image"]);
        check(
            30,
            image(&large()),
            &["see", "[The image was scaled from 40x20 to 30x15 pixels.]", "another image"],
        );
        check(30, image("####"), &["see", "[An image is left out: it is not base64.]"]);
        check(
            30,
            image("AAAA"),
            &["see", "[An image is left out: it is not a PNG, JPEG, WebP or GIF image.]"],
        );
    }

    fn shown(images: usize, max_images: usize) -> String {
        let limits = ImageLimits { max_images, ..ImageLimits::default() };
        let scaler = Scaler { limits, remembered: Arc::default() };
        let mut messages: Vec<Arc<Message>> =
            (0..images).map(|_| Arc::new(Message::User(vec![image(PIXEL)]))).collect();
        scaler.fit_messages(&mut messages, images);
        let mark = |message: &Arc<Message>| if images_of(message) > 0 { 'i' } else { '.' };
        messages.iter().map(mark).collect()
    }

    #[test]
    fn the_oldest_images_beyond_what_a_model_takes_are_left_out_by_a_quarter_at_once() {
        assert_eq!(shown(8, 8), "iiiiiiii");
        assert_eq!(shown(9, 8), "..iiiiiii");
        assert_eq!(shown(10, 8), "..iiiiiiii");
        assert_eq!(shown(11, 8), "....iiiiiii");
        assert_eq!(shown(3, 1), "..i");
    }

    #[test]
    fn the_same_image_becomes_the_same_bytes() {
        let (one, two) = (scaler(30), scaler(30));
        assert_eq!(one.fit_image(&large(), 1), two.fit_image(&large(), 1));
        assert_eq!(one.remembered.lock().len(), 1);
        one.fit_image(&large(), 1);
        assert_eq!(one.remembered.lock().len(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let scaler = scaler(30);
        (0..2 * REMEMBERED).for_each(|n| drop(scaler.fit_image(&format!("{n}"), 1)));
        assert_eq!(scaler.remembered.lock().len(), REMEMBERED);
    }
}
