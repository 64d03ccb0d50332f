//! What is written with caches on: the PAT, and pairs that are not in use.

use super::{fault, flush_tlb, ignored, masked};
use crate::cpu::CpuOps;
use crate::delta::{Delta, Write};
use crate::error::{Error, Left};
use crate::pat::Pat;
use crate::platform::Platform;
use crate::policy::{PatFlush, Policy};

/// The PAT alone: written, then the TLB flushed; CR0.CD is not touched. Caches are flushed where a
/// slot stops being cacheable, last, so that no stale translation can fill them again.
pub(super) fn pat_only(
    cpu: &mut impl CpuOps,
    write: Write,
    platform: &Platform,
    policy: &Policy,
) -> Result<(), Error> {
    let flush = policy.pat_flush == PatFlush::WhenUncached
        && platform.guest.is_none()
        && loses_cacheable_slot(write);
    masked(cpu, |cpu| {
        cpu.wrmsr(write.msr, write.value)
            .map_err(|_| fault(write, Left::Unchanged))?;
        flush_tlb(cpu);
        if flush {
            cpu.wbinvd();
        }
        match cpu.rdmsr(write.msr) {
            Ok(value) if value == write.value => Ok(()),
            _ => Err(ignored(write, Left::Unchanged)),
        }
    })
}

fn loses_cacheable_slot(write: Write) -> bool {
    let cacheable = |raw, slot| {
        Pat::from_raw(raw)
            .slot(slot)
            .is_ok_and(|t| t.is_cacheable())
    };
    (0..8).any(|slot| cacheable(write.before, slot) && !cacheable(write.value, slot))
}

/// Pairs with V clear before and after: they match nothing, so the map in force is the same
/// whatever becomes of the writes.
pub(super) fn write_unused(cpu: &mut impl CpuOps, delta: &Delta<'_>) -> Result<(), Error> {
    for write in delta.outside() {
        cpu.wrmsr(write.msr, write.value)
            .map_err(|_| fault(write, Left::UnusedPairs))?;
    }
    Ok(())
}

/// The first of them that reads back otherwise. A window reads everything back by itself.
pub(super) fn unused_ignored(cpu: &mut impl CpuOps, delta: &Delta<'_>) -> Option<Write> {
    let mut writes = delta.outside();
    writes.find(|write| cpu.rdmsr(write.msr) != Ok(write.value))
}
