//! `WORKFLOW.md`: the file that tells the orchestrator which issues to take, with which agent, and what to say to it.
//!
//! [`load`](load::load) reads the file: [`config`] has the settings with their defaults, [`reactions`] those of pull requests,
//! [`template`] the prompt in Go's or Liquid's syntax. Everything that is wrong is a [`Problem`](problem::Problem) with a code and a line.
//! Pure: variables of the environment are handed in.

pub mod config;
pub mod contest;
pub mod dispatch;
pub mod environment;
mod keys;
pub mod load;
pub mod problem;
pub mod reactions;
mod reader;
mod sections;
pub mod template;
mod yaml;

pub use config::Config;
pub use load::{Workflow, load};
pub use problem::{Problem, Report, Severity};
