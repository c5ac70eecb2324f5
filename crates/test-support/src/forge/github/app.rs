//! The installation of a GitHub App on the simulated GitHub. Signatures are verified by OpenSSL.

use std::io::Write;
use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::forge::http::{Answer, Request};
use crate::forge::{ForgeServer, Repository, TOKEN};

/// Number of the only installation.
const INSTALLATION: &str = "77";

/// An app with one installation.
pub struct InstalledApp {
    id: String,
    keys: tempfile::TempDir,
    /// Life of new tokens.
    pub seconds: i64,
    /// Tokens that were made.
    pub tokens: Vec<String>,
}

/// Form of a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// As GitHub gives it.
    Pkcs1,
    Pkcs8,
}

impl ForgeServer {
    /// Installs an app, and returns its private key.
    pub fn install_app(&self, id: &str, form: KeyForm) -> String {
        let keys = tempfile::tempdir().expect("a directory for keys");
        let (private, public) = (keys.path().join("private.pem"), keys.path().join("public.pem"));
        let (private, public) = (private.display().to_string(), public.display().to_string());
        openssl(&["genrsa", "-out", &private, "2048"]);
        openssl(&["rsa", "-in", &private, "-pubout", "-out", &public]);
        let key = match form {
            KeyForm::Pkcs1 => openssl(&["rsa", "-in", &private, "-traditional"]),
            KeyForm::Pkcs8 => openssl(&["pkcs8", "-topk8", "-nocrypt", "-in", &private]),
        };
        let app = InstalledApp { id: id.to_owned(), keys, seconds: 3600, tokens: Vec::new() };
        self.repository().app = Some(app);
        key
    }
}

fn openssl(args: &[&str]) -> String {
    let output = Command::new("openssl").args(args).stdin(Stdio::null()).output().expect("openssl runs");
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a path is for apps themselves, not for their installations.
pub(super) fn is_for_app(path: &str) -> bool {
    path.starts_with("/app/") || path == "/repos/octo/app/installation"
}

/// Bytes of a text in the alphabet of URLs, without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::new();
    for part in text.as_bytes().chunks(4) {
        let number = part.iter().try_fold(0u32, |sum, byte| Some(sum << 6 | u32::from(value(*byte)?)))?;
        let number = number << (6 * (4 - part.len()));
        bytes.extend(&number.to_be_bytes()[1..part.len()]);
    }
    Some(bytes)
}

impl InstalledApp {
    /// Whether a JSON web token is signed with the key, is of this app, and lasts at most ten minutes.
    pub(super) fn is_proof(&self, token: &str) -> bool {
        let Some((signed, signature)) = token.rsplit_once('.') else { return false };
        let Some((head, claims)) = signed.split_once('.') else { return false };
        let json = |part: &str| serde_json::from_slice::<Value>(&decoded(part)?).ok();
        let (Some(head), Some(claims), Some(signature)) = (json(head), json(claims), decoded(signature))
        else {
            return false;
        };
        let now = Timestamp::now().as_second();
        let (from, until) = (claims["iat"].as_i64().unwrap_or(i64::MAX), claims["exp"].as_i64().unwrap_or(0));
        let is_timely = from <= now && until > now && until - now <= 600;
        head["alg"] == "RS256"
            && claims["iss"] == self.id.as_str()
            && is_timely
            && self.verifies(signed, &signature)
    }

    fn verifies(&self, signed: &str, signature: &[u8]) -> bool {
        let file = self.keys.path().join("signature");
        std::fs::write(&file, signature).expect("a file for the signature");
        let mut child = Command::new("openssl")
            .args(["dgst", "-sha256", "-verify"])
            .arg(self.keys.path().join("public.pem"))
            .arg("-signature")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("openssl runs");
        child.stdin.take().expect("it is piped").write_all(signed.as_bytes()).expect("openssl reads");
        child.wait().is_ok_and(|status| status.success())
    }
}

impl Repository {
    /// Whether a token is the fixed one, or one of the app. With an app, the fixed one is refused.
    pub(in crate::forge) fn is_token(&self, token: &str) -> bool {
        match &self.app {
            Some(app) => app.tokens.iter().any(|known| known == token),
            None => token == TOKEN,
        }
    }

    pub(super) fn answer_app(&mut self, request: &Request) -> Answer {
        let app = self.app.as_mut().expect("its proof was verified");
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/repos/octo/app/installation") => {
                Answer::new(200, json!({ "id": 77, "app_slug": "hangar", "account": { "login": "octo" } }))
            }
            ("POST", path) if path == format!("/app/installations/{INSTALLATION}/access_tokens") => {
                let token = format!("ghs_{}", app.tokens.len() + 1);
                app.tokens.push(token.clone());
                let until = Timestamp::now() + SignedDuration::from_secs(app.seconds);
                Answer::new(201, json!({ "token": token, "expires_at": format!("{until:.0}") }))
            }
            _ => Answer::refused(404, "Not Found"),
        }
    }
}
