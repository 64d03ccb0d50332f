//! `bench=sync`: how long it takes to bring APs in line, against a kernel that always goes through the whole procedure, one CPU
//! after another under one lock (`bench/peer.rs`).
//!
//! Both sides run in turns on the same CPUs of the same boot. An emulator's cycles say nothing of hardware, and WBINVD costs it
//! nothing: only the ratios mean something, and the counts. APs sleep between their turns, and do in the kick's wake what the boot
//! CPU has put into their slot.

mod count;
mod peer;

use crate::caching::{self, BOOT};
use crate::options::Scribble;
use crate::percpu::{self, MAX_CPUS};
use crate::rounds::Verdict;
use crate::{apic, clock, println, scribble};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use count::Counting;
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::cpu::native::NativeCpu;
use mtrr_pat::policy::{Policy, Resync};
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::Place;

/// Turns of each side on one AP, and rendezvous.
const TURNS: usize = 64;
const IN_A_ROW: usize = 8;
const RENDEZVOUSS: usize = 9;
/// APs that take turns alone.
const MOST_APS: usize = 3;

static EARLY: CacheSync<MAX_CPUS> = CacheSync::new();
static DEFERRED: CacheSync<MAX_CPUS> = CacheSync::new();
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Whether the CPU that counts was spoiled before.
static SPOILED: AtomicBool = AtomicBool::new(false);

/// What the boot CPU asks of one AP, and its answer.
#[repr(C, align(128))]
struct Slot {
    /// A [`Turn`]; 0 when it is done.
    turn: AtomicU32,
    ticks: AtomicU64,
}

static SLOTS: [Slot; MAX_CPUS] = [const {
    Slot {
        turn: AtomicU32::new(0),
        ticks: AtomicU64::new(0),
    }
}; MAX_CPUS];

#[derive(Clone, Copy)]
#[repr(u32)]
enum Turn {
    /// Zero all MTRRs, as QEMU's own S3 leaves them.
    Spoil = 1,
    /// This crate, early.
    Early,
    /// The whole procedure, as a kernel that never compares first.
    Peer,
    /// This crate, waiting for the rendezvous.
    CheckIn,
    /// The peer's rendezvous.
    PeerRendezvous,
    /// The same two again, counted.
    CountEarly,
    CountPeer,
}

fn this_cpu() -> NativeCpu {
    // SAFETY: as in `caching.rs`; its own state is not used while the bench runs.
    unsafe { NativeCpu::claim_catching() }
}

/// Whether the command line asks for this.
pub fn wanted(line: &str) -> bool {
    line.split_ascii_whitespace()
        .any(|word| word == "bench=sync")
}

/// AP `n`, whenever an interrupt has woken it.
pub fn step(n: usize) {
    if !RUNNING.load(Acquire) {
        return;
    }
    let slot = &SLOTS[n];
    let turn = slot.turn.load(Acquire);
    if turn != 0 {
        slot.ticks.store(take(turn, n), Relaxed);
        slot.turn.store(0, Release); // pairs with `wait`
    }
    // An error would be this CPU arriving twice; the boot CPU's summary shows it.
    let _ = DEFERRED.attend(&mut this_cpu(), n);
}

/// One turn on AP `n`: how long it took.
fn take(turn: u32, n: usize) -> u64 {
    let cpu = &mut this_cpu();
    let state = if SPOILED.load(Relaxed) {
        "differs"
    } else {
        "in-sync"
    };
    let start = clock::now();
    if turn == Turn::Spoil as u32 {
        scribble::apply(Scribble::Zero, n, caching::wanted());
    } else if turn == Turn::Early as u32 {
        online(&EARLY, cpu, n);
    } else if turn == Turn::Peer as u32 {
        peer::program_alone(cpu);
    } else if turn == Turn::CheckIn as u32 {
        online(&DEFERRED, cpu, n);
    } else if turn == Turn::PeerRendezvous as u32 {
        peer::attend(cpu);
    } else if turn == Turn::CountEarly as u32 {
        let mut counting = Counting::new(cpu);
        online(&EARLY, &mut counting, n);
        println!("BENCH ops state={state} who=ours {}", counting.counts);
    } else if turn == Turn::CountPeer as u32 {
        let mut counting = Counting::new(cpu);
        peer::program_alone(&mut counting);
        println!("BENCH ops state={state} who=peer {}", counting.counts);
    }
    clock::now() - start
}

fn online(sync: &CacheSync<MAX_CPUS>, cpu: &mut impl CpuOps, n: usize) {
    if let Err(error) = sync.ap_online(cpu, n, apic::kick) {
        panic!("CPU {n}: {error}");
    }
}

fn ask(n: usize, turn: Turn) {
    SLOTS[n].turn.store(turn as u32, Release); // pairs with `step`
    apic::kick(n);
}

/// Waits until AP `n` has had its turn: how long it took.
fn wait(n: usize) -> u64 {
    while SLOTS[n].turn.load(Acquire) != 0 {
        core::hint::spin_loop();
    }
    SLOTS[n].ticks.load(Relaxed)
}

fn turn(n: usize, turn: Turn) -> u64 {
    ask(n, turn);
    wait(n)
}

/// Makes AP `n` one that is coming up, as far as `sync` knows.
fn declare(sync: &CacheSync<MAX_CPUS>, n: usize) {
    let cpu = &mut this_cpu();
    // SAFETY: until `Turn` says otherwise it does nothing but look for its next one.
    let gone = unsafe { sync.offline(n) };
    let place = Place::Apic(percpu::apic_id(n));
    // SAFETY: that is where it sits.
    let declared = gone.and_then(|()| unsafe { sync.starting(cpu, n, place) });
    if let Err(error) = declared {
        panic!("CPU {n}: {error}");
    }
}

/// Boot CPU, when all APs are up and in line.
pub fn run(policy: Policy, verdict: &mut Verdict) {
    for (sync, resync) in [(&EARLY, Resync::Early), (&DEFERRED, Resync::Deferred)] {
        let policy = Policy { resync, ..policy };
        // SAFETY: the APs do nothing but look for their next turn; the PAT is the one in force.
        if let Err(error) = unsafe { sync.boot_init(&mut this_cpu(), BOOT, policy) } {
            panic!("boot_init: {error}");
        }
    }
    peer::remember();
    RUNNING.store(true, Release);
    for (state, spoil) in [("in-sync", false), ("differs", true)] {
        count(spoil);
        alone(state, spoil);
    }
    for (state, spoil) in [("in-sync", false), ("differs", true)] {
        rendezvous(state, spoil);
    }
    RUNNING.store(false, Release);
    verdict.compare(0, None);
}

fn prepare(n: usize, spoil: bool) {
    if spoil {
        turn(n, Turn::Spoil);
    }
}

fn count(spoil: bool) {
    SPOILED.store(spoil, Relaxed);
    for who in [Turn::CountEarly, Turn::CountPeer] {
        declare(&EARLY, 1);
        prepare(1, spoil);
        turn(1, who);
    }
}

/// One AP at a time; each side has a few turns in a row, so that none finds the TLB as the other's flushes left it.
fn alone(state: &str, spoil: bool) {
    let (mut ours, mut peer) = ([0; TURNS * MOST_APS], [0; TURNS * MOST_APS]);
    let turns = TURNS * (percpu::count() - 1).min(MOST_APS);
    let blocks = ours[..turns]
        .chunks_mut(IN_A_ROW)
        .zip(peer[..turns].chunks_mut(IN_A_ROW));
    for (i, (ours, peer)) in blocks.enumerate() {
        let n = 1 + i * IN_A_ROW / TURNS;
        for ticks in ours {
            declare(&EARLY, n);
            prepare(n, spoil);
            *ticks = turn(n, Turn::Early);
        }
        for ticks in peer {
            prepare(n, spoil);
            *ticks = turn(n, Turn::Peer);
        }
    }
    report("alone", state, &mut ours[..turns], &mut peer[..turns]);
}

/// Everybody together, both sides in turns: what the boot CPU waits for.
fn rendezvous(state: &str, spoil: bool) {
    let (mut ours, mut peer) = ([0; RENDEZVOUSS], [0; RENDEZVOUSS]);
    let many = percpu::count() > 16;
    let rendezvous = if many { 3 } else { RENDEZVOUSS };
    for i in 0..rendezvous {
        everybody(|n| {
            prepare(n, spoil);
            declare(&DEFERRED, n);
            turn(n, Turn::CheckIn);
        });
        let start = clock::now();
        let met = DEFERRED.resync(&mut this_cpu(), BOOT, apic::kick);
        ours[i] = clock::now() - start;
        if !met.is_ok_and(|summary| summary.out_of_sync == 0) {
            println!("FAILED {met:?}");
        }
        everybody(|n| prepare(n, spoil));
        let start = clock::now();
        everybody(|n| ask(n, Turn::PeerRendezvous));
        peer::lead(&mut this_cpu(), percpu::count() as u32);
        peer[i] = clock::now() - start;
        everybody(|n| _ = wait(n));
    }
    report(
        "rendezvous",
        state,
        &mut ours[..rendezvous],
        &mut peer[..rendezvous],
    );
}

fn everybody(each: impl FnMut(usize)) {
    (1..percpu::count()).for_each(each);
}

fn report(what: &str, state: &str, ours: &mut [u64], peer: &mut [u64]) {
    ours.sort_unstable();
    peer.sort_unstable();
    let middle = ours.len() / 2;
    println!(
        "BENCH ticks what={what} state={state} turns={} ours_median={} ours_least={} peer_median={} peer_least={}",
        ours.len(),
        ours[middle],
        ours[0],
        peer[middle],
        peer[0]
    );
}
