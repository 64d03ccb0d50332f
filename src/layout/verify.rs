//! The check every plan passes before it is handed out: `lookup` on its registers, against the
//! wanted map.

use super::error::LayoutError;
use super::plan::{Loss, Lost, Plan};
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
    map: MtrrMap,
    next: u64,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(wanted: &Wanted<'a>, plan: &Plan) -> Self {
        Self {
            runs: Runs::new(wanted, Class::WEIGHED),
            map: MtrrMap::new(&machine(wanted, plan)),
            next: 0,
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let start = self.next;
        if start >= self.map.end() {
            return None;
        }
        let (class, class_end) = self.runs.segment(start);
        let (got, got_end) = self.map.piece(start);
        self.next = class_end.min(got_end);
        Some(Piece {
            start,
            end: self.next,
            class,
            got,
        })
    }
}

/// A machine that has a plan's registers and nothing else that decides. Fixed ranges are left
/// out: where they decide, nothing is wanted.
fn machine(wanted: &Wanted<'_>, plan: &Plan) -> Snapshot {
    let mut base = Snapshot::empty(wanted.bits);
    base.cap = Some(MtrrCap::from_raw(plan.registers().len() as u64));
    base.def_type = MtrrDefType::from_raw(MtrrDefType::E | u64::from(plan.default_type().raw()));
    for (slot, range) in base.variable.iter_mut().zip(plan.registers()) {
        *slot = *range;
    }
    base.syscfg = Some(SysCfg::MTRR_TOM2_EN.union(SysCfg::TOM2_FORCE_WB));
    base.top_mem2 = wanted.forced_wb_end;
    base
}

/// Checks that every byte gets the type wanted.
pub(super) fn strict(wanted: &Wanted<'_>, plan: &Plan) -> Result<(), LayoutError> {
    match Pieces::new(wanted, plan).find(|piece| !piece.is_met()) {
        Some(wrong) => Err(LayoutError::Unverified { addr: wrong.start }),
        None => Ok(()),
    }
}

/// Checks that every byte gets a type it may get, and that just `claimed` is lost.
pub(super) fn lenient(wanted: &Wanted<'_>, plan: &Plan, claimed: &Lost) -> Result<(), LayoutError> {
    let mut lost = Lost::default();
    for piece in Pieces::new(wanted, plan) {
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
