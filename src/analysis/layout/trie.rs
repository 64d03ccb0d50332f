//! Walks over the binary trie of aligned blocks, splitting only where the map is not uniform.
//!
//! Up, to find costs, and down again, to follow the choices made. Both are loops: a node's parent
//! and sibling follow from its address, and what waits for a sibling waits in a table with one
//! place per level, at most [`LEVELS`].

use super::runs::Runs;
use super::states::Class;

/// The order of a page, the smallest block: 1 << 12 bytes.
pub(super) const PAGE_ORDER: u32 = 12;

/// Block sizes from a page to the whole space of 52 bits.
pub(super) const LEVELS: usize = 41;

/// The place of a level in tables of [`LEVELS`].
pub(super) const fn level(order: u32) -> usize {
    order.saturating_sub(PAGE_ORDER) as usize
}

/// A block: `1 << order` bytes from `start`, aligned to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) start: u64,
    pub(super) order: u32,
}

impl Node {
    pub(super) const fn size(self) -> u64 {
        1 << self.order
    }

    const fn end(self) -> u64 {
        self.start + self.size()
    }

    const fn is_right(self) -> bool {
        self.start & self.size() != 0
    }

    const fn sibling(self) -> Self {
        Self {
            start: self.start ^ self.size(),
            order: self.order,
        }
    }

    const fn parent(self) -> Self {
        Self {
            start: self.start & !self.size(),
            order: self.order + 1,
        }
    }

    const fn left(self) -> Self {
        Self {
            start: self.start,
            order: self.order - 1,
        }
    }

    const fn right(self) -> Self {
        self.left().sibling()
    }
}

/// What is worked out on the way up; one value is current.
pub(super) trait Fold {
    /// Makes the value of a uniform node current.
    fn leaf(&mut self, class: Class, order: u32);
    /// Puts the current value aside, as the left half of a node of this order.
    fn put_aside(&mut self, order: u32);
    /// Joins the left half put aside and the current value, the right half; remembers the choices
    /// made if there is room.
    fn join(&mut self, order: u32);
}

/// Visits every node below `root`, children before parents, low before high.
pub(super) fn fold(root: Node, runs: &mut Runs<'_>, fold: &mut impl Fold) {
    let mut node = root;
    loop {
        let mut class = runs.uniform(node.start, node.end());
        while class.is_none() && node.order > PAGE_ORDER {
            node = node.left();
            class = runs.uniform(node.start, node.end());
        }
        // Boundaries are multiples of a page, so a page always has a class.
        fold.leaf(class.unwrap_or(Class::DONT_CARE), node.order);
        loop {
            if node == root {
                return;
            }
            if !node.is_right() {
                break;
            }
            node = node.parent();
            fold.join(node.order);
        }
        fold.put_aside(node.order + 1);
        node = node.sibling();
    }
}

/// What is handed down to a node, and whether it is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Down<A> {
    pub(super) at: A,
    pub(super) split: bool,
}

/// The choice made at a split node.
#[derive(Debug)]
pub(super) struct Choice<A> {
    /// The rank of the type of a block here, if there is one.
    pub(super) block: Option<u8>,
    pub(super) left: Down<A>,
    pub(super) right: Down<A>,
}

/// Follows the choices of a [`Fold`].
pub(super) trait Unfold: Fold {
    /// What a node is handed down: its state.
    type At: Copy;
    /// The choice remembered last, for a node in a state; it is forgotten. `None` when it was
    /// forgotten before: then the node is folded again.
    fn recall(&mut self, at: Self::At) -> Option<Choice<Self::At>>;
    /// The block that a uniform node gets, if any.
    fn leaf_block(&self, class: Class, order: u32, at: Self::At) -> Option<u8>;
}

/// Visits the nodes in the opposite order of [`fold`] and hands each block chosen to `emit`.
///
/// Choices are recalled in the order they were made, last first. Where they were forgotten, the
/// node is folded again, which remembers as many as there is room for. Each node is folded at
/// most once per level, whatever the room: what is folded again lies properly inside.
pub(super) fn unfold<F: Unfold>(
    root: Node,
    from: Down<F::At>,
    runs: &mut Runs<'_>,
    fold_: &mut F,
    emit: &mut impl FnMut(Node, u8),
) {
    let mut waiting = [from; LEVELS];
    let (mut node, mut down) = (root, from);
    loop {
        while down.split {
            let recalled = match fold_.recall(down.at) {
                Some(choice) => Some(choice),
                None => {
                    fold(node, runs, fold_);
                    fold_.recall(down.at)
                }
            };
            let Some(choice) = recalled else { return };
            if let Some(block) = choice.block {
                emit(node, block);
            }
            if let Some(place) = waiting.get_mut(level(node.order)) {
                *place = choice.left;
            }
            (node, down) = (node.right(), choice.right);
        }
        let (class, _) = runs.segment(node.start);
        if let Some(block) = fold_.leaf_block(class, node.order, down.at) {
            emit(node, block);
        }
        while node != root && !node.is_right() {
            node = node.parent();
        }
        if node == root {
            return;
        }
        node = node.sibling();
        down = *waiting.get(level(node.order + 1)).unwrap_or(&from);
    }
}
