//! What goes wrong, where.

use super::scribble::Scribble;
use crate::regs::MsrAddr;

/// When a fault strikes: a point in the life of one CPU. Counts start at 1, and anew at every
/// SIPI (for the boot CPU: at every wake from S3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// Its SIPI.
    Start,
    /// Before its k-th privileged instruction (calls through `CpuOps`; waits not counted).
    Op(u64),
    /// At its k-th WRMSR.
    Wrmsr(u64),
    /// At every WRMSR.
    EveryWrmsr,
    /// At a WRMSR to this register, or (with [`What::Gp`]) any access of it.
    Msr(MsrAddr),
    /// Before the k-th time it writes CR0 with CD set and NW clear, whatever they were.
    WindowEntry(u64),
    /// Before its k-th instruction after it cleared E with caching off.
    InWindow(u64),
    /// After the k-th time it cleared CR0.CD at the end of a window.
    WindowExit(u64),
}

/// What happens then.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// The CPU stops for ever (at [`At::Start`]: never arrives).
    Stuck,
    /// The CPU loses this many picoseconds (at [`At::Start`]: arrives late).
    Delay(u64),
    /// The MSR access raises #GP.
    Gp,
    /// The write is accepted and lost.
    Ignored,
    /// System management code rewrites the CPU's registers.
    Smm(Scribble),
    /// An interrupt arrives.
    Interrupt,
}

/// One fault.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The CPU it strikes.
    pub cpu: usize,
    /// When.
    pub at: At,
    /// What happens.
    pub what: What,
    /// Only in this life: 0 is from power-on to the first S3, 1 after it, and so on.
    pub round: Option<u32>,
}

impl Fault {
    /// A fault that strikes in every round.
    #[must_use]
    pub const fn new(cpu: usize, at: At, what: What) -> Self {
        Self {
            cpu,
            at,
            what,
            round: None,
        }
    }

    /// The same in one round only.
    #[must_use]
    pub fn in_round(mut self, round: u32) -> Self {
        self.round = Some(round);
        self
    }
}
