//! Requests and answers of simulated services, one for each connection.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

/// Largest request; pushes are requests.
const MAX_BODY: usize = 64 << 20;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// Sent instead of the body, as it is.
    pub(crate) raw: Option<Vec<u8>>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body, raw: None }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self { raw: Some(text.as_bytes().to_vec()), ..Self::new(200, Value::Null) }
    }

    pub(crate) fn refused(status: u16, message: &str) -> Self {
        Self::new(status, json!({ "message": message, "status": status.to_string() }))
    }
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) target: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn read(stream: &TcpStream) -> std::io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let bytes = match headers.get("transfer-encoding").map(String::as_str) {
        Some("chunked") => chunks(&mut reader)?,
        _ => {
            let length =
                headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0usize);
            let mut body = vec![0; length.min(MAX_BODY)];
            reader.read_exact(&mut body)?;
            body
        }
    };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
    let (body, path) = (serde_json::from_slice(&bytes).unwrap_or_default(), decoded(path));
    Ok(Some(Request { method, path, query, headers, body, target: target.clone(), bytes }))
}

pub(crate) fn chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; length.min(MAX_BODY)];
        reader.read_exact(&mut chunk)?;
        all.append(&mut chunk);
        reader.read_line(&mut line)?;
        if length == 0 {
            return Ok(all);
        }
    }
}

pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends an answer, as JSON.
pub(crate) fn write(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    let body = if answer.status == 204 { String::new() } else { answer.body.to_string() };
    let mut head =
        format!("HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n", answer.status, body.len());
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())
}
