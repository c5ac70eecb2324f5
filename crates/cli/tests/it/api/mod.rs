//! The server by the published description of the protocol: its methods, their parameters and their results.

mod fuzz;
mod results;
mod shapes;
mod slow_reader;

pub(crate) use shapes::Api;
