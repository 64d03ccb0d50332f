//! The check every plan passes before it is handed out: `lookup` on its registers, against the
//! wanted map.

use super::error::LayoutError;
use super::loss::{Loss, Lost};
use super::plan::Plan;
use super::region::Priority;
use super::runs::Runs;
use super::states::{Class, of_rank, rank};
use super::wanted::Wanted;
use crate::lookup::MtrrMap;
use crate::overlap::MtrrType;
use crate::regs::{MtrrCap, MtrrDefType, SysCfg};
use crate::snapshot::Snapshot;

/// Addresses that want one thing and get one type.
#[derive(Debug)]
pub(super) struct Piece {
    start: u64,
    end: u64,
    class: Class,
    got: MtrrType,
}

impl Piece {
    /// Whether the type is the wanted one, and defined.
    fn is_met(&self) -> bool {
        let got = self.got.defined().map(rank);
        got.is_some_and(|got| self.class.met_by(got))
    }

    fn is_bearable(&self) -> bool {
        let got = self.got.defined().map(rank);
        got.is_some_and(|got| self.class.bearable(got))
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        let wanted = self.class.want()?;
        (!self.is_met()).then_some(Loss {
            start: self.start,
            end: self.end,
            wanted: of_rank(wanted),
            got: self.got.forced(),
            kind: self.class.kind(),
            priority: match self.class.priority() {
                0 => Priority::Low,
                1 => Priority::Normal,
                _ => Priority::High,
            },
        })
    }
}

/// Walks the wanted map and what a plan makes of it together, ascending.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    runs: Runs<'a>,
    next: u64,
}

impl<'a> Pieces<'a> {
    pub(super) const fn new(wanted: &Wanted<'a>) -> Self {
        Self {
            runs: Runs::new(wanted, Class::WEIGHED),
            next: 0,
        }
    }

    /// The next piece, with the map of the plan; the same one each time.
    pub(super) fn next(&mut self, map: &MtrrMap) -> Option<Piece> {
        let start = self.next;
        if start >= map.end() {
            return None;
        }
        let (class, class_end) = self.runs.segment(start);
        let (got, got_end) = map.piece(start);
        self.next = class_end.min(got_end);
        Some(Piece {
            start,
            end: self.next,
            class,
            got,
        })
    }
}

/// The map of a machine that has a plan's registers and nothing else that decides. Fixed ranges
/// are left out: where they decide, nothing is wanted.
#[inline(never)]
pub(super) fn map_of(wanted: &Wanted<'_>, plan: &Plan) -> MtrrMap {
    let mut machine = Snapshot::empty(wanted.bits);
    machine.cap = Some(MtrrCap::from_raw(plan.registers().len() as u64));
    machine.def_type = MtrrDefType::from_raw(MtrrDefType::E | u64::from(plan.default_type().raw()));
    for (slot, range) in machine.variable.iter_mut().zip(plan.registers()) {
        *slot = *range;
    }
    machine.syscfg = Some(SysCfg::MTRR_TOM2_EN.union(SysCfg::TOM2_FORCE_WB));
    machine.top_mem2 = wanted.forced_wb_end;
    MtrrMap::new(&machine)
}

/// Checks that every byte gets the type wanted.
// A frame of its own, as that of the planners.
#[inline(never)]
pub(super) fn strict(wanted: &Wanted<'_>, plan: &Plan) -> Result<(), LayoutError> {
    let map = map_of(wanted, plan);
    let mut pieces = Pieces::new(wanted);
    while let Some(piece) = pieces.next(&map) {
        if !piece.is_met() {
            return Err(LayoutError::Unverified { addr: piece.start });
        }
    }
    Ok(())
}

/// Checks that every byte gets a type it may get, and that just `claimed` is lost.
#[inline(never)]
pub(super) fn lenient(wanted: &Wanted<'_>, plan: &Plan, claimed: &Lost) -> Result<(), LayoutError> {
    let mut lost = Lost::default();
    let map = map_of(wanted, plan);
    let mut pieces = Pieces::new(wanted);
    while let Some(piece) = pieces.next(&map) {
        if !piece.is_bearable() {
            return Err(LayoutError::Unverified { addr: piece.start });
        }
        if let Some(loss) = piece.loss() {
            lost.add(&loss);
        }
    }
    if lost == *claimed {
        Ok(())
    } else {
        Err(LayoutError::Unverified { addr: 0 })
    }
}
