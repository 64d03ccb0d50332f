//! What the kernel asks for: early or deferred, which PAT, which flushes, how long to wait.
//!
//! Typed values first, a command line on top.

use core::fmt;

use crate::pat::Pat;

/// When an AP that came up gets the boot CPU's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// At once, on its own, as the first thing it does; safe with siblings running (they are held).
    Early,
    /// All together, after the last one is online.
    Deferred,
}

/// Which PAT all CPUs get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatChoice {
    /// The one the boot CPU has.
    Keep,
    /// This layout.
    Layout(Pat),
}

/// Whether WBINVD is executed when MTRRs change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheFlush {
    /// Where the change takes cacheability away from some address or PAT slot, twice; always on
    /// processors that do not say they snoop themselves, or say so wrongly (errata).
    ///
    /// One risk is left: lines that firmware cached under a map it then replaced without a flush.
    WhenNeeded,
    /// Always, twice, as the manuals' procedure says.
    Always,
    /// Not on processors that say they snoop themselves, models with errata excepted. Unsafe where
    /// memory goes from cacheable to uncachable.
    SkipWithSelfSnoop,
}

/// Whether WBINVD is executed when only the PAT changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatFlush {
    /// When a slot goes from a cacheable type to another that is not.
    WhenUncached,
    /// Never: the kernel promises that no page table used such a slot.
    Never,
}

/// What is done about the RdMem and WrMem bits of AMD's fixed ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdFixed {
    /// Only the types are compared and written; RdMem and WrMem stay as they are on each CPU.
    AsFound,
    /// SYSCFG bit 19 is set for the reads and writes, so that the bits survive S3. Not done on
    /// hosts with secure nested paging.
    SaveDramBits,
}

/// How long a CPU waits for others, in ticks of its own time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The boot CPU, for all CPUs to arrive at a rendezvous. Past it nothing is changed.
    pub gather: u64,
    /// An AP, for its siblings to be held. Past it the AP is postponed.
    pub hold: u64,
    /// Anybody, for one CPU to finish what it does with caches off. Past it that CPU is named.
    pub finish: u64,
}

impl Bounds {
    /// About a second, a tenth of a second and ten seconds at 3 GHz.
    pub const DEFAULT: Self = Self {
        gather: 3_000_000_000,
        hold: 300_000_000,
        finish: 30_000_000_000,
    };

    /// The same, none so short that a healthy CPU cannot keep it.
    #[must_use]
    pub(crate) fn at_least(self) -> Self {
        const LEAST: u64 = 10_000;
        Self {
            gather: self.gather.max(LEAST),
            hold: self.hold.max(LEAST),
            finish: self.finish.max(LEAST),
        }
    }
}

/// Everything the kernel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Early or deferred.
    pub resync: Resync,
    /// Which PAT all CPUs get.
    pub pat: PatChoice,
    /// WBINVD when MTRRs change.
    pub cache_flush: CacheFlush,
    /// WBINVD when only the PAT changes.
    pub pat_flush: PatFlush,
    /// AMD's RdMem and WrMem bits.
    pub amd_fixed: AmdFixed,
    /// Whether write-combining may be had (`nowc`): for the table of [`crate::reserve`].
    pub write_combining: WriteCombining,
    /// How long to wait.
    pub bounds: Bounds,
}

/// Whether write-combining may be had at all.
///
/// Cores that write much to write-combining memory can slow down every other core of the die, so
/// a machine's owner may want none (`nowc` on the command line).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WriteCombining {
    /// Requests for WC get WC.
    #[default]
    Allowed,
    /// Requests for WC get UC-. An MTRR range of type WC still makes that WC: the grant says so.
    Refused,
}

impl Policy {
    /// Early, the PAT left as the boot CPU has it, caches flushed where the change needs it.
    pub const DEFAULT: Self = Self {
        resync: Resync::Early,
        pat: PatChoice::Keep,
        cache_flush: CacheFlush::WhenNeeded,
        pat_flush: PatFlush::WhenUncached,
        amd_fixed: AmdFixed::AsFound,
        write_combining: WriteCombining::Allowed,
        bounds: Bounds::DEFAULT,
    };

    /// This policy, changed by the words of a kernel command line.
    ///
    /// Words are separated by white space; words this crate does not know are ignored. Known:
    /// `mtrr_pat=` followed by a comma-separated list of `early`, `deferred`,
    /// `pat=power-on|linux|low-half|keep|0x<16 hex digits>`, `flush=when-needed|always|self-snoop`,
    /// `pat-flush=when-uncached|never`, `amd-fixed=as-found|save`, and `gather=`, `hold=`,
    /// `finish=` with a decimal number of ticks; `no_aps_delay` (early), `nopat` (keep the boot CPU's PAT)
    /// and `nowc`. A later word wins over an earlier one.
    ///
    /// # Errors
    /// [`PolicyError`] names the first word whose value is not one of these.
    pub fn with_command_line<'a>(mut self, line: &'a str) -> Result<Self, PolicyError<'a>> {
        for word in line.split_whitespace() {
            match word {
                "no_aps_delay" => self.resync = Resync::Early,
                "nopat" => self.pat = PatChoice::Keep,
                "nowc" => self.write_combining = WriteCombining::Refused,
                _ => {
                    if let Some(list) = word.strip_prefix("mtrr_pat=") {
                        for item in list.split(',') {
                            self.set(item).ok_or(PolicyError { word, value: item })?;
                        }
                    }
                }
            }
        }
        Ok(self)
    }

    fn set(&mut self, item: &str) -> Option<()> {
        match item {
            "early" => self.resync = Resync::Early,
            "deferred" => self.resync = Resync::Deferred,
            "flush=when-needed" => self.cache_flush = CacheFlush::WhenNeeded,
            "flush=always" => self.cache_flush = CacheFlush::Always,
            "flush=self-snoop" => self.cache_flush = CacheFlush::SkipWithSelfSnoop,
            "pat-flush=when-uncached" => self.pat_flush = PatFlush::WhenUncached,
            "pat-flush=never" => self.pat_flush = PatFlush::Never,
            "amd-fixed=as-found" => self.amd_fixed = AmdFixed::AsFound,
            "amd-fixed=save" => self.amd_fixed = AmdFixed::SaveDramBits,
            _ => {
                let (key, value) = item.split_once('=')?;
                match key {
                    "pat" => self.pat = pat_choice(value)?,
                    "gather" => self.bounds.gather = ticks(value)?,
                    "hold" => self.bounds.hold = ticks(value)?,
                    "finish" => self.bounds.finish = ticks(value)?,
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn ticks(value: &str) -> Option<u64> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.parse().ok())?
}

fn pat_choice(value: &str) -> Option<PatChoice> {
    Some(PatChoice::Layout(match value {
        "keep" => return Some(PatChoice::Keep),
        "power-on" => Pat::POWER_ON,
        "linux" => Pat::LINUX,
        "low-half" => Pat::LOW_HALF_UNTOUCHED,
        _ => {
            let digits = value.strip_prefix("0x")?;
            if digits.len() != 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let raw = u64::from_str_radix(digits, 16).ok()?;
            let pat = Pat::from_raw(raw);
            // A reserved type would raise #GP on every CPU: refuse it here, where it has a name.
            if (0..8).any(|slot| pat.slot(slot).is_err()) {
                return None;
            }
            pat
        }
    }))
}

/// A word of the command line this crate knows, with a value it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyError<'a> {
    /// The whole word.
    pub word: &'a str,
    /// The part that was not understood.
    pub value: &'a str,
}

impl fmt::Display for PolicyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad value `{}` in `{}`", self.value, self.word)
    }
}

impl core::error::Error for PolicyError<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_set_what_they_say_and_unknown_words_are_ignored() {
        let line = "root=/dev/sda mtrr_pat=deferred,pat=linux,gather=5 quiet nowc mtrr_patx=1";
        let policy = Policy::DEFAULT.with_command_line(line).unwrap();
        assert_eq!(policy.resync, Resync::Deferred);
        assert_eq!(policy.pat, PatChoice::Layout(Pat::LINUX));
        assert_eq!(policy.bounds.gather, 5);
        assert_eq!(policy.write_combining, WriteCombining::Refused);
        let policy = policy.with_command_line("no_aps_delay nopat").unwrap();
        assert_eq!(policy.resync, Resync::Early);
        assert_eq!(policy.pat, PatChoice::Keep);
    }

    #[test]
    fn bad_values_are_named() {
        for (line, value) in [
            ("a mtrr_pat=soon b", "soon"),
            ("mtrr_pat=", ""),
            ("mtrr_pat=early,,deferred", ""),
            ("mtrr_pat=pat=0x0203040506070001", "pat=0x0203040506070001"),
            ("mtrr_pat=pat=linus", "pat=linus"),
            ("mtrr_pat=gather=-1", "gather=-1"),
            ("mtrr_pat=gather=+1", "gather=+1"),
            ("mtrr_pat=hold=", "hold="),
            ("mtrr_pat=pat=0x6", "pat=0x6"),
            ("mtrr_pat=pat=0x+007040600070406", "pat=0x+007040600070406"),
            (
                "mtrr_pat=hold=99999999999999999999999",
                "hold=99999999999999999999999",
            ),
        ] {
            let error = Policy::DEFAULT.with_command_line(line).unwrap_err();
            assert_eq!(error.value, value, "{line}");
        }
    }
}
