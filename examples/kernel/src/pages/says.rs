//! What the pages say of an account, a line at a time.

use crate::account::{ASLEEP, AWAKE, Account};
use crate::percpu::MAX_CPUS;
use crate::racy::Racy;
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::snapshot::Snapshot;
use raw_cpuid::CpuId;

/// Runs of the map that are listed.
const MOST_RUNS: usize = 100;

pub fn when(account: &Account) -> &'static str {
    if account.round == 0 {
        "at boot"
    } else {
        "after the sleep"
    }
}

/// What the CPUs came with, by number, up to the first of which it was not kept.
pub fn snapshots(account: &Account) -> &'static [Snapshot] {
    static ALL: Racy<heapless::Vec<Snapshot, MAX_CPUS>> = Racy::new(heapless::Vec::new());
    // SAFETY: only the boot CPU writes pages, one book at a time.
    let all = unsafe { &mut *ALL.get() };
    all.clear();
    all.extend((0..account.cpus()).map_while(|n| account.snapshot_before(n)));
    all
}

pub fn overview(
    account: &Account,
    errors: usize,
    restarted: bool,
    add: &mut dyn FnMut(core::fmt::Arguments),
) {
    let cpus = account.cpus();
    let name = CpuId::new().get_processor_brand_string();
    let name = name
        .as_ref()
        .map_or("a processor without a name", |name| name.as_str().trim());
    add(format_args!(
        "mtrr-pat {}: {cpus} CPUs, {name}",
        env!("CARGO_PKG_VERSION")
    ));
    add(format_args!(
        "{} address bits, {} variable ranges",
        account.bits().get(),
        account.now.pair_count()
    ));
    add(format_args!(""));
    if restarted {
        add(format_args!(
            "This is what was found before the machine restarted."
        ));
    }
    match account.stage {
        ASLEEP => {
            return add(format_args!(
                "The machine went to sleep and did not come back to this program: it had to be restarted by hand. Nothing is known of what the firmware did."
            ));
        }
        AWAKE => {
            return add(format_args!(
                "The machine woke up, and this program did not come to its end: it stopped, or had to be restarted by hand, while CPUs were started."
            ));
        }
        _ => {}
    }
    let (lost, losers) = (account.lost, account.losers);
    match (lost, account.round) {
        (0, _) => add(format_args!(
            "Every CPU came {} with the right memory types.",
            when(account)
        )),
        (_, 0) => add(format_args!(
            "At boot {lost} registers on {losers} CPUs were not as all CPUs must have them (this program's own PAT included)."
        )),
        _ => add(format_args!(
            "The sleep lost {lost} registers on {losers} CPUs: memory would have had wrong types there."
        )),
    }
    match account.wrong {
        0 => add(format_args!(
            "Now all of them are right, read again on each CPU: {}",
            account.now
        )),
        wrong => add(format_args!(
            "STILL WRONG: {wrong} registers or steps. That is a bug of this program: please report it."
        )),
    }
    if errors != 0 {
        add(format_args!(""));
        add(format_args!(
            "Faults of the firmware: {errors}, on the next page."
        ));
    }
}

pub fn cpus(account: &Account, add: &mut dyn FnMut(core::fmt::Arguments)) {
    add(format_args!(
        "As they came {}, and what was wrong with it:",
        when(account)
    ));
    for (registers, members) in account.states() {
        add(format_args!("CPU {members}: {registers}"));
        add(format_args!("  wrong: {}", registers.diff(&account.now)));
    }
    if account.others() != 0 {
        add(format_args!(
            "{} more CPUs, with more different states than are kept",
            account.others()
        ));
    }
    add(format_args!(""));
    add(format_args!("Since then, all: {}", account.now));
}

pub fn map(account: &Account, add: &mut dyn FnMut(core::fmt::Arguments)) {
    let now = account.snapshot(&account.now);
    let map = MtrrMap::new(&now);
    for run in map.runs().take(MOST_RUNS) {
        add(format_args!("{run}"));
    }
    if map.runs().nth(MOST_RUNS).is_some() {
        add(format_args!("and more"));
    }
}
