//! Where the CPUs of a machine sit.

use super::config::{Config, Numbering};

impl Config {
    /// How many logical CPUs there are.
    #[must_use]
    pub const fn cpus(&self) -> usize {
        self.cores * self.threads
    }

    /// The core and the thread of a CPU.
    #[must_use]
    pub const fn place(&self, cpu: usize) -> (usize, usize) {
        match self.numbering {
            Numbering::ThreadsTogether => (cpu / self.threads, cpu % self.threads),
            Numbering::CoresFirst => (cpu % self.cores, cpu / self.cores),
        }
    }

    /// The CPU at a core and thread: the inverse of [`Self::place`].
    #[must_use]
    pub const fn cpu_at(&self, core: usize, thread: usize) -> usize {
        match self.numbering {
            Numbering::ThreadsTogether => core * self.threads + thread,
            Numbering::CoresFirst => thread * self.cores + core,
        }
    }

    /// How many low bits of an x2APIC id number the thread.
    #[must_use]
    pub const fn smt_shift(&self) -> u32 {
        self.threads.next_power_of_two().trailing_zeros()
    }

    /// How many low bits of an x2APIC id number thread and core within the package.
    #[must_use]
    pub const fn package_shift(&self) -> u32 {
        self.smt_shift() + self.cores_per_package.next_power_of_two().trailing_zeros()
    }

    /// The x2APIC id of a CPU.
    #[must_use]
    pub const fn apic_id(&self, cpu: usize) -> u32 {
        let (core, thread) = self.place(cpu);
        let package = core / self.cores_per_package;
        let core = core % self.cores_per_package;
        ((package << self.package_shift()) | (core << self.smt_shift()) | thread) as u32
    }
}
