//! A property of the platform found out by every CPU, or once.
//!
//! The machine refuses MTRR writes. Either every CPU finds that out for itself, three times, as
//! the published kernel loaded three drivers for each; or the boot CPU does, once, and the others
//! load the answer.

use std::sync::atomic::AtomicU32;

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::platform::Platform;
use mtrr_pat::policy::Policy;
use mtrr_pat::sim::{At, Config, Costs, Fault, Machine, SimCpu, What};
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::Place;

const MOST: usize = 288;
/// Attempts for each CPU of the published kernel.
const ATTEMPTS: u64 = 3;

/// Published: CPUs, seconds with an attempt by every CPU, seconds with one attempt.
pub const PUBLISHED: [(usize, f64, f64); 2] = [(16, 0.203_34, 0.089_39), (288, 1.3439, 0.749_16)];

/// Who finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    EveryCpu,
    BootCpu,
}

/// Instructions: of an attempt besides the crate's own probe, of the rest of a CPU's bring-up.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub attempt: u64,
    pub rest: u64,
}

/// What a run came to: attempts made, faults raised, virtual seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Came {
    pub attempts: u64,
    pub faults: u64,
    pub seconds: f64,
}

/// What the 16-CPU figures say an attempt and the rest cost, if one follows the other.
pub fn published_work() -> Work {
    let (cpus, every, once) = PUBLISHED[0];
    let attempts = (ATTEMPTS * cpus as u64) as f64;
    let attempt = (every - once) / (attempts - 1.0);
    let rest = (once - attempt) / cpus as f64;
    let instructions = |seconds: f64| (seconds * 1e12) as u64 / Costs::default().cached_instruction;
    Work {
        attempt: instructions(attempt),
        rest: instructions(rest),
    }
}

/// Boots a machine that refuses MTRR writes.
pub fn boot(cpus: usize, who: Who, work: Work) -> Came {
    let mut config = Config::new(cpus, 1);
    config.log = false;
    config.costs.slice = 10_000_000_000;
    config.faults = (0..cpus)
        .map(|cpu| Fault::new(cpu, At::EveryWrmsr, What::Gp))
        .collect();
    let machine = Machine::new(config);
    let sync: Box<CacheSync<MOST>> = Box::new(CacheSync::new());
    let (up, attempts) = (Word::new(0), AtomicU32::new(0));
    let probe = |cpu: &mut SimCpu<'_>| {
        attempts.fetch_add(1, Ordering::Relaxed);
        cpu.work(work.attempt);
        assert!(Platform::detect(cpu).mtrr_refused.is_some());
    };
    let start = machine.run(
        |boot| {
            let start = boot.machine().time(0);
            boot.work(work.attempt);
            attempts.fetch_add(1, Ordering::Relaxed);
            let _ = unsafe { sync.boot_init(boot, 0, Policy::DEFAULT) }.expect("first call");
            if who == Who::EveryCpu {
                (1..ATTEMPTS).for_each(|_| probe(boot));
            }
            boot.work(work.rest);
            for ap in 1..cpus {
                let place = Place::Apic(boot.machine().config().apic_id(ap));
                unsafe { sync.starting(boot, ap, place) }.expect("not running yet");
                boot.send_init_sipi(ap);
                while up.load(Ordering::Acquire) != ap as u32 {
                    boot.pause_while(&up, ap as u32 - 1, u64::MAX);
                }
            }
            start
        },
        |ap| {
            let me = ap.number();
            if who == Who::EveryCpu {
                (0..ATTEMPTS).for_each(|_| probe(ap));
            }
            let _ = sync.ap_online(ap, me, |_| {}).expect("declared");
            ap.work(work.rest);
            up.store(me as u32, Ordering::Release);
        },
        |_| {},
    );
    Came {
        attempts: u64::from(attempts.load(Ordering::Relaxed)),
        faults: (0..cpus).map(|cpu| machine.counters(cpu).wrmsr_fault).sum(),
        seconds: (machine.time(0) - start) as f64 / 1e12,
    }
}

/// Prints both ways side by side.
pub fn report() {
    println!(
        "One decision per platform: a machine that refuses MTRR writes, found out by every CPU ({ATTEMPTS}\n\
         attempts each, as published) or once, by the boot CPU. The published driver's cost of an attempt\n\
         and of the rest of bring-up is taken from the two 16-CPU figures; 288 CPUs are predicted, one CPU\n\
         after the other (the published machine did some of it at once).\n"
    );
    println!(
        "  {:<26} {:>5} {:>16} {:>14} {:>21} {:>7} {:>10}",
        "an attempt costs", "CPUs", "attempts", "faults", "virtual ms", "ratio", "published"
    );
    let ours = Work {
        attempt: 0,
        rest: 0,
    };
    let works = [
        ("this crate's probe alone", ours),
        ("the published driver's", published_work()),
    ];
    for (name, work) in works {
        for (cpus, published_every, published_once) in PUBLISHED {
            let every = boot(cpus, Who::EveryCpu, work);
            let once = boot(cpus, Who::BootCpu, work);
            println!(
                "  {name:<26} {cpus:>5} {:>16} {:>14} {:>21} {:>7.2} {:>10}",
                format!("{} -> {}", every.attempts, once.attempts),
                format!("{} -> {}", every.faults, once.faults),
                format!("{:.3} -> {:.3}", 1e3 * every.seconds, 1e3 * once.seconds),
                every.seconds / once.seconds,
                if work.attempt == 0 {
                    "-".into()
                } else {
                    format!("{:.2}", published_every / published_once)
                },
            );
        }
    }
}
