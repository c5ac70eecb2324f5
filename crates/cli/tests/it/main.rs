//! Tests of the real binary, from outside: what it prints, what it writes, what it asks of the model, how it ends.

mod acp;
mod agents;
mod api;
mod attacks;
mod budget;
mod captures;
mod checked;
mod children;
mod cli;
mod clients;
mod commands;
mod config;
mod context;
mod costs;
mod custom;
mod fleet;
mod front_end_extensions;
mod front_ends;
mod gate;
mod hooks;
mod jobs;
mod mcp;
mod mcp_live;
mod mcp_login;
mod mechanisms;
mod model_view;
mod named_agents;
mod notifications;
mod onboarding;
mod orchestrate;
mod planted;
mod portal;
mod portal_polling;
mod published;
mod questions;
mod queue;
mod readme;
mod recomposed;
mod resumed_model;
mod runtimes;
mod sandbox;
mod schema;
mod sdk;
mod sdk_access;
mod sdk_agents;
mod sdk_canvas;
mod sdk_commands;
mod sdk_details;
mod sdk_discovery;
mod sdk_events;
mod sdk_extensions;
mod sdk_methods;
mod sdk_models;
mod sdk_order;
mod sdk_plugins;
mod sdk_protocol;
mod sdk_schedules;
mod secrets;
mod secrets_of_agents;
mod session_fs;
mod sessions;
mod streaming;
mod telemetry;
mod terminal;
mod terminal_copilot;
mod terminal_tmux;
mod vendors;

use hangar_test_support::{Invocation, ModelServer, Scratch};

const HANGAR: &str = env!("CARGO_BIN_EXE_hangar");

/// `hangar` on a scratch machine, with a scripted model as its provider.
fn hangar(scratch: &Scratch, model: &ModelServer) -> Invocation {
    scratch.run(HANGAR).provider(model.url()).env("HANGAR_RETRY_SCALE", "0.01")
}
