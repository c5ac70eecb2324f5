//! The routes under `/api` that the first pages and tests of the portal know.

mod callbacks;
mod live;
mod response;
