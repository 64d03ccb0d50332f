//! Which CPUs are threads of one core, and the order to bring them up in.
//!
//! Owns the split of an APIC id into core and thread; refuses to know how CPUs are started. The
//! split comes from a shift the processor gives, never from a count: ids have gaps.

mod legacy;

use raw_cpuid::{CpuIdReader, CpuIdResult};

/// Where one CPU sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// Known by its local APIC (or x2APIC) id: the crate splits it, and compares it with what the CPU
    /// itself says of it by CPUID in each call that matters. Where an AP may not execute CPUID yet (it
    /// raises #VC in an encrypted guest), or firmware gave the APICs other ids than the processors have:
    /// [`Place::Core`]. Of TDX and SNP guests nothing is asked.
    Apic(u32),
    /// The kernel's word: CPUs with the same `core` share one core.
    Core {
        /// Any number, the same for all threads of a core and for no other CPU.
        core: u32,
        /// Which thread of it, from 0.
        thread: u32,
    },
    /// Not known: its siblings count as running, and it as theirs.
    #[default]
    Unknown,
}

/// How many low bits of an APIC id number the threads of a core; `None` when CPUID does not say.
///
/// Tried in this order: leaf 0x1F, leaf 0xB, AMD 0x8000_0026, AMD 0x8000_001E, and what came before
/// them: Intel's counts in leaves 1 and 4; on AMD one thread a core before Zen, but for Bulldozer,
/// whose two cores of a module count as threads.
///
/// Read through [`crate::cpu::CpuidReader`].
///
/// Source: Intel SDM 3A, "Hierarchical Mapping of CPUID Extended Topology Leaf"; AMD APM 3,
/// "Extended CPU Topology".
#[must_use]
pub fn smt_shift(cpuid: &impl CpuIdReader) -> Option<u8> {
    let basic = cpuid.cpuid1(0).eax;
    let extended = cpuid.cpuid1(0x8000_0000).eax;
    for leaf in [0x1f, 0xb] {
        if basic >= leaf
            && let Some(shift) = extended_topology(cpuid, leaf)
        {
            return Some(shift);
        }
    }
    if (0x8000_0026..=0x8000_ffff).contains(&extended)
        && let Some(shift) = extended_topology(cpuid, 0x8000_0026)
    {
        return Some(shift);
    }
    if (0x8000_001e..=0x8000_ffff).contains(&extended) && has_topology_extensions(cpuid) {
        // Threads per core minus one: the ids of a core's threads fit in as many bits.
        let more = (cpuid.cpuid1(0x8000_001e).ebx >> 8) & 0xff;
        return Some((u32::BITS - more.leading_zeros()) as u8);
    }
    legacy::smt_shift(cpuid)
}

/// CPUID 0x8000_0001 ECX[22]: leaf 0x8000_001E exists.
fn has_topology_extensions(cpuid: &impl CpuIdReader) -> bool {
    cpuid.cpuid1(0x8000_0001).ecx & (1 << 22) != 0
}

/// The thread level of a leaf in the format of 0xB: sub-leaf 0, level type 1 (SMT; "core" in AMD's
/// own words, with the same meaning of the shift).
fn extended_topology(cpuid: &impl CpuIdReader, leaf: u32) -> Option<u8> {
    let CpuIdResult { eax, ebx, ecx, .. } = cpuid.cpuid2(leaf, 0);
    let level_type = (ecx >> 8) & 0xff;
    (level_type == 1 && ebx & 0xffff != 0).then_some((eax & 0x1f) as u8)
}

/// The APIC id of the CPU that executes CPUID: the 32-bit one where there is one. Read through
/// [`crate::cpu::CpuidReader`].
#[must_use]
pub fn own_apic_id(cpuid: &impl CpuIdReader) -> u32 {
    let basic = cpuid.cpuid1(0).eax;
    for leaf in [0x1f, 0xb] {
        if basic >= leaf {
            let words = cpuid.cpuid2(leaf, 0);
            if words.ebx & 0xffff != 0 {
                return words.edx;
            }
        }
    }
    initial_apic_id(cpuid)
}

/// The eight bits of leaf 1.
fn initial_apic_id(cpuid: &impl CpuIdReader) -> u32 {
    cpuid.cpuid1(1).ebx >> 24
}

/// The APIC id that leaf 1 gives a CPU whose own id is this, where the two contradict each other: some
/// hypervisors fill in one of the leaves only. The low eight bits of a longer id are the id of another
/// CPU, and 0xff is nobody's.
pub(crate) fn second_apic_id(cpuid: &impl CpuIdReader, own: u32) -> Option<u32> {
    let initial = initial_apic_id(cpuid);
    (initial != own & 0xff && initial != 0xff).then_some(initial)
}

/// The APIC id of the CPU that executes CPUID, if `expected` is none it goes by.
pub(crate) fn other_apic_id(cpuid: &impl CpuIdReader, expected: u32) -> Option<u32> {
    let own = own_apic_id(cpuid);
    (own != expected && second_apic_id(cpuid, own) != Some(expected)).then_some(own)
}

impl Place {
    /// This place as (core, thread), an APIC id split at `shift`; `None` when not known.
    #[must_use]
    pub const fn split(self, shift: Option<u8>) -> Option<(u32, u32)> {
        match (self, shift) {
            (Self::Core { core, thread }, _) => Some((core, thread)),
            (Self::Apic(id), Some(shift)) if shift < 32 => {
                Some((id >> shift, id & ((1 << shift) - 1)))
            }
            _ => None,
        }
    }
}

/// The order in which an early resync never has to hold a sibling on a machine whose threads share
/// their MTRRs: first threads of all cores, then second ones, and so on.
///
/// Yields indices into `places`; each once. CPUs of unknown place come first, in their order. An
/// optimisation, not a safety argument. `shift` is [`crate::platform::Platform::smt_shift`]; the boot
/// CPU's place is among `places`, for its siblings' sake, and skipped when it comes.
pub fn bringup_order(places: &[Place], shift: Option<u8>) -> impl Iterator<Item = usize> {
    let rank = move |index: usize| -> u32 {
        let Some((core, thread)) = places.get(index).and_then(|place| place.split(shift)) else {
            return 0;
        };
        // How many threads of this core come before it: ids may have gaps.
        let before = places
            .iter()
            .enumerate()
            .filter(|(other, place)| {
                place.split(shift).is_some_and(|(c, t)| {
                    c == core && (t < thread || (t == thread && *other < index))
                })
            })
            .count();
        before as u32
    };
    // At most as many rounds as one core has threads; a round that yields nothing ends it.
    let mut round = 0;
    let mut next = 0;
    let mut yielded = 0;
    core::iter::from_fn(move || {
        while yielded < places.len() {
            while next < places.len() {
                let index = next;
                next += 1;
                if rank(index) == round {
                    yielded += 1;
                    return Some(index);
                }
            }
            next = 0;
            round += 1;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(eax: u32, ebx: u32, ecx: u32, edx: u32) -> CpuIdResult {
        CpuIdResult { eax, ebx, ecx, edx }
    }

    #[test]
    fn the_shift_is_taken_never_the_count() {
        // Two threads counted, but ids step by 4.
        let cpuid = |l: u32, s: u32| match (l, s) {
            (0, _) => leaf(0xb, 0, 0, 0),
            (0xb, 0) => leaf(2, 2, 0x100, 0x15),
            _ => leaf(0, 0, 0, 0),
        };
        assert_eq!(smt_shift(&cpuid), Some(2));
        assert_eq!(own_apic_id(&cpuid), 0x15);
        assert_eq!(Place::Apic(0x15).split(Some(2)), Some((5, 1)));
    }

    #[test]
    fn leaf_1f_comes_first_and_amd_leaves_last() {
        let both = |l: u32, s: u32| match (l, s) {
            (0, _) => leaf(0x1f, 0, 0, 0),
            (0x1f, 0) => leaf(1, 2, 0x100, 7),
            (0xb, 0) => leaf(3, 2, 0x100, 7),
            _ => leaf(0, 0, 0, 0),
        };
        assert_eq!(smt_shift(&both), Some(1));
        let amd = |l: u32, _: u32| match l {
            0x8000_0000 => leaf(0x8000_001e, 0, 0, 0),
            0x8000_0001 => leaf(0, 0, 1 << 22, 0),
            0x8000_001e => leaf(0, 2 << 8, 0, 0),
            1 => leaf(0, 0x0300_0000, 0, 1 << 28),
            0 => leaf(1, 0, 0, 0),
            _ => leaf(0, 0, 0, 0),
        };
        assert_eq!(smt_shift(&amd), Some(2), "three threads need two bits");
        assert_eq!(own_apic_id(&amd), 3);
        let silent = |l: u32, _: u32| match l {
            0 => leaf(1, 0, 0, 0),
            1 => leaf(0, 0, 0, 1 << 28),
            _ => leaf(0, 0, 0, 0),
        };
        assert_eq!(smt_shift(&silent), None);
    }

    #[test]
    fn first_threads_come_up_before_second_ones() {
        let apic = [0, 1, 4, 5, 2, 3, 6, 7].map(Place::Apic);
        let order: std::vec::Vec<usize> = bringup_order(&apic, Some(1)).collect();
        assert_eq!(order, [0, 2, 4, 6, 1, 3, 5, 7]);
        let unknown = [Place::Unknown, Place::Apic(1), Place::Apic(0)];
        let order: std::vec::Vec<usize> = bringup_order(&unknown, Some(1)).collect();
        assert_eq!(order, [0, 2, 1]);
        assert_eq!(bringup_order(&[], None).count(), 0);
        let twice = [Place::Apic(3), Place::Apic(3)];
        assert_eq!(
            bringup_order(&twice, Some(1)).count(),
            2,
            "a wrong table loses no CPU"
        );
    }
}
