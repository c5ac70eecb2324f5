//! The size of an image, read from its header. The rest of the file is not read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters of base64 that contain the size, whatever a camera writes before it. Four characters are three bytes.
const HEAD: usize = 256 << 10;
const PIXELS_PER_TOKEN: f64 = 750.0;

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    pub width: u32,
    pub height: u32,
}

impl Image {
    /// `None` if it is not base64 of a PNG, JPEG, GIF or WebP file.
    pub fn of_base64(data: &str) -> Option<Self> {
        let head = data.get(..HEAD).unwrap_or(data);
        Self::of_bytes(&STANDARD.decode(head).ok()?)
    }

    /// Tokens of the image for most models: one per 750 pixels, after scaling the longer edge to at most `longest`
    /// pixels.
    pub fn tokens(self, longest: u32) -> u64 {
        let edge = self.width.max(self.height).max(1);
        let scale = (f64::from(longest) / f64::from(edge)).min(1.0);
        let pixels = f64::from(self.width) * scale * f64::from(self.height) * scale;
        (pixels / PIXELS_PER_TOKEN).ceil() as u64
    }

    /// Reads `data:image/png;base64,…`.
    pub fn of_data_url(url: &str) -> Option<Self> {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        head.ends_with(";base64").then(|| Self::of_base64(data)).flatten()
    }

    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self { width: big(bytes.get(16..20)?), height: big(bytes.get(20..24)?) })
        } else if bytes.starts_with(b"GIF8") {
            Some(Self { width: little(bytes.get(6..8)?), height: little(bytes.get(8..10)?) })
        } else if bytes.starts_with(b"\xff\xd8") {
            jpeg(bytes)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
            webp(bytes)
        } else {
            None
        }
    }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Walks over the segments to the frame header.
fn jpeg(bytes: &[u8]) -> Option<Image> {
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        let marker = *bytes.get(at + 1)?;
        // Frame headers are C0 to CF, but for tables (C4, CC) and an extension (C8).
        if (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker) {
            let size = bytes.get(at + 5..at + 9)?;
            return Some(Image { width: big(&size[2..]), height: big(&size[..2]) });
        }
        at += 2 + big(bytes.get(at + 2..at + 4)?) as usize;
    }
    None
}

fn webp(bytes: &[u8]) -> Option<Image> {
    match bytes.get(12..16)? {
        b"VP8X" => {
            Some(Image { width: little(bytes.get(24..27)?) + 1, height: little(bytes.get(27..30)?) + 1 })
        }
        b"VP8L" => {
            let bits = little(bytes.get(21..25)?);
            Some(Image { width: (bits & 0x3fff) + 1, height: (bits >> 14 & 0x3fff) + 1 })
        }
        b"VP8 " => {
            let (width, height) = (little(bytes.get(26..28)?), little(bytes.get(28..30)?));
            Some(Image { width: width & 0x3fff, height: height & 0x3fff })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a file, and width and height.
    type Case = (&'static [u8], Option<(u32, u32)>);

    #[test]
    fn the_size_of_an_image_is_in_its_head() {
        let cases: &[Case] = &[
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x00\0\0\0\x02", Some((256, 2))),
            (b"GIF89a\x03\x00\x04\x01", Some((3, 260))),
            (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\x01\x06", Some((262, 5))),
            (b"RIFF....WEBPVP8X....\0\0\0\0\x09\0\0\x13\0\0", Some((10, 20))),
            (b"\x89PNG\r\n\x1a\n", None),
            (b"plain text", None),
        ];
        for (bytes, expected) in cases {
            let size = Image::of_bytes(bytes).map(|image| (image.width, image.height));
            assert_eq!(size, *expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_data_url_is_read_if_it_is_base64() {
        assert_eq!(
            Image::of_data_url("data:image/gif;base64,R0lGODlhAwAEAA=="),
            Some(Image { width: 3, height: 4 })
        );
        assert_eq!(Image::of_data_url("https://example.com/a.png"), None);
    }
}
