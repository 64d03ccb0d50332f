//! No stale and no dirty line after any change of memory types: every pair of MTRR type and PAT type,
//! every state a line can be in, on the simulated caches. WBINVD exactly where it is owed.

use crate::common::{Kernel, policy};
use mtrr_pat::cacheability::InForce;
use mtrr_pat::combine::CombineRule;
use mtrr_pat::cpu::{CR0_CD, CR4_PGE, CpuOps};
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::pat::Pat;
use mtrr_pat::platform::Platform;
use mtrr_pat::policy::{Policy, Resync};
use mtrr_pat::program::Plan;
use mtrr_pat::regs::{FIXED_COUNT, MsrAddr, MtrrDefType, VariableMtrr};
use mtrr_pat::sim::{
    CR0_KERNEL, Config, Counters, Machine, Mapping, MtrrScope, Op, Rule, SimCpu, Vendor,
    firmware_map,
};
use mtrr_pat::snapshot::Snapshot;

/// The block whose MTRR type changes.
const BLOCK: u64 = 0x4000_0000;
/// Where lines are watched: the page, and the PAT slot it is mapped with. The last one is RAM whose
/// MTRR type stays; slot 1 is the one that changes.
const WATCHED: [(u64, u8); 4] = [
    (BLOCK, 0),
    (BLOCK + 0x1000, 1),
    (BLOCK + 0x2000, 5),
    (0x1000_0000, 1),
];

/// A line before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Clean,
    Dirty,
}

/// What the CPU does with it afterwards. The caches may give lines up by themselves.
const AFTERWARDS: [&str; 5] = ["load", "store load", "evict load", "store evict load", ""];

type Types = (MemType, PatType);

/// All types a block and a slot can have.
fn all_types() -> impl Iterator<Item = Types> + Clone {
    let mtrr = MemType::ALL.into_iter();
    mtrr.flat_map(|mtrr| PatType::ALL.map(|pat| (mtrr, pat)))
}

/// RAM, the block of this type, and this type in slot 1.
fn registers(vendor: Vendor, (mtrr, pat): Types) -> Snapshot {
    let mut map = match vendor {
        Vendor::Intel => firmware_map(),
        Vendor::Amd => Config::amd(1, 1).boot,
    };
    map.fixed = [0; FIXED_COUNT];
    let block =
        |base, size, memtype| VariableMtrr::from_block(base, size, memtype, map.phys_bits).unwrap();
    let pairs = [
        block(0, BLOCK, MemType::WriteBack),
        block(BLOCK, 0x20_0000, mtrr),
        VariableMtrr::default(),
    ];
    map.variable[..3].copy_from_slice(&pairs);
    let slots = u64::from(pat.raw()) << 8 | Pat::POWER_ON.raw() & !0xff00;
    map.pat = Some(Pat::from_raw(slots));
    map
}

fn machine(vendor: Vendor, before: Snapshot, threads: usize) -> Machine {
    Machine::new(config(vendor, before, threads))
}

fn config(vendor: Vendor, before: Snapshot, threads: usize) -> Config {
    let mut config = match vendor {
        Vendor::Intel => Config::new(1, threads),
        Vendor::Amd => Config::amd(1, threads),
    };
    (config.boot, config.aps) = (before, before);
    config.scope = MtrrScope::Core;
    config.log = false;
    config.fills_despite_cd = true;
    config.mappings = WATCHED
        .map(|(start, slot)| Mapping {
            start,
            end: start + 0x1000,
            slot,
            global: false,
        })
        .into();
    config
}

/// Brings every watched line into a state, as far as its type allows.
fn prepare(cpu: &mut SimCpu<'_>, state: State) {
    for (address, _) in WATCHED {
        match state {
            State::Absent => {}
            State::Clean => {
                cpu.store(address);
                cpu.evict();
                cpu.load(address);
            }
            State::Dirty => cpu.store(address),
        }
    }
    if state == State::Clean {
        // Stores of the later ones emptied the cache again.
        WATCHED
            .into_iter()
            .for_each(|(address, _)| cpu.load(address));
    }
}

fn use_lines(cpu: &mut SimCpu<'_>, how: &str) {
    for step in how.split_whitespace() {
        for (address, _) in WATCHED {
            match step {
                "load" => cpu.load(address),
                "store" => cpu.store(address),
                _ => cpu.evict(),
            }
        }
    }
}

/// The manuals' procedure, with one WBINVD or none.
fn change(cpu: &mut SimCpu<'_>, want: &Snapshot, flush: bool) {
    let cr4 = cpu.read_cr4();
    unsafe { cpu.write_cr0(CR0_KERNEL | CR0_CD) };
    unsafe { cpu.write_cr4(cr4 & !CR4_PGE) };
    let def_type = want.def_type;
    let mut write = |msr, value| assert!(unsafe { cpu.wrmsr(msr, value) }.is_ok());
    write(MsrAddr::MTRR_DEF_TYPE, def_type.disabled().raw());
    write(MsrAddr::phys_base(1), want.variable[1].base);
    write(MsrAddr::PAT, want.pat.unwrap().raw());
    if flush {
        cpu.wbinvd();
    }
    assert!(unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, def_type.raw()) }.is_ok());
    let cr3 = cpu.read_cr3();
    unsafe { cpu.write_cr3(cr3) };
    unsafe { cpu.write_cr0(CR0_KERNEL) };
    unsafe { cpu.write_cr4(cr4) };
}

/// Whether anything is wrong after a change: a line that must not be there, or a load that shows it.
fn goes_wrong(
    vendor: Vendor,
    (before, after): (&Snapshot, &Snapshot),
    (state, afterwards): (State, &str),
    apply: impl FnOnce(&mut SimCpu<'_>),
) -> bool {
    let machine = machine(vendor, *before, 1);
    let stale = machine.run(
        |cpu| {
            prepare(cpu, state);
            apply(cpu);
            let stale = cpu.machine().stale_lines(0);
            use_lines(cpu, afterwards);
            !stale.is_empty()
        },
        |_| {},
        |_| {},
    );
    assert_eq!(machine.registers(0).variable, after.variable);
    assert_eq!(machine.registers(0).pat, after.pat);
    let broken = machine.violations();
    assert!(
        broken.iter().all(|v| v.rule == Rule::StaleLine),
        "{broken:?}"
    );
    stale || !broken.is_empty()
}

const VENDORS: [(Vendor, CombineRule); 2] = [
    (Vendor::Intel, CombineRule::Intel),
    (Vendor::Amd, CombineRule::Amd),
];
const STATES: [State; 3] = [State::Absent, State::Clean, State::Dirty];

/// Every change: registers before, registers after, whether a flush is owed.
fn changes() -> impl Iterator<Item = (Vendor, Snapshot, Snapshot, bool, String)> {
    VENDORS.into_iter().flat_map(|(vendor, rule)| {
        all_types().flat_map(move |before| {
            all_types().map(move |after| {
                let found = registers(vendor, before);
                let given = registers(vendor, after);
                let owed = InForce::from(&found).loses_cacheability((&given).into(), rule);
                let why = format!("{vendor:?} {before:?} -> {after:?}");
                (vendor, found, given, owed, why)
            })
        })
    })
}

#[test]
fn with_the_flushes_that_are_owed_nothing_is_stale() {
    for (vendor, before, after, owed, why) in changes() {
        for state in STATES {
            for afterwards in AFTERWARDS {
                let wrong = goes_wrong(vendor, (&before, &after), (state, afterwards), |cpu| {
                    change(cpu, &after, owed);
                });
                assert!(!wrong, "{why}, {state:?}, {afterwards}");
            }
        }
    }
}

/// Not one flush too many, and every one left out is caught.
#[test]
fn without_a_flush_something_is_stale_exactly_where_one_is_owed() {
    let (mut flushes, mut none) = (0, 0);
    for (vendor, before, after, owed, why) in changes() {
        let wrong = STATES.into_iter().any(|state| {
            goes_wrong(vendor, (&before, &after), (state, ""), |cpu| {
                change(cpu, &after, false);
            })
        });
        assert_eq!(wrong, owed, "{why}");
        flushes += u32::from(owed);
        none += u32::from(!owed);
    }
    assert!(flushes > 200 && none > 200, "{flushes}, {none}");
}

/// What is left behind is no bookkeeping: programs read it.
#[test]
fn a_flush_left_out_is_read() {
    let read = |before, after, state, afterwards| {
        let found = registers(Vendor::Intel, before);
        let given = registers(Vendor::Intel, after);
        let machine = machine(Vendor::Intel, found, 1);
        machine.run(
            |cpu| {
                prepare(cpu, state);
                change(cpu, &given, false);
                use_lines(cpu, afterwards);
            },
            |_| {},
            |_| {},
        );
        !machine.violations().is_empty()
    };
    let wb = (MemType::WriteBack, PatType::WriteThrough);
    let uc = (MemType::Uncachable, PatType::WriteThrough);
    // What was stored is not in memory; what is stored is overwritten when the line is given up.
    assert!(read(wb, uc, State::Dirty, "load"));
    assert!(read(wb, uc, State::Dirty, "store evict load"));
    assert!(!read(wb, uc, State::Clean, "load"));
    assert!(!read(wb, uc, State::Absent, "store evict load"));
    assert!(!read(uc, wb, State::Dirty, "store evict load"));
}

/// The library's own changes, from registers as found to registers as wanted: nothing is stale, and
/// where the processor snoops itself caches are flushed exactly where it is owed.
#[test]
fn after_what_the_library_does_nothing_is_stale() {
    for (vendor, before, after, owed, why) in changes() {
        for (state, afterwards) in [(State::Clean, "store load"), (State::Dirty, "load")] {
            let wrong = goes_wrong(vendor, (&before, &after), (state, afterwards), |cpu| {
                let flushes = cpu.machine().counters(0).wbinvd;
                let platform = Platform::detect(cpu);
                let policy = Policy::DEFAULT;
                // As a CPU of this machine captures it.
                let mut want = Snapshot::capture(cpu, &platform, policy.amd_fixed).unwrap();
                let cap = want.cap;
                (want.variable, want.pat) = (after.variable, after.pat);
                let mut plan = Plan::examine(cpu, &want, &platform, &policy, cap).unwrap();
                let applied = unsafe { plan.apply(cpu, &want, &platform, &policy) };
                assert_eq!(applied, Ok(()), "{why}");
                let flushed = cpu.machine().counters(0).wbinvd > flushes;
                assert_eq!(flushed, owed, "{why}");
            });
            assert!(!wrong, "{why}, {state:?}");
        }
    }
}

/// Both flushes of a window: without the first, a processor that does not snoop itself reads its
/// stack from memory; without the second, lines that came back despite CD stay.
#[test]
fn a_processor_that_does_not_snoop_itself_is_flushed_twice() {
    let apply = |cpu: &mut SimCpu<'_>, after: &Snapshot| {
        let platform = Platform::detect(cpu);
        assert!(!platform.self_snoop);
        let policy = Policy::DEFAULT;
        let mut want = Snapshot::capture(cpu, &platform, policy.amd_fixed).unwrap();
        (want.variable, want.pat) = (after.variable, after.pat);
        let mut plan = Plan::examine(cpu, &want, &platform, &policy, want.cap).unwrap();
        unsafe { plan.apply(cpu, &want, &platform, &policy) }
    };
    for (vendor, before, after, _, why) in changes() {
        let mut config = config(vendor, before, 1);
        config.self_snoop = false;
        let machine = Machine::new(config);
        machine.run(
            |cpu| {
                prepare(cpu, State::Dirty);
                assert_eq!(apply(cpu, &after), Ok(()), "{why}");
                assert_eq!(cpu.machine().stale_lines(0), [], "{why}");
                use_lines(cpu, "store evict load");
            },
            |_| {},
            |_| {},
        );
        machine
            .check()
            .unwrap_or_else(|broken| panic!("{why}: {broken}"));
    }
}

/// The machine's part of that: what a change with only the second flush does there.
#[test]
fn a_flush_after_the_clear_of_e_alone_is_too_late_without_self_snoop() {
    let before = registers(Vendor::Intel, (MemType::WriteBack, PatType::WriteThrough));
    let after = registers(
        Vendor::Intel,
        (MemType::WriteCombining, PatType::WriteThrough),
    );
    let broken = |self_snoop| {
        let mut config = config(Vendor::Intel, before, 1);
        config.self_snoop = self_snoop;
        let machine = Machine::new(config);
        let work = |cpu: &mut SimCpu<'_>| {
            prepare(cpu, State::Dirty);
            change(cpu, &after, true);
        };
        machine.run(work, |_| {}, |_| {});
        let broken = machine.violations();
        broken.iter().map(|v| v.rule).collect::<Vec<_>>()
    };
    assert_eq!(broken(true), []);
    assert_eq!(broken(false), [Rule::ModifiedWhenOff]);
}

/// With its MTRRs off a CPU has cached nothing: what it brings to a map needs no flush.
#[test]
fn from_mtrrs_that_are_off_nothing_is_owed() {
    for (vendor, rule) in VENDORS {
        for types in all_types() {
            for pat in PatType::ALL {
                let mut before = registers(vendor, (MemType::WriteBack, pat));
                before.def_type = MtrrDefType::from_raw(before.def_type.disabled().raw());
                let after = registers(vendor, types);
                assert!(!InForce::from(&before).loses_cacheability((&after).into(), rule));
                for state in STATES {
                    let wrong = goes_wrong(vendor, (&before, &after), (state, "load"), |cpu| {
                        change(cpu, &after, false);
                    });
                    assert!(!wrong, "{vendor:?} {types:?} {state:?}");
                }
            }
        }
    }
}

/// A thread with translations from before fills the cache again after its sibling's flush.
#[test]
fn a_siblings_old_translations_undo_a_flush() {
    let before = registers(Vendor::Intel, (MemType::WriteBack, PatType::WriteThrough));
    let after = registers(Vendor::Intel, (MemType::Uncachable, PatType::WriteThrough));
    let left = |flushes_tlb: bool| {
        let machine = machine(Vendor::Intel, before, 2);
        let word = mtrr_pat::atomic::Word::new(0);
        let order = mtrr_pat::atomic::Ordering::SeqCst;
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                while word.load(order) == 0 {
                    boot.pause_while(&word, 0, u64::MAX);
                }
                change(boot, &after, true);
                word.store(2, order);
                while word.load(order) == 2 {
                    boot.pause_while(&word, 2, u64::MAX);
                }
            },
            |ap| {
                ap.load(BLOCK);
                word.store(1, order);
                while word.load(order) == 1 {
                    ap.pause_while(&word, 1, u64::MAX);
                }
                if flushes_tlb {
                    let cr4 = ap.read_cr4();
                    unsafe { ap.write_cr4(cr4 ^ CR4_PGE) };
                    unsafe { ap.write_cr4(cr4) };
                }
                ap.load(BLOCK);
                word.store(3, order);
            },
            |_| {},
        );
        let rules: Vec<Rule> = machine.violations().iter().map(|v| v.rule).collect();
        (machine.stale_lines(0).len(), rules)
    };
    assert_eq!(left(true), (0, vec![]));
    assert_eq!(left(false), (1, vec![Rule::StaleTlb]));
}

/// Threads share their registers: the second one of a core opens no window, but what its old
/// translations may have filled the cache with after the first one's flush has to go, if the change
/// takes cacheability away; and nothing is flushed where it does not.
#[test]
fn the_second_thread_of_a_core_flushes_after_the_first_ones_window() {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Core;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        assert!(kernel.bring_up(boot, &[1, 2, 3]).is_empty());
        let (_, cached) = kernel.sync.target().unwrap();
        let mut uncached = cached;
        let uc = VariableMtrr::from_block(BLOCK, 1 << 20, MemType::Uncachable, cached.phys_bits);
        uncached.variable[cached.variable_count() - 1] = uc.unwrap();
        for (want, windows, flushes) in [
            (uncached, [1, 0, 1, 0], [2, 1, 2, 1]),
            (cached, [1, 0, 1, 0], [0; 4]),
        ] {
            let before = [0, 1, 2, 3].map(|cpu| machine.counters(cpu));
            assert_eq!(kernel.change(boot, &want).unwrap().out_of_sync, 0);
            let now = [0, 1, 2, 3].map(|cpu| machine.counters(cpu));
            let since =
                |of: fn(&Counters) -> u64| [0, 1, 2, 3].map(|n| of(&now[n]) - of(&before[n]));
            assert_eq!(since(|counters| counters.windows), windows);
            assert_eq!(since(|counters| counters.wbinvd), flushes);
        }
    });
    machine.check().unwrap();
}

/// A CPU that was brought in line without a window, was unplugged, and comes again from a trampoline
/// that sets CD: what it cached in its last life is there still when memory stops being cacheable.
#[test]
fn a_cpu_that_is_plugged_again_with_caching_off_flushes_what_it_had() {
    let machine = Machine::new(Config::new(2, 1));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            assert!(kernel.bring_up(boot, &[1]).is_empty());
            boot.work(1_000_000);
            boot.send_init(1);
            unsafe { kernel.sync.offline(1) }.unwrap();
            let (_, mut to) = kernel.sync.target().unwrap();
            to.fixed[1] = 0;
            kernel.change(boot, &to).unwrap().ok().unwrap();
            machine.clear_log();
            assert!(kernel.bring_up(boot, &[1]).is_empty());
            assert!(machine.ops(1).contains(&Op::Wbinvd), "not fresh");
        },
        |ap| {
            let cr0 = ap.read_cr0();
            unsafe { ap.write_cr0(cr0 | CR0_CD) };
            kernel.ap(ap);
        },
        |cpu| kernel.interrupt(cpu),
    );
    machine.check().unwrap();
}
