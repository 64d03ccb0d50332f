//! The costs of a node in the exact question, and the choices behind them.

use super::states::{Class, TYPES};

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
    pub(super) const fn mask(self) -> u8 {
        match self {
            Self::Strict => Class::STRICT,
            Self::Lenient => Class::LENIENT,
        }
    }
}

/// Registers needed in and below a node, by state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// With blocks around that combine to each type, by rank.
    pub(super) under: [u32; TYPES],
    /// With none, by rank of the default type.
    pub(super) bare: [u32; TYPES],
}

/// The choices of a node: bits 2:0 the block to place where none is around; bits 7:3 whether to,
/// by default type; bits 8, 9, 10: place UC under WC, WT, WP; bit 11 UC, bit 12 WT under WB; bits
/// 13 and 14: the left, the right half is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices(u16);

const LEFT_SPLIT: u32 = 13;
const RIGHT_SPLIT: u32 = 14;

impl Costs {
    pub(super) const FREE: Self = Self {
        under: [0; TYPES],
        bare: [0; TYPES],
    };

    /// The cost of both halves, with nothing placed around them.
    pub(super) fn sum(&self, other: &Self) -> Self {
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
    pub(super) const fn with_blocks(self) -> (Self, Choices) {
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
    pub(super) const fn leaf(class: Class, rule: Rule, has_wc: bool) -> (Self, Choices) {
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
    pub(super) const NONE: Self = Self(0);

    /// The same, with which halves are split.
    pub(super) const fn with_splits(self, left: bool, right: bool) -> Self {
        Self(self.0 | bit(left, LEFT_SPLIT) | bit(right, RIGHT_SPLIT))
    }

    pub(super) const fn left_split(self) -> bool {
        self.0 & 1 << LEFT_SPLIT != 0
    }

    pub(super) const fn right_split(self) -> bool {
        self.0 & 1 << RIGHT_SPLIT != 0
    }

    /// The block to place in a state, if one is.
    pub(super) const fn block(self, at: State) -> Option<u8> {
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
pub(super) enum State {
    /// No block around; the default type's rank.
    Bare(u8),
    /// The rank of what the blocks around combine to.
    Under(u8),
}

impl State {
    /// The state below a block of [`super::states::blocks`]: it always decides alone.
    pub(super) const fn below(self, block: Option<u8>) -> Self {
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

impl Rule {
    /// [`Costs::leaf`], looked up where a processor has all types.
    pub(super) fn leaf(self, class: Class, has_wc: bool) -> Costs {
        let table = match self {
            Self::Strict => &STRICT,
            Self::Lenient => &LENIENT,
        };
        match table.get(class.index()) {
            Some(costs) if has_wc => *costs,
            _ => Costs::leaf(class, self, has_wc).0,
        }
    }
}
