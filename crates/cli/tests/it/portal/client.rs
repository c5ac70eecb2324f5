//! A client of the portal: plain HTTP over a socket, so that tests see what is really sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long a test waits for bytes before it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A request that can be written as somebody else would not.
pub(crate) struct Ask {
    port: u16,
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub(crate) fn new(port: u16, method: &str, path: &str) -> Self {
        let host = ("host".to_owned(), format!("127.0.0.1:{port}"));
        Self { port, line: format!("{method} {path} HTTP/1.1"), headers: vec![host], body: Vec::new() }
    }

    /// Replaces a header, or adds one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        let ask = self.header("content-type", "application/json");
        Self { body: body.to_string().into_bytes(), ..ask }
    }

    pub(crate) fn text(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    fn connect(self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = self.line;
        for (name, value) in &self.headers {
            head.push_str(&format!("\r\n{name}: {value}"));
        }
        head.push_str(&format!("\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", self.body.len()));
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&self.body));
        BufReader::new(stream)
    }

    pub(crate) fn send(self) -> Answer {
        let mut reader = self.connect();
        let (status, headers) = head(&mut reader);
        let mut body = Vec::new();
        if is_chunked(&headers) {
            while let Some(chunk) = chunk(&mut reader) {
                body.extend(chunk);
            }
        } else {
            let _ = reader.read_to_end(&mut body);
        }
        Answer { status, headers, body }
    }

    /// Opens a stream.
    #[track_caller]
    pub(crate) fn stream(self) -> Stream {
        let mut reader = self.connect();
        let (status, headers) = head(&mut reader);
        assert_eq!(status, 200, "{headers}");
        Stream { reader, text: String::new() }
    }
}

fn head(reader: &mut impl BufRead) -> (u16, String) {
    let mut headers = String::new();
    while reader.read_line(&mut headers).unwrap_or(0) > 2 {}
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, headers)
}

fn is_chunked(headers: &str) -> bool {
    headers.to_lowercase().contains("transfer-encoding: chunked")
}

fn chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let length = usize::from_str_radix(line.trim(), 16).ok().filter(|length| *length > 0)?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    Some(chunk)
}

/// One message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) event: Option<String>,
    pub(crate) data: Value,
}

impl Message {
    pub(crate) fn kind(&self) -> &str {
        self.data["type"].as_str().unwrap_or_default()
    }
}

/// Server-sent events.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Stream {
    /// The next message; `None` when the server ends the stream.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            while let Some((message, rest)) = self.text.split_once("\n\n") {
                let (message, rest) = (parse(message), rest.to_owned());
                self.text = rest;
                if message.is_some() {
                    return message;
                }
            }
            let chunk = chunk(&mut self.reader)?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All messages up to one that is waited for, with it.
    #[track_caller]
    pub(crate) fn until(&mut self, done: impl Fn(&Message) -> bool) -> Vec<Message> {
        let mut heard = Vec::new();
        loop {
            let Some(message) = self.next() else { panic!("the stream ended after {heard:#?}") };
            heard.push(message);
            if heard.last().is_some_and(&done) {
                return heard;
            }
        }
    }

    /// Waits for an event of a session.
    #[track_caller]
    pub(crate) fn until_kind(&mut self, kind: &str) -> Vec<Message> {
        self.until(|message| message.kind() == kind)
    }

    /// Waits until the session is in this state.
    #[track_caller]
    pub(crate) fn until_state(&mut self, state: &str) -> Vec<Message> {
        self.until(|message| message.event.as_deref() == Some("session") && message.data["state"] == state)
    }
}

fn parse(text: &str) -> Option<Message> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ")?).unwrap();
    Some(Message {
        id: field("id: ").map(|id| id.parse().unwrap()),
        event: field("event: ").map(str::to_owned),
        data,
    })
}
