//! Times of many equal pieces of work, and their median: what a piece takes when nobody interrupts the CPU, be it a busy host under an
//! emulator or SMM on a PC.

/// Steps in which each power of two is told apart.
const STEPS: u32 = 32;
const BUCKETS: usize = 64 * STEPS as usize;

pub struct Timings([u32; BUCKETS]);

impl Timings {
    pub const EMPTY: Self = Self([0; BUCKETS]);

    pub fn add(&mut self, ticks: u64) {
        let ticks = ticks.max(1);
        let power = ticks.ilog2();
        let step = ((ticks ^ 1 << power) * u64::from(STEPS)) >> power;
        self.0[(power * STEPS) as usize + step as usize] += 1;
    }

    /// Ticks of the middle piece, to 3 %; 0 of none.
    pub fn median(&self) -> u64 {
        let all: u64 = self.0.iter().copied().map(u64::from).sum();
        let mut below = 0;
        for (bucket, &count) in (0..).zip(&self.0) {
            below += u64::from(count);
            if count != 0 && below * 2 >= all {
                let (power, step) = (bucket / STEPS, u64::from(bucket % STEPS));
                return ((u64::from(STEPS) + step) << power) / u64::from(STEPS);
            }
        }
        0
    }
}
