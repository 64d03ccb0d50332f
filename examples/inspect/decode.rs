//! Files as they are uploaded: compressed with gzip, or in UTF-16 as some editors save them.

use std::io::{self, BufRead, BufReader, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;
use flate2::bufread::MultiGzDecoder;

/// Bytes looked at to tell UTF-16 without a byte order mark.
const LOOK: usize = 64;

/// What `input` holds, as bytes of plain text; what is neither compressed nor UTF-16 passes as it
/// is, whatever its encoding.
///
/// # Errors
/// What reading the first bytes fails with.
pub fn text<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return wide(BufReader::new(MultiGzDecoder::new(input)));
    }
    wide(input)
}

/// The same for text that may be UTF-16.
fn wide<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    // A compressed file that is damaged from its first byte is found out when it is read.
    let encoding = match input.fill_buf() {
        Ok(start) => without_mark(start),
        Err(error) => return Ok(Box::new(BufReader::new(Failed(Some(error))))),
    };
    let decoded = DecodeReaderBytesBuilder::new()
        .encoding(encoding)
        .utf8_passthru(true)
        .strip_bom(true)
        .bom_override(true)
        .build(input);
    Ok(Box::new(BufReader::new(decoded)))
}

/// UTF-16 by its zero bytes: every second one of plain text.
fn without_mark(start: &[u8]) -> Option<&'static Encoding> {
    let start = start.get(..LOOK.min(start.len() & !1))?;
    let zeros = |odd: usize| {
        let bytes = start.iter().skip(odd).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    let half = start.len() / 2;
    match (zeros(0), zeros(1)) {
        _ if half < 4 => None,
        (0, odd) if odd * 4 >= half * 3 => Some(UTF_16LE),
        (even, 0) if even * 4 >= half * 3 => Some(UTF_16BE),
        _ => None,
    }
}

/// A reader that fails once.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
