//! What is written with caches on: the PAT, and pairs that are not in use.

use super::{flush_tlb, masked, put};
use crate::cpu::CpuOps;
use crate::delta::{Delta, Write};
use crate::error::{Error, Left};

/// The PAT alone: written, then the TLB flushed; CR0.CD is not touched. Caches are flushed, if they
/// are, last, so that no stale translation can fill them again.
pub(super) fn pat_only(cpu: &mut impl CpuOps, write: Write, flush: bool) -> Result<(), Error> {
    masked(cpu, |cpu| {
        // What it took is neither: the old value may be better.
        let written = put(cpu, write).map_err(|error| match error.left() {
            Some(Left::Altered) if put(cpu, write.back()).is_ok() => {
                error.with_left(Left::RolledBack)
            }
            _ => error,
        });
        flush_tlb(cpu);
        if flush {
            cpu.wbinvd();
        }
        written
    })
}

/// Pairs with V clear before and after: they match nothing, so the map in force is the same
/// whatever becomes of the writes. The first that fails is the result.
pub(super) fn write_unused(cpu: &mut impl CpuOps, delta: &Delta<'_>) -> Result<(), Error> {
    let mut result = Ok(());
    for write in delta.outside() {
        result = result.and(put(cpu, write));
    }
    result.map_err(|error| error.with_left(Left::UnusedPairs))
}
