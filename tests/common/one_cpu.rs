//! One simulated CPU brought in line with a target, and what it did for that.

use mtrr_pat::cpu::CpuOps;
use mtrr_pat::delta::Changes;
use mtrr_pat::error::Error;
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::platform::Platform;
use mtrr_pat::policy::{CacheFlush, Policy};
use mtrr_pat::program::{Need, Plan};
use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{MsrAddr, MtrrDefType, VariableMtrr};
use mtrr_pat::sim::{CR0_KERNEL, Config, Machine, Op, firmware_map};
use mtrr_pat::snapshot::Snapshot;

use super::registers_only;

/// A CPU before its sync.
pub struct Case {
    /// The machine; its boot CPU starts with `config.boot`.
    pub config: Config,
    /// What that CPU is to have.
    pub want: Snapshot,
    pub policy: Policy,
    /// Whether MTRRCAP was not read since reset.
    pub first: bool,
    /// CR0 on arrival.
    pub cr0: u64,
    /// RFLAGS.IF on arrival.
    pub interrupts: bool,
}

/// The same CPU after it.
pub struct Ran {
    /// The target as the library captures it.
    pub want: Snapshot,
    /// Everything the CPU did to registers and caches, in order.
    pub ops: Vec<Op>,
    pub need: Need,
    pub changes: Changes,
    pub result: Result<(), Error>,
    /// RFLAGS.IF afterwards.
    pub interrupts: bool,
    pub machine: Machine,
}

impl Case {
    pub fn new(have: Snapshot, want: Snapshot) -> Self {
        let mut config = Config::new(1, 1);
        config.boot = have;
        Self::on(config, want)
    }

    pub fn on(config: Config, want: Snapshot) -> Self {
        Self {
            config,
            want,
            policy: Policy::DEFAULT,
            first: false,
            cr0: CR0_KERNEL,
            interrupts: true,
        }
    }

    /// With the manuals' flushes of caches in every window.
    pub fn flushing_always(have: Snapshot, want: Snapshot) -> Self {
        let mut case = Self::new(have, want);
        case.policy.cache_flush = CacheFlush::Always;
        case
    }

    /// Examines and applies, and checks what must hold in every case: no rule broken, caching on,
    /// CR3, CR4 and RFLAGS.IF as they were.
    pub fn run(self) -> Ran {
        let want = captured(&self.config, self.want, &self.policy);
        let (cr3, cr4) = (self.config.cr3, self.config.cr4);
        let machine = Machine::new(self.config);
        let (plan, result, interrupts) = machine.run(
            |cpu| {
                let platform = Platform::detect(cpu);
                if !self.interrupts {
                    cpu.cli();
                }
                if self.cr0 != CR0_KERNEL {
                    unsafe { cpu.write_cr0(self.cr0) };
                }
                machine.clear_log();
                let cap = platform.mtrr.ok().filter(|_| !self.first);
                let plan = Plan::examine(cpu, &want, &platform, &self.policy, cap);
                let mut plan = plan.unwrap();
                let result = unsafe { plan.apply(cpu, &want, &platform, &self.policy) };
                let ops = registers_only(&machine.ops(0));
                ((plan, ops), result, cpu.interrupts_enabled())
            },
            |_| {},
            |_| {},
        );
        let (plan, ops) = plan;
        machine.check().unwrap();
        assert_eq!(machine.control_registers(0), (CR0_KERNEL, cr3, cr4));
        assert_eq!(interrupts, self.interrupts);
        assert!(machine.stale_entries(0).is_empty());
        Ran {
            want,
            ops,
            need: plan.need(),
            changes: plan.changes(),
            result,
            interrupts,
            machine,
        }
    }
}

impl Ran {
    /// The sync worked and did exactly this.
    pub fn assert_did(&self, expected: &[Op]) {
        assert_eq!(self.result, Ok(()));
        assert_eq!(self.ops, expected, "what was done and what should be");
    }
}

/// The target as the boot CPU of such a machine would capture it.
fn captured(config: &Config, want: Snapshot, policy: &Policy) -> Snapshot {
    let mut config = config.clone();
    config.boot = want;
    config.faults.clear();
    Machine::new(config).run(
        |cpu| {
            let platform = Platform::detect(cpu);
            Snapshot::capture(cpu, &platform, policy.amd_fixed).unwrap()
        },
        |_| {},
        |_| {},
    )
}

/// Reads of the registers of a snapshot, in the order the library documents.
pub fn reads(of: &Snapshot) -> Vec<Op> {
    let mut ops = mtrr_reads(of);
    if let Some(syscfg) = of.syscfg {
        ops.push(Op::Rdmsr(MsrAddr::SYSCFG.0, syscfg.raw()));
        ops.push(Op::Rdmsr(MsrAddr::TOP_MEM2.0, of.top_mem2));
    }
    ops.extend(fixed_reads(of));
    ops.extend(of.pat.map(|pat| Op::Rdmsr(MsrAddr::PAT.0, pat.raw())));
    ops
}

/// DEF_TYPE and the variable ranges.
pub fn mtrr_reads(of: &Snapshot) -> Vec<Op> {
    let mut ops = vec![Op::Rdmsr(MsrAddr::MTRR_DEF_TYPE.0, of.def_type.raw())];
    for (n, pair) in of.variable_ranges().iter().enumerate() {
        ops.push(Op::Rdmsr(MsrAddr::phys_base(n).0, pair.base));
        ops.push(Op::Rdmsr(MsrAddr::phys_mask(n).0, pair.mask));
    }
    ops
}

/// The fixed ranges.
pub fn fixed_reads(of: &Snapshot) -> Vec<Op> {
    let words = FIXED_RANGES.iter().zip(of.fixed);
    words
        .filter(|_| of.has_fixed())
        .map(|(range, word)| Op::Rdmsr(range.msr.0, word))
        .collect()
}

/// How many operations are WRMSR.
pub fn wrmsrs(ops: &[Op]) -> usize {
    let writes = ops.iter().filter(|op| matches!(op, Op::Wrmsr(..)));
    writes.count()
}

/// How many operations are RDMSR.
pub fn rdmsrs(ops: &[Op]) -> usize {
    let reads = ops.iter().filter(|op| matches!(op, Op::Rdmsr(..)));
    reads.count()
}

/// A map that differs from [`firmware_map`] in every register there is; all pairs in use.
pub fn another_map() -> Snapshot {
    let mut map = firmware_map();
    map.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE | 6);
    map.pat = Some(Pat::LINUX);
    map.fixed = [0x0404_0404_0404_0404; 11];
    for (n, pair) in map.variable.iter_mut().take(10).enumerate() {
        let base = 0x4000_0000 * (n as u64 + 4);
        let found = VariableMtrr::from_block(base, 0x1000_0000, MemType::Uncachable, map.phys_bits);
        *pair = found.unwrap();
    }
    map
}
