//! Requests to the REST APIs of trackers: pages, conditional reads, and limits as errors that say how long to wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{ETAG, HeaderMap, IF_NONE_MATCH, LINK, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use serde_json::Value;

use crate::Reading;
use crate::error::{TrackerError, TrackerErrorKind};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Most pages of one list.
const MAX_PAGES: usize = 200;
/// Fields of answers that hold a list.
const LISTS: &[&str] = &["items", "check_runs", "statuses", "workflow_runs", "jobs"];
/// Reads whose answers are kept, so that an unchanged one costs nothing of the limit.
const MAX_CACHED: usize = 1000;
const MAX_BODY: usize = 16 << 20;
/// End of a log that is kept.
const MAX_LOG: usize = 1 << 20;
/// Wait after a refusal that says no time.
const SECONDARY_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Method {
    Post,
    Patch,
    Put,
    Delete,
}

/// An answer, with the path of the next page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) body: Value,
    pub(crate) next: Option<String>,
}

/// A service, as its requests show it.
pub(crate) struct Service {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Address without a slash at its end.
    pub(crate) endpoint: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// Tokens that change.
pub trait Credentials: Send + Sync {
    /// A token that is valid for the next minutes.
    fn token(&self) -> Reading<String>;
}

pub(crate) struct Api {
    client: Client,
    service: Service,
    /// Tokens of each request, where the headers of the service have none.
    credentials: Option<Arc<dyn Credentials>>,
    cached: Mutex<HashMap<String, (String, Page)>>,
}

impl Api {
    pub(crate) fn new(service: Service) -> Result<Self, TrackerError> {
        Self::with(service, None)
    }

    pub(crate) fn with(
        service: Service,
        credentials: Option<Arc<dyn Credentials>>,
    ) -> Result<Self, TrackerError> {
        // Installed once in a process; another one that is there does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            Client::builder().timeout(TIMEOUT).user_agent(concat!("hangar/", env!("CARGO_PKG_VERSION")));
        let client = client.build().map_err(|error| {
            TrackerError::new(TrackerErrorKind::InvalidConfig, format!("no requests can be made: {error}"))
        })?;
        Ok(Self { client, service, credentials, cached: Mutex::default() })
    }

    pub(crate) fn service_name(&self) -> &'static str {
        self.service.name
    }

    fn transport(&self, path: &str, error: &reqwest::Error) -> TrackerError {
        let message = format!("{} cannot be reached for {path}: {error}", self.service.name);
        TrackerError::new(TrackerErrorKind::Transport, message)
    }

    async fn request(
        &self,
        method: reqwest::Method,
        path: &str,
    ) -> Result<reqwest::RequestBuilder, TrackerError> {
        let request = self.client.request(method, format!("{}{path}", self.service.endpoint));
        let headers = self.service.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(*name, value));
        Ok(match &self.credentials {
            Some(credentials) => request.bearer_auth(credentials.token().await?),
            None => request,
        })
    }

    /// Reads a path. An answer that has not changed comes from here.
    pub(crate) async fn get(&self, path: &str) -> Result<Page, TrackerError> {
        let known = self.cached.lock().get(path).cloned();
        let mut request = self.request(reqwest::Method::GET, path).await?;
        if let Some((tag, _)) = &known {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let answer = request.send().await.map_err(|error| self.transport(path, &error))?;
        if let (StatusCode::NOT_MODIFIED, Some((_, page))) = (answer.status(), known) {
            return Ok(page);
        }
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = self.body(path, answer).await?;
        if !status.is_success() {
            return Err(refusal(self.service.name, path, status, &headers, &bytes));
        }
        let body = serde_json::from_slice(&bytes).map_err(|error| broken(path, &error.to_string()))?;
        let page = Page { body, next: self.next(&headers)? };
        if let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok()) {
            let mut cached = self.cached.lock();
            if cached.len() >= MAX_CACHED {
                cached.clear();
            }
            cached.insert(path.to_owned(), (tag.to_owned(), page.clone()));
        }
        Ok(page)
    }

    /// The body of an answer, up to a limit.
    async fn body(&self, path: &str, mut answer: reqwest::Response) -> Result<Vec<u8>, TrackerError> {
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.transport(path, &error))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > MAX_BODY {
                return Err(broken(path, &format!("the answer is larger than {MAX_BODY} bytes")));
            }
        }
        Ok(bytes)
    }

    /// All pages of a list, which is the answer or one field of it.
    pub(crate) async fn pages(&self, path: &str) -> Result<Vec<Value>, TrackerError> {
        let mut all = Vec::new();
        let mut next = Some(path.to_owned());
        for _ in 0..MAX_PAGES {
            let Some(path) = next else { return Ok(all) };
            let page = self.get(&path).await?;
            let wrapped = LISTS.iter().find_map(|name| page.body.get(*name));
            match wrapped.unwrap_or(&page.body) {
                Value::Array(entries) => all.extend(entries.iter().cloned()),
                // Gitea writes empty lists so.
                Value::Null if wrapped.is_some() => {}
                _ => return Err(broken(&path, "the answer is no list")),
            }
            next = page.next;
        }
        Ok(all)
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, TrackerError> {
        let method = match method {
            Method::Post => reqwest::Method::POST,
            Method::Patch => reqwest::Method::PATCH,
            Method::Put => reqwest::Method::PUT,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = self.request(method, path).await?;
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| self.transport(path, &error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = self.body(path, answer).await?;
        match status.is_success() {
            true => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            false => Err(refusal(self.service.name, path, status, &headers, &bytes)),
        }
    }

    /// Runs a GraphQL operation. Errors in the answer are errors.
    pub(crate) async fn graphql(&self, query: &str, variables: Value) -> Result<Value, TrackerError> {
        // On a server of one's own, the API is below `/api`.
        let path = if self.service.endpoint.ends_with("/api/v3") { "/../graphql" } else { "/graphql" };
        let body = serde_json::json!({ "query": query, "variables": variables });
        let mut answer = self.send(Method::Post, path, Some(&body)).await?;
        if let Some(error) = answer["errors"].as_array().and_then(|errors| errors.first()) {
            let words = error["message"].as_str().unwrap_or("it gives no reason");
            let kind = match error["type"].as_str() {
                Some("RATE_LIMITED") => TrackerErrorKind::RateLimited,
                Some("NOT_FOUND") => TrackerErrorKind::NotFound,
                _ if error["extensions"]["code"] == "RATELIMITED" => TrackerErrorKind::RateLimited,
                _ => TrackerErrorKind::Payload,
            };
            return Err(TrackerError::new(kind, format!("{} refuses a query: {words}", self.service.name)));
        }
        Ok(answer["data"].take())
    }

    /// Reads a text, such as a log, up to a limit.
    pub(crate) async fn text(&self, path: &str) -> Result<String, TrackerError> {
        let answer = self.request(reqwest::Method::GET, path).await?.send().await;
        let mut answer = answer.map_err(|error| self.transport(path, &error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.transport(path, &error))? {
            bytes.extend_from_slice(&part);
            // The end of a log says most.
            let surplus = bytes.len().saturating_sub(MAX_LOG);
            bytes.drain(..surplus);
        }
        match status.is_success() {
            true => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            false => Err(refusal(self.service.name, path, status, &headers, &bytes)),
        }
    }

    /// Path of the next page. One on another host is refused: the token would go there.
    fn next(&self, headers: &HeaderMap) -> Result<Option<String>, TrackerError> {
        let Some(links) = headers.get(LINK).and_then(|links| links.to_str().ok()) else { return Ok(None) };
        let next = links.split(',').find(|link| link.contains("rel=\"next\""));
        let Some(next) = next else { return Ok(None) };
        let address = next.split('<').nth(1).and_then(|rest| rest.split('>').next());
        let path = address.and_then(|address| address.strip_prefix(&self.service.endpoint));
        let lost = || {
            TrackerError::new(TrackerErrorKind::MissingEndCursor, format!("the next page is lost: {next}"))
        };
        path.map(|path| Some(path.to_owned())).ok_or_else(lost)
    }
}

fn broken(path: &str, why: &str) -> TrackerError {
    TrackerError::new(TrackerErrorKind::Payload, format!("{path}: {why}"))
}

/// The reason of a refusal: a text, a list of them, or lists by the names of parameters.
fn words(answer: &Value) -> String {
    fn flat(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Array(all) => all.iter().map(flat).collect::<Vec<_>>().join(", "),
            Value::Object(all) => {
                all.iter().map(|(name, why)| format!("{name} {}", flat(why))).collect::<Vec<_>>().join(", ")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
        }
    }
    let reasons = ["message", "errorMessages", "error"].map(|name| flat(&answer[name]));
    reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_default()
}

/// A text of an answer. One that is missing is empty.
pub(crate) fn text(entry: &Value, name: &str) -> String {
    entry[name].as_str().unwrap_or_default().to_owned()
}

/// A text as one part of a path, or as a value in a query.
pub(crate) fn encoded(part: &str) -> String {
    const PLAIN: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    percent_encoding::utf8_percent_encode(part, PLAIN).to_string()
}

fn refusal(service: &str, path: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> TrackerError {
    let number =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = words(&parsed);
    let named = parsed["errors"].as_object().into_iter().flat_map(|errors| errors.values());
    let errors = parsed["errors"].as_array().into_iter().flatten().chain(named);
    let details: Vec<&str> =
        errors.filter_map(|error| error["message"].as_str().or(error.as_str())).collect();
    let details = if details.is_empty() { String::new() } else { format!(": {}", details.join(", ")) };
    let message = format!("{service} refuses {path}: {} {words}{details}", status.as_u16());
    let number = |name: &str| number(&format!("x-{name}")).or_else(|| number(name));
    let used_up = number("ratelimit-remaining") == Some(0);
    let asked = number(RETRY_AFTER.as_str()).map(Duration::from_secs);
    let is_limit = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::FORBIDDEN
            && (used_up || asked.is_some() || words.contains("secondary rate limit")));
    if is_limit {
        // The clock of the server counts, not ours.
        let now = headers.get("date").and_then(|date| date.to_str().ok());
        let now = now.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        let reset = number("ratelimit-reset").filter(|_| used_up).zip(now).map(|(reset, now)| {
            let left = i64::try_from(reset).unwrap_or(i64::MAX).saturating_sub(now.timestamp().as_second());
            Duration::from_secs(u64::try_from(left).unwrap_or_default())
        });
        let retry_after = asked.or(reset).or(Some(SECONDARY_WAIT));
        return TrackerError { retry_after, ..TrackerError::new(TrackerErrorKind::RateLimited, message) };
    }
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => TrackerErrorKind::Auth,
        StatusCode::NOT_FOUND | StatusCode::GONE => TrackerErrorKind::NotFound,
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::CONFLICT => TrackerErrorKind::NotMergeable,
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST | StatusCode::PRECONDITION_FAILED => {
            TrackerErrorKind::Payload
        }
        _ => TrackerErrorKind::Api,
    };
    TrackerError::new(kind, message)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_answer_without_an_end_is_given_up_at_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 4096]).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n[").unwrap();
            // Ends when the client hangs up.
            while client.write_all(&[b' '; 1 << 16]).is_ok() {}
        });
        let api = Api::new(Service { name: "Test", endpoint, headers: Vec::new() }).unwrap();
        let error = api.get("/issues").await.unwrap_err();
        assert_eq!(error.message, "/issues: the answer is larger than 16777216 bytes");
    }
}
