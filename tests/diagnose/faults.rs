//! Each fault planted in a sound machine.
