//! Notifications: questions, failures, budgets and ends reach people by bell, desktop, webhook, Slack or a command.
//!
//! Each destination has a bounded queue and a task of its own, so a slow one delays no other. Deliveries are retried a few times
//! and then given up with a warning that names the destination and not its address.

pub(crate) mod config;

use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use hangar_process::credentials::Child;
use hangar_registry::hub::Hub;
use hangar_registry::notice::Notice;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::config::live::FileStamp;
use crate::credentials;
use crate::output::remark;
use crate::settings::Settings;
use config::{Destination, Rule};

/// Notices that wait for one destination. Further ones are dropped.
const QUEUE: usize = 64;
/// Attempts at one delivery, and the delay before the second, which doubles.
const ATTEMPTS: u32 = 4;
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Time of one attempt.
const DELIVERY_TIME: Duration = Duration::from_secs(10);

/// Starts to deliver the notices of a hub. Rules that are changed later apply to later notices.
pub(crate) fn start(settings: &Settings, hub: &Hub) -> Result<()> {
    let stamp = FileStamp::of(&settings.config_path());
    let sender = Arc::new(Sender {
        settings: settings.clone(),
        http: OnceLock::new(),
        delay: FIRST_DELAY.mul_f64(settings.retry_scale()?),
    });
    let routes = routes(hub, &sender, config::load(settings)?);
    let mut delivery = Delivery { hub: hub.clone(), sender, stamp, routes };
    let mut notices = hub.notices();
    hub.spawn(async move {
        loop {
            let notice = tokio::select! {
                // Notices from before the end are delivered.
                biased;
                notice = notices.recv() => notice,
                () = delivery.hub.stopping().cancelled() => return,
            };
            match notice {
                Ok(notice) => delivery.pass_on(&notice),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
    Ok(())
}

/// A rule with the queues of its destinations.
type Route = (Rule, Vec<mpsc::Sender<Notice>>);

fn routes(hub: &Hub, sender: &Arc<Sender>, rules: Vec<Rule>) -> Vec<Route> {
    let route = |rule: Rule| {
        let queues = rule.destinations.iter().map(|to| queue(hub, sender, to.clone())).collect();
        (rule, queues)
    };
    rules.into_iter().map(route).collect()
}

/// Delivery of notices by the rules of the file as it is.
struct Delivery {
    hub: Hub,
    sender: Arc<Sender>,
    /// The file that the rules were read from.
    stamp: FileStamp,
    routes: Vec<Route>,
}

impl Delivery {
    fn pass_on(&mut self, notice: &Notice) {
        self.refresh();
        let now = jiff::Timestamp::now();
        let admitted = self.routes.iter().filter(|(rule, _)| rule.admits(notice, now));
        for queue in admitted.flat_map(|(_, queues)| queues) {
            // A destination that is that far behind has missed others already.
            let _ = queue.try_send(notice.clone());
        }
    }

    /// Reads the rules again if the file has changed. Rules that cannot be used leave the last ones.
    fn refresh(&mut self) {
        let settings = &self.sender.settings;
        let stamp = FileStamp::of(&settings.config_path());
        if stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        match config::load(settings) {
            Ok(rules) => self.routes = routes(&self.hub, &self.sender, rules),
            Err(error) => tracing::error!("the notifications stay as they were: {error:#}"),
        }
    }
}

/// The queue of one destination, and the task that empties it.
fn queue(hub: &Hub, sender: &Arc<Sender>, to: Destination) -> mpsc::Sender<Notice> {
    let (queue, mut waiting) = mpsc::channel::<Notice>(QUEUE);
    let sender = Arc::clone(sender);
    // It ends with the task that sends to it, after what waits is delivered.
    hub.spawn(async move {
        while let Some(notice) = waiting.recv().await {
            sender.deliver(&to, &notice).await;
        }
    });
    queue
}

fn client() -> reqwest::Result<reqwest::Client> {
    // Set already if anything else has spoken TLS before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(DELIVERY_TIME).build()
}

struct Sender {
    settings: Settings,
    /// Made with the first delivery over HTTP.
    http: OnceLock<reqwest::Client>,
    delay: Duration,
}

impl Sender {
    async fn deliver(&self, to: &Destination, notice: &Notice) {
        let mut delay = self.delay;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(to, notice).await {
                Ok(()) => return,
                Err(why) if attempt == ATTEMPTS => {
                    remark(&format!("note: a notification by {} was given up: {why}", to.name()));
                }
                Err(_) => {
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                }
            }
        }
    }

    /// One attempt. The error has neither an address nor an answer in it, which may hold secrets.
    async fn attempt(&self, to: &Destination, notice: &Notice) -> Result<(), String> {
        match to {
            Destination::Bell => {
                let mut out = std::io::stderr();
                out.write_all(b"\x07").and_then(|()| out.flush()).map_err(|error| error.kind().to_string())
            }
            Destination::Desktop => self.run(&desktop(notice), None).await,
            Destination::Webhook(address) => self.post(address, &json!(notice)).await,
            Destination::Slack(address) => {
                let text = format!("*{}*\n{}", slack(&notice.title), slack(&notice.text));
                self.post(address, &json!({ "text": text })).await
            }
            Destination::Command(command) => {
                let line = serde_json::to_string(notice).map_err(|_| "it is no JSON".to_owned())?;
                self.run(command, Some(line)).await
            }
        }
    }

    async fn post(&self, address: &str, body: &serde_json::Value) -> Result<(), String> {
        let http = match self.http.get() {
            Some(http) => http,
            None => {
                let made = client().map_err(|_| "there is no HTTP client".to_owned())?;
                self.http.get_or_init(|| made)
            }
        };
        let sent = http.post(address).json(body).send().await;
        match sent {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("status {}", answer.status().as_u16())),
            Err(error) if error.is_timeout() => Err("no answer in time".to_owned()),
            Err(error) if error.is_connect() => Err("no connection".to_owned()),
            Err(_) => Err("the request failed".to_owned()),
        }
    }

    async fn run(&self, command: &[String], input: Option<String>) -> Result<(), String> {
        let [program, args @ ..] = command else { return Ok(()) };
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .env_clear()
            .envs(credentials::environment(&self.settings, Child::Helper, &[]))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("`{program}` cannot be started: {}", error.kind()))?;
        let done = async {
            if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
                // A command that does not read it has its reasons.
                let _ = stdin.write_all(format!("{input}\n").as_bytes()).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(DELIVERY_TIME, done).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("`{program}` ended with {status}")),
            Ok(Err(error)) => Err(format!("`{program}`: {}", error.kind())),
            Err(_) => Err(format!("`{program}` did not end in time")),
        }
    }
}

/// Characters that Slack gives a meaning.
fn slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The command that shows a notice on the desktop.
fn desktop(notice: &Notice) -> Vec<String> {
    let (title, text) = (notice.title.clone(), notice.text.clone());
    if cfg!(target_os = "macos") {
        let script =
            "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        return vec!["osascript".to_owned(), "-e".to_owned(), script.to_owned(), title, text];
    }
    ["notify-send", "--app-name=Hangar", "--"].map(str::to_owned).into_iter().chain([title, text]).collect()
}
