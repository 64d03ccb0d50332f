//! Ten more public posts, and what is alike.

use super::{json, post, run, type_at};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn ram_lost_in_a_virtual_machine() {
    // Asked: why only 3 GB? VirtualBox's ranges do not cover the rest; the option brings it back.
    let said = flat(&post("homeassistant-27gb-lost"));
    for part in [
        "Odd: 26.9 GiB of RAM left out",
        "in a virtual machine that option alone is enough",
        "firmware programmed CPUs differently",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Where the log says that it is one, nothing else is advised.
    let text = [
        b"Hypervisor detected: VMware\n".to_vec(),
        post("homeassistant-27gb-lost"),
    ]
    .concat();
    let said = flat(&text);
    assert!(
        said.contains("boot the guest with disable_mtrr_trim: nothing gets slower by it"),
        "{said}"
    );
    assert!(!said.contains("add a range"), "{said}");
}

#[test]
fn slim_bootloaders_list() {
    let object = json(&[], &post("slim-bootloader-qemu"));
    assert_eq!(
        (&object["enabled"], &object["fixed_enabled"]),
        (&true.into(), &true.into())
    );
    assert_eq!(object["default"], "UC");
    assert_eq!(type_at(&object, 0x0800_0000), "WB");
    assert_eq!(type_at(&object, 0x0f00_0000), "UC");
    let text = String::from_utf8(post("slim-bootloader-qemu")).expect("text");
    let off = text.replace("MTRRs......: Enabled", "MTRRs......: Disabled");
    assert_eq!(json(&[], off.as_bytes())["enabled"], false);
    let back = text.replace("Default....: Uncacheable", "Default....: Write-Back");
    assert_eq!(json(&[], back.as_bytes())["default"], "WB");
}

#[test]
fn a_list_without_its_heading() {
    let object = json(&[], &post("heads-qemu-tail"));
    assert_eq!(object["registers"]["total"], 8);
    let said = flat(&post("heads-qemu-tail"));
    assert!(
        said.contains("Variable ranges: 1 used, 7 free of 8"),
        "{said}"
    );
    // Only what follows the list is of it.
    let range = "  0 base 00FF000000 mask FFFF000000 write-protect\n";
    for after in ["something else\n  1 disabled\n", "  5 disabled\n"] {
        let said = flat(format!("{range}{after}").as_bytes());
        assert!(
            said.contains("how many exist is not in the input"),
            "{said}"
        );
    }
}

#[test]
fn a_firmware_log_cut_before_its_ranges_asks_for_its_end() {
    let text = "[DEBUG]  MTRR: Physical address space:\n\
        [DEBUG]  0x0000000000000000 - 0x000000000009ffff size 0x000a0000 type 6\n\
        [DEBUG]  apic_id 0x20: MTRR: Fixed MSR 0x250 0x0606060606060606\n\
        [DEBUG]  apic_id 0x20 setup mtrr for CPU physical address size: 46 bits\n\
        [DEBUG]  MTRR: default type WB/UC MTRR counts: 6/9.\n";
    let said = flat(text.as_bytes());
    assert!(
        said.contains("fix: give the firmware's log to its end"),
        "{said}"
    );
    assert!(!said.contains("dmesg"), "{said}");
}

#[test]
fn the_tail_of_a_log_has_low_memory_counted() {
    let said = flat(&post("rtl8812au-tail"));
    assert!(said.contains("where RAM above 4 GiB ends"), "{said}");
}

#[test]
fn fwts_below_1_mib_says_nothing() {
    let said = flat(&post("luv-fwts-line"));
    assert!(
        said.contains("below 1 MiB the fixed ranges decide"),
        "{said}"
    );
    assert!(said.starts_with("Not known"), "{said}");
    let above = "MTRRIncorrectAttr: Test 1, Memory range 0x100000 to 0xbfffffff (System RAM) has incorrect attribute Uncached.\n";
    let said = flat(above.as_bytes());
    assert!(
        said.starts_with("Odd: fwts compares /proc/iomem with /proc/mtrr"),
        "{said}"
    );
    let lacking = "Memory range 0xe0000000 to 0xefffffff (0000:00:02.0) is lacking attribute Write-Combining.\n";
    assert!(flat(lacking.as_bytes()).contains("fwts compares"));
}

#[test]
fn windows_is_not_said_to_have_put_it_right() {
    let said = flat(&post("mu-windows-default"));
    assert!(said.contains("Windows tells its debugger so"), "{said}");
    assert!(said.contains("what `!mtrr` prints"), "{said}");
    for wrong in ["put it right", "/proc/mtrr", "dmesg"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
fn apostrophes_of_web_pages() {
    for apostrophe in ["'", "\u{2019}", "\u{2018}"] {
        let line = format!(
            "WARNING: BIOS bug: CPU MTRRs don{apostrophe}t cover all of memory, losing 69MB of RAM.\n"
        );
        assert!(
            flat(line.as_bytes()).contains("69 MiB of RAM left out"),
            "{line}"
        );
    }
}

#[test]
fn a_large_page_over_one_type_is_the_kernels_mistake() {
    let said = flat(&post("sgx-huge-page-one-type"));
    assert!(
        said.contains("the map in the input has one type there"),
        "{said}"
    );
    assert!(
        said.contains("update the kernel; the map needs no change"),
        "{said}"
    );
    let text = String::from_utf8(post("sgx-huge-page-one-type")).expect("text");
    let over = text.replace("0x80200000-0x80400000", "0x88600000-0x88a00000");
    let said = flat(over.as_bytes());
    assert!(
        said.contains("ranges of different types lie in that large page"),
        "{said}"
    );
    // Inside one entry; and where an entry is missing, nothing is known.
    let inside = text.replace("0x80200000-0x80400000", "0x89000000-0x89200000");
    assert!(flat(inside.as_bytes()).contains("has one type there"));
    let cut = text.replace(
        "[    0.000591]   3: 0000000088800000-00000000ffffffff uncachable\n",
        "",
    );
    assert!(
        flat(cut.as_bytes()).contains("ranges of different types"),
        "{cut}"
    );
    // From registers, too.
    let line = "pmd_set_huge: Cannot satisfy [mem 0xc0000000-0xc0200000] with a huge-page mapping due to MTRR override.\n";
    let table = "MTRR default type: write-back\nMTRR variable ranges enabled:\n  0 base 00C0000000 mask FFC0000000 uncachable\n  1 disabled\nx86/PAT: done\n";
    assert!(flat(format!("{table}{line}").as_bytes()).contains("has one type there"));
}

#[test]
fn options_that_lose_ram_are_blamed_before_firmware() {
    let said = flat(&post("gentoo-uvesafb-three-boots"));
    for part in [
        "with the sizes on its command line (mtrr_gran_size=32M mtrr_chunk_size=128M)",
        "fix: boot without these options first",
        "a driver wanted write-combining for 0xd0000000-0xdfffffff",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("update the firmware"), "{said}");
}

#[test]
fn all_of_iomem_tells_where_ram_ends() {
    // A Dell's one range of 32 GiB, and 3.5 GiB of RAM: the answer found in that thread.
    let want = ["--want", "0xe0000000+256M=WC"];
    let input = post("ubuntu-dell-32gb-range");
    let object = json(&want, &input);
    let layout = object["want"]["layout"].as_array().expect("a layout");
    let blocks: Vec<(&str, &str)> = layout
        .iter()
        .map(|pair| {
            (
                pair["base"].as_str().expect("base"),
                pair["type"].as_str().expect("type"),
            )
        })
        .collect();
    let right = [
        ("0x0", "WB"),
        ("0x80000000", "WB"),
        ("0xc0000000", "WB"),
        ("0xdde00000", "UC"),
        ("0xde000000", "UC"),
        ("0xe0000000", "WC"),
    ];
    assert_eq!(blocks, right);
    assert!(
        !object["want"]["commands"]
            .as_array()
            .expect("commands")
            .is_empty()
    );
    let (_, said) = run(&[&["--color=never"][..], &want[..]].concat(), &input);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("exactly it takes another default type (5 of 8 registers)"),
        "{said}"
    );
    // Cut anywhere, RAM above 4 GiB may have been cut off.
    let text = String::from_utf8(input).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let last = lines
        .iter()
        .rposition(|line| line.contains(" : "))
        .expect("an entry");
    for end in 5..=last + 1 {
        let part = lines[..end].join("\n") + "\n";
        let object = json(&want, part.as_bytes());
        assert_ne!(object["want"]["way"], "relaxed", "{part}");
    }
}

#[test]
fn a_log_broken_by_mail_is_no_damaged_one() {
    let said = flat(&post("dell9360-mail-66"));
    assert!(
        said.starts_with("Not known: no MTRR in the input"),
        "{said}"
    );
    assert!(said.contains("boot with `mtrr=debug`"), "{said}");
    assert!(
        said.contains("slots 0-7: WB WC UC- UC WB WP UC- WT"),
        "{said}"
    );
    assert!(!said.contains("partial"), "{said}");
}
