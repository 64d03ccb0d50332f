//! The gate, the hold, the start and the target under a model checker: every interleaving and every
//! stale read that release, acquire and full fences allow, of the code itself.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --profile loom --lib rendezvous::models
//! ```
//!
//! What must not happen at the same time is an access to a [`Ground`]: the checker objects to two
//! that are not ordered, whether or not they met in this run. What may come out is a set that each
//! model names in full, so a model that stops reaching a case fails too. Time is counted in polls:
//! a bound of 2 is "look three times, then give up", and the checker moves the other CPUs between
//! looks as it likes.

mod gate;
mod hold;
mod start;
mod target;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Counting};
use std::sync::{Arc, Mutex};

use loom::cell::UnsafeCell;

use super::peers::{Declared, Peers};
use super::slot::Slot;
use super::{Agenda, Attendance, CpuState, Gate, Late};
use crate::atomic::Word;
use crate::cpu::{CpuOps, CpuidWords, MsrFault};
use crate::error::Error;
use crate::policy::Ticks;
use crate::program::masked;
use crate::regs::MsrAddr;

/// A bound that does not pass.
const NEVER: u64 = u64::MAX;

/// Ticks in polls.
const fn polls(gather: u64, hold: u64, finish: u64) -> Ticks {
    Ticks {
        gather,
        hold,
        finish,
    }
}

/// Runs `model` in every way there is, at most `preemptions` times interrupted if given, and
/// returns the set of what it returned.
fn outcomes<T: Debug>(
    name: &str,
    preemptions: Option<usize>,
    model: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<String> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let runs = Arc::new(AtomicU64::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    // Either would end the search early and pass; the environment can set both.
    builder.max_duration = None;
    builder.max_permutations = None;
    builder.check({
        let (seen, runs) = (seen.clone(), runs.clone());
        move || {
            let outcome = format!("{:?}", model());
            runs.fetch_add(1, Counting::Relaxed);
            seen.lock().unwrap().insert(outcome);
        }
    });
    println!("{name}: {} runs", runs.load(Counting::Relaxed));
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(String::from).collect()
}

/// A CPU that has a clock, an interrupt flag and a TLB.
#[derive(Debug, Default)]
struct Cpu {
    polls: u64,
    masked: bool,
    /// The memory types of its core, where a model watches the TLB.
    types: Option<Arc<Word>>,
    /// The types the TLB was last filled with.
    tlb: u32,
    /// Polls after which the rest of a run is no longer branched on, but finished fairly. Needed
    /// where two CPUs wait for a third: the checker would let them take turns for ever.
    branching: Option<(u64, Arc<AtomicBool>)>,
}

unsafe impl CpuOps for Cpu {
    fn rdmsr(&mut self, _: MsrAddr) -> Result<u64, MsrFault> {
        unreachable!("the rendezvous knows no registers")
    }
    unsafe fn wrmsr(&mut self, _: MsrAddr, _: u64) -> Result<(), MsrFault> {
        unreachable!("the rendezvous knows no registers")
    }
    fn read_cr0(&mut self) -> u64 {
        unreachable!("the rendezvous leaves CR0 alone")
    }
    unsafe fn write_cr0(&mut self, _: u64) {
        unreachable!("the rendezvous leaves CR0 alone")
    }
    fn read_cr3(&mut self) -> u64 {
        unreachable!("global translations must go too")
    }
    unsafe fn write_cr3(&mut self, _: u64) {
        unreachable!("global translations must go too")
    }
    fn read_cr4(&mut self) -> u64 {
        0
    }
    unsafe fn write_cr4(&mut self, _: u64) {
        if let Some(types) = &self.types {
            self.tlb = types.load(crate::atomic::Ordering::Relaxed);
        }
    }
    fn wbinvd(&mut self) {
        unreachable!("the rendezvous flushes no cache")
    }
    fn mfence(&mut self) {
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }
    fn interrupts_enabled(&mut self) -> bool {
        !self.masked
    }
    fn cli(&mut self) {
        self.masked = true;
    }
    fn sti(&mut self) {
        self.masked = false;
    }
    fn pause_while(&mut self, _: &Word, _: u32, _: u64) {
        self.polls += 1;
        if let Some((polls, branching)) = &self.branching
            && self.polls >= *polls
            && branching.swap(false, Counting::Relaxed)
        {
            loom::stop_exploring();
        }
        loom::thread::yield_now();
    }
    fn rdtsc(&mut self) -> u64 {
        self.polls
    }
    fn cpuid(&self, _: u32, _: u32) -> CpuidWords {
        unreachable!("the rendezvous asks nothing")
    }
}

/// Something that CPUs stand on while they run, and that one CPU takes from under them.
#[derive(Debug)]
struct Ground(UnsafeCell<()>);

// SAFETY: nothing is in the cell and nobody goes through the pointers: accesses are only recorded.
unsafe impl Sync for Ground {}

impl Ground {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    /// Stood on by a CPU that runs.
    fn used(&self) {
        self.0.with(|_| ());
    }

    /// Taken away and given back, by a CPU that made sure that nobody stands on it.
    fn taken(&self) {
        self.0.with_mut(|_| ());
    }
}

/// `CPUS` CPUs, and what they share.
#[derive(Debug)]
struct Machine<const CPUS: usize> {
    gate: Gate,
    declared: Declared,
    slots: [Slot; CPUS],
    /// The map all CPUs run on: taken by a commit.
    map: Ground,
    /// The caches of each core, by the core of a CPU: taken by a window.
    caches: [Ground; CPUS],
    cores: [usize; CPUS],
}

impl<const CPUS: usize> Machine<CPUS> {
    /// All CPUs run; `cores` says on which core.
    fn running(cores: [usize; CPUS]) -> Arc<Self> {
        Arc::new(Self::knowing(cores))
    }

    fn knowing(cores: [usize; CPUS]) -> Self {
        let slots: [Slot; CPUS] = std::array::from_fn(|_| Slot::new());
        let declared = Declared::new();
        declared.note(CPUS - 1);
        for (number, slot) in slots.iter().enumerate() {
            let next = (1..=CPUS)
                .map(|step| (number + step) % CPUS)
                .find(|next| cores[*next] == cores[number])
                .unwrap();
            let next = next as u32;
            slot.handshake.next.store(next, super::Ordering::Relaxed);
            slot.set_state(CpuState::Running);
        }
        Self {
            gate: Gate::new(),
            declared,
            slots,
            map: Ground::new(),
            caches: std::array::from_fn(|_| Ground::new()),
            cores,
        }
    }

    /// The same, but nobody knows which CPUs share a core: each is alone in its ring.
    fn of_unknown_places(cores: [usize; CPUS]) -> Self {
        let machine = Self::knowing(cores);
        for (number, slot) in machine.slots.iter().enumerate() {
            let next = &slot.handshake.next;
            next.store(number as u32, super::Ordering::Relaxed);
        }
        machine
    }

    fn peers<'a>(&'a self, me: usize, bounds: &'a Ticks) -> Peers<'a> {
        Peers {
            slots: &self.slots,
            declared: &self.declared,
            me,
            bounds,
        }
    }

    fn caches(&self, number: usize) -> &Ground {
        &self.caches[self.cores[number]]
    }

    /// CPU `number` runs kernel code.
    fn runs(&self, number: usize) {
        self.map.used();
        self.caches(number).used();
    }

    /// CPU `number`'s step in a rendezvous.
    fn step(&self, cpu: &mut Cpu, number: usize) {
        assert!(cpu.masked);
        self.map.used();
        self.caches(number).taken();
    }

    /// Leads a rendezvous; returns what came of it, and whether the leader did its step.
    fn lead(
        &self,
        cpu: &mut Cpu,
        me: usize,
        bounds: Ticks,
        kick: impl FnMut(usize),
    ) -> (Result<Late, Error>, bool) {
        let mut stepped = false;
        let result = self.gate.lead(
            self.peers(me, &bounds),
            cpu,
            Agenda {
                work: 1,
                kick,
                commit: || self.map.taken(),
                step: |cpu: &mut Cpu, turn: Result<(), Error>| {
                    if turn.is_ok() {
                        self.step(cpu, me);
                        stepped = true;
                    }
                },
                close: || (),
            },
        );
        assert!(!cpu.masked);
        (result, stepped)
    }

    /// Attends a rendezvous; its step ran if and only if that says so.
    fn attend(&self, cpu: &mut Cpu, me: usize, bounds: Ticks) -> Result<Attendance, Error> {
        let peers = self.peers(me, &bounds);
        let Some(number) = self.gate.called(peers)? else {
            return Ok(Attendance::NotNow);
        };
        let mut stepped = false;
        let attended = masked(cpu, |cpu| {
            self.gate.attend(peers, cpu, number, |cpu, turn| {
                if turn.is_ok() {
                    self.step(cpu, me);
                    stepped = true;
                }
            })
        });
        assert!(!cpu.masked);
        assert_eq!(stepped, attended == Ok(Attendance::Done));
        attended
    }
}
