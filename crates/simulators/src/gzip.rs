//! Gzip without compression: stored blocks only. Enough to test how a client reacts to an encoding that it did not ask
//! for.

/// Magic number, deflate, no flags, no time, unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes of the longest stored block.
const MAX_BLOCK: usize = 0xffff;

/// A gzip stream being written.
#[derive(Debug)]
pub(crate) struct Gzip {
    crc: u32,
    size: u32,
    begun: bool,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self { crc: !0, size: 0, begun: false }
    }

    /// The encoded bytes of `data`, which can be decoded at once.
    pub(crate) fn write(&mut self, data: &[u8]) -> Vec<u8> {
        let mut out = if self.begun { Vec::new() } else { HEAD.to_vec() };
        self.begun = true;
        for block in data.chunks(MAX_BLOCK) {
            let length = block.len() as u16;
            out.push(0);
            out.extend(length.to_le_bytes());
            out.extend((!length).to_le_bytes());
            out.extend(block);
        }
        self.crc = data.iter().fold(self.crc, |crc, byte| step(crc, *byte));
        self.size = self.size.wrapping_add(data.len() as u32);
        out
    }

    /// An empty last block, and the checksums.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let mut out = self.write(&[]);
        out.extend([1, 0, 0, 0xff, 0xff]);
        out.extend((!self.crc).to_le_bytes());
        out.extend(self.size.to_le_bytes());
        out
    }
}

/// One byte of the CRC-32 of gzip.
fn step(crc: u32, byte: u8) -> u32 {
    (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        let crc = b"123456789".iter().fold(!0, |crc, byte| step(crc, *byte));
        assert_eq!(!crc, 0xcbf4_3926);
    }

    #[test]
    fn a_stream_is_a_head_stored_blocks_and_the_sums() {
        let mut gzip = Gzip::new();
        let mut bytes = gzip.write(b"ab");
        bytes.extend(gzip.write(b"c"));
        bytes.extend(gzip.finish());
        let mut expected = HEAD.to_vec();
        expected.extend([0, 2, 0, 0xfd, 0xff, b'a', b'b', 0, 1, 0, 0xfe, 0xff, b'c', 1, 0, 0, 0xff, 0xff]);
        expected.extend([0xc2, 0x41, 0x24, 0x35, 3, 0, 0, 0]);
        assert_eq!(bytes, expected);
    }
}
