//! Any bytes as a dump, for the reader of `examples/inspect` alone: fast. Nothing may panic, and
//! what it keeps is bounded.
#![no_main]

#[allow(dead_code)]
#[path = "../../../examples/inspect/main.rs"]
mod inspect;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let dump = inspect::read::read(&mut &*bytes).expect("reading memory works");
    assert!(dump.ram.len() <= 4096 && dump.cpus.len() <= 4096);
    assert!(dump.complaints.len() <= 20 && dump.hints.len() <= 40);
    assert!(dump.ram.iter().all(|(start, end)| start < end));
    assert!(dump.understood <= dump.records);
    // The same bytes in small pieces are the same dump.
    let mut pieces = std::io::BufReader::with_capacity(7, bytes);
    let again = inspect::read::read(&mut pieces).expect("reading memory works");
    assert_eq!(dump.cpus, again.cpus);
});
