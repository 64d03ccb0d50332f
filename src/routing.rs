//! Registers by which firmware alone decides what memory an address means: AMD's TOP_MEM and
//! IORRs, Intel's TME_ACTIVATE.
//!
//! Owns their capture and comparison; refuses to write any of them. They are no part of a
//! [`Snapshot`](crate::snapshot::Snapshot): a CPU that is brought in line does not read them.

use crate::cpu::CpuOps;
use crate::platform::Platform;
use crate::regs::{IORR_COUNT, Iorr, MsrAddr, SysCfg};

/// What one CPU holds of them, raw words.
///
/// `None` where a register does not exist, cannot be read or is not in a dump: not known, which is
/// never a difference. SYSCFG and TOP_MEM2, which change memory types too, are in
/// [`Snapshot`](crate::snapshot::Snapshot).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// AMD TOP_MEM: first byte above the memory that lies below 4 GiB.
    pub top_mem: Option<u64>,
    /// AMD's I/O ranges.
    pub iorr: [Option<Iorr>; IORR_COUNT],
    /// IA32_TME_ACTIVATE: memory encryption, and the address bits it takes.
    pub tme_activate: Option<u64>,
}

impl Routing {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        top_mem: None,
        iorr: [None; IORR_COUNT],
        tme_activate: None,
    };

    /// Reads this CPU's registers: SYSCFG on AMD, and five more where it has them in effect; one on
    /// Intel where CPUID says that memory encryption exists; none under a hypervisor, which decides
    /// itself where its guest's memory is. Interrupts as they are.
    ///
    /// Source: AMD APM 2, "IORRs" and "Top of Memory"; Intel SDM 4, "Architectural MSRs".
    #[must_use]
    pub fn capture(cpu: &mut impl CpuOps, platform: &Platform) -> Self {
        let amd = platform.amd && !platform.hypervisor && {
            let syscfg = cpu.rdmsr(MsrAddr::SYSCFG).map(SysCfg::from_raw);
            syscfg.is_ok_and(|syscfg| syscfg.contains(SysCfg::MTRR_VAR_DRAM_EN))
        };
        let intel = platform.tme && !platform.hypervisor;
        let there_are = Self {
            top_mem: amd.then_some(0),
            iorr: [amd.then_some(Iorr::default()); IORR_COUNT],
            tme_activate: intel.then_some(0),
        };
        there_are.capture_same(cpu)
    }

    /// Reads those of this CPU's registers that are known here, of another CPU.
    #[must_use]
    pub fn capture_same(&self, cpu: &mut impl CpuOps) -> Self {
        let mut read = |msr| cpu.rdmsr(msr).ok();
        let mut same = Self::UNKNOWN;
        same.top_mem = self.top_mem.and_then(|_| read(MsrAddr::TOP_MEM));
        for (n, (iorr, known)) in same.iorr.iter_mut().zip(self.iorr).enumerate() {
            *iorr = known.and_then(|_| {
                Some(Iorr {
                    base: read(MsrAddr::iorr_base(n))?,
                    mask: read(MsrAddr::iorr_mask(n))?,
                })
            });
        }
        same.tme_activate = self.tme_activate.and_then(|_| read(MsrAddr::TME_ACTIVATE));
        same
    }

    /// The bits that mean something: reserved ones, I/O ranges that are not in use, and how the
    /// encryption key was come by are left out.
    #[must_use]
    pub fn in_effect(self) -> Self {
        /// Bits 51:23; the processor ignores the others.
        const TOP_MEM: u64 = 0x000f_ffff_ff80_0000;
        /// Key select (new at boot, brought back after standby) and save key for standby.
        const KEY: u64 = 0b1100;
        Self {
            top_mem: self.top_mem.map(|word| word & TOP_MEM),
            iorr: self.iorr.map(|iorr| iorr.map(Iorr::in_effect)),
            tme_activate: self.tme_activate.map(|word| word & !KEY),
        }
    }

    /// Whether an address may mean other memory on one of the two CPUs than on the other: some
    /// register is known of both, and differs in bits that mean something.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        let (one, other) = (self.in_effect(), other.in_effect());
        let mut pairs = one.iorr.into_iter().zip(other.iorr);
        unlike(one.top_mem, other.top_mem)
            || pairs.any(|(one, other)| unlike(one, other))
            || unlike(one.tme_activate, other.tme_activate)
    }
}

/// Whether both are known and not the same.
pub(crate) fn unlike<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMD: Routing = Routing {
        top_mem: Some(0x8000_0000),
        iorr: [
            Some(Iorr {
                base: 0xa_0018,
                mask: 0xf_ffff_fffe_0800,
            }),
            Some(Iorr { base: 0, mask: 0 }),
        ],
        tme_activate: None,
    };
    const TME: Routing = Routing {
        tme_activate: Some(0x0001_0006_0000_000b),
        ..Routing::UNKNOWN
    };

    /// Whether a change of this kind is a difference, asked both ways round.
    fn differs(of: Routing, change: impl Fn(&mut Routing)) -> bool {
        let mut other = of;
        change(&mut other);
        assert_ne!(of, other);
        let found = of.differs(&other);
        assert_eq!(other.differs(&of), found);
        assert!(!other.differs(&other) && !of.differs(&of));
        found
    }

    fn iorr(of: &mut Routing, n: usize) -> &mut Iorr {
        of.iorr[n].as_mut().unwrap()
    }

    #[test]
    fn every_bit_of_top_mem_that_is_not_ignored_counts() {
        for bit in 0..64 {
            let found = differs(AMD, |r| r.top_mem = r.top_mem.map(|word| word ^ 1 << bit));
            assert_eq!(found, (23..52).contains(&bit), "bit {bit}");
        }
    }

    #[test]
    fn iorrs_count_while_they_are_in_use() {
        for bit in 0..64 {
            // The mask of range 0 has its bits 51:17 set: no other base bit matters.
            let base = differs(AMD, |r| iorr(r, 0).base ^= 1 << bit);
            assert_eq!(base, matches!(bit, 3 | 4 | 17..52), "base bit {bit}");
            let mask = differs(AMD, |r| iorr(r, 0).mask ^= 1 << bit);
            assert_eq!(mask, matches!(bit, 11..52), "mask bit {bit}");
            // Range 1 is off: only turning it on counts.
            assert!(!differs(AMD, |r| iorr(r, 1).base ^= 1 << bit));
            let mask = differs(AMD, |r| iorr(r, 1).mask ^= 1 << bit);
            assert_eq!(mask, bit == 11, "mask bit {bit} of a range that is off");
        }
    }

    #[test]
    fn of_tme_activate_all_counts_but_where_the_key_is_from() {
        for bit in 0..64 {
            let found = differs(TME, |r| {
                r.tme_activate = r.tme_activate.map(|word| word ^ 1 << bit);
            });
            assert_eq!(found, !matches!(bit, 2 | 3), "bit {bit}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_difference() {
        assert!(!differs(AMD, |r| *r = Routing::UNKNOWN));
        assert!(!differs(TME, |r| r.tme_activate = None));
        assert!(!differs(AMD, |r| r.iorr[0] = None));
        assert!(!differs(AMD, |r| *r = TME));
        // The rest is still compared.
        assert!(differs(AMD, |r| {
            r.iorr[0] = None;
            r.top_mem = Some(0);
        }));
    }

    #[test]
    fn in_effect_is_the_same_again() {
        for routing in [AMD, TME, Routing::UNKNOWN] {
            let effect = routing.in_effect();
            assert_eq!(effect.in_effect(), effect);
            assert!(!routing.differs(&effect));
        }
    }
}
