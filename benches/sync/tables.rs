//! What is compared with what.

use super::case::{Case, Event, Who};
use super::life::Figures;
use super::peers::Shape;
use super::print::{Cell, Out};
use mtrr_pat::policy::CacheFlush;
use mtrr_pat::sim::{BusContention, Counters, MtrrScope, Scribble};

const SERIALISED: Who = Who::Peer(Shape::Serialised);
const ALONE: Who = Who::Peer(Shape::Alone);
const WRITE_ALL: Who = Who::Peer(Shape::WriteAll);

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A few CPUs: that the rows work.
    Smallest,
    Usual,
    /// 1024 CPUs too.
    All,
}

impl Size {
    fn machines(self) -> &'static [(usize, usize)] {
        match self {
            Self::Smallest => &[(2, 2)],
            Self::Usual => &[(1, 1), (4, 2), (8, 2), (72, 4), (144, 2)],
            Self::All => &[
                (1, 1),
                (4, 2),
                (8, 2),
                (72, 4),
                (144, 2),
                (512, 2),
                (1024, 1),
            ],
        }
    }

    fn big(self) -> (usize, usize) {
        if self == Self::Smallest {
            (2, 2)
        } else {
            (144, 2)
        }
    }
}

fn name((cores, threads): (usize, usize)) -> Cell {
    Cell::Text(format!("{cores}x{threads}"))
}

fn ratio(theirs: u64, ours: u64) -> Cell {
    Cell::Ratio(theirs as f64 / ours.max(1) as f64)
}

/// What one AP does: operations, and the time of the slowest.
pub fn operations(out: &mut Out, _: Size) {
    out.table(
        "operations",
        "Operations of one AP (4x2, VCNT 10, threads with registers of their own). Early on the way up, the others in the rendezvous.",
        &["state", "who", "RDMSR", "WRMSR", "WBINVD", "CR0", "CR3", "CR4", "locked"],
    );
    for (state, event, left) in [
        ("in sync", Event::SameMap, Scribble::Kept),
        ("in sync, back from S3", Event::Wake, Scribble::Kept),
        ("E=0, the rest right", Event::Wake, Scribble::Off),
        ("all registers differ", Event::Wake, Scribble::Reset),
    ] {
        let case = Case::new((4, 2)).with(|case| {
            case.event = event;
            case.left = left;
        });
        for (who, what) in [
            ("early", Who::Early),
            ("deferred", Who::Deferred),
            ("serialised", SERIALISED),
            ("write all", WRITE_ALL),
        ] {
            let figures = case.run(what);
            let Counters {
                rdmsr,
                wrmsr,
                wbinvd,
                cr0_writes,
                cr3_writes,
                cr4_writes,
                locked,
                ..
            } = figures.counters[figures.counters.len() - 1];
            let counts = [
                rdmsr, wrmsr, wbinvd, cr0_writes, cr3_writes, cr4_writes, locked,
            ];
            let mut cells = vec![Cell::text(state), Cell::text(who)];
            cells.extend(counts.map(Cell::Count));
            out.row(cells);
        }
    }
}

/// The rendezvous after the last AP is up.
pub fn rendezvous(out: &mut Out, size: Size) {
    out.table(
        "rendezvous",
        "All CPUs meet after S3: caches cold, every register differs. Time of the rendezvous; windows in series; rules of the manuals broken.",
        &[
            "machine", "CPUs", "deferred", "serialised", "ser./deferred", "write all", "w.a./deferred", "series", "series ser.", "broken", "broken ser.",
            "broken w.a.",
        ],
    );
    for &machine in size.machines() {
        let case = Case::new(machine);
        let ours = case.run(Who::Deferred);
        let serialised = case.run(SERIALISED);
        let all = case.run(WRITE_ALL);
        out.row(vec![
            name(machine),
            Cell::Count(case.config.cpus() as u64),
            Cell::Time(ours.rendezvous),
            Cell::Time(serialised.rendezvous),
            ratio(serialised.rendezvous, ours.rendezvous),
            Cell::Time(all.rendezvous),
            ratio(all.rendezvous, ours.rendezvous),
            Cell::Count(ours.in_series as u64),
            Cell::Count(serialised.in_series as u64),
            Cell::Count(ours.broken as u64),
            Cell::Count(serialised.broken as u64),
            Cell::Count(all.broken as u64),
        ]);
    }
}

/// All APs started at once.
pub fn parallel(out: &mut Out, size: Size) {
    out.table(
        "parallel",
        "From the boot CPU's wake to everybody in line, MTRRs off after the wake: APs one at a time, or all declared and then started at \
         once. `alone` is the unsafe way: each AP by itself, whatever its sibling does.",
        &[
            "machine", "registers", "early, one at a time", "early", "deferred", "alone", "early/alone", "deferred/alone", "broken", "broken alone",
        ],
    );
    for &machine in size.machines() {
        for (scope_name, scope) in [("thread", MtrrScope::Thread), ("core", MtrrScope::Core)] {
            let one = Case::new(machine).with(|case| {
                case.config.scope = scope;
                case.left = Scribble::Off;
            });
            let all = one.clone().with(|case| case.parallel = true);
            let (early, deferred, alone) =
                (all.run(Who::Early), all.run(Who::Deferred), all.run(ALONE));
            out.row(vec![
                name(machine),
                Cell::text(scope_name),
                Cell::Time(one.run(Who::Early).resume),
                Cell::Time(early.resume),
                Cell::Time(deferred.resume),
                Cell::Time(alone.resume),
                ratio(early.resume, alone.resume),
                ratio(deferred.resume, alone.resume),
                Cell::Count(early.broken as u64),
                Cell::Count(alone.broken as u64),
            ]);
        }
    }
}

/// Early against deferred, and against what was published.
pub fn early(out: &mut Out, size: Size) {
    out.table(
        "early",
        "From the boot CPU's wake to everybody in line, one AP at a time, 1000 + 100000 instructions of bring-up work each. `alone` is the \
         published early resync: each AP by itself, whatever its sibling does.",
        &[
            "machine", "registers", "firmware", "early", "alone", "deferred", "serialised", "deferred/early", "alone/early",
        ],
    );
    let machines: &[(usize, usize)] = match size {
        Size::Smallest => &[(2, 2)],
        _ => &[(4, 2), (8, 2), (144, 2)],
    };
    for &machine in machines {
        for (scope_name, scope) in [("thread", MtrrScope::Thread), ("core", MtrrScope::Core)] {
            for (firmware, left) in [("off", Scribble::Off), ("right", Scribble::Kept)] {
                if firmware == "right" && scope == MtrrScope::Core {
                    continue;
                }
                let case = Case::new(machine).with(|case| {
                    case.left = left;
                    case.config.scope = scope;
                });
                let [early, alone, deferred, serialised] =
                    [Who::Early, ALONE, Who::Deferred, SERIALISED].map(|who| case.run(who));
                out.row(vec![
                    name(machine),
                    Cell::text(scope_name),
                    Cell::text(firmware),
                    Cell::Time(early.resume),
                    Cell::Time(alone.resume),
                    Cell::Time(deferred.resume),
                    Cell::Time(serialised.resume),
                    ratio(deferred.resume, early.resume),
                    ratio(alone.resume, early.resume),
                ]);
            }
        }
    }
}

type Change = fn(&mut Case);

/// What the ratio of the rendezvous depends on; every row changes the first one.
const SENSITIVITY: &[(&str, Change)] = &[
    ("cold caches, registers per thread", |_| {}),
    ("registers per core", |case| {
        case.config.scope = MtrrScope::Core
    }),
    ("firmware right: all in sync", |case| {
        case.left = Scribble::Kept
    }),
    ("only E differs", |case| case.left = Scribble::Off),
    ("WBINVD one after another per LLC", |case| {
        case.config.costs.wbinvd_serialised_per_llc = true;
    }),
    ("the same, registers per core", |case| {
        case.config.costs.wbinvd_serialised_per_llc = true;
        case.config.scope = MtrrScope::Core;
    }),
    ("the same, one LLC for 72 cores", |case| {
        case.config.costs.wbinvd_serialised_per_llc = true;
        case.config.cores_per_llc = case.config.cores.div_ceil(2);
    }),
    ("no self-snoop: we flush as well", |case| {
        case.our_flush = CacheFlush::Always;
    }),
    ("self-snoop: nobody flushes", |case| {
        case.peer_flush = CacheFlush::SkipWithSelfSnoop;
    }),
    ("self-snoop: only we flush, always", |case| {
        case.our_flush = CacheFlush::Always;
        case.peer_flush = CacheFlush::SkipWithSelfSnoop;
    }),
    ("WBINVD 10 times as long", |case| {
        case.config.costs.wbinvd_base *= 10;
        case.config.costs.wbinvd_per_line *= 10;
    }),
    ("WBINVD a tenth", |case| {
        case.config.costs.wbinvd_base /= 10;
        case.config.costs.wbinvd_per_line /= 10;
    }),
    ("the bus slows nobody down", |case| {
        case.config.costs.bus = BusContention {
            max_permille: 1000,
            half: 2,
        };
    }),
    ("the bus slows down 20 times", |case| {
        case.config.costs.bus = BusContention {
            max_permille: 20_000,
            half: 20,
        };
    }),
    ("built for 1024 CPUs", |case| case.room = 1024),
    ("dirty caches, nothing taken away", |case| {
        case.event = Event::ChangeFullCaches
    }),
    ("dirty caches, WB becomes UC", |case| {
        case.event = Event::TakeAwayFullCaches
    }),
    ("the same, 10 times the bandwidth", |case| {
        case.event = Event::TakeAwayFullCaches;
        case.config.costs.write_back_line /= 10;
    }),
    ("the same, WBINVD in turn per LLC", |case| {
        case.event = Event::TakeAwayFullCaches;
        case.config.costs.wbinvd_serialised_per_llc = true;
    }),
];

pub fn sensitivity(out: &mut Out, size: Size) {
    out.table(
        "sensitivity",
        "The rendezvous on 144x2 when one assumption changes.",
        &[
            "assumption",
            "deferred",
            "serialised",
            "ser./deferred",
            "write all",
            "w.a./deferred",
        ],
    );
    for (what, change) in SENSITIVITY {
        let case = Case::new(size.big()).with(change);
        let [ours, serialised, all]: [Figures; 3] =
            [Who::Deferred, SERIALISED, WRITE_ALL].map(|who| case.run(who));
        out.row(vec![
            Cell::text(what),
            Cell::Time(ours.rendezvous),
            Cell::Time(serialised.rendezvous),
            ratio(serialised.rendezvous, ours.rendezvous),
            Cell::Time(all.rendezvous),
            ratio(all.rendezvous, ours.rendezvous),
        ]);
    }
}
