//! Server-sent events, parsed from bytes that may be split anywhere.

#[cfg(test)]
mod tests;

/// An event may carry an image; no valid event comes close to this.
const EVENT_LIMIT: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    #[error("an event of the stream is larger than {EVENT_LIMIT} bytes")]
    TooLarge,
    #[error("the stream is not valid UTF-8")]
    NotUtf8,
}

/// Splits a byte stream into the data of its events. Names, ids and comments are skipped: on every wire the data has
/// its own type.
#[derive(Default)]
pub(crate) struct SseParser {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The data lines of the event so far, each with a newline after it.
    data: Vec<u8>,
    /// Whether the last byte was a CR, so that a following LF belongs to it.
    after_cr: bool,
}

impl SseParser {
    /// Takes the next bytes and calls `event` with the data of each event that they complete.
    pub(crate) fn push<E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return self.check_size().map_err(E::from);
            };
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut event)?;
            } else {
                self.line.extend_from_slice(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut event)?;
                self.line = line;
                self.line.clear();
            }
            self.check_size()?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// The stream ended. An event without its blank line still counts: some servers omit it at the end.
    pub(crate) fn end<E: From<SseError>>(
        &mut self,
        event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.push(b"\n\n", event)
    }

    fn take_line<E: From<SseError>>(
        &mut self,
        line: &[u8],
        event: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if line.is_empty() {
            return self.dispatch(event);
        }
        // A byte order mark may stand before the first field.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if let Some(value) = line.strip_prefix(b"data") {
            let value = match value {
                [b':', b' ', value @ ..] | [b':', value @ ..] => value,
                [] => value,
                _ => return Ok(()),
            };
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        event: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((_, data)) = self.data.split_last() else { return Ok(()) };
        let result = str::from_utf8(data).map_err(|_| E::from(SseError::NotUtf8)).and_then(event);
        self.data.clear();
        result
    }

    fn check_size(&self) -> Result<(), SseError> {
        if self.line.len() + self.data.len() > EVENT_LIMIT { Err(SseError::TooLarge) } else { Ok(()) }
    }
}
