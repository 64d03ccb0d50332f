//! FreeBSD, OpenBSD, NetBSD, Windows: each kernel's words, and what it is asked for.

use super::{json, post, run};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn freebsd_is_not_told_what_linux_would_be() {
    let text = post("freebsd-none-free");
    let said = flat(&text);
    assert!(said.contains("harmless on amd64"), "{said}");
    assert!(
        said.contains("fix: paste what `memcontrol list` prints"),
        "{said}"
    );
    for wrong in ["/proc/mtrr", "this kernel runs without PAT", "mtrr=debug"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    // The same words of Linux, where it asks without PAT only.
    let linux =
        "Failed to add WC MTRR for [00000000f0000000-00000000ffffffff]; performance may suffer.";
    let said = flat(linux.as_bytes());
    assert!(said.contains("this kernel runs without PAT"), "{said}");
    assert!(said.contains("/proc/mtrr"), "{said}");
}

#[test]
fn each_kernel_is_asked_for_what_it_has() {
    let asked = [
        ("OpenBSD 7.5 (GENERIC.MP) #82: Wed Mar 20", "memconfig list"),
        ("FreeBSD 14.0-RELEASE #0 releng/14.0", "memcontrol list"),
        ("NetBSD 9.3 (GENERIC) #0", "NetBSD has no tool"),
        ("Linux version 6.8.0-31-generic", "mtrr=debug"),
        ("00:00:03.1 Guest OS type: 'OpenBSD_64'", "memconfig list"),
        ("00:00:03.1 Guest OS type: 'Ubuntu_64'", "/proc/mtrr"),
    ];
    for (version, tool) in asked {
        let text = format!("{version}\nnvidiafb: MTRR set to ON\n");
        let said = flat(text.as_bytes());
        let (_, last) = said.rsplit_once("fix: ").expect("a fix");
        assert!(last.contains(tool), "{version}: {said}");
    }
    let windows = b"KiInitializeMTRR: MTRR_MSR_DEFAULT is not consistent between processors.";
    assert!(flat(windows).contains("`!mtrr`"));
}

#[test]
fn openbsd_counts_its_ranges() {
    let line =
        |count| format!("mtrr: Pentium Pro MTRR support, {count} var ranges, 88 fixed ranges\n");
    let said = flat(line(10).as_bytes());
    assert!(
        said.contains("the kernel uses the MTRRs, 10 variable ranges"),
        "{said}"
    );
    assert!(said.contains("memconfig list"), "{said}");
    let said = flat(line(0).as_bytes());
    assert!(
        said.contains("no variable ranges, as in a virtual machine"),
        "{said}"
    );
    assert!(!said.contains("uses the MTRRs"), "{said}");
    let off = flat(b"mtrr: CPU supports MTRRs but not enabled by BIOS\n");
    assert!(off.contains("memconfig list"), "{off}");
}

#[test]
fn openbsd_in_virtualbox_is_a_virtual_machine() {
    let text = b"OpenBSD 6.5 (GENERIC) #1: Sun May  5 05:05:57 MDT 2019\n\
        bios0: vendor innotek GmbH version \"VirtualBox\" date 12/01/2006\n\
        mtrr: CPU supports MTRRs but not enabled by BIOS\n";
    let said = flat(text);
    assert!(said.contains("virtual machine: VirtualBox"), "{said}");
    assert!(
        said.contains("the hypervisor offers none, or left them off"),
        "{said}"
    );
    let log = b"00:00:00.153694 PGM: The CPU physical address width is 39 bits\n\
        00:00:00.153818 CPUM: Mapped 4.0GiB (4294967296 bytes) of RAM using 3 variable-range MTRRs\n";
    let said = flat(log);
    assert!(
        said.contains("39 address bits (from the log), virtual machine: VirtualBox"),
        "{said}"
    );
}

#[test]
fn netbsds_own_dump_is_read() {
    let text = b"init mtrr: 200: 0000000000000006\ninit mtrr: 201: 0000000f80000800\n\
        init mtrr: 202: 00000000f0000001\ninit mtrr: 203: 0000000ff8000800\n\
        init mtrr: 2ff: 0000000000000c00\n";
    let object = json(&[], text);
    assert_eq!(object["enabled"], true);
    super::check_map(
        &object,
        &[
            (0x10_0000, "WB"),
            (0x8000_0000, "UC"),
            (0xf000_0000, "WC"),
            (0xf800_0000, "UC"),
        ],
    );
}
