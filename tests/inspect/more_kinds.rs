//! Usage counts, command lines, hypervisors' logs, and lines of Xen, NetBSD, OpenBSD and drivers.

use super::{json, post, run};

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two ranges that one replaces.
const HALVES: &str = "\
    reg00: base=0x000000000 (    0MB), size= 1024MB, count=1: write-back\n\
    reg01: base=0x040000000 ( 1024MB), size= 1024MB, count=3: write-back\n\
    reg02: base=0x0d0000000 ( 3328MB), size=  256MB, count=1: write-combining\n";

#[test]
fn a_range_in_use_n_times_is_disabled_n_times() {
    let commands = |text: &str| {
        let (_, text) = run(&["--phys-bits", "36", "--default", "UC"], text.as_bytes());
        let lines = text.lines().map(str::trim);
        let ours = lines.filter(|line| line.contains("/proc/mtrr") && line.contains("echo"));
        ours.map(str::to_string).collect::<Vec<_>>()
    };
    let times = |lines: &[String], index: u32| {
        let line = format!("echo \"disable={index}\" > /proc/mtrr");
        lines.iter().filter(|own| **own == line).count()
    };
    let once = commands(&HALVES.replace("count=3", "count=1"));
    let thrice = commands(HALVES);
    let gone = (0..2)
        .find(|index| times(&once, *index) > 0)
        .expect("one goes");
    assert_eq!(times(&once, gone), 1, "{once:?}");
    let counted = HALVES
        .replace("count=3", "count=1")
        .replacen("count=1", "count=5", 1);
    let want = [times(&commands(&counted), gone), times(&thrice, gone)];
    assert_eq!(want, if gone == 0 { [5, 1] } else { [1, 3] });
    // Many times in a loop.
    let many = commands(
        &HALVES
            .replace("count=3", "count=40")
            .replacen("count=1", "count=40", 1),
    );
    assert!(many.iter().any(|line| line.contains("seq 40")), "{many:?}");
}

#[test]
fn what_is_on_the_command_line_is_part_of_the_answer() {
    let log = "mtrr_cleanup: can not find optimal value\n\
               please specify mtrr_gran_size/mtrr_chunk_size\n";
    let asked = format!("Kernel command line: root=/dev/sda1 enable_mtrr_cleanup quiet\n{log}");
    assert!(flat(&run(&[], asked.as_bytes()).1).contains("take enable_mtrr_cleanup off"));
    assert!(!flat(&run(&[], log.as_bytes()).1).contains("take enable_mtrr_cleanup off"));
    let whole = String::from_utf8(post("208-t3600-kernel-cleanup-loses-ram")).unwrap();
    let asked = format!("Command line: ro enable_mtrr_cleanup mtrr=debug\n{whole}");
    let text = flat(&run(&[], asked.as_bytes()).1);
    assert!(text.contains("boot without enable_mtrr_cleanup"), "{text}");
    assert!(!text.contains("boot with disable_mtrr_cleanup"), "{text}");
}

#[test]
fn the_memory_line_of_old_kernels_ends_ram() {
    let table = "Memory: 8165604k/9437184k available (2594k kernel code)\n\
                 reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n\
                 reg01: base=0x100000000 ( 4096MB), size= 4096MB, count=1: write-back\n";
    let object = json(&["--phys-bits", "36", "--default", "UC"], table.as_bytes());
    // 9 GiB is where RAM ends: the last of them is not write-back.
    let ram = &object["repair"]["ram"][0];
    assert_eq!(
        (&ram["start"], &ram["end"]),
        (&"0x200000000".into(), &"0x23fffffff".into())
    );
    // A count of pages does not say where they are.
    let later = table
        .replace("k/", "K/")
        .replace("k available", "K available");
    let object = json(&["--phys-bits", "36", "--default", "UC"], later.as_bytes());
    assert_eq!(object["repair"], serde_json::Value::Null);
}

#[test]
fn values_of_two_cpus_with_their_0x_on_one_line() {
    let text = "# for i in 0xfe 0x2ff 0x200 0x201 0x202 0x203; do rdmsr -a -0 $i; done\n\
                0x502 0x502\n0xc00 0xc00\n0x6 0x6\n0xf80000800 0xf80000800\n0x0 0x0\n0x0 0x0\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 1, "{object}");
    assert_eq!(super::type_at(&object, 0x10_0000), "WB");
    assert_eq!(object["cpus"].as_array().unwrap().len(), 2);
}

#[test]
fn what_the_windows_debugger_printed_may_be_cut() {
    let whole = String::from_utf8(post("233-windbg-mtrr")).unwrap();
    let at = whole.find("Variable:").expect("the table");
    let text = flat(&run(&[], &whole.as_bytes()[..at]).1);
    assert!(text.contains("give all that `!mtrr` prints"), "{text}");
    assert!(!text.contains("dmesg"), "{text}");
}

#[test]
fn lines_of_other_kernels_and_drivers_are_answered() {
    for (line, meaning) in [
        (
            "(XEN) Conflict occurs for a given guest l1e flags:67 at e0000 (the effective mm \
             type:6), because the host mtrr type is:0",
            "the host's layout is at fault",
        ),
        (
            "(XEN) mm.c:800:d1v0 Attempt to change cache attributes of Xen heap page",
            "the guest's doing",
        ),
        (
            "ivtvfb needs PAT disabled, boot with nopat kernel parameter",
            "the driver's restriction",
        ),
        (
            "mtrr: K6-family MTRR support (2 registers)",
            "registers of their own kind",
        ),
        (
            "mtrr_i686.c: FIXME: more than 16 MTRRs (20)",
            "more variable ranges than this kernel keeps",
        ),
        (
            "00:00:00.153818 CPUM: Mapped 4.0GiB (4294967296 bytes) of RAM using 3 \
             variable-range MTRRs",
            "VirtualBox gave the guest MTRRs",
        ),
    ] {
        let text = flat(&run(&[], line.as_bytes()).1);
        assert!(text.contains(meaning), "{line}: {text}");
        assert!(!text.contains("WRONG"), "{text}");
    }
}

#[test]
fn vmware_tells_the_width_of_the_guest() {
    let log = "vmx| I125: hostCPUID level 80000008, 0: 0x00003027 0x00000000 0x0 0x00000000\n\
               vmx| I125: guestCPUID level 80000008, 0: 0x0000302b 0x00000000 0x0 0x00000000\n\
               reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n";
    let object = json(&[], log.as_bytes());
    assert_eq!(object["phys_bits"], 0x2b);
}

#[test]
fn a_log_as_it_is_and_one_as_it_should_be() {
    // What a guest prints whose CPUID lacks the MTRRs, and then with them.
    let post = "last_pfn = 0x40000 max_arch_pfn = 0x400000000\nDisabled\n\
                x86/PAT: MTRRs disabled, skipping PAT initialization too.\n\
                CPU MTRRs all blank - virtualized system.\n\
                x86/PAT: Configuration [0-7]: WB  WT  UC- UC  WB  WT  UC- UC\n\n\
                last_pfn = 0x40000 max_arch_pfn = 0x400000000\n\
                MTRR default type: write-back\nMTRR fixed ranges disabled:\n\
                \x20 00000-FFFFF uncachable\nMTRR variable ranges enabled:\n\
                \x20 0 disabled\n  1 disabled\n  2 disabled\n  3 disabled\n\
                \x20 4 disabled\n  5 disabled\n  6 disabled\n  7 disabled\n\
                x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT\n";
    let object = json(&[], post.as_bytes());
    assert_eq!(object["default"], "WB");
    assert_eq!(super::type_at(&object, 0x1000_0000), "WB");
    assert_ne!(object["verdict"]["state"], "wrong", "{}", object["verdict"]);
}
