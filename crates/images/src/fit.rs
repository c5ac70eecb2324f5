//! Scaling and re-encoding of an image to fit the limits of a model.

use std::fmt;
use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};

/// Maximum size of an image file in bytes.
pub(crate) const READ_LIMIT: usize = 32 << 20;

/// Maximum memory for the decoded pixels of one image: a small file can declare huge dimensions.
const PIXEL_MEMORY: u64 = 256 << 20;

/// JPEG qualities to try, best first, if an image is too large.
const QUALITIES: [u8; 3] = [85, 70, 50];

/// Maximum number of times that an image is scaled down.
const SHRINKS: usize = 8;

/// Largest image that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Pixels of the longer edge.
    pub max_edge: u32,
    /// Bytes in the request, where it is base64.
    pub max_bytes: usize,
    /// The same as `max_edge` for requests with more than `many` images.
    pub max_edge_of_many: u32,
    pub many: usize,
    /// Images of one request.
    pub max_images: usize,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self { max_edge: 1568, max_bytes: 5 * 1024 * 1024, max_edge_of_many: 2000, many: 20, max_images: 100 }
    }
}

impl ImageLimits {
    /// Maximum length of the longer edge in pixels, for a request with `images` images.
    pub fn edge(&self, images: usize) -> u32 {
        if images > self.many { self.max_edge.min(self.max_edge_of_many) } else { self.max_edge }
    }

    /// Number of oldest images to drop from a request with `images` images. It grows in steps of a quarter of the limit, so
    /// that a new image seldom invalidates the provider's prompt cache.
    pub fn left_out(&self, images: usize) -> usize {
        let step = (self.max_images / 4).max(1);
        images.saturating_sub(self.max_images).next_multiple_of(step)
    }

    /// Maximum size before base64 encoding, which turns three bytes into four.
    fn raw_bytes(&self) -> usize {
        self.max_bytes / 4 * 3
    }
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitted {
    /// It can be sent as it is.
    Unchanged {
        mime_type: &'static str,
    },
    Scaled {
        mime_type: &'static str,
        data: Vec<u8>,
        from: Size,
        to: Size,
    },
    /// It cannot be sent. `why` completes "the image".
    Unusable {
        why: String,
    },
}

/// Fits an image into limits, for a request with this many images.
pub fn fit(content: &[u8], limits: &ImageLimits, images: usize) -> Fitted {
    if content.len() > READ_LIMIT {
        return Fitted::Unusable { why: format!("is larger than {} MB", READ_LIMIT >> 20) };
    }
    scaled(content, limits, images).unwrap_or_else(|error| Fitted::Unusable { why: reason(&error) })
}

fn reason(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => "has too many pixels to be read".to_owned(),
        ImageError::Unsupported(_) => "is not a PNG, JPEG, WebP or GIF image".to_owned(),
        _ => format!("is damaged ({error})"),
    }
}

fn scaled(content: &[u8], limits: &ImageLimits, images: usize) -> Result<Fitted, ImageError> {
    let format = image::guess_format(content)?;
    let (width, height) = reader(content, format).into_dimensions()?;
    let (from, edge) = (Size { width, height }, limits.edge(images).max(1));
    if width.max(height) <= edge && content.len() <= limits.raw_bytes() {
        return Ok(Fitted::Unchanged { mime_type: mime_type(format) });
    }
    let image = reader(content, format).decode()?;
    let mut edge = edge.min(width.max(height));
    for _ in 0..SHRINKS {
        let small = image.resize(edge, edge, FilterType::Triangle);
        let to = Size { width: small.width(), height: small.height() };
        if let Some((mime_type, data)) = encode(&small, format, limits.raw_bytes())? {
            return Ok(Fitted::Scaled { mime_type, data, from, to });
        }
        edge = (edge * 3 / 4).max(1);
    }
    Ok(Fitted::Unusable { why: "cannot be made small enough".to_owned() })
}

fn reader(content: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(PIXEL_MEMORY);
    reader.limits(limits);
    reader
}

fn mime_type(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Gif => "image/gif",
        ImageFormat::WebP => "image/webp",
        _ => "image/png",
    }
}

/// The image in at most so many bytes: as PNG unless it was a photograph, and as JPEG where that is too large.
fn encode(
    image: &DynamicImage,
    format: ImageFormat,
    most: usize,
) -> Result<Option<(&'static str, Vec<u8>)>, ImageError> {
    if format != ImageFormat::Jpeg {
        let mut data = Cursor::new(Vec::new());
        image.write_to(&mut data, ImageFormat::Png)?;
        if data.get_ref().len() <= most {
            return Ok(Some(("image/png", data.into_inner())));
        }
    }
    let opaque = image.to_rgb8();
    for quality in QUALITIES {
        let mut data = Vec::new();
        JpegEncoder::new_with_quality(&mut data, quality).encode_image(&opaque)?;
        if data.len() <= most {
            return Ok(Some(("image/jpeg", data)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use image::RgbaImage;
    use proptest::prelude::*;

    use super::*;

    /// An image that cannot be compressed well, so that its size in bytes follows from its pixels.
    fn noise(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut state = 1u32;
        let pixels = RgbaImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgba([(state >> 8) as u8, (state >> 16) as u8, (state >> 24) as u8, 255])
        });
        let mut data = Cursor::new(Vec::new());
        let image = DynamicImage::ImageRgba8(pixels);
        let image = if format == ImageFormat::Jpeg { image.to_rgb8().into() } else { image };
        image.write_to(&mut data, format).unwrap();
        data.into_inner()
    }

    const SMALL: ImageLimits =
        ImageLimits { max_edge: 100, max_bytes: 40_000, max_edge_of_many: 50, many: 2, max_images: 4 };

    #[track_caller]
    fn check(content: &[u8], images: usize, mime_type: &str, size: Option<(u32, u32)>) {
        match (fit(content, &SMALL, images), size) {
            (Fitted::Unchanged { mime_type: own }, None) => assert_eq!(own, mime_type),
            (Fitted::Scaled { mime_type: own, data, to, .. }, Some((width, height))) => {
                assert_eq!((own, to), (mime_type, Size { width, height }));
                assert!(data.len() <= SMALL.raw_bytes());
                let read = image::load_from_memory(&data).unwrap();
                assert_eq!((read.width(), read.height()), (width, height));
            }
            (fitted, _) => panic!("{fitted:?}"),
        }
    }

    #[test]
    fn an_image_that_fits_stays_as_it_is() {
        check(&noise(90, 40, ImageFormat::Png), 1, "image/png", None);
        check(&noise(90, 90, ImageFormat::Jpeg), 1, "image/jpeg", None);
        check(&noise(60, 60, ImageFormat::Gif), 1, "image/gif", None);
        check(&noise(60, 60, ImageFormat::WebP), 1, "image/webp", None);
    }

    #[test]
    fn a_large_image_is_scaled_and_keeps_its_proportions() {
        check(&noise(200, 50, ImageFormat::Png), 1, "image/png", Some((100, 25)));
        check(&noise(50, 200, ImageFormat::Jpeg), 1, "image/jpeg", Some((25, 100)));
        check(&noise(200, 100, ImageFormat::WebP), 1, "image/png", Some((100, 50)));
        check(&noise(80, 80, ImageFormat::Png), 3, "image/png", Some((50, 50)));
    }

    #[test]
    fn an_image_of_too_many_bytes_becomes_a_photograph_or_smaller() {
        check(&noise(100, 100, ImageFormat::Png), 1, "image/jpeg", Some((100, 100)));
        let tiny = ImageLimits { max_bytes: 2_000, ..SMALL };
        let Fitted::Scaled { data, to, .. } = fit(&noise(100, 100, ImageFormat::Png), &tiny, 1) else {
            panic!()
        };
        assert!(data.len() <= 1_500 && to.width < 100, "{} {to}", data.len());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let check = |content: &[u8], expected: &str| match fit(content, &SMALL, 1) {
            Fitted::Unusable { why } => assert!(why.starts_with(expected), "{why}"),
            fitted => panic!("{fitted:?}"),
        };
        check(b"no image", "is not a PNG");
        check(b"", "is not a PNG");
        check(b"\x89PNG\r\n\x1a\n", "is damaged");
        check(b"BM\0\0\0\0\0\0\0\0", "is not a PNG");
        check(&vec![0; READ_LIMIT + 1], "is larger than 32 MB");
        // 60,000 pixels on either side, of one colour.
        let mut bomb = noise(200, 200, ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        let Fitted::Unusable { .. } = fit(&bomb, &SMALL, 1) else { panic!("a bomb was read") };
    }

    proptest! {
        /// Bytes of any kind, with any beginning of an image, never panic.
        #[test]
        fn any_bytes_are_survived(cut in 0usize..2_000, flips in prop::collection::vec((0usize..2_000, any::<u8>()), 0..8)) {
            let mut content = noise(30, 30, ImageFormat::Png);
            content.truncate(cut);
            for (at, byte) in flips {
                if let Some(place) = content.get_mut(at) {
                    *place = byte;
                }
            }
            let _ = fit(&content, &ImageLimits { max_edge: 10, ..SMALL }, 1);
        }
    }
}
