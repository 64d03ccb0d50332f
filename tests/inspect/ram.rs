//! What an input says of RAM: counts of pages, high memory, maps of it.

use super::{json, post, run};

/// The text report with single spaces.
fn flat(text: &str) -> String {
    let (_, text) = run(&["--color=never"], text.as_bytes());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A log's table of a machine with 4 GiB or more, its default type write-back.
const TABLE: &str = "MTRR default type: write-back\nMTRR fixed ranges enabled:\n  \
    00000-9FFFF write-back\n  A0000-BFFFF uncachable\n  C0000-FFFFF write-protect\n\
    MTRR variable ranges enabled:\n  0 base 00C0000000 mask 7FC0000000 uncachable\n  1 disabled\n\
    x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT\n";

fn count(page: u64) -> String {
    format!("e820: last_pfn = {page:#x} max_arch_pfn = 0x400000000\n")
}

#[test]
fn a_count_after_the_registers_is_of_low_memory() {
    // Linux prints it only where there is memory above 4 GiB.
    let text = String::from_utf8(post("surface-low-pages")).expect("text");
    let said = flat(&text);
    assert!(
        said.starts_with("Fine: nothing wrong in what the dump shows; it does not show where RAM above 4 GiB ends"),
        "{said}"
    );
    let said = flat(&format!("{TABLE}{}", count(0x7bc00)));
    assert!(
        said.contains("it does not show where RAM above 4 GiB ends"),
        "{said}"
    );
    assert!(!said.contains("RAM in the dump ends below"), "{said}");
}

#[test]
fn a_count_before_the_registers_is_of_all_memory() {
    for text in [
        format!("{}{TABLE}", count(0xbc000)),
        format!("{}{TABLE}{}", count(0x47e800), count(0xbc000)),
        format!("{TABLE}{}{}", count(0x47e800), count(0xbc000)),
    ] {
        let said = flat(&text);
        assert!(
            !said.contains("it does not show where RAM"),
            "{text}: {said}"
        );
    }
    let low = flat(&format!("{}{TABLE}", count(0xbc000)));
    assert!(low.contains("RAM in the dump ends below it"), "{low}");
}

#[test]
fn a_count_alone_may_be_either() {
    let list = "reg00: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: uncachable\n";
    let said = flat(&format!("{}{list}", count(0xbc000)));
    assert!(said.contains("where RAM is"), "{said}");
}

#[test]
fn memory_left_out_is_no_memory_above_4_gib() {
    // The kernel counts again when it left RAM out.
    let table = TABLE.replace("default type: write-back", "default type: uncachable");
    let table = table.replace(
        "base 00C0000000 mask 7FC0000000 uncachable",
        "base 0000000000 mask 7F80000000 write-back",
    );
    let warning = "WARNING: BIOS bug: CPU MTRRs don't cover all of memory, losing 512MB of RAM.\n";
    let said = flat(&format!("{table}{warning}{}", count(0x80000)));
    assert!(!said.contains("where RAM above 4 GiB ends"), "{said}");
}

#[test]
fn high_memory_of_32_bit_kernels() {
    let list = "reg00: base=0x00000000 (   0MB), size=2048MB: write-back, count=1\n";
    let kernels = [
        "1143MB HIGHMEM available.\n896MB LOWMEM available.\n",
        "[    0.000000]   Normal       4096 ->   229376\n[    0.000000]   HighMem    229376 ->   522192\n",
        "  Normal   0x00001000 -> 0x000377fe\n  HighMem  0x000377fe -> 0x0007fe6d\n",
        "255MB LOWMEM available.\n",
    ];
    for kernel in kernels {
        let said = flat(&format!("{kernel}{list}"));
        assert!(!said.contains("where RAM is"), "{kernel}: {said}");
        assert!(
            said.contains("RAM in the dump ends below it"),
            "{kernel}: {said}"
        );
    }
    assert!(flat(list).contains("where RAM is"));
    // 33,024 MiB, of which a byte too few would lose RAM.
    let many = "32128MB HIGHMEM available.\n896MB LOWMEM available.\n";
    let wide = "reg00: base=0x00000000 (   0MB), size=65536MB: write-back, count=1\n";
    let said = flat(&format!("{many}{wide}"));
    assert!(
        said.contains("if nothing above 0x810200000 matters"),
        "{said}"
    );
}

#[test]
fn ram_below_1_mib_is_no_repair_above() {
    // Uncachable from 0 up, fixed ranges off: what is below 1 MiB is not the variable ranges' to mend.
    for ram in [
        "0000000000000000 - 0000000000001000",
        "0000000000000000 - 000000000009fc00",
    ] {
        let text = format!("BIOS-e820: {ram} (usable)\nMTRR default type: uncachable\n");
        let object = json(&[], text.as_bytes());
        assert!(object["repair"].is_null(), "{object}");
    }
}

#[test]
fn a_map_that_a_count_bears_out_is_whole() {
    // One range of 32 GiB over 3.5 GiB of RAM: nothing above 4 GiB matters.
    let map = "BIOS-e820: [mem 0x0000000000100000-0x00000000ddabefff] usable\n";
    let table = "MTRR default type: uncachable\nMTRR variable ranges enabled:\n  \
        0 base 000000000 mask 800000000 write-back\n  1 base 0E0000000 mask FE0000000 uncachable\n  \
        2 disabled\n  3 disabled\nx86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT\n";
    let whole = flat(&format!("{map}{}{table}", count(0xddabf)));
    assert!(whole.contains("(RAM in the dump ends below it)"), "{whole}");
    for cut in [
        format!("{map}{table}"),
        format!("{map}{table}{}", count(0xddabf)),
        format!("{map}{}{table}", count(0x120000)),
    ] {
        let said = flat(&cut);
        assert!(
            !said.contains("RAM in the dump ends below"),
            "{cut}: {said}"
        );
    }
}
