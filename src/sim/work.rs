//! What a kernel does on a simulated CPU besides privileged instructions.

use std::sync::Arc;

use super::check::Rule;
use super::cpu::SimCpu;
use super::fault::{At, What};
use super::firmware::S3;
use super::log::Op;
use super::sched::Shared;
use super::state::{Life, State, Status};
use crate::memtype::PatType;

impl<'run> SimCpu<'run> {
    /// Executes this many instructions of kernel code.
    pub fn work(&mut self, instructions: u64) {
        let mut left = instructions;
        loop {
            self.take_interrupts();
            let mut state = self.shared.enter(self.number);
            let done = state.work_slice(self.number, left);
            left -= done;
            if left == 0 {
                return;
            }
        }
    }

    /// A load from an address.
    pub fn load(&mut self, address: u64) {
        self.access(Op::Load(address), address);
    }

    /// A store to an address.
    pub fn store(&mut self, address: u64) {
        self.access(Op::Store(address), address);
    }

    fn access(&mut self, op: Op, address: u64) {
        self.take_interrupts();
        let mut state = self.shared.enter(self.number);
        state.access(self.number, op, address);
    }

    /// Idles until this moment of virtual time (picoseconds), interrupts taken at its end.
    pub fn wait_until(&mut self, time: u64) {
        let state = self.shared.enter(self.number);
        let left = time.saturating_sub(state.cpus[self.number].time);
        drop(self.shared.lose(state, self.number, left));
        self.take_interrupts();
    }

    /// HLT until an interrupt was taken: `true`. `false` when the boot CPU's code has returned, so
    /// that no interrupt will come. With interrupts masked it sleeps until then.
    pub fn halt_until_ipi(&mut self) -> bool {
        self.take_interrupts();
        let mut state = self.shared.enter(self.number);
        state.record(self.number, Op::Halt);
        let woken = self.shared.wait_interrupt(state, self.number);
        self.take_interrupts();
        woken
    }

    /// Sends an interrupt to a CPU. It is taken there when interrupts are enabled.
    ///
    /// # Panics
    /// When there is no such CPU.
    pub fn send_ipi(&mut self, to: usize) {
        self.take_interrupts();
        self.ipis().send(to);
    }

    /// This CPU's interrupt controller, for code that has lent the CPU itself away: a kick callback.
    #[must_use]
    pub const fn ipis(&self) -> Ipis<'run> {
        Ipis {
            shared: self.shared,
            number: self.number,
        }
    }

    /// Sends CPU `to` an INIT alone: it executes nothing any more, whatever it was doing, and waits for
    /// a SIPI. For a CPU that is late, stuck or unplugged, before it is declared offline.
    pub fn send_init(&mut self, to: usize) {
        let number = self.number;
        self.take_interrupts();
        let mut state = self.shared.enter(number);
        assert!(to < state.cpus.len() && to != number, "no AP {to}");
        state.record(number, Op::Init(to));
        state.charge(number, 0);
        let now = state.cpus[number].time;
        let mut state = self.shared.kill_and_wait(state, &[to], now);
        state.cpus[to].life = Life::default();
    }

    /// Sends INIT and SIPI to a CPU, which then runs the AP closure from its beginning. A CPU that
    /// was running (or stuck) is reset first, wherever it was.
    ///
    /// # Panics
    /// When there is no such CPU, or it is this one.
    pub fn send_init_sipi(&mut self, to: usize) {
        let number = self.number;
        self.take_interrupts();
        let mut state = self.shared.enter(number);
        assert!(to < state.cpus.len() && to != number, "no AP {to}");
        state.check_sibling(number, "SIPI");
        state.check_kick(number, to);
        state.record(number, Op::Sipi(to));
        state.charge(number, 0);
        let now = state.cpus[number].time;
        let mut state = self.shared.kill_and_wait(state, &[to], now);
        let Some(late) = state.start_delay(to) else {
            return;
        };
        let at = state.cpus[number].time + state.config.costs.sipi + late;
        state.cpus[to].life = Life::default();
        state.cpus[to].time = state.cpus[to].time.max(at);
        state.init(to);
        if state.free() && late > 0 {
            state.sleeps_until(to, at);
        } else {
            state.make_ready(to, at);
        }
        let core = state.cpus[to].core;
        state.refresh(core);
        let handle = self.spawner.start(to);
        state.cpus[to].handle = Some(handle);
    }

    /// Suspends to RAM and wakes again: every register and cache is lost, and firmware brings back
    /// what the profile says. The APs must be off or halted; they are off afterwards.
    /// Free-running ones are given a second of virtual time to get there. The boot CPU wakes with
    /// interrupts masked.
    ///
    /// # Panics
    /// On another CPU than the boot CPU.
    pub fn s3(&mut self, profile: &S3) {
        assert!(self.number == 0, "only the boot CPU suspends the machine");
        self.take_interrupts();
        let mut state = self.shared.enter(0);
        let others: Vec<usize> = (1..state.cpus.len()).collect();
        state = self.shared.settle(state);
        for &n in &others {
            if state.cpus[n].runs() {
                let text = format!("it was {:?}", state.cpus[n].status);
                state.violate(n, Rule::SuspendedWhileRunning, text);
            }
        }
        let now = state.cpus[0].time;
        let mut state = self.shared.kill_and_wait(state, &others, now);
        state.record(0, Op::S3);
        let cost = state.config.costs.s3;
        state = self.shared.lose(state, 0, cost);
        state.round += 1;
        state.cpus[0].life = Life::default();
        state.lose_and_restore(profile);
    }

    /// The pages this CPU holds in its TLB under a type its registers no longer give: address,
    /// type held, type now.
    #[must_use]
    pub fn stale_entries(&self) -> Vec<(u64, PatType, PatType)> {
        self.shared.lock().stale(self.number)
    }

    /// What runs before the AP closure.
    pub(super) fn start(&mut self) {
        let instructions = {
            let mut state = self.shared.enter(self.number);
            state.record(self.number, Op::Start);
            state.config.costs.start_instructions
        };
        self.work_before_kernel(instructions);
    }

    fn work_before_kernel(&mut self, instructions: u64) {
        let mut state = self.shared.enter(self.number);
        state.check_sibling(self.number, "start-up code");
        let pace = state.pace(self.number);
        let cost = state.config.costs.instructions(instructions, pace);
        state.spend(self.number, cost);
        state.cpus[self.number].working = true;
    }

    /// What runs after it.
    pub(super) fn end(&mut self) {
        let mut state = self.shared.enter(self.number);
        state.record(self.number, Op::End);
    }
}

impl State {
    /// How late a CPU follows its SIPI; `None` when it never does.
    fn start_delay(&self, cpu: usize) -> Option<u64> {
        let mut late = 0;
        for fault in &self.config.faults {
            let now = fault.round.is_none_or(|round| round == self.round);
            if fault.cpu == cpu && fault.at == At::Start && now {
                match fault.what {
                    What::Stuck => return None,
                    What::Delay(time) => late += time,
                    _ => {}
                }
            }
        }
        Some(late)
    }

    fn check_work(&mut self, cpu: usize, what: &str) {
        self.check_sibling(cpu, what);
        if self.cpus[cpu].reset_cd {
            self.cpus[cpu].counters.work_with_reset_cd += 1;
        }
    }

    /// The type a kernel access is made with; using a stale entry breaks a rule.
    fn kernel_access(&mut self, cpu: usize, address: u64) -> PatType {
        let (held, refill) = self.translate(cpu, address);
        self.spend(cpu, refill);
        if refill == 0 {
            let slot = self.cpus[cpu]
                .tlb
                .entries
                .get(&(address >> 12))
                .map_or(0, |entry| entry.slot);
            let now = self.type_now(cpu, address, slot);
            if held != now {
                let text = format!("{address:#x} used as {}, is {}", held.short(), now.short());
                self.violate(cpu, Rule::StaleTlb, text);
            }
        }
        held
    }

    /// Does as much of `left` instructions as fits one slice of time.
    fn work_slice(&mut self, cpu: usize, left: u64) -> u64 {
        self.check_work(cpu, "work");
        let code = self.config.code;
        self.kernel_access(cpu, code);
        let pace = self.pace(cpu);
        let costs = self.config.costs;
        let each = costs.instructions(1, pace).max(1);
        let count = left.min((costs.slice / each).max(1));
        self.record(cpu, Op::Work(count));
        if self.cpus[cpu].uncached {
            self.cpus[cpu].counters.uncached_work += count;
        } else {
            self.dirty(cpu, count.saturating_mul(costs.dirty_per_1000) / 1000);
        }
        self.spend(cpu, costs.instructions(count, pace));
        count
    }

    fn access(&mut self, cpu: usize, op: Op, address: u64) {
        self.check_work(cpu, "a data access");
        let held = self.kernel_access(cpu, address);
        self.record(cpu, op);
        let core = self.cpus[cpu].core;
        let cached = held.is_cacheable() && !self.core_cache_disabled(core);
        self.cached_access(cpu, address, held, matches!(op, Op::Store(_)));
        if cached && matches!(op, Op::Store(_)) && held == PatType::WriteBack {
            self.dirty(cpu, 1);
        }
        let pace = self.pace(cpu);
        let cost = self.config.costs.access(cached, pace) + self.config.costs.instructions(1, pace);
        self.spend(cpu, cost);
        self.cpus[cpu].working = true;
    }
}

/// Sends interrupts from one CPU.
#[derive(Clone, Copy)]
pub struct Ipis<'run> {
    shared: &'run Arc<Shared>,
    number: usize,
}

impl core::fmt::Debug for Ipis<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Ipis({})", self.number)
    }
}

impl Ipis<'_> {
    /// MFENCE and LFENCE, as a kernel executes them before it writes an x2APIC's ICR: the stores so far
    /// are visible before an interrupt sent next.
    pub fn fence(self) {
        let number = self.number;
        let mut state = self.shared.enter(number);
        state.record(number, Op::Mfence);
        let cost = state.config.costs.mfence;
        state.charge(number, cost);
    }

    /// Sends an interrupt to a CPU. It is taken there when interrupts are enabled.
    ///
    /// # Panics
    /// When there is no such CPU.
    pub fn send(self, to: usize) {
        let number = self.number;
        let mut state = self.shared.enter(number);
        assert!(to < state.cpus.len(), "no CPU {to}");
        state.check_sibling(number, "IPI");
        state.check_kick(number, to);
        state.record(number, Op::Ipi(to));
        state.charge(number, 0);
        state.cpus[to].pending = true;
        let at = state.cpus[number].time + state.config.costs.ipi;
        let target = &state.cpus[to];
        let sleeps = matches!(target.status, Status::Waiting | Status::Halted);
        if sleeps && target.regs.interrupts {
            let at = target.queued.map_or(at, |deadline| deadline.min(at));
            state.make_ready(to, at);
        }
    }
}
