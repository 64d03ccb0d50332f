//! The question of least damage: with K registers, which bytes to give up.
//!
//! A tree knapsack over the same trie: the value of a node is, for each state and each number of
//! registers up to K, the least that is lost in it. A leaf is uniform in type, kind and priority.
//! Values and remembered choices live in scratch that the caller brings.

use super::loss::Lost;
use super::plan::Plan;
use super::runs::Runs;
use super::scratch::{BARE, Damage, FIELD, Remembered, STATES, Scratch, UNBEARABLE, in_bytes};
use super::states::{Class, blocks, rank};
use super::trie::{Choice, Down, Fold, LEVELS, Node, PAGE_ORDER, Unfold, fold, level, unfold};
use super::wanted::Wanted;
use crate::memtype::MemType;
use crate::regs::MAX_VARIABLE;

/// The state of the programme for one default type.
struct Knapsack<'s> {
    most: usize,
    default: u8,
    has_wc: bool,
    current: Value,
    /// The current value: for each state a row of damages with 0, 1, .. `most` registers.
    rows: &'s mut [Scratch],
    /// The next one, being made.
    made: &'s mut [Scratch],
    aside: &'s mut [Scratch],
    aside_value: [Value; LEVELS],
    /// The choices of the current node: for each state and number of registers, in bits 2:0 the
    /// block to place, its rank plus one, and from bit 3 up how many registers the left half
    /// gets where no block is placed; at the end, which halves are split.
    choices: [u16; STATES * (MAX_VARIABLE + 1) + 1],
    remembered: Remembered<'s>,
}

/// What is known of a value besides its rows.
#[derive(Clone, Copy, Debug)]
struct Value {
    /// From how many registers on more of them change nothing, plus one.
    len: u8,
    split: bool,
}

const LEFT_SPLIT: u16 = 1;
const RIGHT_SPLIT: u16 = 2;

impl<'s> Knapsack<'s> {
    /// Divides the scratch. `None` when it is too short, which was checked.
    fn new(wanted: &Wanted<'_>, most: usize, scratch: &'s mut [Scratch]) -> Option<Self> {
        let most = most.min(MAX_VARIABLE);
        let vector = STATES * (most + 1);
        let levels = level(u32::from(wanted.bits.get())) + 1;
        let (rows, rest) = scratch.split_at_mut_checked(vector)?;
        let (made, rest) = rest.split_at_mut_checked(vector)?;
        let (aside, ring) = rest.split_at_mut_checked(vector * levels)?;
        let leaf = Value {
            len: 1,
            split: false,
        };
        Some(Self {
            most,
            default: 0,
            has_wc: wanted.has_wc,
            current: leaf,
            rows,
            made,
            aside,
            aside_value: [leaf; LEVELS],
            choices: [0; STATES * (MAX_VARIABLE + 1) + 1],
            remembered: Remembered::new(ring, vector + 1),
        })
    }

    fn width(&self) -> usize {
        self.most + 1
    }

    fn vector(&self) -> usize {
        STATES * self.width()
    }

    fn price(&self, class: Class, order: u32, got: u8) -> Damage {
        const WC: u8 = rank(MemType::WriteCombining);
        if !class.bearable(got) || (got == WC && !self.has_wc) {
            UNBEARABLE
        } else if class.met_by(got) {
            0
        } else {
            1 << (order - PAGE_ORDER + u32::from(class.priority()) * FIELD)
        }
    }

    /// What is lost in a leaf with the block that loses least, and with none.
    fn leaf_prices(&self, class: Class, order: u32, state: u8) -> (Option<u8>, Damage, Damage) {
        let under = under(state);
        let got = under.unwrap_or_else(|| class.bare(self.default));
        let none = self.price(class, order, got);
        let mut best = (None, none);
        for block in blocks(under) {
            let with = self.price(class, order, *block);
            if with < best.1 {
                best = (Some(*block), with);
            }
        }
        (best.0, best.1, none)
    }

    /// Joins both halves for each state, no block placed: `made`, and how to split the registers.
    fn convolve(&mut self, left: Value, order: u32) -> Option<()> {
        let (width, vector) = (self.most + 1, STATES * (self.most + 1));
        let start = level(order) * vector;
        let lows = self.aside.get(start..start + vector)?.chunks_exact(width);
        let highs = self.rows.chunks_exact(width);
        let rows = self.made.chunks_exact_mut(width);
        let choices = self.choices.chunks_exact_mut(width);
        for (((low, high), row), choices) in lows.zip(highs).zip(rows).zip(choices) {
            row.fill(Scratch(UNBEARABLE));
            choices.fill(0);
            let high_len = usize::from(self.current.len);
            for (i, low) in (0u16..).zip(low.iter().take(left.len.into())) {
                let places = row.iter_mut().zip(choices.iter_mut());
                let places = places.skip(usize::from(i));
                for (high, (sum, choice)) in high.iter().take(high_len).zip(places) {
                    let damage = low.0.saturating_add(high.0);
                    if damage < sum.0 {
                        (sum.0, *choice) = (damage, i << 3);
                    }
                }
            }
            // More registers than both halves can use change nothing.
            let mut last = (Scratch(UNBEARABLE), 0);
            for (sum, choice) in row.iter_mut().zip(choices.iter_mut()) {
                if last.0.0 < sum.0 {
                    (*sum, *choice) = last;
                }
                last = (*sum, *choice);
            }
        }
        Some(())
    }

    /// Places a block around both halves where that loses less: `rows`.
    fn place_blocks(&mut self) {
        let width = self.width();
        self.rows.copy_from_slice(self.made);
        let rows = self.rows.chunks_exact_mut(width);
        let choices = self.choices.chunks_exact_mut(width);
        for ((state, row), choices) in (0u8..).zip(rows).zip(choices) {
            for block in blocks(under(state)) {
                let below = self.made.chunks_exact(width).nth(usize::from(*block));
                let places = row.iter_mut().zip(choices.iter_mut()).skip(1);
                for (with, (least, choice)) in below.unwrap_or_default().iter().zip(places) {
                    if with.0 < least.0 {
                        *least = *with;
                        *choice = *choice & !7 | u16::from(*block + 1);
                    }
                }
            }
        }
    }
}

/// What the blocks around combine to, in a state.
const fn under(state: u8) -> Option<u8> {
    if state < BARE as u8 {
        Some(state)
    } else {
        None
    }
}

impl Fold for Knapsack<'_> {
    fn leaf(&mut self, class: Class, order: u32) {
        let width = self.width();
        for state in 0..STATES {
            let (_, with, none) = self.leaf_prices(class, order, state as u8);
            let row = self.rows.chunks_exact_mut(width).nth(state);
            if let Some((first, rest)) = row.and_then(|row| row.split_first_mut()) {
                first.0 = none;
                rest.fill(Scratch(with));
            }
        }
        self.current = Value {
            len: 2.min(width as u8),
            split: false,
        };
    }

    fn put_aside(&mut self, order: u32) {
        let vector = self.vector();
        let place = self.aside.chunks_exact_mut(vector).nth(level(order));
        if let (Some(place), Some(value)) = (place, self.aside_value.get_mut(level(order))) {
            place.copy_from_slice(self.rows);
            *value = self.current;
        }
    }

    fn join(&mut self, order: u32) {
        let Some(left) = self.aside_value.get(level(order)).copied() else {
            return;
        };
        if self.convolve(left, order).is_none() {
            return;
        }
        self.place_blocks();
        let flag = |split: bool, flag: u16| if split { flag } else { 0 };
        let vector = self.vector();
        if let Some(last) = self.choices.get_mut(vector) {
            *last = flag(left.split, LEFT_SPLIT) | flag(self.current.split, RIGHT_SPLIT);
        }
        let made = self.choices.get(..=vector).unwrap_or_default();
        self.remembered.push(made);
        self.current = Value {
            // At most 82: no overflow.
            len: (left.len + self.current.len).min(self.width() as u8),
            split: true,
        };
    }
}

impl Unfold for Knapsack<'_> {
    /// The state, and how many registers may be used.
    type At = (u8, usize);

    fn recall(&mut self, (state, most): Self::At) -> Option<Choice<Self::At>> {
        let width = self.width();
        let entry = self.remembered.pop()?;
        let choice = entry.get(usize::from(state) * width + most)?;
        let block = (choice as u8 & 7).checked_sub(1);
        let (state, most) = match block {
            Some(block) => (block, most.checked_sub(1)?),
            None => (state, most),
        };
        let low = usize::from(entry.get(usize::from(state) * width + most)? >> 3);
        let flags = entry.get(STATES * width)?;
        Some(Choice {
            block,
            left: Down {
                at: (state, low),
                split: flags & LEFT_SPLIT != 0,
            },
            right: Down {
                at: (state, most.checked_sub(low)?),
                split: flags & RIGHT_SPLIT != 0,
            },
        })
    }

    fn leaf_block(&self, class: Class, order: u32, (state, most): Self::At) -> Option<u8> {
        let (block, _, _) = self.leaf_prices(class, order, state);
        block.filter(|_| most > 0)
    }
}

/// Fills a plan that loses least with `most` registers, and says what is lost; `None` when even
/// the bearable does not fit.
// A frame of its own: what it takes must not add to what the check takes.
#[inline(never)]
pub(super) fn plan(
    wanted: &Wanted<'_>,
    most: usize,
    scratch: &mut [Scratch],
    plan: &mut Plan,
) -> Option<Lost> {
    let root = Node {
        start: 0,
        order: u32::from(wanted.bits.get()),
    };
    let mut knapsack = Knapsack::new(wanted, most, scratch)?;
    let mut runs = Runs::new(wanted, Class::WEIGHED);
    let mut best: Option<(Damage, usize, MemType)> = None;
    for default in wanted.defaults() {
        knapsack.default = rank(default);
        fold(root, &mut runs, &mut knapsack);
        let rows = &knapsack.rows;
        let row = rows.chunks_exact(knapsack.width()).nth(BARE)?;
        let least = row.last()?.0;
        let used = row.iter().position(|damage| damage.0 == least)?;
        if least != UNBEARABLE && best.is_none_or(|best| (least, used) < (best.0, best.1)) {
            best = Some((least, used, default));
        }
    }
    let (damage, used, default) = best?;
    knapsack.default = rank(default);
    plan.clear(default);
    fold(root, &mut runs, &mut knapsack);
    let from = Down {
        at: (BARE as u8, used),
        split: knapsack.current.split,
    };
    unfold(root, from, &mut runs, &mut knapsack, &mut |node, block| {
        plan.push(node.start, node.size(), block);
    });
    Some(in_bytes(damage))
}
