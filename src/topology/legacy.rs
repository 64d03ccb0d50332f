//! Threads of a core on processors that have no leaf for them: Core 2, Phenom II and before.
//!
//! Owns the two manufacturers' older rules. Where these say less than is asked, CPUs count as
//! threads of one core rather than not: whom nobody needs to hold is held.

use raw_cpuid::{CpuIdReader, CpuIdResult};

/// CPUID.1:EDX: the package may have other logical processors.
const HTT: u32 = 1 << 28;

/// How many low bits of an APIC id number the threads of a core; `None` when CPUID does not say.
pub(super) fn smt_shift(cpuid: &impl CpuIdReader) -> Option<u8> {
    let first = cpuid.cpuid1(0);
    if first.eax == 0 {
        None
    } else if cpuid.cpuid1(1).edx & HTT == 0 {
        Some(0)
    } else if is(&first, *b"AuthenticAMD") || is(&first, *b"HygonGenuine") {
        amd(family(cpuid.cpuid1(1).eax))
    } else {
        intel(cpuid, first.eax)
    }
}

/// Whether leaf 0 names this vendor: in EBX, EDX, ECX.
fn is(leaf: &CpuIdResult, name: [u8; 12]) -> bool {
    let words = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    words.as_flattened() == name
}

/// Ids of the package over ids of its cores; both counts are rounded up to powers of two, as ids are
/// given out. A processor without leaf 4, or one that firmware keeps from showing it, has one
/// core as far as can be told.
///
/// Source: Intel SDM 3A, "Hierarchical Mapping of Shared Resources", "Algorithm for Three-Level
/// Mappings of APIC_ID".
fn intel(cpuid: &impl CpuIdReader, basic: u32) -> Option<u8> {
    let bits = |count: u32| count.next_power_of_two().trailing_zeros() as u8;
    let logical = (cpuid.cpuid1(1).ebx >> 16) & 0xff;
    let cores = if basic >= 4 {
        let cache = cpuid.cpuid2(4, 0).eax;
        // Without a first cache the leaf says nothing.
        if cache & 0x1f == 0 {
            1
        } else {
            (cache >> 26) + 1
        }
    } else {
        1
    };
    (logical > 0).then(|| bits(logical).saturating_sub(bits(cores)))
}

/// Before Zen a core has one thread, and the count in leaf 1 is of cores. The two cores of a
/// Bulldozer module share much of it, and count as threads as its own leaf counts them, where
/// firmware does not hide that. Later ones have a leaf that says so.
///
/// Source: AMD APM 3, "Legacy Method", "Extended Method"; BIOS and Kernel Developer's Guides of
/// families 10h and 15h.
const fn amd(family: u32) -> Option<u8> {
    match family {
        0..0x15 | 0x16 => Some(0),
        0x15 => Some(1),
        _ => None,
    }
}

/// The family, from CPUID.1:EAX.
const fn family(signature: u32) -> u32 {
    let base = (signature >> 8) & 0xf;
    if base == 0xf {
        base + ((signature >> 20) & 0xff)
    } else {
        base
    }
}

#[cfg(test)]
mod tests {
    use raw_cpuid::CpuIdResult;

    use super::super::smt_shift;

    /// A processor's leaves as dumps show them: (leaf, EAX, EBX, ECX, EDX), sub-leaf 0.
    type Leaves<'a> = &'a [(u32, u32, u32, u32, u32)];

    fn shift_of(leaves: Leaves<'_>) -> Option<u8> {
        smt_shift(&|leaf: u32, sub: u32| {
            let found = leaves.iter().find(|words| words.0 == leaf && sub == 0);
            let (_, eax, ebx, ecx, edx) = found.copied().unwrap_or_default();
            CpuIdResult { eax, ebx, ecx, edx }
        })
    }

    fn intel(basic: u32) -> (u32, u32, u32, u32, u32) {
        (0, basic, 0x756e_6547, 0x6c65_746e, 0x4965_6e69)
    }

    fn amd(basic: u32) -> (u32, u32, u32, u32, u32) {
        (0, basic, 0x6874_7541, 0x444d_4163, 0x6974_6e65)
    }

    #[test]
    fn intel_before_leaf_0xb() {
        let of = |basic, ebx, leaf4| {
            shift_of(&[
                intel(basic),
                (1, 0x6fb, ebx, 0xe3bd, 0xbfeb_fbff),
                (4, leaf4, 0x1c0_003f, 0x3f, 1),
                (0x8000_0000, 0x8000_0008, 0, 0, 0),
            ])
        };
        assert_eq!(of(0xa, 0x0004_0800, 0x0c00_0121), Some(0), "Core 2 Quad");
        assert_eq!(of(0xa, 0x0002_0800, 0x0400_0121), Some(0), "Core 2 Duo");
        assert_eq!(of(5, 0x0002_0800, 0x0000_4121), Some(1), "Pentium 4 HT");
        assert_eq!(of(2, 0x0002_0809, 0), Some(1), "Pentium 4 HT, no leaf 4");
        assert_eq!(
            of(5, 0x0001_0800, 0x0000_4121),
            Some(0),
            "Pentium 4, HT off"
        );
        assert_eq!(of(5, 0x0002_0800, 0x0400_4121), Some(0), "Pentium D");
        assert_eq!(of(5, 0x0004_0800, 0x0400_4121), Some(1), "Pentium EE 840");
        // Firmware limits the leaves: all of the package may be threads of one core.
        assert_eq!(of(3, 0x0004_0800, 0x0c00_0121), Some(2), "limited Core 2");
        // Six logical processors on three cores: ids are given out in powers of two.
        assert_eq!(of(0xa, 0x0006_0800, 0x0800_0121), Some(1));
        // Fewer than cores: what some hypervisors say.
        assert_eq!(of(0xa, 0x0001_0800, 0x0c00_0121), Some(0));
        assert_eq!(of(0xa, 0, 0x0c00_0121), None);
        assert_eq!(of(0xa, 0x00ff_0800, 0xfc00_0121), Some(2));
    }

    #[test]
    fn nehalem_says_the_same_both_ways() {
        let leaf_1 = (1, 0x0001_06a5, 0x0010_0800, 0x98_e3bd, 0xbfeb_fbff);
        let leaf_4 = (4, 0x1c00_4121, 0x1c0_003f, 0x3f, 0);
        let leaf_b = (0xb, 1, 2, 0x100, 0);
        assert_eq!(shift_of(&[intel(0xb), leaf_1, leaf_4, leaf_b]), Some(1));
        assert_eq!(shift_of(&[intel(0xb), leaf_1, leaf_4]), Some(1));
        assert_eq!(shift_of(&[intel(0xa), leaf_1, leaf_4, leaf_b]), Some(1));
    }

    #[test]
    fn without_other_logical_processors_there_is_one() {
        let leaf_1 = (1, 0x6d8, 0x0000_0816, 0x180, 0xafe9_fbff);
        assert_eq!(shift_of(&[intel(2), leaf_1]), Some(0), "Pentium M");
        assert_eq!(shift_of(&[(0, 0, 0, 0, 0)]), None);
    }

    #[test]
    fn amd_before_and_after_its_leaf() {
        let of = |signature, count: u32, more: Leaves<'_>| {
            let ebx = count << 16 | 0x800;
            let mut leaves = vec![amd(5), (1, signature, ebx, 0x80_2009, 0x178b_fbff)];
            leaves.extend(more);
            shift_of(&leaves)
        };
        // CmpLegacy in 0x80000001, core-id size in 0x80000008.
        let phenom: Leaves<'_> = &[
            (0x8000_0000, 0x8000_001b, 0, 0, 0),
            (0x8000_0001, 0x0010_0f43, 0, 0x37ff, 0xefd3_fbff),
            (0x8000_0008, 0x3030, 0, 0x3003, 0),
        ];
        assert_eq!(of(0x0010_0f43, 4, phenom), Some(0), "Phenom II X4");
        let hammer: Leaves<'_> = &[(0x8000_0000, 0x8000_0018, 0, 0, 0)];
        assert_eq!(of(0x0002_0f32, 2, hammer), Some(0), "Athlon 64 X2");
        assert_eq!(of(0x0050_0f20, 2, phenom), Some(0), "Bobcat");
        let with_leaf = |ebx| {
            [
                (0x8000_0000, 0x8000_001e, 0, 0, 0),
                (0x8000_0001, 0, 0, 1 << 22, 0),
                (0x8000_001e, 0, ebx, 0, 0),
            ]
        };
        assert_eq!(of(0x0060_0f12, 8, &with_leaf(0x100)), Some(1), "Bulldozer");
        assert_eq!(of(0x0060_0f12, 8, phenom), Some(1), "its leaf hidden");
        assert_eq!(of(0x0070_0f01, 4, &with_leaf(0)), Some(0), "Jaguar");
        assert_eq!(of(0x0070_0f01, 4, phenom), Some(0), "its leaf hidden");
        assert_eq!(of(0x0080_0f11, 16, &with_leaf(0x100)), Some(1), "Zen");
        assert_eq!(of(0x0080_0f11, 8, &with_leaf(0)), Some(0), "Zen, SMT off");
        assert_eq!(of(0x0080_0f11, 16, phenom), None, "Zen, leaf hidden");
    }
}
