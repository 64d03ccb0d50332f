//! Text that the kernel prints: the report, and the log.

use core::ffi::{c_char, c_void};
use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use log::{LevelFilter, Log, Metadata, Record};

use crate::SYNC;

/// Longest line, with the zero at its end; a longer one goes on in the next.
const LINE: usize = 256;

/// Takes one line of text, zero-terminated, without a newline; `context` is what the caller gave.
pub type mtrr_pat_line = Option<unsafe extern "C" fn(line: *const c_char, context: *mut c_void)>;

/// What every CPU did last, in a few lines: CPUs by what they did, by what differed, errors.
///
/// CPU: any, complete once all are up or met. Interrupts: as they are. `line` gets each.
///
/// # Safety
/// `line` is what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_report(line: mtrr_pat_line, context: *mut c_void) {
    Lines::new(line, context).print(format_args!("{}", SYNC.report()));
}

/// Has the library's log printed: one line of what was found at boot, warnings, the report of a
/// rendezvous that did not end well; with `verbose` of every one. On the boot CPU only, with interrupts
/// as its caller has them. Before `mtrr_pat_boot_init`; a NULL `line` ends it.
///
/// # Safety
/// `line` is what its type says, for as long as it is set; not called while another CPU is in a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_log_to(line: mtrr_pat_line, context: *mut c_void, verbose: bool) {
    let function = line.map_or(ptr::null_mut(), |line| line as *mut c_void);
    LOGGER.context.store(context, Ordering::Relaxed);
    LOGGER.line.store(function, Ordering::Release);
    let _ = log::set_logger(&LOGGER); // an error says that it is set already
    log::set_max_level(match (line, verbose) {
        (None, _) => LevelFilter::Off,
        (Some(_), false) => LevelFilter::Info,
        (Some(_), true) => LevelFilter::Debug,
    });
}

struct Logger {
    line: AtomicPtr<c_void>,
    context: AtomicPtr<c_void>,
}

static LOGGER: Logger = Logger {
    line: AtomicPtr::new(ptr::null_mut()),
    context: AtomicPtr::new(ptr::null_mut()),
};

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = self.line.load(Ordering::Acquire);
        // SAFETY: NULL, or a pointer of this type, as `mtrr_pat_log_to` stored it.
        let line = unsafe { core::mem::transmute::<*mut c_void, mtrr_pat_line>(line) };
        let context = self.context.load(Ordering::Relaxed);
        Lines::new(line, context).print(format_args!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

/// Cuts text into lines.
struct Lines {
    line: mtrr_pat_line,
    context: *mut c_void,
    text: [u8; LINE],
    used: usize,
}

impl Lines {
    fn new(line: mtrr_pat_line, context: *mut c_void) -> Self {
        Self {
            line,
            context,
            text: [0; LINE],
            used: 0,
        }
    }

    fn print(mut self, text: fmt::Arguments<'_>) {
        let _ = self.write_fmt(text); // writing does not fail
        if self.used > 0 {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(place) = self.text.get_mut(self.used) {
            *place = 0;
        }
        self.used = 0;
        if let Some(line) = self.line {
            // SAFETY: the promise of whoever gave it; the text ends with a zero.
            unsafe { line(self.text.as_ptr().cast(), self.context) };
        }
    }
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' || self.used == LINE - 1 {
                self.end();
            }
            if byte != b'\n'
                && let Some(place) = self.text.get_mut(self.used)
            {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}
