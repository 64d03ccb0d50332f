//! A map that a running machine can be given by itself: the exact one, or one that keeps the types of
//! all RAM and of everything below it.

use core::fmt;
use core::ops::Range;

use super::edit::Edit;
use super::error::LayoutError;
use super::plan::{Plan, Solution};
use super::region::{Region, Want};
use crate::lookup::MtrrMap;
use crate::memtype::MemType;
use crate::snapshot::Snapshot;

/// Devices below 4 GiB keep their types, wherever RAM ends.
const DEVICES_END: u64 = 1 << 32;

/// What [`Edit::fit`] found: print it into the log before it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fitted {
    /// What every CPU is to have: for [`CacheSync::change`](crate::sync::CacheSync::change).
    pub target: Snapshot,
    /// The registers it puts there.
    pub plan: Plan,
    /// Where memory that is write-back now, and no RAM, loses its type, if it has to; what was set
    /// there to another type than it had keeps its own. Nothing in it becomes write-combining.
    pub dropped: Option<Range<u64>>,
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.plan.registers().len();
        write!(f, "{n} variable ranges, ")?;
        match &self.dropped {
            None => f.write_str("every address as wanted"),
            Some(Range { start, end }) => write!(
                f,
                "exact for all RAM; above it, {start:#x}-{:#x}, what was write-back is no longer so",
                end - 1
            ),
        }
    }
}

impl Edit {
    /// A target the machine has registers for. The first of these that fits:
    /// 1. exactly the map, as [`Edit::plan`];
    /// 2. the same below the end of RAM ([`Edit::ram_end`]) and 4 GiB, and above it uncachable what
    ///    is write-back now. Emulators and some firmware make all of that write-back by a default type
    ///    that leaves no registers: there is nothing, or devices that page tables make uncachable.
    /// 3. the same, but for types above it that are whatever is cheapest and not write-combining.
    ///
    /// ```
    /// # use mtrr_pat::layout::{Edit, LayoutError, Region};
    /// # use mtrr_pat::memtype::MemType;
    /// # use mtrr_pat::snapshot::Snapshot;
    /// # fn framebuffer(now: &Snapshot, ram_end: u64) -> Result<(), LayoutError> {
    /// let mut edit = Edit::of(now)?;
    /// edit.ram_end(ram_end); // of the firmware's memory map
    /// edit.set(Region::mmio(0xd000_0000, 0xd100_0000, MemType::WriteCombining))?;
    /// let fitted = edit.fit()?;
    /// log::info!("frame buffer: {fitted}");
    /// // SYNC.change(cpu, me, &fitted.target, kick)
    /// # Ok(()) }
    /// ```
    ///
    /// Takes less than 24 KiB of stack; [`Edit::plan`] takes a third of that.
    ///
    /// # Errors
    /// [`LayoutError::DoesNotFit`] when none does: the range gets its type through the page tables,
    /// with [`Pat::find`](crate::pat::Pat::find). Others as [`Wanted::plan`](super::Wanted::plan).
    pub fn fit(&self) -> Result<Fitted, LayoutError> {
        let (need, have) = match self.plan()? {
            Solution::Exact(plan) | Solution::Relaxed { plan, .. } => {
                return self.fitted(plan, None);
            }
            Solution::Impossible { need, have } => (need, have),
        };
        if let Some(above) = self.above_ram() {
            let uncachable = |start, end| Region::mmio(start, end, MemType::Uncachable);
            for region in [uncachable, Region::dont_care] {
                let mut edit = *self;
                edit.drop_above(above.start, region)?;
                if let Solution::Exact(plan) = edit.replan()?
                    && let Ok(fitted) = edit.fitted(plan, Some(above.clone()))
                    && self.combines_as_wanted(&fitted.target, above.start)
                {
                    return Ok(fitted);
                }
            }
        }
        Err(LayoutError::DoesNotFit {
            planned: need,
            exist: have,
        })
    }

    fn fitted(&self, plan: Plan, dropped: Option<Range<u64>>) -> Result<Fitted, LayoutError> {
        let target = self.target(&plan)?;
        Ok(Fitted {
            target,
            plan,
            dropped,
        })
    }

    /// What lies above all RAM and 4 GiB, if it is known where RAM ends.
    fn above_ram(&self) -> Option<Range<u64>> {
        let end = self.regions().last()?.end;
        let start = self.known_ram_end()?.max(DEVICES_END);
        (start < end).then_some(start..end)
    }

    /// Gives what is write-back above `start`, and was so before the edit, another region.
    fn drop_above(
        &mut self,
        start: u64,
        region: fn(u64, u64) -> Region,
    ) -> Result<(), LayoutError> {
        let write_back = Want::Type(MemType::WriteBack);
        let regions = |edit: &Self, at| {
            let mut regions = edit.regions().iter();
            let found = regions.find(|found| found.end > at && found.want == write_back);
            found.map(|found| (at.max(found.start), found.end))
        };
        let mut at = start;
        while let Some((from, end)) = regions(self, at) {
            at = self.drop_as_found(from..end, region)?;
        }
        Ok(())
    }

    /// The first run of what is write-back in a range: where it is so before the edit too, it is given
    /// another region. The end of the run.
    #[inline(never)] // the map is not to be on the stack of the planner
    fn drop_as_found(
        &mut self,
        range: Range<u64>,
        region: fn(u64, u64) -> Region,
    ) -> Result<u64, LayoutError> {
        let map = MtrrMap::new(self.before());
        let Some(run) = map.runs_in(range.clone()).next() else {
            return Ok(range.end);
        };
        let (end, memtype) = (run.end, run.memtype);
        if memtype.defined() == Some(MemType::WriteBack) {
            self.set(region(range.start, end))?;
        }
        Ok(end)
    }

    /// Whether nothing above `start` is write-combining that was not to be: a device there may be
    /// mapped UC-, which gives way.
    fn combines_as_wanted(&self, target: &Snapshot, start: u64) -> bool {
        let map = MtrrMap::new(target);
        // A run may join two that were wanted over what lies between them.
        let others = self
            .regions()
            .iter()
            .filter(|region| region.want != Want::Type(MemType::WriteCombining));
        map.runs_in(start..map.end())
            .filter(|run| run.memtype.defined() == Some(MemType::WriteCombining))
            .all(|run| {
                let mut others = others.clone();
                others.all(|other| other.end <= run.start || run.end <= other.start)
            })
    }
}
