//! What syncing costs on simulated machines of 1 to 1024 CPUs, in virtual time: this crate early, deferred and in sync, against the
//! two other ways it is done.
//!
//! `cargo bench --bench sync --features sim` prints tables; after `--`, `--json` prints one JSON document instead (times in
//! microseconds), `--all` adds 1024 CPUs, and words choose tables. Times come out of the documented cost model (`sim::Costs`), whose
//! values are assumptions: the table `sensitivity` shows what follows from others.

#[path = "sync/case.rs"]
mod case;
#[path = "sync/life.rs"]
mod life;
#[path = "sync/ours.rs"]
mod ours;
#[path = "sync/peers.rs"]
mod peers;
#[path = "sync/print.rs"]
mod print;
#[path = "sync/published.rs"]
mod published;
#[path = "sync/tables.rs"]
mod tables;

use print::Out;
use tables::Size;

type Rows = fn(&mut Out, Size);

const TABLES: &[(&str, Rows)] = &[
    ("operations", tables::operations),
    ("rendezvous", tables::rendezvous),
    ("early", tables::early),
    ("parallel", tables::parallel),
    ("sensitivity", tables::sensitivity),
    ("published", published::resume),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let said = |flag: &str| words.iter().any(|word| word == flag);
    // Without the flag that `cargo bench` gives, this is a test that the rows work.
    let size = match (said("--bench"), said("--all")) {
        (false, _) => Size::Smallest,
        (true, false) => Size::Usual,
        (true, true) => Size::All,
    };
    let names: Vec<&String> = words
        .iter()
        .filter(|word| !word.starts_with("--"))
        .collect();
    let mut out = Out::new(said("--json"));
    for (name, rows) in TABLES {
        if names.is_empty() || names.iter().any(|word| name.contains(word.as_str())) {
            rows(&mut out, size);
        }
    }
    out.finish();
}
