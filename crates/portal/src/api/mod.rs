//! `/api/v1`: one table of routes, from which the router and its description are made.

mod approvals;
mod changes;
mod costs;
mod described;
mod fleet;
mod hooks;
mod input;
mod issues;
mod memory;
mod meta;
mod openapi;
mod queue;
mod runs;
mod runtimes;
mod sessions;
mod settings;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use axum::{Extension, Router};
use hangar_jobs::record::RunId;
use hangar_registry::hub::Hub;
use hangar_registry::runs::Runs;

use self::described::Described;
use crate::assets;
use crate::fleet::FleetHost;
use crate::guard::{self, AccessGuard};
use crate::issues::{IssuesHost, WorkflowsHost};
use crate::memory::MemoryHost;
use crate::metrics;
use crate::polling::{self, Polling};
use crate::problem::Problem;
use crate::roster::Roster;
use crate::settings::{AutomationHost, SettingsHost};

/// Largest body of a request: a long prompt.
const MAX_BODY: usize = 16 << 20;
/// Time limit of a request until its answer begins. Opening an agent is the slowest.
const REQUEST_TIME: Duration = Duration::from_secs(120);

/// Maximum body size of a route, where it is smaller than the common one.
#[derive(Clone, Copy)]
struct BodyLimit(usize);

/// State that all routes share.
#[derive(Clone)]
pub struct App {
    pub hub: Hub,
    pub runs: Runs,
    pub guard: Arc<AccessGuard>,
    pub about: Arc<About>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) settings: Option<SettingsParts>,
    /// Machines of the fleet whose sessions are shown.
    pub(crate) fleet: Option<Arc<dyn FleetHost>>,
    polling: Arc<Polling>,
}

/// Settings of the machine, the work that they start, its issues, and notes about its repositories; a portal of a single run has none.
#[derive(Clone)]
pub struct SettingsParts {
    pub settings: Arc<dyn SettingsHost>,
    pub automation: Arc<dyn AutomationHost>,
    pub memory: Arc<dyn MemoryHost>,
    pub issues: Arc<dyn IssuesHost>,
    pub workflows: Arc<dyn WorkflowsHost>,
}

/// Description of the portal.
#[derive(Debug, Clone)]
pub struct About {
    pub version: String,
    pub home: PathBuf,
    /// The repository that the portal was started in, or the directory.
    pub repo_root: PathBuf,
    /// Default working directory of sessions.
    pub workspace: PathBuf,
    /// Whether tests may replace the jobs.
    pub test: bool,
}

impl App {
    pub fn new(runs: Runs, guard: AccessGuard, about: About) -> Self {
        let hub = runs.hub().clone();
        let roster = Arc::new(Roster::new(hub.clone()));
        let polling = Arc::new(Polling::new(hub.clone(), runs.clone(), Arc::clone(&roster), &about));
        Self {
            hub,
            runs,
            guard: Arc::new(guard),
            about: Arc::new(about),
            roster,
            settings: None,
            fleet: None,
            polling,
        }
    }

    /// The same with settings, schedules and hooks.
    #[must_use]
    pub fn with_settings(self, settings: SettingsParts) -> Self {
        Self { settings: Some(settings), ..self }
    }

    /// The same with the machines of a fleet.
    #[must_use]
    pub fn with_fleet(self, fleet: Option<Arc<dyn FleetHost>>) -> Self {
        Self { fleet, ..self }
    }
}

impl App {
    /// The run of a job that a client which polls has started.
    pub(crate) fn run_of_job(&self, job: &str) -> Option<RunId> {
        self.polling.run_of_job(job)
    }
}

/// All routes, behind the guard.
pub fn router(app: App) -> Router {
    let api = endpoints()
        .into_iter()
        .fold(Router::new(), |router, endpoint| router.route(endpoint.path, endpoint.route));
    Router::new()
        .merge(api)
        .route("/metrics", routing::get(metrics::metrics))
        .route("/livez", routing::get(metrics::livez))
        .route("/readyz", routing::get(metrics::readyz))
        .route("/api/v1", routing::any(nothing_here))
        .route("/api/v1/", routing::any(nothing_here))
        .route("/api/v1/{*rest}", routing::any(nothing_here))
        .merge(polling::routes(Arc::clone(&app.polling)))
        .fallback(routing::get(assets::serve))
        .method_not_allowed_fallback(not_that_way)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(in_time))
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app)
}

async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            format!("this took longer than {} s and was given up", REQUEST_TIME.as_secs()),
        )
        .into_response(),
    }
}

async fn nothing_here() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "route_not_found",
        "there is no such route; GET /api/v1/openapi.json lists those that there are",
    )
}

async fn not_that_way() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this route does not take that method; GET /api/v1/openapi.json says which it takes",
    )
}

/// One route.
struct Endpoint {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the description of the API"))]
    method: &'static str,
    path: &'static str,
    route: MethodRouter<App>,
    described: Described,
}

impl Endpoint {
    fn new(
        method: &'static str,
        path: &'static str,
        summary: &'static str,
        route: MethodRouter<App>,
    ) -> Self {
        Self { method, path, route, described: Described::new(summary) }
    }

    fn query<T: schemars::JsonSchema>(mut self) -> Self {
        self.described.query::<T>();
        self
    }

    fn body<T: schemars::JsonSchema>(mut self) -> Self {
        self.described.body::<T>();
        self
    }

    fn answers<T: schemars::JsonSchema>(mut self, status: u16) -> Self {
        self.described.answers::<T>(status);
        self
    }

    fn empty(mut self, status: u16) -> Self {
        self.described.empty(status);
        self
    }

    /// Limits the size of bodies.
    fn limit(self, bytes: usize) -> Self {
        let route: MethodRouter<App> = self.route.layer(DefaultBodyLimit::max(bytes));
        Self { route: route.layer(Extension(BodyLimit(bytes))), ..self }
    }

    fn open(mut self) -> Self {
        self.described.open();
        self
    }

    fn streams(mut self, what: &'static str) -> Self {
        self.described.streams(what);
        self
    }
}

macro_rules! method {
    ($name:ident, $method:literal, $route:path) => {
        fn $name<H, T>(path: &'static str, summary: &'static str, handler: H) -> Endpoint
        where
            H: Handler<T, App>,
            T: 'static,
        {
            Endpoint::new($method, path, summary, $route(handler))
        }
    };
}

method!(get, "get", routing::get);
method!(post, "post", routing::post);
method!(put, "put", routing::put);
method!(patch, "patch", routing::patch);
method!(delete, "delete", routing::delete);

fn endpoints() -> Vec<Endpoint> {
    let mut all = meta::endpoints();
    all.extend(sessions::endpoints());
    all.extend(approvals::endpoints());
    all.extend(runtimes::endpoints());
    all.extend(runs::endpoints());
    all.extend(queue::endpoints());
    all.extend(issues::endpoints());
    all.extend(costs::endpoints());
    all.extend(changes::endpoints());
    all.extend(settings::endpoints());
    all.extend(memory::endpoints());
    all.extend(fleet::endpoints());
    all.extend(hooks::endpoints());
    all.push(get("/api/v1/stream", "Stream changes of resources", stream::resources).streams(
        "`hello` with an id of this start of the server, then `session`, `run`, `approval` and `runtime` with the \
         resource when it changes; `gone` with the `kind` and the `id` when it is deleted",
    ));
    all.push(
        get("/api/v1/openapi.json", "This document", openapi::document).answers::<serde_json::Value>(200),
    );
    all
}

/// The part of the state that a handler wants.
type Of = State<App>;
