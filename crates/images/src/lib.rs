//! Images as models take them: scaled to their limits, in a format that they read, and replaced by a sentence where that
//! is not possible. A provider refuses a whole request for one image that it cannot use.

mod fit;
mod provider;

pub use fit::{Fitted, ImageLimits, Size, fit};
pub use provider::ScaledImages;
