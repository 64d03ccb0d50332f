//! How fast the pure half is, as ratios against the obvious way to do the same.
//!
//! `cargo bench --bench host` prints one table; both sides of a row run in turns in the same
//! process, so a ratio means something even on a busy machine, and the nanoseconds do not.
//! `cargo bench --bench host -- lookup` runs the rows of one group only.

#[path = "host/layout.rs"]
mod layout;
#[path = "host/lookup.rs"]
mod lookup;
#[path = "host/sharing.rs"]
mod sharing;
#[path = "host/side_by_side.rs"]
mod side_by_side;

use side_by_side::Table;

type Group = (&'static str, fn(&mut Table));

/// The groups, one file each under `host/`.
const GROUPS: &[Group] = &[
    ("lookup", lookup::rows),
    ("layout", layout::rows),
    ("sharing", sharing::rows),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Without the flag that `cargo bench` gives, this is a test that the rows agree.
    let mut table = Table::new(words.iter().any(|word| word == "--bench"));
    let wanted = |name: &str| {
        let mut names = words
            .iter()
            .filter(|word| !word.starts_with("--"))
            .peekable();
        names.peek().is_none() || names.any(|word| name.contains(word.as_str()))
    };
    for (name, rows) in GROUPS.iter().filter(|(name, _)| wanted(name)) {
        table.group(name);
        rows(&mut table);
    }
}
