//! Accesses of the crate's shared words: scheduling points, cache lines, rules.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::cpu::{SimCpu, Spawn};
use super::log::Op;
use super::sched::Shared;
use super::state::State;
use crate::atomic::Touch;

/// Which CPU of which machine a thread simulates.
#[derive(Clone)]
struct Here {
    shared: Arc<Shared>,
    cpu: usize,
    /// The run; lives at least as long as the [`Current`] that put it here.
    spawner: NonNull<dyn Spawn>,
}

thread_local! {
    static CURRENT: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// Makes this thread a CPU until dropped.
pub(super) struct Current<'run> {
    before: Option<Here>,
    _spawner: &'run dyn Spawn,
}

impl<'run> Current<'run> {
    pub(super) fn set(shared: &Arc<Shared>, cpu: usize, spawner: &'run dyn Spawn) -> Self {
        crate::atomic::watch(shared_touch);
        let pointer: NonNull<dyn Spawn + 'run> = NonNull::from(spawner);
        // SAFETY: only the lifetime is forgotten. The pointer is reachable through CURRENT alone,
        // and dropping the value made here, which borrows the spawner for 'run, removes it.
        let pointer = unsafe {
            core::mem::transmute::<NonNull<dyn Spawn + 'run>, NonNull<dyn Spawn + 'static>>(pointer)
        };
        let here = Here {
            shared: Arc::clone(shared),
            cpu,
            spawner: pointer,
        };
        Self {
            before: CURRENT.with(|current| current.replace(Some(here))),
            _spawner: spawner,
        }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let before = self.before.take();
        CURRENT.with(|current| *current.borrow_mut() = before);
    }
}

/// Told by every access of the crate's shared words, before it happens. Threads that are no
/// simulated CPU pass.
fn shared_touch(how: Touch, word: *const u8) {
    let current = CURRENT.try_with(|current| current.borrow().clone());
    let Ok(Some(here)) = current else {
        return;
    };
    if std::thread::panicking() {
        return;
    }
    if here.shared.interrupt_due(here.cpu) {
        // SAFETY: this thread's `Current` is alive, since CURRENT still holds what it put there,
        // and it borrows the spawner.
        let spawner: &dyn Spawn = unsafe { here.spawner.as_ref() };
        let mut cpu = SimCpu {
            shared: &here.shared,
            number: here.cpu,
            spawner,
        };
        cpu.take_interrupts();
    }
    here.shared.touch(here.cpu, how, word.addr());
}

impl Shared {
    /// Whether an interrupt waits for nothing but this CPU's next instruction.
    fn interrupt_due(&self, cpu: usize) -> bool {
        let state = self.lock();
        state.cpus[cpu].pending && state.cpus[cpu].regs.interrupts
    }

    /// One access of a shared word.
    fn touch(&self, cpu: usize, how: Touch, word: usize) {
        let mut state = self.enter(cpu);
        let costs = state.config.costs;
        match how {
            Touch::Load => state.record(cpu, Op::SharedLoad),
            Touch::Store => state.record(cpu, Op::SharedStore),
            Touch::Locked => state.record(cpu, Op::SharedLocked),
        }
        state.check_touch(cpu, how);
        state.line_access(cpu, how, word);
        if matches!(how, Touch::Store | Touch::Locked) {
            if state.free() {
                state.cpus[cpu].storing = true;
            } else {
                let at = state.cpus[cpu].time + costs.visible;
                state.wake_word(word, at);
            }
        }
    }
}

impl State {
    /// Lets the time of one access of a shared word pass.
    fn line_access(&mut self, cpu: usize, how: Touch, word: usize) {
        let costs = self.config.costs;
        let line = if costs.false_sharing {
            word >> 6
        } else {
            word >> 2
        };
        let hit = self.lines.hits(line, cpu, how);
        let base = if how == Touch::Locked {
            costs.locked
        } else {
            costs.shared_access
        };
        let pace = self.pace(cpu);
        let mut cost = base + costs.instructions(1, pace);
        if self.cpus[cpu].uncached {
            cost += costs.access(false, pace);
        } else if !hit {
            let now = self.cpus[cpu].time;
            let owner = self.lines.owners.entry(line).or_default();
            owner.busy = owner.busy.max(now) + costs.visible;
            cost += owner.busy - now;
        }
        self.spend(cpu, cost);
    }
}
