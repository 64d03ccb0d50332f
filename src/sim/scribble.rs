//! What firmware or system management code leaves in registers, as a value.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::regs::MsrAddr;
use crate::snapshot::Snapshot;

/// A function that rewrites one CPU's registers: number, registers as firmware first set them.
#[derive(Clone)]
pub struct Rewrite(pub(super) Arc<RewriteFn>);

type RewriteFn = dyn Fn(usize, &mut Snapshot) + Send + Sync;

impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewrite(..)")
    }
}

/// What firmware (or system management code) leaves in one CPU's registers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Scribble {
    /// All registers as they were before.
    Kept,
    /// What reset leaves and no firmware touched: E and V clear, the rest junk, PAT of reset.
    Reset,
    /// What firmware programmed at power-on, with the PAT of reset.
    LikeBoot,
    /// As at power-on, but E clear.
    Off,
    /// All MTRRs zero (so E is clear too).
    Zeroed,
    /// As at power-on, with a range in the last pair nobody asked for.
    AnotherRange,
    /// MTRRs as before, PAT as reset leaves it.
    PatReset,
    /// That, and a further MSR ([`Config::other_msrs`](super::Config::other_msrs)) with this value, which is lost in S3 again.
    Msr(MsrAddr, u64, Box<Scribble>),
    /// These cores get that; the others keep what they had.
    OnlyCores(BTreeSet<usize>, Box<Scribble>),
    /// Anything.
    Custom(Rewrite),
}

impl Scribble {
    /// A scribble by a function.
    #[must_use]
    pub fn custom(rewrite: impl Fn(usize, &mut Snapshot) + Send + Sync + 'static) -> Self {
        Self::Custom(Rewrite(Arc::new(rewrite)))
    }

    /// A scribble of some cores only.
    #[must_use]
    pub fn only_cores(cores: impl IntoIterator<Item = usize>, scribble: Self) -> Self {
        Self::OnlyCores(cores.into_iter().collect(), Box::new(scribble))
    }

    /// The same, and a further MSR with this value.
    #[must_use]
    pub fn with_msr(self, msr: MsrAddr, value: u64) -> Self {
        Self::Msr(msr, value, Box::new(self))
    }
}
