//! Each virtual machine people use, through a whole life: what the crate makes of it, exactly.

mod rows;

use mtrr_pat::cpu::CpuOps;
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::platform::Platform;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrDefType, VariableMtrr};
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Machine, Rule, SimCpu};
use mtrr_pat::snapshot::Snapshot;

use self::rows::{Does, Row, WRITES, rows};
use crate::common::{
    Kernel, MODES, aps, assert_all_equal, assert_caching_on, outcome, policy, with_pat,
};

/// Another map: a frame buffer's range uncachable in the last pair; where there is none or all is
/// off, the MTRRs on and write-back.
fn another(map: &Snapshot) -> Snapshot {
    let mut map = *map;
    if !map.def_type.enabled() {
        map.def_type = MtrrDefType::from_raw(0x806);
        return map;
    }
    let range =
        VariableMtrr::from_block(0xd000_0000, 0x0100_0000, MemType::Uncachable, map.phys_bits);
    map.variable[map.variable_count() - 1] = range.unwrap();
    map
}

fn same(kernel: &Kernel, machine: &Machine) -> Path {
    let paths: Vec<Path> = aps(machine)
        .iter()
        .map(|&ap| outcome(kernel, ap).path)
        .collect();
    assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
    paths[0]
}

/// Brings all APs up; how they came in line, and how many did not.
fn bring_up(
    kernel: &Kernel,
    boot: &mut SimCpu<'_>,
    machine: &Machine,
    mode: Resync,
) -> (Path, u32) {
    assert!(kernel.bring_up(boot, &aps(machine)).is_empty());
    let early = same(kernel, machine);
    let out = kernel.resync(boot).unwrap().out_of_sync;
    let path = if mode == Resync::Early {
        early
    } else {
        same(kernel, machine)
    };
    assert_eq!(kernel.check(boot).unwrap().out_of_sync, out);
    (path, out)
}

fn live(machine: &Machine, mode: Resync) -> (Platform, Does) {
    let kernel = Kernel::new();
    kernel.run(machine, |boot| {
        kernel.init(boot, with_pat(policy(mode), Pat::LINUX));
        let platform = *kernel.sync.platform().unwrap();
        let (start, first) = bring_up(&kernel, boot, machine, mode);
        kernel.sleep(boot, &machine.config().wake.clone());
        let woken = outcome(&kernel, 0).path;
        let (ap, second) = bring_up(&kernel, boot, machine, mode);
        let (_, now) = kernel.sync.target().unwrap();
        let change = kernel.change(boot, &another(&now));
        let third = kernel.check(boot).unwrap().out_of_sync;
        let does = Does {
            start,
            wake: (woken, ap),
            refused: platform.mtrr_refused,
            out: [first, second, third],
            change: change.and_then(|summary| summary.ok()).err(),
        };
        (platform, does)
    })
}

#[test]
fn each_through_a_whole_life() {
    let mut wrong = Vec::new();
    for row in rows() {
        for (shape, (cores, threads)) in [(4, 1), (2, 2)].into_iter().enumerate() {
            for mode in MODES {
                let config = (row.machine)(cores, threads);
                let machine = Machine::new(config);
                let name = format!("{}, {cores} x {threads}, {mode:?}", row.name);
                let (platform, does) = live(&machine, mode);
                if does != row.does {
                    wrong.push(format!("{name}: {does:?}"));
                }
                assert_eq!(
                    platform.mtrr.map(|cap| cap.raw()),
                    Ok(row.sees.cap),
                    "{name}"
                );
                assert_eq!(platform.pat, Ok(()), "{name}");
                assert_eq!(platform.phys_bits.get(), row.sees.bits, "{name}");
                assert_eq!(
                    platform.tsc_hz.map(|hz| hz.get()),
                    row.sees.tsc_hz,
                    "{name}"
                );
                assert_eq!(platform.smt_shift, row.sees.smt_shift[shape], "{name}");
                assert!(
                    platform.hypervisor && !platform.amd && !platform.tme,
                    "{name}"
                );
                assert!(platform.guest.is_none() && platform.self_snoop, "{name}");
                ends_well(&machine, &row, &name);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No rule broken but where the MTRRs are off, no fault taken, and all equal unless they refuse.
fn ends_well(machine: &Machine, row: &Row, name: &str) {
    let off = MtrrDefType::from_raw(row.sees.def_type).enabled();
    let broken = machine.violations();
    let others = broken
        .iter()
        .filter(|v| off || v.rule != Rule::LockedWithMtrrsOff);
    assert_eq!(others.count(), 0, "{name}: {broken:?}");
    for cpu in 0..machine.config().cpus() {
        let counters = machine.counters(cpu);
        assert_eq!(
            (counters.rdmsr_fault, counters.wrmsr_fault),
            (0, 0),
            "{name}"
        );
        assert_caching_on(machine, cpu, name);
    }
    if row.does.refused.is_none() {
        assert_all_equal(machine, name);
    }
    // Whoever owns the MTRRs, the PAT is the kernel's.
    for cpu in 0..machine.config().cpus() {
        assert_eq!(machine.registers(cpu).pat, Some(Pat::LINUX), "{name}");
    }
}

/// CPUID and registers of each, before the crate has anything to say.
#[test]
fn each_answers_as_it_does() {
    for row in rows() {
        let machine = Machine::new((row.machine)(2, 1));
        assert_eq!(
            machine.registers(0).def_type.raw(),
            row.sees.def_type,
            "{}",
            row.name
        );
        machine.run(
            |boot| {
                let leaf = boot.cpuid(0x4000_0000, 0);
                let name: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
                    .iter()
                    .flat_map(|w| w.to_le_bytes())
                    .collect();
                assert_eq!(
                    (leaf.eax, &name[..]),
                    (row.leaf.0, &row.leaf.1[..]),
                    "{}",
                    row.name
                );
                let features = boot.cpuid(1, 0);
                assert_eq!(features.ecx >> 31, 1, "{}", row.name);
                assert_eq!(features.edx & 0x0801_1000, 0x0801_1000, "{}", row.name);
                assert_eq!(boot.cpuid(0x15, 0).ecx, 0, "{}", row.name);
                assert_eq!(boot.rdmsr(MsrAddr::SYSCFG).ok(), row.syscfg, "{}", row.name);
                assert!(boot.rdmsr(MsrAddr::TOP_MEM).is_err(), "{}", row.name);
                for ((msr, value), expected) in WRITES.iter().zip(row.writes.chars()) {
                    // SAFETY: a simulated register.
                    let written = unsafe { boot.wrmsr(MsrAddr(*msr), *value) };
                    let found = match (written, boot.rdmsr(MsrAddr(*msr))) {
                        (Err(_), _) => '#',
                        (Ok(()), now) if now == Ok(*value) => 's',
                        _ => '-',
                    };
                    assert_eq!(found, expected, "{}: {msr:#x} := {value:#x}", row.name);
                }
            },
            |_| {},
            |_| {},
        );
    }
}

/// Those whose guests are not offered S3: what they would find after it is this test's own.
const SLEEPLESS: [&str; 5] = [
    "Cloud Hypervisor",
    "Hyper-V, generation 1",
    "Hyper-V, generation 2",
    "Hyper-V, utility (WSL 2)",
    "bhyve",
];

/// A row of the documentation's table.
fn line(row: &Row) -> String {
    let (sees, does) = (&row.sees, &row.does);
    let def_type = MtrrDefType::from_raw(sees.def_type);
    let sleep = if SLEEPLESS.contains(&row.name) {
        "no S3".to_owned()
    } else {
        format!("{}; {}", does.wake.0, does.wake.1)
    };
    let change = does
        .change
        .map_or("all in line".to_owned(), |e| e.to_string());
    format!(
        "//! | {} | {} pairs, {}; {} bits | {} | {} | {sleep} | {change} |",
        row.name,
        sees.cap & 0xff,
        if sees.cap & 0x100 == 0 {
            "nothing fixed"
        } else {
            "fixed"
        },
        sees.bits,
        match def_type.memtype() {
            Ok(memtype) if def_type.enabled() => format!("{memtype}"),
            _ => "off".to_owned(),
        },
        does.start,
    )
}

/// The table in the documentation of [`mtrr_pat::platform`] says what the test above found.
#[test]
fn the_table_is_what_happens() {
    let written = include_str!("../../src/platform.rs");
    let table: Vec<&str> = written
        .lines()
        .filter(|line| line.starts_with("//! | "))
        .skip(1)
        .collect();
    let found: Vec<String> = rows().iter().map(line).collect();
    assert_eq!(table, found, "\n{}\n", found.join("\n"));
}
