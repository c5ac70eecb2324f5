//! Telling images from other files.

use std::path::Path;

/// Bytes of an image that are read. More than any image has that can be scaled.
pub(crate) const SIZE_LIMIT: u64 = 32 << 20;

/// Whether the name promises an image.
pub(crate) fn is_named_as_image(path: &Path) -> bool {
    const EXTENSIONS: [&str; 9] = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "tif", "tiff"];
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The type by content, for those that models understand. Names lie.
pub(crate) fn mime_type(content: &[u8]) -> Option<&'static str> {
    match content {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
