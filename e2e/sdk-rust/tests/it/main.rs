//! The Rust SDK as a client of Hangar, on the scripted model.

mod conversation;
mod lifetime;
