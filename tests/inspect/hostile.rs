//! Input nobody meant for this program: garbage, binary, cut lines, very long lines.

use proptest::prelude::*;

use super::inspect::read::read;
use super::{case, json, run};

const CASES: [&str; 5] = [
    "019-amd40-nested-wp",
    "043-low-hole-16gb-eight-used",
    "030-d-p4-mtrrs-globally-off",
    "047-n100-all-ten-used",
    "038-pat-zero-from-firmware",
];

#[test]
fn unreadable_input_is_exit_code_2() {
    for input in [
        &b""[..],
        b"\n\n",
        b"hello world\n",
        b"reg00:\n",
        &[0xff; 5000],
        &[0; 100],
    ] {
        assert_eq!(run(&[], input).0, 2, "{:?}", input.get(..20));
        assert_eq!(run(&["--json"], input).0, 2);
    }
    assert_eq!(run(&["/nonexistent/file"], b"").0, 2);
    assert_eq!(run(&["--no-such-option"], b"").0, 2);
    assert_eq!(run(&["--phys-bits", "53"], b"").0, 2);
    assert_eq!(run(&["--help"], b"").0, 0);
}

#[test]
fn a_cut_line_gives_a_partial_result_that_says_so() {
    let whole = case("043-low-hole-16gb-eight-used");
    let cut = &whole[..whole.len() - 45];
    let (code, text) = run(&[], cut);
    assert_eq!(code, 1);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("line 8 of the input: ") && flat.contains("the result is partial"),
        "{text}"
    );
    let object = json(&[], cut);
    assert_eq!(object["registers"]["used"], 7);
}

#[test]
fn every_prefix_of_a_dump_is_read_or_refused() {
    for name in CASES {
        let whole = case(name);
        for length in 0..whole.len() {
            let (code, text) = run(&["--json"], &whole[..length]);
            assert!(code <= 2);
            assert_eq!(code == 2, text.is_empty());
        }
    }
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    // 64 MiB on one line, from a reader that never holds more than a block of it.
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = into
                .len()
                .min(usize::try_from(self.0).unwrap_or(usize::MAX));
            into[..count].fill(b'M');
            self.0 -= count as u64;
            Ok(count)
        }
    }
    let mut input = std::io::BufReader::new(Endless(64 << 20));
    let dump = read(&mut input).expect("reading works");
    assert_eq!(dump.lines, 1);
    assert!(dump.first_line.len() <= 240);
}

#[test]
fn many_lines_take_bounded_memory() {
    let mut text = String::new();
    for n in 0..20_000u64 {
        text.push_str(&format!(
            "{:08x}-{:08x} : System RAM\n",
            n << 13,
            (n << 13) + 0xfff
        ));
        text.push_str(&format!("cpu {n} msr 0x2ff value 0xc06\n"));
        text.push_str("reg00: base=nonsense\n");
    }
    let dump = read(&mut text.as_bytes()).expect("reading works");
    assert!(dump.ram.len() <= 4096 && dump.cpus.len() <= 4096);
    assert_eq!(dump.complaints.len() as u64 + dump.more_complaints, 20_000);
    assert!(dump.complaints.len() <= 20);
}

/// A word that may follow any other in a line.
/// Words of drivers, of lines that break, and of counts of RAM.
const WORDS: &[&str] = &[
    "[    1.000000] ",
    " conflicting memory types ",
    "<->",
    "memtype_reserve failed ",
    "[mem 0xe0000000-0xefffffff]",
    ", req uncached-minus",
    "x86/PAT: Configuration [0-7]: WB  WC ",
    "CPU MTRRs don't cover all of memory, ",
    "losing 69MB of RAM.",
    "mtrr: type mismatch for ",
    "Failed to add WC MTRR for [",
    "]: -22; ",
    "NVRM: ",
    "Cannot satisfy ",
    " with a huge-page mapping due to MTRR override",
    "MTRR map: 4 entries (3 fixed + 1 variable; max 23), built from 10 variable MTRRs\n",
    "00100000-ddabf3ff : System RAM\n",
    "ffe00000-ffffffff : reserved\n",
    "  HighMem    229376 ->   522192\n",
    "896MB LOWMEM available.\n",
    "OpenBSD 7.5\n",
    "mtrr: Pentium Pro MTRR support, ",
    "memcontrol: can't set range: ",
    "Memory range 0x1000 to ",
    "Default....: ",
    "  1 disabled\n",
    "init mtrr: 200: 0000000000000006\n",
    "mtrr_gran_size=",
    "ommand line: ",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("MTRR default type:".to_string()),
        Just("MTRR fixed ranges enabled:".to_string()),
        Just("MTRR variable ranges disabled:".to_string()),
        Just("\n".to_string()),
        Just(" base ".to_string()),
        Just(" mask ".to_string()),
        Just("rdmsr -a 0x2ff\n".to_string()),
        Just("reg0".to_string()),
        Just(": base=0x".to_string()),
        Just(", size=".to_string()),
        Just("MB, count=1: ".to_string()),
        Just("write-back".to_string()),
        Just("uncachable".to_string()),
        Just(" type 6".to_string()),
        Just("0x200=".to_string()),
        Just("0x201=".to_string()),
        Just("CPU 3".to_string()),
        Just("TOM2: ".to_string()),
        Just("last_pfn = ".to_string()),
        Just("BIOS-e820: ".to_string()),
        Just(" (usable)".to_string()),
        Just("address sizes : ".to_string()),
        Just("x86 PAT enabled: cpu 0, old ".to_string()),
        Just(", new ".to_string()),
        prop::sample::select(WORDS).prop_map(str::to_string),
        any::<u64>().prop_map(|n| format!("{n:x}")),
        any::<u64>().prop_map(|n| format!("0x{:x}", n & !0xfff)),
        any::<u16>().prop_map(|n| n.to_string()),
        "[\\PC\u{0}-\u{1f}]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// No panic, and a map without gaps, on lines made of the words of every format.
    #[test]
    fn shuffled_words_never_panic(words in prop::collection::vec(word(), 0..60)) {
        let text = words.concat();
        let (code, out) = run(&["--json", "--want", "0xe0000000+256M=WC"], text.as_bytes());
        prop_assert!(code <= 2);
        if code < 2 && !out.starts_with('{') {
            // Nothing on standard input: a plan for the wish alone.
            return Ok(());
        }
        if code < 2 {
            let object: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            let mut next = 0u128;
            for run in object["map"].as_array().expect("a list") {
                let number = |key: &str| {
                    let text = run[key].as_str().expect("a string");
                    u128::from_str_radix(&text[2..], 16).expect("hexadecimal")
                };
                prop_assert_eq!(number("start"), next);
                next = number("end") + 1;
            }
        }
        let (code, _) = run(&["--color", "always"], text.as_bytes());
        prop_assert!(code <= 2);
    }

    /// No panic on bytes.
    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(run(&[], &bytes).0 <= 2);
    }

    /// No panic on a dump with bytes changed.
    #[test]
    fn damaged_dumps_never_panic(
        which in 0..CASES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = case(CASES[which]);
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert!(run(&[], &bytes).0 <= 2);
        prop_assert!(run(&["--json"], &bytes).0 <= 2);
    }
}
