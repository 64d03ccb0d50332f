//! One machine, one firmware, one way of syncing.

use super::life::{Figures, Life, Method};
use super::ours::Ours;
use super::peers::{Peer, Shape};
use mtrr_pat::memtype::MemType;
use mtrr_pat::policy::{CacheFlush, Resync};
use mtrr_pat::sim::{Config, Machine, MtrrScope, S3, Scribble, Trampoline};

/// Who syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Early,
    Deferred,
    Peer(Shape),
}

/// Why all CPUs have to be brought in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The machine just woke; next to nothing is in the caches.
    Wake,
    /// The map changes while the machine runs, from uncachable to write-combining, so that nothing that
    /// was cacheable is taken away; every line of every cache is dirty.
    ChangeFullCaches,
    /// The same, from write-back to uncachable.
    TakeAwayFullCaches,
    /// The map is set to what it is.
    SameMap,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub config: Config,
    pub event: Event,
    pub left: Scribble,
    pub our_flush: CacheFlush,
    pub peer_flush: CacheFlush,
    /// How many CPUs this crate is built for; 0 for as many as there are.
    pub room: usize,
    /// All APs start at once.
    pub parallel: bool,
}

impl Case {
    /// A machine whose threads have registers of their own (the worse case for a rendezvous), a kernel whose trampoline turns caching
    /// on, and a firmware that brings nothing back: every register differs.
    pub fn new((cores, threads): (usize, usize)) -> Self {
        let mut config = Config::new(cores, threads);
        config.scope = MtrrScope::Thread;
        config.trampoline = Trampoline::EnablesCaching;
        config.log = false;
        config.timeline = true;
        if config.cpus() > 64 {
            config.quantum = 1_000_000;
        }
        Self {
            config,
            event: Event::Wake,
            left: Scribble::Reset,
            our_flush: CacheFlush::WhenNeeded,
            peer_flush: CacheFlush::Always,
            room: 0,
            parallel: false,
        }
    }

    pub fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }

    pub fn run(&self, who: Who) -> Figures {
        let cpus = self.config.cpus();
        let method: Box<dyn Method> = match who {
            Who::Early => self.ours(Resync::Early),
            Who::Deferred => self.ours(Resync::Deferred),
            Who::Peer(shape) => Box::new(Peer::new(shape, self.peer_flush, cpus)),
        };
        let life = Life::new(&*method, Machine::new(self.config.clone()));
        let life = life.in_parallel(self.parallel);
        match self.event {
            Event::Wake => life.resume(&S3::all(self.left.clone())),
            Event::ChangeFullCaches => life.change(0xd000_0000, MemType::WriteCombining),
            Event::TakeAwayFullCaches => life.change(0x4000_0000, MemType::Uncachable),
            Event::SameMap => life.same_map(),
        }
    }

    /// This crate, with room for as many CPUs as there are or a few more.
    fn ours(&self, resync: Resync) -> Box<dyn Method> {
        let flush = self.our_flush;
        match self.config.cpus().max(self.room) {
            ..=8 => Box::new(Ours::<8>::new(resync, flush)),
            9..=16 => Box::new(Ours::<16>::new(resync, flush)),
            17..=288 => Box::new(Ours::<288>::new(resync, flush)),
            _ => Box::new(Ours::<1024>::new(resync, flush)),
        }
    }
}
