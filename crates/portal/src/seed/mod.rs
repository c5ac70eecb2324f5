//! The routes under `/api` that the first pages and tests of the portal know.

mod callbacks;
mod entities;
mod live;
mod response;
mod runs;
mod shelf;
