//! Progress of a long run, on a terminal only.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A line on the terminal that is rewritten; nothing when standard error is no terminal, and
/// nothing before a run has lasted for a while.
pub struct Progress {
    what: String,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    terminal: bool,
    shown: bool,
    last: Instant,
}

impl Progress {
    pub fn new(what: impl Into<String>, total: usize) -> Self {
        Self {
            what: what.into(),
            total,
            state: Mutex::new(State {
                done: 0,
                terminal: std::io::stderr().is_terminal(),
                shown: false,
                last: Instant::now(),
            }),
        }
    }

    /// One more is done.
    pub fn step(&self) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        state.done += 1;
        if !state.terminal || state.last.elapsed() < Duration::from_millis(250) {
            return;
        }
        state.last = Instant::now();
        state.shown = true;
        let percent = 100 * state.done / self.total.max(1);
        eprint!("\r{}: {percent} % ", self.what);
        // A terminal that cannot be written to shows no progress.
        let _ = std::io::stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.state.get_mut().is_ok_and(|state| state.shown) {
            eprint!("\r{:width$}\r", "", width = self.what.len() + 8);
        }
    }
}
