//! How a run ends when the boot CPU's code does not.

use core::fmt;

/// Why a run ended without the boot CPU's code returning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Nobody could go on; who waits where.
    Deadlock(String),
    /// The boot CPU was told to stop for ever, and everybody else came to rest.
    BootStuck(String),
    /// The run took more steps than [`Config::max_steps`](super::Config::max_steps): somebody
    /// spins for ever. Who was where.
    Endless(String),
    /// The code of this CPU panicked.
    Panic(usize),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock(text) => write!(f, "deadlock: {text}"),
            Self::BootStuck(text) => write!(f, "the boot CPU is stuck: {text}"),
            Self::Endless(text) => write!(f, "the run does not end: {text}"),
            Self::Panic(cpu) => write!(f, "the code of CPU {cpu} panicked"),
        }
    }
}

impl core::error::Error for Stop {}
