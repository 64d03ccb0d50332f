//! From the question to the answer: the exact plan where it fits, else the one that loses least, each
//! checked before it is handed out.

use super::costs::Rule;
use super::count;
use super::error::LayoutError;
use super::knapsack;
use super::loss::Lost;
use super::plan::{Fewest, Plan, Solution};
use super::scratch::{Scratch, check_scratch};
use super::verify;
use super::wanted::Wanted;

/// A [`Solution`] whose plan is elsewhere: plans are large, and stacks small.
enum Answer {
    Exact,
    Relaxed(Lost),
    Impossible { need: usize, have: usize },
}

impl Answer {
    /// The copies this makes must not be in a frame below the check.
    #[inline(never)]
    const fn outcome(self, plan: &Plan) -> Result<Solution, LayoutError> {
        Ok(match self {
            Self::Exact => Solution::Exact(*plan),
            Self::Relaxed(lost) => Solution::Relaxed { plan: *plan, lost },
            Self::Impossible { need, have } => Solution::Impossible { need, have },
        })
    }
}

impl Wanted<'_> {
    /// The fewest registers with which every byte gets its type, for each default type.
    ///
    /// The number of registers available does not matter, nor does [`Wanted::default_type`].
    ///
    /// # Errors
    /// [`LayoutError::Region`], [`LayoutError::TooManyRegisters`],
    /// [`LayoutError::NoWriteCombining`]: the question is flawed.
    pub fn fewest(&self) -> Result<Fewest, LayoutError> {
        self.check_strict()?;
        Ok(count::fewest(self, Rule::Strict))
    }

    /// The fewest registers with which every byte gets its type.
    ///
    /// [`Solution::Exact`] or [`Solution::Impossible`], never [`Solution::Relaxed`]. Uses less than
    /// 8 KiB of stack.
    ///
    /// # Errors
    /// As [`Wanted::fewest`].
    pub fn plan(&self) -> Result<Solution, LayoutError> {
        self.check_strict()?;
        let mut plan = Plan::empty(self.bits);
        let answer = self.fill_exactly(&mut plan)?;
        answer.outcome(&plan)
    }

    /// The exact plan where it fits, else the one that loses least.
    ///
    /// Lost bytes are those that get another type than wanted. The least of them at
    /// [`Priority::High`](super::Priority::High) is sought, then at `Normal`, then at `Low`, then
    /// the fewest registers. What may be lost: anything may become UC; MMIO nothing else; RAM may
    /// swap WB, WT and WP, and WC for WB. RAM wanted UC stays UC. `Impossible` comes out only
    /// with a default type given under which even that does not fit.
    ///
    /// The scratch has [`scratch_len`](super::scratch_len) words or more; more makes it faster.
    ///
    /// # Errors
    /// As [`Wanted::fewest`], but a WC that the processor lacks is a loss; and
    /// [`LayoutError::ShortScratch`].
    pub fn plan_least_damage(&self, scratch: &mut [Scratch]) -> Result<Solution, LayoutError> {
        self.check()?;
        check_scratch(self.available(), self.bits, scratch)?;
        let mut plan = Plan::empty(self.bits);
        let answer = self.fill(&mut plan, scratch)?;
        answer.outcome(&plan)
    }

    fn fill_exactly(&self, plan: &mut Plan) -> Result<Answer, LayoutError> {
        if let Err(need) = count::plan(self, plan) {
            let have = self.available();
            return Ok(Answer::Impossible { need, have });
        }
        plan.sort();
        verify::strict(self, plan)?;
        Ok(Answer::Exact)
    }

    fn fill(&self, plan: &mut Plan, scratch: &mut [Scratch]) -> Result<Answer, LayoutError> {
        let have = self.available();
        if let Answer::Exact = self.fill_exactly(plan)? {
            return Ok(Answer::Exact);
        }
        let Some(lost) = knapsack::plan(self, have, scratch, plan) else {
            let need = self.best(&count::fewest(self, Rule::Lenient)).1;
            return Ok(Answer::Impossible { need, have });
        };
        plan.sort();
        verify::lenient(self, plan, &lost)?;
        Ok(Answer::Relaxed(lost))
    }
}
