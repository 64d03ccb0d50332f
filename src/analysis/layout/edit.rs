//! Edits of a running machine: its map as it is, with ranges set or taken out.

use core::ops::Range;

use super::error::LayoutError;
use super::fixed::set_fixed;
use super::losses::Losses;
use super::options::DefaultType;
use super::plan::{Plan, Solution};
use super::region::{Region, RegionMap, Want};
use super::scratch::Scratch;
use super::verify;
use super::wanted::Wanted;
use crate::lookup::{MtrrMap, Run};
use crate::memtype::MemType;
use crate::ranges::FIXED_END;
use crate::regs::VariableMtrr;
use crate::snapshot::Snapshot;

/// Regions an edited map may have. 40 ranges with contiguous masks make at most 83.
const REGIONS: usize = 128;

const FULL: LayoutError = LayoutError::MapFull { capacity: REGIONS };

/// A change to the MTRRs of a running machine, in the making.
///
/// Starts from the map a snapshot describes: every address is wanted as it is, memory of type WB
/// counts as RAM and everything else as MMIO, at normal priority; undefined overlaps count as UC.
/// Nothing is written: [`Edit::target`] gives the state that a rendezvous brings to every CPU.
/// To undo, bring back the snapshot.
///
/// About 6 KiB of plain data.
///
/// ```
/// use mtrr_pat::layout::{Edit, Solution, Region};
/// use mtrr_pat::memtype::MemType;
/// use mtrr_pat::ranges::PhysBits;
/// use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
/// use mtrr_pat::snapshot::Snapshot;
///
/// # let bits = PhysBits::new(36).expect("36 is a width");
/// # let mut boot = Snapshot::empty(bits);
/// # boot.cap = Some(MtrrCap::from_raw(8 | MtrrCap::WC.raw()));
/// # boot.def_type = MtrrDefType::from_raw(MtrrDefType::E); // default UC
/// # boot.variable[0] = VariableMtrr::from_block(0, 1 << 31, MemType::WriteBack, bits)
/// #     .expect("2 GiB at 0 is a block");
/// // `boot` is the boot CPU's state: default UC, 2 GiB of WB.
/// let mut edit = Edit::of(&boot)?;
/// edit.set(Region::mmio(0xd000_0000, 0xe000_0000, MemType::WriteCombining))?;
/// if let Solution::Exact(plan) = edit.plan()? {
///     let target = edit.target(&plan)?;
///     // The firmware's range stays where it is; one register is new.
///     assert_eq!(target.variable[0], boot.variable[0]);
///     assert_eq!(target.variable[1].base, 0xd000_0001);
/// }
/// # Ok::<(), mtrr_pat::layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// The snapshot, with the fixed ranges edited.
    base: Snapshot,
    map: RegionMap<REGIONS>,
    /// The base with registers added and taken out, nothing moved; `None` when slots ran out.
    in_place: Option<Snapshot>,
    keep_free: usize,
    default: DefaultType,
    ram_end: Option<u64>,
}

impl Edit {
    /// Starts from what a CPU has.
    ///
    /// # Errors
    /// [`LayoutError::MtrrsOff`] when there are no MTRRs or E is clear; [`LayoutError::MapFull`]
    /// when masks with holes cut the map into more than 128 regions.
    pub fn of(snapshot: &Snapshot) -> Result<Self, LayoutError> {
        if snapshot.cap.is_none() || !snapshot.def_type.enabled() {
            return Err(LayoutError::MtrrsOff);
        }
        let mut map = RegionMap::new(snapshot.phys_bits);
        let lookup = MtrrMap::new(snapshot);
        let mut end = variable_start(snapshot);
        for run in lookup.runs_in(end..lookup.end()).take(REGIONS) {
            map.push(Region::as_it_is(run.start, run.end, run.memtype.forced()))?;
            end = run.end;
        }
        if end < lookup.end() {
            return Err(FULL);
        }
        Ok(Self {
            base: *snapshot,
            map,
            in_place: Some(*snapshot),
            keep_free: 0,
            default: DefaultType::Free,
            ram_end: None,
        })
    }

    /// Leaves so many of the variable ranges unused.
    pub const fn keep_free(&mut self, registers: usize) -> &mut Self {
        self.keep_free = registers;
        self
    }

    /// Says who picks the default type; free unless said otherwise.
    pub const fn default_type(&mut self, default: DefaultType) -> &mut Self {
        self.default = default;
        self
    }

    /// Says where RAM ends: the byte at `end` is none, nor any above. Taken to the next 4 KiB, and any
    /// number will do. Without it everything write-back may be RAM.
    pub const fn ram_end(&mut self, end: u64) -> &mut Self {
        self.ram_end = Some(match end.checked_next_multiple_of(0x1000) {
            Some(end) => end,
            None => u64::MAX,
        });
        self
    }

    pub(super) const fn before(&self) -> &Snapshot {
        &self.base
    }

    pub(super) const fn known_ram_end(&self) -> Option<u64> {
        self.ram_end
    }

    /// Gives a range what the region says, whatever was there before; but write-combining to nothing
    /// that may be RAM.
    ///
    /// Any multiple of 4 KiB, not only powers of two. Below 1 MiB, where the fixed ranges decide,
    /// only their bytes inside the range change, and boundaries must fall on their steps; RdMem
    /// and WrMem (AMD) stay as they are. Setting [`Region::dont_care`] above the top of RAM makes
    /// room in [`Edit::replan`].
    ///
    /// # Errors
    /// [`LayoutError::Region`], [`LayoutError::MapFull`] as [`RegionMap::paint`];
    /// [`LayoutError::FixedStep`], [`LayoutError::DramBits`] for a range below 1 MiB;
    /// [`LayoutError::OverRam`]. Nothing of the request is then taken over.
    pub fn set(&mut self, region: Region) -> Result<(), LayoutError> {
        if region.want == Want::Type(MemType::WriteCombining) {
            let end = region.end.min(self.ram_end.unwrap_or(u64::MAX));
            let map = MtrrMap::new(&self.base);
            let mut runs = map.runs_in(region.start..end.max(region.start));
            let ram = |run: &Run| run.memtype.defined() == Some(MemType::WriteBack);
            if let Some(Run { start: addr, .. }) = runs.find(ram) {
                return Err(LayoutError::OverRam { addr });
            }
            let set = self.map.regions().iter().find(|set| {
                let ram = set.want == Want::Type(MemType::WriteBack);
                ram && set.start.max(region.start) < set.end.min(end)
            });
            if let Some(set) = set {
                let addr = set.start.max(region.start);
                return Err(LayoutError::OverRam { addr });
            }
        }
        self.set_over_ram(region)
    }

    /// [`Edit::set`], also for write-combining over what may be RAM: a buffer that one device reads and
    /// whose writers fence, and that nothing else uses.
    ///
    /// # Errors
    /// As for [`Edit::set`], but [`LayoutError::OverRam`].
    pub fn set_over_ram(&mut self, region: Region) -> Result<(), LayoutError> {
        let bits = self.base.phys_bits;
        if let Some(flaw) = region.flaw(bits) {
            return Err(LayoutError::Region { index: 0, flaw });
        }
        let fixed_end = variable_start(&self.base);
        let mut base = self.base;
        if let Want::Type(memtype) = region.want {
            set_fixed(&mut base, region.start..region.end.min(fixed_end), memtype)?;
        }
        if region.end > fixed_end {
            let above = Region {
                start: region.start.max(fixed_end),
                ..region
            };
            self.map.paint(above)?;
            if let (Want::Type(memtype), Some(mut snapshot)) = (region.want, self.in_place) {
                let added = add_blocks(&mut snapshot, above.start..above.end, memtype);
                self.in_place = added.map(|()| snapshot);
            }
        }
        self.base = base;
        Ok(())
    }

    /// Takes out every variable range of a type that lies wholly inside a range of addresses.
    ///
    /// What they covered becomes what the other registers say. To give it a type of one's own
    /// choice, use [`Edit::set`].
    ///
    /// # Errors
    /// [`LayoutError::NoSuchRange`] when there is none; [`LayoutError::Undefined`] when others
    /// would then overlap in a way the manuals leave undefined; [`LayoutError::MapFull`]. Nothing
    /// is then taken out.
    pub fn remove(&mut self, range: Range<u64>, memtype: MemType) -> Result<(), LayoutError> {
        let before = self.in_place.unwrap_or(self.base);
        let bits = before.phys_bits;
        let is_meant = |register: &VariableMtrr| {
            let block = register.block(bits).filter(|_| register.valid());
            let inside = block
                .is_some_and(|(start, size)| range.start <= start && start + size <= range.end);
            inside && register.memtype() == Ok(memtype)
        };
        let mut after = before;
        let count = after.variable_count();
        let mut found = false;
        for register in after
            .variable
            .iter_mut()
            .take(count)
            .filter(|r| is_meant(r))
        {
            register.mask &= !VariableMtrr::V;
            found = true;
        }
        if !found {
            return Err(LayoutError::NoSuchRange);
        }
        let mut map = self.map;
        let lookup = MtrrMap::new(&after);
        for register in before.variable_ranges().iter().filter(|r| is_meant(r)) {
            let (start, size) = register.block(bits).ok_or(LayoutError::NoSuchRange)?;
            let mut next = start.max(variable_start(&before));
            for run in lookup.runs_in(next..start + size).take(REGIONS) {
                let defined = run.memtype.defined();
                let memtype = defined.ok_or(LayoutError::Undefined { addr: run.start })?;
                map.paint(Region::as_it_is(run.start, run.end, memtype))?;
                next = run.end;
            }
            if next < start + size {
                return Err(FULL);
            }
        }
        self.map = map;
        self.in_place = self.in_place.map(|_| after);
        Ok(())
    }

    /// The map as it shall be, ascending; without the first MiB where the fixed ranges decide.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        self.map.regions()
    }

    /// The registers, touching as few of them as can be: those there stay, and new ones go into
    /// free slots, if that gives the map; else as [`Edit::replan`].
    ///
    /// # Errors
    /// As [`Wanted::plan`].
    pub fn plan(&self) -> Result<Solution, LayoutError> {
        match self.plan_in_place() {
            Some(plan) => Ok(Solution::Exact(plan)),
            None => self.replan(),
        }
    }

    /// The fewest registers for the map, whatever is there now: makes room where the firmware was
    /// wasteful.
    ///
    /// # Errors
    /// As [`Wanted::plan`].
    pub fn replan(&self) -> Result<Solution, LayoutError> {
        self.wanted().plan()
    }

    /// As [`Edit::replan`], and what loses least where the registers do not reach.
    ///
    /// # Errors
    /// As [`Wanted::plan_least_damage`].
    pub fn replan_least_damage(&self, scratch: &mut [Scratch]) -> Result<Solution, LayoutError> {
        self.wanted().plan_least_damage(scratch)
    }

    /// What a plan gives up of the map.
    #[must_use]
    pub fn losses(&self, plan: &Plan) -> Losses<'_> {
        Losses::new(&self.wanted(), plan)
    }

    /// The state to bring to every CPU: what the snapshot held, but for the fixed ranges set, the
    /// variable ranges and the default type.
    ///
    /// # Errors
    /// As for [`Plan::target`]; none for a plan of this map.
    pub fn target(&self, plan: &Plan) -> Result<Snapshot, LayoutError> {
        plan.target(&self.base)
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted::on(&self.base, self.map.regions())
            .keep_free(self.keep_free)
            .default_type(self.default)
    }

    fn plan_in_place(&self) -> Option<Plan> {
        let plan = Plan::of(self.in_place.as_ref()?)?;
        let wanted = self.wanted();
        let fits = plan.registers().len() <= wanted.available()
            && wanted
                .defaults()
                .any(|default| default == plan.default_type())
            && verify::strict(&wanted, &plan).is_ok();
        fits.then_some(plan)
    }
}

/// Where the variable ranges start to decide.
const fn variable_start(snapshot: &Snapshot) -> u64 {
    if snapshot.fixed_in_force() {
        FIXED_END
    } else {
        0
    }
}

/// Adds ranges in free slots for the aligned blocks a range consists of, where the type is not
/// right already. `None` when slots run out.
fn add_blocks(snapshot: &mut Snapshot, range: Range<u64>, memtype: MemType) -> Option<()> {
    let bits = snapshot.phys_bits;
    let lookup = MtrrMap::new(snapshot);
    let count = snapshot.variable_count();
    let slots = snapshot.variable.get_mut(..count)?;
    let mut free = slots.iter_mut().filter(|slot| !slot.valid());
    let mut start = range.start;
    while start < range.end {
        let largest = 1 << (range.end - start).ilog2();
        let aligned = 1u64.checked_shl(start.trailing_zeros()).unwrap_or(largest);
        let size = largest.min(aligned);
        let block = start..start + size;
        if lookup.over(block).uniform() != Some(memtype.into()) {
            *free.next()? = VariableMtrr::from_block(start, size, memtype, bits)?;
        }
        start += size;
    }
    Some(())
}
