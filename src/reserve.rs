//! One memory type per physical range.
