//! From what a CPU has to what it should have: register writes in order, and changes by group.
//!
//! Owns the comparison and the order of writes; refuses to know how they are carried out.

use core::fmt;

use bitflags::bitflags;

use crate::error::Error;
use crate::ranges::FIXED_RANGES;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr, SysCfg};
use crate::snapshot::Snapshot;

bitflags! {
    /// Groups of state in which a CPU differed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct Changes: u8 {
        /// Fixed-range MTRRs.
        const FIXED = 1 << 0;
        /// Variable-range MTRRs, in use or not.
        const VARIABLE = 1 << 1;
        /// DEF_TYPE: the default type, E or FE.
        const DEFAULT = 1 << 2;
        /// The PAT.
        const PAT = 1 << 3;
        /// CR0.CD or CR0.NW was found set.
        const CACHING = 1 << 4;
        /// AMD's SYSCFG (bits 23:18 and 26) or TOP_MEM2: reported, never written.
        const ROUTING = 1 << 5;
    }
}

impl Changes {
    /// The groups with the names used in reports, in the order of their bits.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::FIXED, "fixed"),
        (Self::VARIABLE, "variable"),
        (Self::DEFAULT, "default"),
        (Self::PAT, "pat"),
        (Self::CACHING, "caching"),
        (Self::ROUTING, "routing"),
    ];

    /// The names of the groups in which there was a difference.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(group, _)| self.contains(*group))
            .map(|(_, name)| name)
    }
}

impl fmt::Display for Changes {
    /// Writes the names, separated by commas; `-` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (i, name) in self.names().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

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
    const NONE: Self = Self {
        msr: MsrAddr(0),
        value: 0,
        before: 0,
    };
}

/// Every fixed and variable register at once.
const MOST: usize = FIXED_COUNT + 2 * MAX_VARIABLE;

/// What one CPU has to write, and where: the private list of its caches-off window.
#[derive(Clone)]
pub struct Delta {
    writes: [Write; MOST],
    /// The first so many need no window: pairs with V clear before and after.
    outside: usize,
    len: usize,
    def_type: Option<Write>,
    pat: Option<Write>,
    def_type_before: u64,
    changes: Changes,
}

impl Delta {
    /// Compares strictly: every raw word, also of pairs that are not in use.
    ///
    /// Both snapshots are of the same machine, read with the same VCNT.
    ///
    /// # Errors
    /// [`Error::FixedDramStateDiffers`]: the fixed ranges were read in different states of SYSCFG
    /// bit 19 and their types differ.
    pub fn between(have: &Snapshot, want: &Snapshot) -> Result<Self, Error> {
        let mut delta = Self {
            writes: [Write::NONE; MOST],
            outside: 0,
            len: 0,
            def_type: None,
            pat: None,
            def_type_before: have.def_type.raw(),
            changes: Changes::empty(),
        };
        if have.cap.is_some() && want.cap.is_some() {
            delta.variable(have, want, Unused::Both);
            delta.outside = delta.len;
            delta.fixed(have, want)?;
            delta.variable(have, want, Unused::NotBoth);
            delta.def_type = differing(
                MsrAddr::MTRR_DEF_TYPE,
                have.def_type.raw(),
                want.def_type.raw(),
            );
        }
        if let (Some(have), Some(want)) = (have.pat, want.pat) {
            delta.pat = differing(MsrAddr::PAT, have.raw(), want.raw());
        }
        delta
            .changes
            .set(Changes::DEFAULT, delta.def_type.is_some());
        delta.changes.set(Changes::PAT, delta.pat.is_some());
        delta
            .changes
            .set(Changes::ROUTING, routing_differs(have, want));
        Ok(delta)
    }

    fn push(&mut self, msr: MsrAddr, before: u64, value: u64, group: Changes) {
        if let Some(write) = differing(msr, before, value)
            && let Some(place) = self.writes.get_mut(self.len)
        {
            *place = write;
            self.len += 1;
            self.changes |= group;
        }
    }

    fn fixed(&mut self, have: &Snapshot, want: &Snapshot) -> Result<(), Error> {
        /// The bits of a fixed word that hold types, in any state of SYSCFG bit 19.
        const TYPES: u64 = 0x0707_0707_0707_0707;
        let same_state = have.fixed_dram_bits == want.fixed_dram_bits;
        for ((range, have), want) in FIXED_RANGES.iter().zip(have.fixed).zip(want.fixed) {
            if same_state {
                self.push(range.msr, have, want, Changes::FIXED);
            } else if have & TYPES != want & TYPES {
                return Err(Error::FixedDramStateDiffers);
            }
        }
        Ok(())
    }

    fn variable(&mut self, have: &Snapshot, want: &Snapshot, which: Unused) {
        let count = have.variable_count().min(want.variable_count());
        let pairs = have.variable.iter().zip(&want.variable).take(count);
        for (n, (have, want)) in pairs.enumerate() {
            let unused = if have.valid() || want.valid() {
                Unused::NotBoth
            } else {
                Unused::Both
            };
            if unused == which {
                let group = Changes::VARIABLE;
                self.push(MsrAddr::phys_base(n), have.base, want.base, group);
                self.push(MsrAddr::phys_mask(n), have.mask, want.mask, group);
            }
        }
    }

    /// Writes that need no window: to pairs whose V is clear before and after.
    #[must_use]
    pub fn outside(&self) -> &[Write] {
        self.writes.get(..self.outside).unwrap_or_default()
    }

    /// Fixed, then variable registers, ascending: written while E is clear.
    #[must_use]
    pub fn window(&self) -> &[Write] {
        self.writes.get(self.outside..self.len).unwrap_or_default()
    }

    /// DEF_TYPE, when it differs.
    #[must_use]
    pub const fn def_type(&self) -> Option<Write> {
        self.def_type
    }

    /// DEF_TYPE as it was compared.
    #[must_use]
    pub const fn def_type_before(&self) -> u64 {
        self.def_type_before
    }

    /// The PAT, when it differs.
    #[must_use]
    pub const fn pat(&self) -> Option<Write> {
        self.pat
    }

    /// Whether any write must be made with caches off.
    #[must_use]
    pub const fn needs_window(&self) -> bool {
        self.len > self.outside || self.def_type.is_some()
    }

    /// The first register that differs, of any group.
    #[must_use]
    pub fn first(&self) -> Option<Write> {
        let listed = self.writes.get(..self.len).unwrap_or_default();
        listed.first().copied().or(self.def_type).or(self.pat)
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0 && self.def_type.is_none() && self.pat.is_none()
    }

    /// The groups that differ.
    #[must_use]
    pub const fn changes(&self) -> Changes {
        self.changes
    }
}

impl fmt::Debug for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delta")
            .field("outside", &self.outside())
            .field("window", &self.window())
            .field("def_type", &self.def_type)
            .field("pat", &self.pat)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

/// Whether V of a pair is clear before and after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unused {
    Both,
    NotBoth,
}

fn differing(msr: MsrAddr, before: u64, value: u64) -> Option<Write> {
    (before != value).then_some(Write { msr, value, before })
}

/// AMD's routing of DRAM: SYSCFG[23:18,26] and TOP_MEM2.
fn routing_differs(have: &Snapshot, want: &Snapshot) -> bool {
    const COMPARED: u64 = 0x3f << 18 | 1 << 26;
    let bits = |syscfg: Option<SysCfg>| syscfg.map(|syscfg| syscfg.raw() & COMPARED);
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
        let delta = Delta::between(&machine(), &machine()).unwrap();
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
        let delta = Delta::between(&have, &want).unwrap();
        assert_eq!(delta.window().len(), 31);
        assert!(delta.window()[..11].is_sorted_by_key(|w| w.msr));
        assert!(delta.window()[11..].is_sorted_by_key(|w| w.msr));
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
        let delta = Delta::between(&have, &want).unwrap();
        assert_eq!(delta.outside().len(), 2);
        assert!(!delta.needs_window() && !delta.is_empty());
        want.variable[3].mask |= VariableMtrr::V;
        let delta = Delta::between(&have, &want).unwrap();
        assert_eq!((delta.outside().len(), delta.window().len()), (0, 2));
    }

    #[test]
    fn fixed_words_read_in_another_state_are_never_written() {
        let mut have = machine();
        let mut want = machine();
        have.fixed = [0x1e1e_1e1e_1e1e_1e1e; FIXED_COUNT];
        have.fixed_dram_bits = true;
        want.fixed = [0x0606_0606_0606_0606; FIXED_COUNT];
        assert!(Delta::between(&have, &want).unwrap().is_empty());
        want.fixed[4] = 0;
        assert_eq!(
            Delta::between(&have, &want).unwrap_err(),
            Error::FixedDramStateDiffers
        );
    }
}
