//! Any bytes as a dump: the reader of `examples/inspect`, and the whole program on what it read.
//! Nothing may panic, hang or grow without bound, and the map it prints has no gap.
#![no_main]

#[path = "../../../examples/inspect/main.rs"]
mod inspect;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let dump = inspect::read::read(&mut &*bytes).expect("reading memory works");
    assert!(dump.ram.len() <= 4096 && dump.cpus.len() <= 4096 && dump.complaints.len() <= 20);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut run = |words: [&str; 5], out: &mut Vec<u8>| {
        let mut stdin = inspect::input::Stdin {
            text: &mut &*bytes,
            terminal: false,
        };
        inspect::run(words.map(Into::into), &mut stdin, out, &mut err)
    };
    let want = "0xe0000000+256M=WC";
    let code = run(
        ["inspect", "--json", "--color=never", "--want", want],
        &mut out,
    );
    assert!(code <= 2);
    if code < 2 && out.first() == Some(&b'{') {
        let object: serde_json::Value = serde_json::from_slice(&out).expect("one JSON object");
        let number = |value: &serde_json::Value| {
            u128::from_str_radix(&value.as_str().expect("a string")[2..], 16).expect("hexadecimal")
        };
        let mut next = 0;
        for run in object["map"].as_array().expect("a list") {
            assert_eq!(number(&run["start"]), next);
            next = number(&run["end"]) + 1;
        }
    }
    out.clear();
    assert!(run(["inspect", "--color", "always", "--want", want], &mut out) <= 2);
});
