//! This crate as a kernel uses it.

use super::life::Method;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{Bounds, CacheFlush, PatChoice, Policy, Resync};
use mtrr_pat::sim::SimCpu;
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::Place;

/// With room for `CPUS`: a kernel built for many more than there are pays for looking at their slots.
pub struct Ours<const CPUS: usize> {
    sync: Box<CacheSync<CPUS>>,
    policy: Policy,
}

impl<const CPUS: usize> Ours<CPUS> {
    pub fn new(resync: Resync, cache_flush: CacheFlush) -> Self {
        // Ticks are nanoseconds of virtual time: a minute each, so that nothing is cut short.
        const LONG: u64 = 60_000_000_000;
        let policy = Policy {
            resync,
            cache_flush,
            pat: PatChoice::Layout(Pat::LINUX),
            bounds: Bounds {
                gather: std::time::Duration::from_nanos(LONG),
                hold: std::time::Duration::from_nanos(LONG),
                finish: std::time::Duration::from_nanos(LONG),
            },
            ..Policy::DEFAULT
        };
        Self {
            sync: Box::new(CacheSync::new()),
            policy,
        }
    }
}

impl<const CPUS: usize> Method for Ours<CPUS> {
    fn boot(&self, boot: &mut SimCpu<'_>) {
        let outcome = unsafe { self.sync.boot_init(boot, 0, self.policy) };
        assert_eq!(outcome.expect("a first boot").error, None);
    }

    fn starting(&self, boot: &mut SimCpu<'_>, ap: usize) {
        let place = Place::Apic(boot.machine().config().apic_id(ap));
        unsafe { self.sync.starting(boot, ap, place) }.expect("nobody meets");
    }

    fn online(&self, ap: &mut SimCpu<'_>) {
        let (n, ipis) = (ap.number(), ap.ipis());
        let outcome = self.sync.ap_online(ap, n, |sibling| ipis.send(sibling));
        let _ = outcome.expect("it was declared");
    }

    fn attend(&self, cpu: &mut SimCpu<'_>) {
        let n = cpu.number();
        self.sync.hold_point(cpu, n).expect("nobody is stuck");
        self.sync.attend(cpu, n).expect("nobody is silent");
    }

    fn meet(&self, boot: &mut SimCpu<'_>) {
        let early = self.policy.resync == Resync::Early;
        if early && self.sync.report().out_of_sync().next().is_none() {
            return;
        }
        let ipis = boot.ipis();
        let summary = self.sync.resync(boot, 0, |ap| ipis.send(ap));
        assert_eq!(summary.expect("everybody comes").out_of_sync, 0);
    }

    fn suspend(&self, boot: &mut SimCpu<'_>) {
        self.sync.suspend(boot, 0).expect("nobody meets");
        for ap in 1..boot.machine().config().cpus() {
            unsafe { self.sync.offline(ap) }.expect("a number in range");
        }
    }

    fn wake(&self, boot: &mut SimCpu<'_>) {
        let outcome = unsafe { self.sync.boot_resume(boot, 0) }.expect("it was suspended");
        assert_eq!(outcome.error, None);
    }

    fn change(&self, boot: &mut SimCpu<'_>, want: &Snapshot) {
        let ipis = boot.ipis();
        let summary = unsafe { self.sync.change(boot, 0, want, |ap| ipis.send(ap)) };
        assert_eq!(summary.expect("everybody comes").out_of_sync, 0);
    }
}
