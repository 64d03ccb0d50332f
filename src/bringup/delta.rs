//! From what a CPU has to what it should have: register writes in order, and changes by group.

mod changes;

use core::fmt;

pub use self::changes::Changes;

use crate::ranges::FIXED_RANGES;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr, SysCfg};
use crate::snapshot::{DRAM_BITS, Snapshot};

/// One register write, and what the register held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The register.
    pub msr: MsrAddr,
    /// What it gets.
    pub value: u64,
    /// What it held when it was compared.
    pub before: u64,
}

impl Write {
    /// The write that undoes this one.
    #[must_use]
    pub const fn back(self) -> Self {
        Self {
            msr: self.msr,
            value: self.before,
            before: self.value,
        }
    }
}

/// Registers a mark can stand for: fixed, then base and mask of each pair.
const MARKS: usize = FIXED_COUNT + 2 * MAX_VARIABLE;
const _: () = assert!(MARKS <= u128::BITS as usize);

/// Which registers differ, one bit each, and whether they need a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Pairs with V clear before and after.
    outside: u128,
    window: u128,
    changes: Changes,
}

impl Marks {
    /// No register differs.
    pub(crate) const NONE: Self = Self {
        outside: 0,
        window: 0,
        changes: Changes::empty(),
    };

    /// Compares strictly; see [`Delta::between`].
    pub(crate) fn between(have: &Snapshot, want: &Snapshot) -> Self {
        let mut marks = Self::NONE;
        if have.cap.is_some() && want.cap.is_some() {
            marks.fixed(have, want);
            marks.variable(have, want);
            let differs = have.def_type != want.def_type;
            marks.changes.set(Changes::DEFAULT, differs);
        }
        let pats = (have.pat, want.pat);
        let differs = matches!(pats, (Some(have), Some(want)) if have != want);
        marks.changes.set(Changes::PAT, differs);
        let differs = routing_differs(have, want);
        marks.changes.set(Changes::ROUTING, differs);
        marks
    }

    /// The same without the PAT, where that is not to be written.
    pub(crate) const fn without_pat(mut self) -> Self {
        self.changes = self.changes.difference(Changes::PAT);
        self
    }

    /// Whether any register must be written with caches off.
    pub(crate) const fn need_window(self) -> bool {
        self.window != 0 || self.changes.contains(Changes::DEFAULT)
    }

    /// Whether pairs that are not in use differ.
    pub(crate) const fn outside_differ(self) -> bool {
        self.outside != 0
    }

    /// The groups that differ.
    pub(crate) const fn changes(self) -> Changes {
        self.changes
    }

    fn fixed(&mut self, have: &Snapshot, want: &Snapshot) {
        for (n, word) in have.fixed.iter().enumerate() {
            if fixed_word(have, want, n) != Some(*word) {
                self.window |= 1 << n;
                self.changes |= Changes::FIXED;
            }
        }
    }

    /// All pairs this CPU has: one the target's machine lacks is to be unused.
    fn variable(&mut self, have: &Snapshot, want: &Snapshot) {
        let count = have.variable_count();
        let pairs = have.variable.iter().zip(&want.variable).take(count);
        for (n, (have, want)) in pairs.enumerate() {
            if have == want {
                continue;
            }
            let place = FIXED_COUNT + 2 * n;
            let bits = u128::from(have.base != want.base) << place
                | u128::from(have.mask != want.mask) << (place + 1);
            self.changes |= Changes::VARIABLE;
            if have.valid() || want.valid() {
                self.window |= bits;
            } else {
                self.outside |= bits;
            }
        }
    }
}

/// What one CPU has to write, and where: the private list of its caches-off window.
#[derive(Clone, Copy)]
pub struct Delta<'a> {
    have: &'a Snapshot,
    want: &'a Snapshot,
    marks: Marks,
}

impl<'a> Delta<'a> {
    /// Compares strictly: every raw word, also of pairs that are not in use.
    ///
    /// Both snapshots are of one machine. Where AMD's RdMem and WrMem are shown in one of them alone,
    /// they are left as they are: the types count.
    #[must_use]
    pub fn between(have: &'a Snapshot, want: &'a Snapshot) -> Self {
        Self::marked(have, want, Marks::between(have, want))
    }

    /// The comparison of the same two snapshots, made before.
    pub(crate) const fn marked(have: &'a Snapshot, want: &'a Snapshot, marks: Marks) -> Self {
        Self { have, want, marks }
    }

    /// Writes that need no window: to pairs whose V is clear before and after.
    pub fn outside(&self) -> impl Iterator<Item = Write> + Clone + use<'a> {
        self.writes(self.marks.outside)
    }

    /// Fixed, then variable registers, ascending: written while E is clear.
    pub fn window(&self) -> impl Iterator<Item = Write> + Clone + use<'a> {
        self.writes(self.marks.window)
    }

    fn writes(&self, marks: u128) -> impl Iterator<Item = Write> + Clone + use<'a> {
        let (have, want) = (self.have, self.want);
        let mut left = marks;
        let marked = core::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            // Clears the lowest bit; none is left at 0.
            left &= left.checked_sub(1)?;
            Some(place)
        });
        marked.filter_map(move |place| write_at(have, want, place))
    }

    /// DEF_TYPE, when it differs.
    #[must_use]
    pub fn def_type(&self) -> Option<Write> {
        let (have, want) = (self.have.def_type.raw(), self.want.def_type.raw());
        let differs = self.marks.changes.contains(Changes::DEFAULT);
        differs.then_some(Write {
            msr: MsrAddr::MTRR_DEF_TYPE,
            value: want,
            before: have,
        })
    }

    /// DEF_TYPE as it was compared.
    #[must_use]
    pub const fn def_type_before(&self) -> u64 {
        self.have.def_type.raw()
    }

    /// DEF_TYPE as it is wanted.
    #[must_use]
    pub const fn def_type_wanted(&self) -> u64 {
        self.want.def_type.raw()
    }

    /// The PAT, when it differs.
    #[must_use]
    pub fn pat(&self) -> Option<Write> {
        let (have, want) = (self.have.pat?.raw(), self.want.pat?.raw());
        let differs = self.marks.changes.contains(Changes::PAT);
        differs.then_some(Write {
            msr: MsrAddr::PAT,
            value: want,
            before: have,
        })
    }

    /// Whether any write must be made with caches off.
    #[must_use]
    pub const fn needs_window(&self) -> bool {
        self.marks.need_window()
    }

    /// The first register that differs and matters: of any group but the pairs that are not in use.
    #[must_use]
    pub fn first_in_force(&self) -> Option<Write> {
        let listed = self.window().next();
        listed.or_else(|| self.def_type()).or_else(|| self.pat())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.marks.outside_differ() && self.first_in_force().is_none()
    }

    /// The groups that differ.
    #[must_use]
    pub const fn changes(&self) -> Changes {
        self.marks.changes
    }
}

impl fmt::Debug for Delta<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct List<I>(I);
        impl<I: Iterator<Item = Write> + Clone> fmt::Debug for List<I> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.clone()).finish()
            }
        }
        f.debug_struct("Delta")
            .field("outside", &List(self.outside()))
            .field("window", &List(self.window()))
            .field("def_type", &self.def_type())
            .field("pat", &self.pat())
            .field("changes", &self.changes())
            .finish()
    }
}

/// The write a mark stands for.
fn write_at(have: &Snapshot, want: &Snapshot, place: usize) -> Option<Write> {
    if let Some(range) = FIXED_RANGES.get(place) {
        return Some(Write {
            msr: range.msr,
            value: fixed_word(have, want, place)?,
            before: *have.fixed.get(place)?,
        });
    }
    let n = (place - FIXED_COUNT) / 2;
    let (have, want) = (have.variable.get(n)?, want.variable.get(n)?);
    Some(if (place - FIXED_COUNT).is_multiple_of(2) {
        Write {
            msr: MsrAddr::phys_base(n),
            value: want.base,
            before: have.base,
        }
    } else {
        Write {
            msr: MsrAddr::phys_mask(n),
            value: want.mask,
            before: have.mask,
        }
    })
}

/// What the `n`-th fixed-range register of a CPU that has `have` is to hold: RdMem and WrMem are kept
/// where the target does not show them, and are not written where this CPU hides them.
fn fixed_word(have: &Snapshot, want: &Snapshot, n: usize) -> Option<u64> {
    let (here, wanted) = (*have.fixed.get(n)?, *want.fixed.get(n)?);
    Some(match (have.fixed_dram_bits, want.fixed_dram_bits) {
        (false, false) | (true, true) => wanted,
        (false, true) => wanted & !DRAM_BITS,
        (true, false) => (wanted & !DRAM_BITS) | (here & DRAM_BITS),
    })
}

/// The bits of SYSCFG that route DRAM, 23 to 18, and 26; but for 19, which shows and hides RdMem and
/// WrMem and is a property of the moment.
const fn routing_bits(syscfg: SysCfg) -> u64 {
    syscfg.raw() & (0x3d << 18 | 1 << 26)
}

/// AMD's routing of DRAM: these bits and TOP_MEM2.
fn routing_differs(have: &Snapshot, want: &Snapshot) -> bool {
    let bits = |syscfg: Option<SysCfg>| syscfg.map(routing_bits);
    // A snapshot built from a dump may not know SYSCFG: that is not a difference.
    have.syscfg.is_some()
        && want.syscfg.is_some()
        && (bits(have.syscfg) != bits(want.syscfg) || have.top_mem2 != want.top_mem2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pat::Pat;
    use crate::ranges::PhysBits;
    use crate::regs::{MtrrCap, MtrrDefType, VariableMtrr};

    fn machine() -> Snapshot {
        let mut snapshot = Snapshot::empty(PhysBits::new(39).unwrap());
        snapshot.cap = Some(MtrrCap::from_raw(0xd0a));
        snapshot.def_type = MtrrDefType::from_raw(0xc06);
        snapshot.pat = Some(Pat::POWER_ON);
        snapshot
    }

    #[test]
    fn equal_snapshots_have_no_writes() {
        let (have, want) = (machine(), machine());
        let delta = Delta::between(&have, &want);
        assert!(delta.is_empty() && !delta.needs_window());
        assert_eq!(delta.changes(), Changes::empty());
        assert_eq!(delta.changes().to_string(), "-");
    }

    #[test]
    fn everything_differs_in_one_pass_of_ascending_writes() {
        let have = machine();
        let mut want = machine();
        want.fixed = [0x0606; FIXED_COUNT];
        want.variable = [VariableMtrr {
            base: 6,
            mask: 0x800,
        }; MAX_VARIABLE];
        want.def_type = MtrrDefType::from_raw(0xc00);
        want.pat = Some(Pat::LINUX);
        let delta = Delta::between(&have, &want);
        let window: std::vec::Vec<Write> = delta.window().collect();
        assert_eq!(window.len(), 31);
        assert!(window[..11].is_sorted_by_key(|w| w.msr));
        assert!(window[11..].is_sorted_by_key(|w| w.msr));
        assert_eq!(delta.changes().to_string(), "fixed,variable,default,pat");
    }

    #[test]
    fn junk_in_unused_pairs_needs_no_window() {
        let have = machine();
        let mut want = machine();
        want.variable[3] = VariableMtrr {
            base: 0x1234_5000,
            mask: 0x7000,
        };
        let delta = Delta::between(&have, &want);
        assert_eq!(delta.outside().count(), 2);
        assert!(!delta.needs_window() && !delta.is_empty());
        want.variable[3].mask |= VariableMtrr::V;
        let delta = Delta::between(&have, &want);
        assert_eq!((delta.outside().count(), delta.window().count()), (0, 2));
    }

    #[test]
    fn types_count_where_one_side_alone_shows_rdmem_and_wrmem() {
        let mut have = machine();
        let mut want = machine();
        have.fixed = [0x1e1e_1e1e_1e1e_1e1e; FIXED_COUNT];
        have.fixed_dram_bits = true;
        want.fixed = [0x0606_0606_0606_0606; FIXED_COUNT];
        assert!(Delta::between(&have, &want).is_empty());
        assert!(Delta::between(&want, &have).is_empty());
        want.fixed[4] = 0x0505_0505_0000_0000;
        fn values(have: &Snapshot, want: &Snapshot) -> std::vec::Vec<u64> {
            Delta::between(have, want)
                .window()
                .map(|w| w.value)
                .collect()
        }
        assert_eq!(values(&have, &want), [0x1d1d_1d1d_1818_1818]);
        assert_eq!(values(&want, &have), [0x0606_0606_0606_0606]);
        want.fixed_dram_bits = true;
        assert_eq!(values(&have, &want).len(), FIXED_COUNT);
    }

    #[test]
    fn a_pair_that_the_target_has_no_word_for_is_to_be_unused() {
        let mut have = machine();
        let mut want = machine();
        want.cap = Some(MtrrCap::from_raw(0xd08));
        have.variable[9] = VariableMtrr {
            base: 6,
            mask: 0x800,
        };
        let delta = Delta::between(&have, &want);
        let writes: std::vec::Vec<(MsrAddr, u64)> =
            delta.window().map(|w| (w.msr, w.value)).collect();
        let pair = [MsrAddr::phys_base(9), MsrAddr::phys_mask(9)];
        assert_eq!(writes, pair.map(|msr| (msr, 0)));
    }
}
