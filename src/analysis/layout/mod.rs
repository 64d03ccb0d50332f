//! From a wanted memory map to the fewest variable MTRRs, exactly.
//!
//! Owns the arithmetic of aligned blocks: which set of variable ranges gives every byte its type,
//! and what to give up when the registers do not reach. Refuses to know CPUs: what comes out is
//! data, a [`Plan`] or the [`Snapshot`](crate::snapshot::Snapshot) a rendezvous takes as target.
//!
//! # The questions
//! A [`Wanted`] is the map (a slice of [`Region`]s) and the machine. It answers
//! * [`Wanted::fewest`]: how many registers each of the five default types needs;
//! * [`Wanted::plan`]: the registers, [`Solution::Exact`] or [`Solution::Impossible`];
//! * [`Wanted::plan_least_damage`]: the same, and [`Solution::Relaxed`] in between.
//!
//! [`Edit`] asks them of a running machine: the firmware's map with a range set, changed or taken
//! out. [`Edit::fit`] is all a driver needs.
//!
//! # A frame buffer in write-combining
//! Two ways. Page tables, where there is a WC slot in the PAT (`mtrr_pat=pat=linux` makes one):
//! [`Pat::find`](crate::pat::Pat::find) gives the bits for its pages, [`crate::reserve`] sees to it that
//! nobody maps them otherwise. It takes no register and no rendezvous, and works over UC and WC
//! MTRRs: that is the first choice. MTRRs, for mappings whose pages are UC- or write-back, large ones
//! that are not to be split, or code that runs before the page tables are the kernel's:
//! [`Edit::fit`], and [`CacheSync::change`](crate::sync::CacheSync::change) brings it to all CPUs.
//!
//! ```
//! use mtrr_pat::layout::{Edit, Fitted, LayoutError, Region};
//! use mtrr_pat::memtype::{MemType, PatType};
//! use mtrr_pat::snapshot::Snapshot;
//!
//! enum FrameBuffer {
//!     /// Page-table bits for 4 KiB pages.
//!     Pages(u64),
//!     /// For `SYNC.change`.
//!     Mtrrs(Fitted),
//! }
//!
//! fn framebuffer(now: &Snapshot, start: u64, end: u64, ram_end: u64) -> Result<FrameBuffer, LayoutError> {
//!     if let Some(slot) = now.pat.and_then(|pat| pat.find(PatType::WriteCombining)) {
//!         return Ok(FrameBuffer::Pages(slot.bits_4k()));
//!     }
//!     let mut edit = Edit::of(now)?;
//!     edit.ram_end(ram_end).set(Region::mmio(start, end, MemType::WriteCombining))?;
//!     edit.fit().map(FrameBuffer::Mtrrs)
//! }
//! ```
//!
//! ```
//! use mtrr_pat::layout::{FixedRanges, Solution, Region, Wanted};
//! use mtrr_pat::memtype::MemType;
//! use mtrr_pat::ranges::PhysBits;
//!
//! // 6 GiB of RAM around a 1 GiB hole; a framebuffer in the hole; nothing known above.
//! let map = [
//!     Region::ram(0, 0xc000_0000, MemType::WriteBack),
//!     Region::mmio(0xc000_0000, 0xd000_0000, MemType::Uncachable),
//!     Region::mmio(0xd000_0000, 0xe000_0000, MemType::WriteCombining),
//!     Region::mmio(0xe000_0000, 0x1_0000_0000, MemType::Uncachable),
//!     Region::ram(0x1_0000_0000, 0x1_c000_0000, MemType::WriteBack),
//! ];
//! let bits = PhysBits::new(39).expect("39 is a width");
//! let wanted = Wanted::new(&map, bits, 10).fixed_ranges(FixedRanges::On);
//!
//! // Default UC, then WB 0-2G, 2-3G, 4-6G, 6-7G and WC 3.25-3.5G.
//! match wanted.plan()? {
//!     Solution::Exact(plan) => assert_eq!(plan.registers().len(), 5),
//!     other => unreachable!("ten registers are enough: {other:?}"),
//! }
//! # Ok::<(), mtrr_pat::layout::LayoutError>(())
//! ```
//!
//! # What "fewest" means
//! Fewest with contiguous masks: each register then covers one aligned block of a power of two
//! bytes, and any two blocks are nested or disjoint. Masks with holes are legal, match several
//! blocks at once and could in special maps save a register; no firmware or kernel uses them, and
//! neither does this module. Overlaps whose type the manuals leave undefined are never produced.
//!
//! Source: Intel SDM 3A, "Variable Range MTRRs", "MTRR Precedences"; AMD APM 2, "Variable-Range
//! MTRRs", "Combined Effect of MTRRs".

mod costs;
mod count;
mod edit;
mod error;
mod fit;
mod fixed;
mod knapsack;
mod loss;
mod losses;
mod options;
mod plan;
mod region;
mod runs;
mod scratch;
mod solve;
mod states;
mod trie;
mod verify;
mod wanted;

pub use edit::Edit;
pub use error::{Flaw, LayoutError};
pub use fit::Fitted;
pub use loss::{Loss, Lost};
pub use losses::Losses;
pub use options::{DefaultType, FixedRanges, Unlisted};
pub use plan::{Fewest, Plan, Solution};
pub use region::{Kind, Priority, Region, RegionMap, Want};
pub use scratch::{Scratch, scratch_len};
pub use wanted::Wanted;
