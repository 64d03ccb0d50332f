//! QR codes, without a heap.

use crate::racy::Racy;
use qrcodegen_no_heap::{QrCode, QrCodeEcc, Version};

/// Version that a text screen's 50 rows of half characters have room for, and one that a telephone still reads from a picture.
pub const SMALL: u8 = 6;
pub const LARGE: u8 = 20;

const BYTES: usize = Version::new(LARGE).buffer_len();

/// For the drawing, and for the code.
static BUFFERS: Racy<[[u8; BYTES]; 2]> = Racy::new([[0; BYTES]; 2]);

/// Characters of the alphanumeric mode that a version holds with the least redundancy (ISO 18004, table 7).
pub const fn capacity(version: u8) -> usize {
    match version {
        SMALL => 195,
        _ => 1249,
    }
}

/// Calls `draw` with the modules a side and what tells the dark ones. Not at all when the content does not fit.
pub fn with(content: &str, largest: u8, draw: impl FnOnce(u32, &dyn Fn(u32, u32) -> bool)) {
    // SAFETY: only the boot CPU draws, one code at a time.
    let [scratch, code] = unsafe { &mut *BUFFERS.get() };
    let made = QrCode::encode_text(
        content,
        scratch,
        code,
        QrCodeEcc::Low,
        Version::MIN,
        Version::new(largest),
        None,
        true,
    );
    if let Ok(code) = made {
        let dark = |x: u32, y: u32| code.get_module(x as i32, y as i32);
        draw(code.size() as u32, &dark);
    }
}
