//! What a plan gives up, run by run.

use super::loss::{Loss, Lost};
use super::plan::Plan;
use super::verify::{Pieces, map_of};
use super::wanted::Wanted;
use crate::lookup::MtrrMap;

/// The losses of a plan, ascending and maximal. See [`Wanted::losses`].
#[derive(Debug)]
pub struct Losses<'a> {
    pieces: Pieces<'a>,
    map: MtrrMap,
    /// A loss found that may still grow.
    open: Option<Loss>,
}

impl<'a> Losses<'a> {
    pub(super) fn new(wanted: &Wanted<'a>, plan: &Plan) -> Self {
        Self {
            pieces: Pieces::new(wanted),
            map: map_of(wanted, plan),
            open: None,
        }
    }
}

impl Iterator for Losses<'_> {
    type Item = Loss;

    fn next(&mut self) -> Option<Loss> {
        loop {
            let Some(piece) = self.pieces.next(&self.map) else {
                return self.open.take();
            };
            let loss = piece.loss();
            match (&mut self.open, loss) {
                (Some(open), Some(loss)) if open.continued_by(&loss) => open.end = loss.end,
                (None, _) => self.open = loss,
                (Some(_), _) => return core::mem::replace(&mut self.open, loss),
            }
        }
    }
}

impl core::iter::FusedIterator for Losses<'_> {}

impl<'a> Wanted<'a> {
    /// What a plan for this map gives up: the runs of bytes with another type than wanted.
    #[must_use]
    pub fn losses(&self, plan: &Plan) -> Losses<'a> {
        Losses::new(self, plan)
    }

    /// The bytes a plan for this map gives up, by priority.
    #[must_use]
    pub fn lost(&self, plan: &Plan) -> Lost {
        let mut lost = Lost::default();
        for loss in self.losses(plan) {
            lost.add(&loss);
        }
        lost
    }
}
