//! How often each CPU did what.

use super::log::Op;

/// How often one CPU did what, since the machine was built or the counters were cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)] // the names are the operations'
pub struct Counters {
    pub rdmsr: u64,
    pub rdmsr_fault: u64,
    pub wrmsr: u64,
    pub wrmsr_fault: u64,
    pub wrmsr_ignored: u64,
    /// MTRR writes of the value already there: no type changes, so the window rule lets them be.
    pub same_value_writes: u64,
    pub cr_reads: u64,
    pub cr0_writes: u64,
    pub cr3_writes: u64,
    pub cr4_writes: u64,
    pub wbinvd: u64,
    pub cli: u64,
    pub sti: u64,
    pub pause: u64,
    pub rdtsc: u64,
    pub cpuid: u64,
    pub shared_loads: u64,
    pub shared_stores: u64,
    pub locked: u64,
    /// Full fences, apart from [`Self::locked`]: a CPU with its MTRRs off may execute them.
    pub mfence: u64,
    /// Instructions of kernel work.
    pub work: u64,
    /// The part of [`Self::work`] executed uncached.
    pub uncached_work: u64,
    /// Pieces of kernel work, loads and stores while CR0.CD was still set as reset left it.
    pub work_with_reset_cd: u64,
    pub loads: u64,
    pub stores: u64,
    pub sipi: u64,
    pub ipi: u64,
    pub interrupts: u64,
    pub starts: u64,
    /// TLB entries filled.
    pub tlb_fills: u64,
    /// Dirty lines written back by this CPU's WBINVDs.
    pub lines_written_back: u64,
    /// Windows: times this CPU wrote an MTRR with caching off, counted once per CD=1 period.
    pub windows: u64,
    /// Virtual time spent in [`pause_while`](crate::cpu::CpuOps::pause_while), picoseconds.
    pub waited: u64,
}

impl Counters {
    pub(crate) fn count(&mut self, op: Op) {
        let field = match op {
            Op::Rdmsr(..) => &mut self.rdmsr,
            Op::RdmsrFault(_) => &mut self.rdmsr_fault,
            Op::Wrmsr(..) => &mut self.wrmsr,
            Op::WrmsrFault(..) => &mut self.wrmsr_fault,
            Op::WrmsrIgnored(..) => &mut self.wrmsr_ignored,
            Op::ReadCr0(_) | Op::ReadCr3(_) | Op::ReadCr4(_) => &mut self.cr_reads,
            Op::Cr0(_) => &mut self.cr0_writes,
            Op::Cr3(_) => &mut self.cr3_writes,
            Op::Cr4(_) => &mut self.cr4_writes,
            Op::Wbinvd => &mut self.wbinvd,
            Op::Mfence => &mut self.mfence,
            Op::Cli => &mut self.cli,
            Op::Sti => &mut self.sti,
            Op::Pause => &mut self.pause,
            Op::Rdtsc => &mut self.rdtsc,
            Op::Cpuid(..) => &mut self.cpuid,
            Op::SharedLoad => &mut self.shared_loads,
            Op::SharedStore => &mut self.shared_stores,
            Op::SharedLocked => &mut self.locked,
            Op::Load(_) => &mut self.loads,
            Op::Store(_) => &mut self.stores,
            Op::Sipi(_) => &mut self.sipi,
            Op::Ipi(_) => &mut self.ipi,
            Op::Interrupt => &mut self.interrupts,
            Op::Start => &mut self.starts,
            Op::Work(count) => {
                self.work += count;
                return;
            }
            _ => return,
        };
        *field += 1;
    }

    /// The sum of two CPUs' (or two runs') counters of register reads and writes.
    #[must_use]
    pub fn register_writes(&self) -> u64 {
        self.wrmsr
            + self.wrmsr_fault
            + self.wrmsr_ignored
            + self.cr0_writes
            + self.cr3_writes
            + self.cr4_writes
            + self.wbinvd
    }
}
