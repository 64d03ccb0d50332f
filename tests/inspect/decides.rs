//! Plans for machines where more decides than the variable ranges: RAM left out, addresses above
//! RAM, TOP_MEM2, fixed ranges that are off, absent or asked to change.

use serde_json::{Value, json};

use super::{json, post, run};

/// The text report of a post, blanks squeezed.
fn text(options: &[&str], input: &[u8]) -> String {
    let (_, text) = run(&[&["--color=never"], options].concat(), input);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `count` lines.
fn top(options: &[&str], input: &[u8], count: usize) -> String {
    let (_, text) = run(&[&["--color=never"], options].concat(), input);
    text.lines().take(count).collect::<Vec<_>>().join("\n")
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "\"{part}\" is not in:\n{text}");
    }
}

fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "\"{part}\" is in:\n{text}");
    }
}

/// The commands of the repair, or of what is wanted.
fn commands(object: &Value, key: &str) -> Vec<String> {
    let list = object[key]["commands"].as_array().expect("a list");
    list.iter()
        .map(|line| line.as_str().expect("a line").into())
        .collect()
}

#[test]
fn ram_that_is_left_out_gets_one_more_range() {
    let input = post("211-dimension5150-6gb");
    let line = "echo \"base=0x100000000 size=0x80000000 type=write-back\" > /proc/mtrr";
    let object = json(&[], &input);
    assert_eq!(commands(&object, "repair"), [line]);
    assert_eq!(object["repair"]["way"], "added");
    assert_eq!(
        object["repair"]["ram"],
        json!([{ "start": "0x100000000", "end": "0x17fffffff" }])
    );
    assert_eq!(object["verdict"]["state"], "wrong");
    let screen = top(&[], &input, 20);
    has(
        &screen,
        &[
            "RAM is uncachable: 0x100000000-0x17fffffff (2 GiB)",
            line,
            "disable_mtrr_trim",
        ],
    );
    let (_, all) = run(&["--color=never"], &input);
    assert_eq!(all.matches("echo ").count(), 1, "no other lines:\n{all}");
}

#[test]
fn ram_above_4_gib_known_from_a_page_count_or_from_what_is_lost() {
    let reg = |n: u32, base: u64, size: u64| {
        let mb = base >> 20;
        format!(
            "reg{n:02}: base=0x{base:09x} ({mb:5}MB), size={:5}MB, count=1: write-back\n",
            size >> 20
        )
    };
    let low = reg(0, 0, 2 << 30) + &reg(1, 2 << 30, 1 << 30);
    let pages = format!("{low}last_pfn = 0x180000 max_arch_pfn = 0x400000000\n");
    let object = json(&[], pages.as_bytes());
    let line = "echo \"base=0x100000000 size=0x80000000 type=write-back\" > /proc/mtrr";
    assert_eq!(commands(&object, "repair"), [line]);
    // 1 GiB above 4 GiB is covered, and one more is lost: it follows.
    let loses = "WARNING: BIOS bug: CPU MTRRs don't cover all of memory, losing 1024MB of RAM.\n";
    let lost = format!("{low}{}{loses}", reg(2, 4 << 30, 1 << 30));
    let object = json(&[], lost.as_bytes());
    let line = "echo \"base=0x140000000 size=0x40000000 type=write-back\" > /proc/mtrr";
    assert_eq!(commands(&object, "repair"), [line]);
    // Where it is not known which memory is lost, nothing is guessed.
    let unplaced = format!("{low}{loses}");
    assert_eq!(json(&[], unplaced.as_bytes())["repair"], Value::Null);
}

/// A repair for which no register is free is planned anew, and RAM is not given up for devices.
#[test]
fn a_full_machine_is_repaired_by_planning_anew() {
    let mut input = String::from(
        "BIOS-e820: [mem 0x0000000000000000-0x000000000009ffff] usable\n\
         BIOS-e820: [mem 0x0000000000100000-0x000000007fffffff] usable\n\
         BIOS-e820: [mem 0x0000000100000000-0x000000017fffffff] usable\n\
         MTRR default type: uncachable\nMTRR variable ranges enabled:\n",
    );
    for n in 0..8u64 {
        let base = n << 28;
        input += &format!("  {n} base {base:09X} mask FF0000000 write-back\n");
    }
    input += "PAT configuration [0-7]: WB  WC  UC- UC  WB  WC  UC- UC\n";
    let object = json(&[], input.as_bytes());
    assert_eq!(object["repair"]["way"], "exact");
    assert_eq!(object["repair"]["layout"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["repair"]["given_up"], json!([]));
}

#[test]
fn a_relaxed_plan_that_is_counted_is_given() {
    let input = post("205-asus-n56vz-json-list");
    let screen = text(&[], &input);
    has(
        &screen,
        &[
            "all 10 variable ranges are in use: 5 are enough if nothing above 0x42f200000 matters",
            "exactly this map: 10 with default UC, 13 with default WB (now: 10)",
            "5 with default UC, 4 with default WB",
            "if nothing above 0x42f200000 matters, 5 can be freed",
            "0x6 0x800000800 32 GiB write-back",
            "echo \"base=0x0 size=0x800000000 type=write-back\" > /proc/mtrr",
        ],
    );
    let want = ["--want", "0xe0000000+256M=WC"];
    let object = json(&want, &input);
    assert_eq!(object["want"]["way"], "relaxed");
    assert_eq!(object["want"]["given_up"], json!([]));
    assert_eq!(object["want"]["min_here"], json!({ "UC": 13, "WB": 14 }));
    assert_eq!(object["want"]["min_relaxed"], json!({ "UC": 9, "WB": 5 }));
    assert_eq!(object["want"]["layout"].as_array().map(Vec::len), Some(9));
    assert!(!commands(&object, "want").is_empty());
    lacks(&text(&want, &input), &["given up"]);
}

#[test]
fn the_end_of_low_memory_is_not_the_end_of_ram() {
    let screen = text(&[], &post("223-e3930-flash-wc-journal"));
    has(
        &screen,
        &["above 0x180000000 matters (the end of write-back memory): 5 with default UC"],
    );
    lacks(&screen, &["the end of RAM", "above 0x100000000 matters"]);
    // The same with the first of the two page counts: that is the end of RAM.
    let mut whole = post("223-e3930-flash-wc-journal");
    whole.extend_from_slice(b"last_pfn = 0x180000 max_arch_pfn = 0x400000000\n");
    has(
        &text(&[], &whole),
        &["above 0x180000000 matters (the end of RAM in the dump)"],
    );
}

#[test]
fn below_1_mib_ranges_count_where_the_fixed_ones_are_off_or_absent() {
    // The second dump says that four ranges exist, and shows one.
    let part = text(&[], &post("nofix-vga"));
    lacks(&part, &["useless", "disable="]);
    let mut whole = post("nofix-vga");
    for msr in 0x202..0x208 {
        whole.extend_from_slice(format!("cpu 0 msr {msr:#x} value 0x0\n").as_bytes());
    }
    for (name, input) in [("fe0-vga", post("fe0-vga")), ("nofix-vga", whole)] {
        let object = json(&[], &input);
        for pair in object["variable"].as_array().expect("a list") {
            assert_eq!(pair["note"], "", "{name}");
        }
        let used = &object["registers"]["used"];
        assert_eq!(&object["registers"]["min_here"]["WB"], used, "{name}");
        let screen = text(&[], &input);
        has(&screen, &["already minimal"]);
        lacks(&screen, &["useless", "can be freed", "disable="]);
    }
    // The want below 1 MiB is then one for the variable ranges.
    let object = json(&["--want", "0xc0000+128K=WP"], &post("fe0-vga"));
    assert_eq!(
        commands(&object, "want"),
        ["echo \"base=0xc0000 size=0x20000 type=write-protect\" > /proc/mtrr"]
    );
    assert_eq!(object["want"]["fixed"], json!([]));
}

#[test]
fn below_1_mib_the_fixed_ranges_are_asked_where_they_decide() {
    let input = post("205-asus-n56vz-json-list");
    let object = json(&["--want", "0xa0000+128K=WC"], &input);
    let fixed = object["want"]["fixed"].as_array().expect("a list");
    assert_eq!(fixed.len(), 1, "{object}");
    let said = fixed[0].as_str().expect("a sentence");
    has(
        said,
        &[
            "0x259",
            "0xa0000-0xbffff",
            "0x0101010101010101 in place of 0x0000000000000000",
        ],
    );
    assert_eq!(commands(&object, "want"), Vec::<String>::new());
    has(
        &text(&["--want", "0xa0000+128K=WC"], &input),
        &[
            "the variable ranges stay as they are",
            "/proc/mtrr does not reach them",
        ],
    );
    // A field is 16 KiB there.
    let object = json(&["--want", "0xa1000+4K=WC"], &input);
    let why = object["want"]["failed"].as_str().expect("a reason");
    has(why, &["0xa2000 is inside a fixed range of 0x4000 bytes"]);
    // Where the dump does not show them, what they hold is not invented.
    let object = json(
        &["--want", "0xa0000+128K=WC"],
        &post("211-dimension5150-6gb"),
    );
    has(
        object["want"]["fixed"][0].as_str().expect("a sentence"),
        &["8 of its 8 bytes WC", "not in the dump"],
    );
}

#[test]
fn no_plan_covers_what_top_mem2_makes_write_back() {
    let input = post("tom2-wc");
    for options in [&[][..], &["--want", "0xe0000000+256M=UC"]] {
        let (_, screen) = run(&[&["--color=never"], options].concat(), &input);
        let rows = screen
            .lines()
            .filter(|line| line.ends_with(" uncachable") && line.contains("0x"));
        let mut seen = 0;
        for row in rows.filter(|row| !row.contains('-') && !row.contains("base")) {
            let word = row.split_whitespace().nth(1).expect("a base");
            let base = u64::from_str_radix(&word[2..], 16).expect("hexadecimal");
            assert!(
                !(0x1_0000_0000..0x2_8000_0000).contains(&base),
                "{row}\n{screen}"
            );
            seen += 1;
        }
        assert!(seen > 0, "{screen}");
    }
    let object = json(&[], &input);
    assert_eq!(object["registers"]["min_here"], json!({ "UC": 9, "WB": 5 }));
    assert_eq!(
        object["registers"]["min_relaxed"],
        json!({ "UC": 9, "WB": 1 })
    );
}

#[test]
fn without_variable_ranges_the_pat_is_named() {
    let input = b"cpu 0 msr 0xfe value 0x500\ncpu 0 msr 0x2ff value 0xc06\n";
    let object = json(&["--want", "0xe0000000+256M=WC"], input);
    let why = object["want"]["failed"].as_str().expect("a reason");
    has(why, &["no variable ranges", "PAT"]);
    has(
        &text(&["--want", "0xe0000000+256M=WC"], input),
        &["no variable ranges"],
    );
}

#[test]
fn json_carries_the_verdict_and_the_type() {
    let input = post("205-asus-n56vz-json-list");
    let object = json(&["--type", "0xcbc00000"], &input);
    assert_eq!(object["type"]["type"], "UC");
    assert_eq!(object["type"]["by"], "variable");
    assert_eq!(object["type"]["last"], "0xffffffff");
    assert_eq!(object["verdict"]["state"], "fine");
    let pages = object["type"]["pages"].as_array().expect("a list");
    let back = pages
        .iter()
        .find(|page| page["page"] == "WB")
        .expect("a WB slot");
    assert_eq!(
        (&back["intel"], &back["slots"]),
        (&json!("UC"), &json!([0, 4]))
    );
    let object = json(&["--type", "0xa0000"], &post("211-dimension5150-6gb"));
    assert_eq!(object["type"]["certain"], false);
    let object = json(&["--want", "0xe0000000+256M=WC", "--phys-bits", "36"], b"");
    assert_eq!(
        object["want"]["layout"],
        json!([{ "base": "0xe0000000", "size": "0x10000000", "type": "WC" }])
    );
}

#[test]
fn the_verdict_comes_first() {
    let starts = |input: &[u8], start: &str| {
        let (_, out) = run(&["--color=never"], input);
        assert!(out.starts_with(start), "{start} does not begin:\n{out}");
    };
    starts(
        &post("211-dimension5150-6gb"),
        "WRONG: RAM is uncachable: 0x100000000",
    );
    starts(
        &post("205-asus-n56vz-json-list"),
        "Fine: nothing wrong, but all 10",
    );
    starts(
        &post("223-e3930-flash-wc-journal"),
        "Fine: nothing wrong in what the dump shows; it does not show",
    );
}

#[test]
fn one_cause_is_one_finding() {
    // Seven masks for 36 bits, decoded with 40.
    let mut input = String::from("MTRR default type: uncachable\nMTRR variable ranges enabled:\n");
    for n in 0..7u64 {
        input += &format!("  {n} base {:09X} mask FF0000000 write-back\n", n << 28);
    }
    input += "  7 disabled\nPAT configuration [0-7]: WB  WC  UC- UC  WB  WC  UC- UC\n";
    let object = json(&["--phys-bits", "40"], input.as_bytes());
    let of_kind = |kind: &str| {
        let findings = object["findings"].as_array().expect("a list");
        findings
            .iter()
            .filter(|finding| finding["kind"] == kind)
            .count()
    };
    assert_eq!(of_kind("mask-width"), 1, "{object}");
    let (_, screen) = run(&["--color=never", "--phys-bits", "40"], input.as_bytes());
    assert!(
        screen.contains("the masks of variable ranges 0-6 are made for 36 bits"),
        "{screen}"
    );
    let rows = screen
        .lines()
        .filter(|line| line.starts_with("  0x"))
        .count();
    assert!(
        rows <= 60,
        "{rows} rows of a map of alike pieces:\n{screen}"
    );
}

#[test]
fn ram_that_the_kernel_turned_reserved_is_found_and_repaired() {
    let input = "e820: BIOS-provided physical RAM map:\n\
        BIOS-e820: [mem 0x0000000000100000-0x00000000bfffffff] usable\n\
        BIOS-e820: [mem 0x0000000100000000-0x000000013fffffff] usable\n\
        e820: last_pfn = 0x140000 max_arch_pfn = 0x400000000\n\
        MTRR default type: uncachable\nMTRR fixed ranges disabled:\nMTRR variable ranges enabled:\n\
        \x20 0 base 000000000 mask F80000000 write-back\n\
        \x20 1 base 080000000 mask FC0000000 write-back\n\
        \x20 2 disabled\n  3 disabled\n  4 disabled\n  5 disabled\n  6 disabled\n  7 disabled\n\
        e820: update [mem 0x100000000-0x13fffffff] usable ==> reserved\n";
    let object = json(&[], input.as_bytes());
    assert_eq!(object["findings"][0]["kind"], "ram-given-up", "{object}");
    assert_eq!(
        commands(&object, "repair"),
        ["echo \"base=0x100000000 size=0x40000000 type=write-back\" > /proc/mtrr"]
    );
}
