//! The exact question: fewest registers, for all default types in one pass.
//!
//! A dynamic programme over the trie. The value of a node is ten costs, one per state; that of a
//! split node is the sum of its halves', or one more than that under a block placed here. The
//! choices of a node fit in a word; the last [`REMEMBERED`] are kept for the way down.

use super::costs::{Choices, Costs, Rule, State};
use super::plan::{Fewest, Plan};
use super::runs::Runs;
use super::states::{Class, rank};
use super::trie::{Choice, Down, Fold, LEVELS, Node, Unfold, fold, level, unfold};
use super::wanted::Wanted;

/// How many choices are remembered; a power of two.
const REMEMBERED: usize = 512;

/// The state of the programme: 3 KiB.
struct Count {
    rule: Rule,
    has_wc: bool,
    current: Costs,
    /// Whether the current node is split.
    split: bool,
    aside: [(Costs, bool); LEVELS],
    remembered: [Choices; REMEMBERED],
    /// How many choices were made; the last ones are remembered, `valid` of them.
    made: usize,
    valid: usize,
}

impl Count {
    /// To start from. A constant: a function would have another of it in its frame.
    const START: Self = Self {
        rule: Rule::Strict,
        has_wc: true,
        current: Costs::FREE,
        split: false,
        aside: [(Costs::FREE, false); LEVELS],
        remembered: [Choices::NONE; REMEMBERED],
        made: 0,
        valid: 0,
    };
}

impl Fold for Count {
    fn leaf(&mut self, class: Class, _order: u32) {
        self.current = self.rule.leaf(class, self.has_wc);
        self.split = false;
    }

    fn put_aside(&mut self, order: u32) {
        if let Some(place) = self.aside.get_mut(level(order)) {
            *place = (self.current, self.split);
        }
    }

    fn join(&mut self, order: u32) {
        let Some((left, left_split)) = self.aside.get(level(order)) else {
            return;
        };
        let (costs, choices) = left.sum(&self.current).with_blocks();
        let choices = choices.with_splits(*left_split, self.split);
        (self.current, self.split) = (costs, true);
        if let Some(place) = self.remembered.get_mut(self.made % REMEMBERED) {
            *place = choices;
        }
        self.made = self.made.wrapping_add(1);
        self.valid = REMEMBERED.min(self.valid + 1);
    }
}

impl Unfold for Count {
    type At = State;

    fn recall(&mut self, at: State) -> Option<Choice<State>> {
        self.valid = self.valid.checked_sub(1)?;
        self.made = self.made.wrapping_sub(1);
        let choices = *self.remembered.get(self.made % REMEMBERED)?;
        let block = choices.block(at);
        let at = at.below(block);
        Some(Choice {
            block,
            left: Down {
                at,
                split: choices.left_split(),
            },
            right: Down {
                at,
                split: choices.right_split(),
            },
        })
    }

    fn leaf_block(&self, class: Class, _order: u32, at: State) -> Option<u8> {
        let (_, choices) = Costs::leaf(class, self.rule, self.has_wc);
        choices.block(at)
    }
}

const fn root(wanted: &Wanted<'_>) -> Node {
    Node {
        start: 0,
        order: wanted.bits.get() as u32,
    }
}

/// The fewest registers under a rule, for each default type.
#[inline(never)]
pub(super) fn fewest(wanted: &Wanted<'_>, rule: Rule) -> Fewest {
    let mut count = Count::START;
    count.rule = rule;
    count.has_wc = wanted.has_wc;
    fold(
        root(wanted),
        &mut Runs::new(wanted, rule.mask()),
        &mut count,
    );
    Fewest::new(count.current.bare)
}

/// Fills a plan that gives every byte its type, or says how many registers that needs.
// A frame of its own: what it takes must not add to what the check takes.
#[inline(never)]
pub(super) fn plan(wanted: &Wanted<'_>, plan: &mut Plan) -> Result<(), usize> {
    let mut count = Count::START;
    count.has_wc = wanted.has_wc;
    let mut runs = Runs::new(wanted, Rule::Strict.mask());
    let root = root(wanted);
    fold(root, &mut runs, &mut count);
    let (default, need) = wanted.best(&Fewest::new(count.current.bare));
    if need > wanted.available() {
        return Err(need);
    }
    plan.clear(default);
    let from = Down {
        at: State::Bare(rank(default)),
        split: count.split,
    };
    unfold(root, from, &mut runs, &mut count, &mut |node, block| {
        plan.push(node.start, node.size(), block);
    });
    Ok(())
}
