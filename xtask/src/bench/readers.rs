//! Two hundred readers of one session that says a thousand things a second.
//!
//! The readers stand for other machines and share this one with the portal. So there is one thread for all of them, it sleeps
//! until one has something, and it takes no event apart: it looks for the number and the time of each.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;

use super::portal::{NAME, Portal};
use super::table::{Table, Unit};

const READERS: usize = 200;
const EVENTS: usize = 10_000;
/// A quarter more than a thousand a second.
const EVERY_MS: f64 = 0.8;
/// The longest silence of all readers together.
const SILENCE: Duration = Duration::from_secs(30);
/// Between two looks at all readers, so that looking costs little. It counts as delay.
const BREATH: Duration = Duration::from_millis(1);
/// What is read of one reader before the others get a turn.
const AT_ONCE: usize = 64 << 10;
/// Delays are counted by the millisecond up to this; those above count as this.
const LONGEST_DELAY: usize = 10_000;

pub(crate) fn measure(portal: &Portal, table: &mut Table) -> Result<()> {
    let id = portal.open("SAY:ready")?;
    while portal.get(&format!("/api/v1/sessions/{id}"))?["state"] != "idle" {
        std::thread::sleep(Duration::from_millis(50));
    }
    let path = format!("/api/v1/sessions/{id}/stream");
    let mut readers = (0..READERS).map(|_| Reader::join(portal, &path)).collect::<Result<Vec<_>>>()?;
    let before = portal.cpu()?;
    let begun = Instant::now();
    let prompt = format!("STREAM:{EVENTS}:{EVERY_MS}");
    portal.post(&format!("/api/v1/sessions/{id}/messages"), &json!({ "text": prompt }))?;
    let mut delays = vec![0_u64; LONGEST_DELAY + 1];
    read_all(&mut readers, &mut delays)?;
    let cpu = portal.cpu()? - before;
    let cores = cpu.as_secs_f64() / begun.elapsed().as_secs_f64();
    let lost: usize = readers.iter().map(|reader| EVENTS.saturating_sub(reader.heard)).sum();
    let disordered = readers.iter().filter(|reader| reader.disordered).count();
    // By the clock of whoever said it: what the portal was given to tell.
    let rate = readers.first().and_then(Reader::rate).unwrap_or(0.0);
    table.add("200 readers: events per second", Unit::Pieces, NAME, rate);
    table.add("200 readers: events lost", Unit::Pieces, NAME, lost as f64);
    table.add("200 readers: out of order", Unit::Pieces, NAME, disordered as f64);
    table.add("200 readers: delay, median", Unit::Milliseconds, NAME, quantile(&delays, 0.5));
    table.add("200 readers: delay, p99", Unit::Milliseconds, NAME, quantile(&delays, 0.99));
    table.add("200 readers: cores of the portal", Unit::Percent, NAME, cores * 100.0);
    Ok(())
}

fn read_all(readers: &mut [Reader], delays: &mut [u64]) -> Result<()> {
    let mut buffer = vec![0; AT_ONCE];
    let timeout = PollTimeout::try_from(SILENCE).context("the longest silence")?;
    loop {
        let open: Vec<usize> = (0..readers.len()).filter(|at| !readers[*at].done).collect();
        if open.is_empty() {
            return Ok(());
        }
        let ready: Vec<usize> = {
            let mut files: Vec<PollFd<'_>> =
                open.iter().map(|at| PollFd::new(readers[*at].stream.as_fd(), PollFlags::POLLIN)).collect();
            if poll(&mut files, timeout).context("waiting for the portal")? == 0 {
                bail!("the portal said nothing for {} s", SILENCE.as_secs());
            }
            let is_ready = |file: &PollFd<'_>| file.any().unwrap_or(true);
            open.iter().zip(&files).filter(|(_, file)| is_ready(file)).map(|(at, _)| *at).collect()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        for at in ready {
            readers[at].read(&mut buffer, now, delays);
        }
        std::thread::sleep(BREATH);
    }
}

/// The value below which that share of all delays lies.
fn quantile(delays: &[u64], share: f64) -> f64 {
    let wanted = (delays.iter().sum::<u64>() as f64 * share) as u64;
    let mut seen = 0;
    let place = delays.iter().position(|count| {
        seen += count;
        seen > wanted
    });
    place.unwrap_or(LONGEST_DELAY) as f64
}

/// One reader: counts the pieces of the answer and notes how late each came.
struct Reader {
    stream: TcpStream,
    chunks: Chunks,
    /// What came and is not a whole message yet.
    text: Vec<u8>,
    heard: usize,
    /// The number of the piece that comes next, if none is lost.
    next: usize,
    disordered: bool,
    /// When the first and the last piece were said.
    said: Option<(u64, u64)>,
    done: bool,
}

impl Reader {
    fn join(portal: &Portal, path: &str) -> Result<Self> {
        let (stream, come) = portal.stream(path)?;
        let mut reader = Self {
            stream,
            chunks: Chunks::default(),
            text: Vec::new(),
            heard: 0,
            next: 0,
            disordered: false,
            said: None,
            done: false,
        };
        reader.chunks.unwrap(&come, &mut reader.text);
        Ok(reader)
    }

    fn read(&mut self, buffer: &mut [u8], now: u64, delays: &mut [u64]) {
        match self.stream.read(buffer) {
            Ok(length) if length > 0 => self.chunks.unwrap(&buffer[..length], &mut self.text),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Ok(_) | Err(_) => self.done = true,
        }
        let text = std::mem::take(&mut self.text);
        let mut rest = text.as_slice();
        while let Some(end) = find(rest, b"\n\n") {
            self.hear(&rest[..end], now, delays);
            rest = &rest[end + 2..];
        }
        self.text = rest.to_vec();
    }

    fn hear(&mut self, message: &[u8], now: u64, delays: &mut [u64]) {
        if let Some(piece) = find(message, b"\"deltaContent\":\"tok").map(|at| &message[at + 19..]) {
            let number = piece.iter().take_while(|byte| byte.is_ascii_digit());
            let number = number.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            self.disordered |= number < self.next;
            self.next = number + 1;
            self.heard += 1;
            if let Some(said) = find(piece, b"\"timestamp\":\"").and_then(|at| day_millis(&piece[at + 13..]))
            {
                self.said = Some((self.said.map_or(said, |(first, _)| first), said));
                // The bench does not run over midnight often enough to matter.
                let delay = (now % DAY).saturating_sub(said) as usize;
                delays[delay.min(LONGEST_DELAY)] += 1;
            }
        } else if self.heard > 0 && find(message, b"{\"type\":\"session.idle\"").is_some() {
            self.done = true;
        }
    }

    fn rate(&self) -> Option<f64> {
        let (first, last) = self.said?;
        Some(self.heard.saturating_sub(1) as f64 * 1e3 / last.saturating_sub(first).max(1) as f64)
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

const DAY: u64 = 24 * 3600 * 1000;

/// Milliseconds since midnight, of a time like `2026-01-01T10:00:00.000Z`.
fn day_millis(time: &[u8]) -> Option<u64> {
    let part = |from: usize, to: usize| {
        let digits = time.get(from..to)?.iter();
        Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0'))))
    };
    Some(((part(11, 13)? * 60 + part(14, 16)?) * 60 + part(17, 19)?) * 1000 + part(20, 23)?)
}

/// Takes the frames of HTTP off the body of a stream.
#[derive(Default)]
struct Chunks {
    /// Bytes of the chunk that is being read.
    left: usize,
    /// The line with the length of the next one, as far as it came.
    head: Vec<u8>,
}

impl Chunks {
    fn unwrap(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                body.extend_from_slice(&bytes[..taken]);
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            // The end of the chunk before stands in front of it.
            let line = self.head.strip_prefix(b"\r\n").unwrap_or(&self.head);
            if let Some(length) = line.strip_suffix(b"\r\n").filter(|length| !length.is_empty()) {
                let length = std::str::from_utf8(length).unwrap_or_default();
                self.left = usize::from_str_radix(length, 16).unwrap_or(0);
                self.head.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_wherever_it_is_cut() {
        let wire = b"5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n";
        for cut in 0..wire.len() {
            let (mut chunks, mut body) = (Chunks::default(), Vec::new());
            chunks.unwrap(&wire[..cut], &mut body);
            chunks.unwrap(&wire[cut..], &mut body);
            assert_eq!(String::from_utf8_lossy(&body), "hello, world", "cut at {cut}");
        }
    }

    #[test]
    fn times_are_read_by_their_place() {
        assert_eq!(day_millis(b"2026-01-01T01:02:03.004Z"), Some(3_723_004));
    }

    #[test]
    fn a_quantile_is_where_that_share_lies() {
        let mut delays = vec![0; LONGEST_DELAY + 1];
        (delays[3], delays[40]) = (99, 1);
        assert_eq!((quantile(&delays, 0.5), quantile(&delays, 0.99)), (3.0, 40.0));
    }
}
