//! A server on loopback that does exactly what a test says, down to the bytes.

use std::collections::BTreeMap;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The server's reaction to a request, step by step.
#[derive(Clone)]
pub(crate) enum Act {
    Send(String),
    /// Sends each byte on its own.
    Drip(String),
    /// Closes the connection.
    Close,
    /// Does nothing until the client goes away.
    Hang,
}

#[derive(Debug)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// Which connection it came by.
    pub(crate) connection: usize,
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
    /// Says when a client went away while the server hung.
    pub(crate) left: mpsc::UnboundedReceiver<()>,
}

/// Answers the first request with the first answer, and so on; the last answer is given again.
pub(crate) async fn serve(answers: Vec<Vec<Act>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (requests_to, requests) = mpsc::unbounded_channel();
    let (left_to, left) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = answers.into_iter().peekable();
        let mut connection = 0;
        // One connection at a time: the tests make one call after the other.
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            while let Some(request) = read(&mut stream, connection).await {
                let _ = requests_to.send(request);
                let answer = answers.next().unwrap_or_default();
                if answers.peek().is_none() {
                    answers = vec![answer.clone()].into_iter().peekable();
                }
                if !act(&mut stream, &answer, &left_to).await {
                    break;
                }
            }
            connection += 1;
        }
    });
    Server { url, requests, left }
}

async fn read(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { line, headers, body: String::from_utf8(body).unwrap(), connection })
}

/// False if the connection is over.
async fn act(stream: &mut BufReader<TcpStream>, answer: &[Act], left: &mpsc::UnboundedSender<()>) -> bool {
    for act in answer {
        match act {
            Act::Send(bytes) => {
                if stream.get_mut().write_all(bytes.as_bytes()).await.is_err() {
                    return false;
                }
            }
            Act::Drip(bytes) => {
                for byte in bytes.as_bytes() {
                    if stream.get_mut().write_all(&[*byte]).await.is_err() {
                        return false;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Act::Close => return false,
            Act::Hang => {
                let mut byte = [0];
                while matches!(stream.read(&mut byte).await, Ok(1)) {}
                let _ = left.send(());
                return false;
            }
        }
    }
    true
}

/// A whole response.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<Act> {
    vec![Act::Send(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()))]
}

pub(crate) fn json(body: &str) -> Vec<Act> {
    response("200 OK", "content-type: application/json\r\n", body)
}

/// The head of a stream whose length nobody knows.
pub(crate) fn stream_head() -> Act {
    Act::Send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".into(),
    )
}

/// A piece of a stream.
pub(crate) fn chunk(text: &str) -> Act {
    Act::Send(format!("{:x}\r\n{text}\r\n", text.len()))
}

/// A whole stream of events with these data. Its end comes together with the last event, so that a client that reads the
/// one has the other.
pub(crate) fn stream(events: &[&str]) -> Vec<Act> {
    let mut acts = vec![stream_head()];
    acts.extend(events.iter().map(|data| chunk(&format!("data: {data}\n\n"))));
    if let Some(Act::Send(last)) = acts.last_mut() {
        last.push_str("0\r\n\r\n");
    }
    acts
}
