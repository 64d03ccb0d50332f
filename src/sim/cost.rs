//! What operations cost in virtual time.
//!
//! One unit is a picosecond. The time-stamp counter the CPUs see counts nanoseconds. The defaults
//! are those of no machine in particular.

/// How uncached cores slow each other down on the bus. It saturates: the bus serves what it can,
/// and a core that waits for its own fetch adds nothing more. (A linear law cannot be expressed.)
///
/// With `n` other cores running uncached, an uncached access takes
/// `1 + (max - 1) * n / (n + half)` times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusContention {
    /// The factor that is approached, in thousandths; 1000 is no contention.
    pub max_permille: u64,
    /// The number of other uncached cores at which half of the slowdown is reached.
    pub half: u64,
}

/// The cost of operations, in picoseconds unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// One instruction out of the cache. Assumed: 3 GHz, one per cycle.
    pub cached_instruction: u64,
    /// One instruction fetched from memory without a cache. Assumed: one bus access each.
    pub uncached_instruction: u64,
    /// A load or store that hits the cache. Assumed: four cycles.
    pub cached_access: u64,
    /// A load or store that goes to memory. Assumed: typical DRAM latency.
    pub uncached_access: u64,
    /// How much longer instructions take while another thread of the core runs, uncached, in
    /// thousandths of the cost. Assumed.
    pub sibling_uncached_permille: u64,
    /// The bus, shared by uncached cores. Assumed.
    pub bus: BusContention,
    /// Instructions fetched around each privileged instruction (loop, compare, call). Assumed.
    pub instructions_per_op: u64,
    /// RDMSR, besides its fetch. Assumed: about 100 cycles.
    pub rdmsr: u64,
    /// WRMSR to a memory-type register. Assumed: serialising, some hundred cycles.
    pub wrmsr: u64,
    /// MOV from a control register. Assumed.
    pub cr_read: u64,
    /// MOV to CR0, CR3 or CR4 (serialising; the TLB is refilled at [`Self::tlb_refill`]). Assumed.
    pub cr_write: u64,
    /// CPUID on bare metal. Assumed: about 100 cycles (a hypervisor exit would be 1 us and more).
    pub cpuid: u64,
    /// WBINVD of clean, empty caches: the fixed part. Assumed.
    pub wbinvd_base: u64,
    /// WBINVD: per line of capacity of the core's caches and of its last-level cache that has to
    /// be looked at. Assumed.
    pub wbinvd_per_line: u64,
    /// Writing one dirty line to memory, at the bandwidth all CPUs share. Assumed: 64 bytes at
    /// 16 GB/s.
    pub write_back_line: u64,
    /// Whether two WBINVDs on one last-level cache wait for each other. Unknown on real machines:
    /// run both.
    pub wbinvd_serialised_per_llc: bool,
    /// Lines of one core's private caches. Assumed: 1 MiB.
    pub core_lines: u64,
    /// Lines of one last-level cache. Assumed: 16 MiB.
    pub llc_lines: u64,
    /// Lines of a first-level data cache. 32 KiB, as on most x86-64 processors.
    pub l1_lines: u64,
    /// Places in the queue all cores share for what leaves the processor. Assumed.
    pub write_queue: usize,
    /// Time a device takes for a combined line of 64 bytes. Assumed: a slow framebuffer, about
    /// 80 MB/s; sweeps beside a write-combining writer then take 8.6 times as long (published: 10).
    pub device_line: u64,
    /// Time a device takes for one store that is not combined. Assumed: the round trip rules.
    pub device_store: u64,
    /// Dirty lines that 1000 instructions of cached work leave. Assumed.
    pub dirty_per_1000: u64,
    /// One TLB miss: the page walk. Assumed.
    pub tlb_refill: u64,
    /// MFENCE. Assumed.
    pub mfence: u64,
    /// A plain access of a shared word. Assumed: mostly in the own cache.
    pub shared_access: u64,
    /// A locked instruction on a shared word. Assumed: 20 cycles.
    pub locked: u64,
    /// From a store to when another CPU that waits for it sees it. Assumed: one cache-to-cache
    /// transfer.
    pub visible: u64,
    /// Whether words of one 64-byte line travel together (false sharing). Otherwise each word
    /// has a line of its own, so that runs do not depend on where the words happen to lie.
    pub false_sharing: bool,
    /// PAUSE. Assumed: 140 cycles (recent Intel).
    pub pause: u64,
    /// From sending an interrupt to its handler. Assumed.
    pub ipi: u64,
    /// From sending INIT and SIPI to the first instruction. Assumed: kernels wait up to 10 ms
    /// after INIT on old processors, and next to nothing on current ones.
    pub sipi: u64,
    /// Instructions an AP executes from its SIPI vector to its kernel code. Assumed.
    pub start_instructions: u64,
    /// The time from entering S3 to the boot CPU's first kernel instruction. Assumed.
    pub s3: u64,
    /// Kernel work is cut into slices of at most this time, so that it feels what other CPUs
    /// change meanwhile and takes interrupts. A choice, not a fact.
    pub slice: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            cached_instruction: 333,
            uncached_instruction: 100_000,
            cached_access: 1_333,
            uncached_access: 90_000,
            sibling_uncached_permille: 500,
            bus: BusContention {
                max_permille: 3_000,
                half: 2,
            },
            instructions_per_op: 4,
            rdmsr: 33_000,
            wrmsr: 150_000,
            cr_read: 5_000,
            cr_write: 100_000,
            cpuid: 35_000,
            wbinvd_base: 1_000_000,
            wbinvd_per_line: 330,
            write_back_line: 4_000,
            wbinvd_serialised_per_llc: false,
            core_lines: 16_384,
            llc_lines: 262_144,
            l1_lines: 512,
            write_queue: 10,
            device_line: 800_000,
            device_store: 400_000,
            dirty_per_1000: 5,
            tlb_refill: 20_000,
            mfence: 10_000,
            shared_access: 1_500,
            locked: 7_000,
            visible: 60_000,
            false_sharing: false,
            pause: 45_000,
            ipi: 1_000_000,
            sipi: 20_000_000,
            start_instructions: 2_000,
            s3: 100_000_000_000,
            slice: 100_000_000,
        }
    }
}

/// What bears on the speed of one CPU at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// This CPU fetches uncached.
    pub(crate) uncached: bool,
    /// Another running thread of its core fetches uncached.
    pub(crate) sibling_uncached: bool,
    /// How many other cores fetch uncached.
    pub(crate) other_cores: u64,
}

impl Costs {
    /// The time `count` instructions take.
    pub(crate) fn instructions(&self, count: u64, pace: Pace) -> u64 {
        let each = if pace.uncached {
            self.uncached_instruction
        } else {
            self.cached_instruction
        };
        count.saturating_mul(self.slowed(each, pace))
    }

    /// The time one data access takes.
    pub(crate) fn access(&self, cacheable: bool, pace: Pace) -> u64 {
        if cacheable {
            self.cached_access
        } else {
            let uncached = Pace {
                uncached: true,
                ..pace
            };
            self.slowed(self.uncached_access, uncached)
        }
    }

    fn slowed(&self, cost: u64, pace: Pace) -> u64 {
        let mut cost = cost;
        if pace.uncached {
            let BusContention { max_permille, half } = self.bus;
            let extra = max_permille.saturating_sub(1000) * pace.other_cores;
            cost += cost * extra / (1000 * (pace.other_cores + half).max(1));
        }
        if pace.sibling_uncached {
            cost += cost * self.sibling_uncached_permille / 1000;
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(other_cores: u64) -> Pace {
        Pace {
            uncached: true,
            sibling_uncached: false,
            other_cores,
        }
    }

    #[test]
    fn the_bus_saturates() {
        let costs = Costs::default();
        let at = |n| costs.instructions(1, pace(n));
        let alone = costs.uncached_instruction;
        assert_eq!(at(0), alone);
        assert_eq!(
            at(costs.bus.half),
            alone * (1000 + costs.bus.max_permille) / 2000
        );
        let steps: Vec<u64> = (0..64).map(|n| at(n + 1) - at(n)).collect();
        assert!(steps.windows(2).all(|pair| pair[1] <= pair[0]), "{steps:?}");
        assert!(at(100_000) <= alone * costs.bus.max_permille / 1000);
        assert!(at(100_000) > alone * (costs.bus.max_permille - 10) / 1000);
    }

    #[test]
    fn cached_cores_do_not_feel_the_bus_but_their_sibling() {
        let costs = Costs::default();
        let cached = Pace {
            uncached: false,
            ..pace(3)
        };
        assert_eq!(
            costs.instructions(10, cached),
            10 * costs.cached_instruction
        );
        let beside = Pace {
            sibling_uncached: true,
            ..cached
        };
        assert_eq!(
            costs.instructions(1000, beside),
            1000 * (costs.cached_instruction + costs.cached_instruction / 2)
        );
    }
}
