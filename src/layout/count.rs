//! The exact question: fewest registers, for all default types in one pass.
//!
//! A dynamic programme over the trie. The value of a node is ten costs, one per state; that of a
//! split node is the sum of its halves', or one more than that under a block placed here. The
//! choices of a node fit in a word; the last [`REMEMBERED`] are kept for the way down.

use super::plan::{Fewest, Plan};
use super::runs::Runs;
use super::states::{Class, TYPES, rank};
use super::trie::{Choice, Down, Fold, LEVELS, Node, Unfold, fold, level, unfold};
use super::wanted::Wanted;

/// How many choices are remembered; a power of two.
const REMEMBERED: usize = 1024;

/// A cost that stands for "cannot be". Real ones saturate at it: that takes a map of more than
/// ten million regions.
const NEVER: u32 = 1 << 30;

/// Which types a byte may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The one wanted.
    Strict,
    /// Those that are bearable instead, too.
    Lenient,
}

impl Rule {
    const fn mask(self) -> u8 {
        match self {
            Self::Strict => Class::STRICT,
            Self::Lenient => Class::LENIENT,
        }
    }
}

/// Registers needed in and below a node, by state.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// With blocks around that combine to each type, by rank.
    under: [u32; TYPES],
    /// With none, by rank of the default type.
    bare: [u32; TYPES],
}

/// The choices of a node: bits 2:0 the block to place where none is around; bits 7:3 whether to,
/// by default type; bits 8, 9, 10: place UC under WC, WT, WP; bit 11 UC, bit 12 WT under WB; bits
/// 13 and 14: the left, the right half is split.
#[derive(Clone, Copy, Debug)]
struct Choices(u16);

const LEFT_SPLIT: u16 = 1 << 13;
const RIGHT_SPLIT: u16 = 1 << 14;

impl Costs {
    const FREE: Self = Self {
        under: [0; TYPES],
        bare: [0; TYPES],
    };

    /// The cost of both halves, with nothing placed around them.
    fn sum(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (cost, other) in sum.under.iter_mut().zip(&other.under) {
            *cost = NEVER.min(*cost + *other);
        }
        for (cost, other) in sum.bare.iter_mut().zip(&other.bare) {
            *cost = NEVER.min(*cost + *other);
        }
        sum
    }

    /// Places a block where that is cheaper.
    const fn with_blocks(self) -> (Self, Choices) {
        let [uc, wc, wt, wp, wb] = self.under;
        let (mut least, mut block) = (uc, 0);
        if wc < least {
            (least, block) = (wc, 1);
        }
        if wt < least {
            (least, block) = (wt, 2);
        }
        if wp < least {
            (least, block) = (wp, 3);
        }
        if wb < least {
            (least, block) = (wb, 4);
        }
        let [a, b, c, d, e] = self.bare;
        let (with, with_uc, with_wt) = (least + 1, uc + 1, wt + 1);
        let choices = block
            | bit(with < a, 3)
            | bit(with < b, 4)
            | bit(with < c, 5)
            | bit(with < d, 6)
            | bit(with < e, 7)
            | bit(with_uc < wc, 8)
            | bit(with_uc < wt, 9)
            | bit(with_uc < wp, 10)
            | bit(with_uc < wb && with_uc <= with_wt, 11)
            | bit(with_wt < wb && with_wt < with_uc, 12);
        let costs = Self {
            under: [
                uc,
                min(wc, with_uc),
                min(wt, with_uc),
                min(wp, with_uc),
                min(wb, min(with_uc, with_wt)),
            ],
            bare: [
                min(a, with),
                min(b, with),
                min(c, with),
                min(d, with),
                min(e, with),
            ],
        };
        (costs, Choices(choices))
    }

    /// The costs of a uniform node. Splitting it never helps: a block that gives a part its type
    /// can as well cover all of it.
    const fn leaf(class: Class, rule: Rule, has_wc: bool) -> (Self, Choices) {
        let bare = [
            price(class, rule, class.bare(0)),
            price(class, rule, class.bare(1)),
            price(class, rule, class.bare(2)),
            price(class, rule, class.bare(3)),
            price(class, rule, class.bare(4)),
        ];
        let under = [
            price(class, rule, 0),
            // Nothing ever is under a WC block where there are none.
            if has_wc { price(class, rule, 1) } else { NEVER },
            price(class, rule, 2),
            price(class, rule, 3),
            price(class, rule, 4),
        ];
        Self { under, bare }.with_blocks()
    }
}

const fn bit(set: bool, at: u32) -> u16 {
    (set as u16) << at
}

const fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

const fn price(class: Class, rule: Rule, got: u8) -> u32 {
    let fine = match rule {
        Rule::Strict => class.met_by(got),
        Rule::Lenient => class.bearable(got),
    };
    if fine { 0 } else { NEVER }
}

impl Choices {
    /// The block to place in a state, if one is.
    const fn block(self, at: State) -> Option<u8> {
        let choices = self.0;
        match at {
            State::Bare(default) if choices & 1 << (3 + default) != 0 => Some((choices & 7) as u8),
            State::Bare(_) => None,
            State::Under(4) if choices & 1 << 12 != 0 => Some(2),
            State::Under(4) if choices & 1 << 11 != 0 => Some(0),
            State::Under(around @ 1..=3) if choices & 1 << (7 + around) != 0 => Some(0),
            State::Under(_) => None,
        }
    }
}

/// What a node inherits: see [`super::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No block around; the default type's rank.
    Bare(u8),
    /// The rank of what the blocks around combine to.
    Under(u8),
}

impl State {
    /// The state below a block of [`super::states::blocks`]: it always decides alone.
    const fn below(self, block: Option<u8>) -> Self {
        match block {
            Some(block) => Self::Under(block),
            None => self,
        }
    }
}

/// The costs of every class, worked out at compile time.
const fn table(rule: Rule) -> [Costs; Class::COUNT] {
    let mut table = [Costs::FREE; Class::COUNT];
    let mut rest: &mut [Costs] = &mut table;
    let mut index = 0;
    while let Some((first, others)) = rest.split_first_mut() {
        *first = Costs::leaf(Class::from_index(index), rule, true).0;
        rest = others;
        index += 1;
    }
    table
}

static STRICT: [Costs; Class::COUNT] = table(Rule::Strict);
static LENIENT: [Costs; Class::COUNT] = table(Rule::Lenient);

/// The state of the programme: 4 KiB.
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
    const fn new(wanted: &Wanted<'_>, rule: Rule) -> Self {
        Self {
            rule,
            has_wc: wanted.has_wc,
            current: Costs::FREE,
            split: false,
            aside: [(Costs::FREE, false); LEVELS],
            remembered: [Choices(0); REMEMBERED],
            made: 0,
            valid: 0,
        }
    }
}

impl Fold for Count {
    fn leaf(&mut self, class: Class, _order: u32) {
        let table = match self.rule {
            Rule::Strict => &STRICT,
            Rule::Lenient => &LENIENT,
        };
        self.current = match table.get(class.index()) {
            Some(costs) if self.has_wc => *costs,
            _ => Costs::leaf(class, self.rule, self.has_wc).0,
        };
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
        let (costs, mut choices) = left.sum(&self.current).with_blocks();
        choices.0 |= u16::from(*left_split) * LEFT_SPLIT;
        choices.0 |= u16::from(self.split) * RIGHT_SPLIT;
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
                split: choices.0 & LEFT_SPLIT != 0,
            },
            right: Down {
                at,
                split: choices.0 & RIGHT_SPLIT != 0,
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
pub(super) fn fewest(wanted: &Wanted<'_>, rule: Rule) -> Fewest {
    let mut count = Count::new(wanted, rule);
    fold(
        root(wanted),
        &mut Runs::new(wanted, rule.mask()),
        &mut count,
    );
    Fewest::new(count.current.bare)
}

/// Fills a plan that gives every byte its type, or says how many registers that needs.
pub(super) fn plan(wanted: &Wanted<'_>, plan: &mut Plan) -> Result<(), usize> {
    let mut count = Count::new(wanted, Rule::Strict);
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
    plan.sort();
    Ok(())
}
