//! Per-CPU words that share cache lines, against words with 128 bytes of their own.

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::sim::{Config, Machine, SimCpu};

/// Stores each CPU makes to its own word.
const STORES: u32 = 40;
/// When all CPUs begin, in picoseconds: all are up by then.
const BEGIN: u64 = 200_000_000_000;
const WORDS: usize = 32;

#[repr(align(128))]
struct Line([Word; WORDS]);

/// How the words lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// 16 in a line of 64 bytes.
    Packed,
    /// One in 128 bytes.
    Apart,
}

/// Virtual microseconds until the last of `cpus` CPUs has made its stores, `work` instructions
/// before each.
pub fn time(cpus: usize, layout: Layout, work: u64) -> f64 {
    let mut config = Config::new(cpus, 1);
    config.log = false;
    config.costs.false_sharing = true;
    let machine = Machine::new(config);
    let lines: Vec<Line> = (0..cpus)
        .map(|_| Line([const { Word::new(0) }; WORDS]))
        .collect();
    let word = |cpu: usize| match layout {
        Layout::Packed => &lines[cpu / WORDS].0[cpu % WORDS],
        Layout::Apart => &lines[cpu].0[0],
    };
    let code = |cpu: &mut SimCpu<'_>| {
        let mine = word(cpu.number());
        cpu.wait_until(BEGIN);
        for n in 0..STORES {
            cpu.work(work);
            mine.store(n, Ordering::Release);
        }
    };
    machine.run(
        |boot| {
            (1..cpus).for_each(|ap| boot.send_init_sipi(ap));
            code(boot);
        },
        code,
        |_| {},
    );
    (machine.now() - BEGIN) as f64 / 1e6
}

/// Prints both layouts side by side.
pub fn report() {
    const CPUS: usize = 288;
    println!(
        "False sharing: {CPUS} CPUs, {STORES} stores each to a word of their own, some work before each store.\n\
         Published, same number of CPUs: two unrelated words in one line made a whole benchmark 14.1 % slower.\n\
         (Two real threads: cargo bench --bench host -- sharing.)\n"
    );
    println!(
        "  {:>24} {:>14} {:>14} {:>9}",
        "instructions per store", "packed, us", "apart, us", "slower"
    );
    for work in [100, 1_000, 3_000, 10_000] {
        let packed = time(CPUS, Layout::Packed, work);
        let apart = time(CPUS, Layout::Apart, work);
        let slower = 100.0 * (packed / apart - 1.0);
        println!("  {work:>24} {packed:>14.1} {apart:>14.1} {slower:>7.1} %");
    }
}
