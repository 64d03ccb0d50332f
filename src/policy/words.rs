//! The words of a kernel command line that change a policy.

use core::fmt;
use core::time::Duration;

use super::{AmdFixed, Bounds, CacheFlush, PatChoice, PatFlush, Policy, Resync, WriteCombining};
use crate::pat::Pat;

/// What `mtrr_pat=` takes, for whoever mistook it.
const ALLOWED: &str = "early, deferred, pat=power-on|linux|low-half|keep|0x<16 hex digits>, \
     flush=when-needed|always|self-snoop, pat-flush=when-uncached|never, \
     amd-fixed=as-found|save, and gather=, hold= or finish= with a time of at least 10us, as 500ms";

impl Policy {
    /// This policy, changed by the words of a kernel command line.
    ///
    /// Words are separated by white space. Known: `mtrr_pat=` followed by a comma-separated list of
    /// `early`, `deferred`, `pat=power-on|linux|low-half|keep|0x<16 hex digits>`,
    /// `flush=when-needed|always|self-snoop`, `pat-flush=when-uncached|never`,
    /// `amd-fixed=as-found|save`, and `gather=`, `hold=`, `finish=` with a time, a number and `us`,
    /// `ms` or `s`; `no_aps_delay` (early), `nopat` (keep the boot CPU's PAT) and `nowc`. A later word
    /// wins over an earlier one. Other words are somebody else's, but for those that were likely
    /// meant for this crate: `mtrr-pat=`, `mttr_pat=`, `mtrr_pat:`, an item of the list that stands
    /// alone, or `no_pat`, `NOPAT`, `nowcc`.
    ///
    /// ```
    /// use mtrr_pat::policy::{Policy, PolicyError};
    ///
    /// let line = "root=/dev/sda mtrr_pat=deferred,pat=linux,hold=50ms quiet";
    /// // A mistake is no reason not to boot: it is logged, and the rest is taken.
    /// let policy = Policy::DEFAULT
    ///     .with_command_line(line)
    ///     .unwrap_or_else(PolicyError::warned);
    /// # assert_eq!(policy.bounds.hold, core::time::Duration::from_millis(50));
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] names the first word that is not understood, and has the policy that all others
    /// make.
    pub fn with_command_line(mut self, line: &str) -> Result<Self, PolicyError<'_>> {
        let mut first = None;
        for word in line.split_whitespace() {
            match word {
                "no_aps_delay" => self.resync = Resync::Early,
                "nopat" => self.pat = PatChoice::Keep,
                "nowc" => self.write_combining = WriteCombining::Refused,
                _ => {
                    if let Some(list) = word.strip_prefix("mtrr_pat=") {
                        for item in list.split(',') {
                            if self.set(item).is_none() {
                                first = first.or(Some((word, item, Mistake::Value)));
                            }
                        }
                    } else if flag_meant(word).is_some() {
                        first = first.or(Some((word, word, Mistake::Flag)));
                    } else if was_meant(word) {
                        first = first.or(Some((word, word, Mistake::Word)));
                    }
                }
            }
        }
        match first {
            None => Ok(self),
            Some((word, value, mistake)) => Err(PolicyError {
                word,
                value,
                mistake,
                policy: self,
            }),
        }
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
                    "gather" => self.bounds.gather = time(value)?,
                    "hold" => self.bounds.hold = time(value)?,
                    "finish" => self.bounds.finish = time(value)?,
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

/// The word without a value that somebody meant: another case, or one letter wrong.
fn flag_meant(word: &str) -> Option<&'static str> {
    let mut known = ["no_aps_delay", "nopat", "nowc"].into_iter();
    known.find(|known| distance(word, known) <= 1)
}

/// Whether somebody who wrote this word had `mtrr_pat=` in mind: its name, with two letters wrong at
/// most, or an item of its list alone. `early` is too common a word.
fn was_meant(word: &str) -> bool {
    let name = word.split(['=', ':']).next().unwrap_or_default();
    let rest = word.strip_prefix("mtrr_pat").unwrap_or("x");
    let mut scratch = Policy::DEFAULT;
    let item = word.contains('=') && scratch.set(word).is_some();
    let own = ["pat", "pat-flush", "amd-fixed"];
    distance(name, "mtrr_pat") <= 2
        || !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        || item
        || word.contains('=') && own.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// How many letters have to be put in, taken out or replaced to make `known` of a name, upper case or
/// lower; more than there are for a name that is much longer.
fn distance(name: &str, known: &str) -> usize {
    const LONGEST: usize = 16;
    let (name, known) = (name.as_bytes(), known.as_bytes());
    if name.len() >= LONGEST || known.len() >= LONGEST {
        return LONGEST;
    }
    // One row of the table: how far `name` as read so far is from each beginning of `known`.
    let mut row: [usize; LONGEST] = core::array::from_fn(|i| i);
    for (read, letter) in name.iter().enumerate() {
        let mut left = read + 1;
        let mut above_left = read;
        for (cell, other) in row.iter_mut().skip(1).zip(known) {
            let replaced = above_left + usize::from(!letter.eq_ignore_ascii_case(other));
            above_left = *cell;
            left = replaced.min(above_left + 1).min(left + 1);
            *cell = left;
        }
    }
    row.get(known.len()).copied().unwrap_or(LONGEST)
}

/// A time of at least [`Bounds::LEAST`]: decimal digits and a unit.
fn time(value: &str) -> Option<Duration> {
    let unit = value.find(|digit: char| !digit.is_ascii_digit())?;
    let (number, unit) = value.split_at_checked(unit)?;
    let number = number.parse().ok()?;
    let time = match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return None,
    };
    (time >= Bounds::LEAST).then_some(time)
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

/// What is wrong with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// This crate knows the word, not the value.
    Value,
    /// It looks like a word of this crate's that was misspelt.
    Word,
    /// The same, of one that has no value.
    Flag,
}

/// A word of the command line that was not understood, though it is or looks like this crate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyError<'a> {
    /// The whole word.
    pub word: &'a str,
    /// The part that was not understood.
    pub value: &'a str,
    /// What all other words make of the policy.
    pub policy: Policy,
    mistake: Mistake,
}

impl PolicyError<'_> {
    /// The policy that the other words make, after a warning in the log: for a kernel that boots with
    /// it. A kernel without a [`log::Log`] prints the error itself.
    #[must_use]
    pub fn warned(self) -> Policy {
        log::warn!("command line: {self} (the other words are in force)");
        self.policy
    }
}

impl fmt::Display for PolicyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistake {
            Mistake::Value => write!(
                f,
                "`{}` in `{}` is not understood; `mtrr_pat=` takes a comma-separated list of {ALLOWED}",
                self.value, self.word
            ),
            Mistake::Flag => {
                let flag = flag_meant(self.word).unwrap_or_default();
                write!(f, "`{}` is not understood: `{flag}`?", self.word)
            }
            Mistake::Word => write!(
                f,
                "`{}` is not understood: `mtrr_pat=`, followed by a comma-separated list of {ALLOWED}?",
                self.word
            ),
        }
    }
}

impl core::error::Error for PolicyError<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_set_what_they_say_and_unknown_words_are_ignored() {
        let line = "root=/dev/sda mtrr_pat=deferred,pat=linux,gather=5s quiet nowc mtrr_patrol=1";
        let policy = Policy::DEFAULT.with_command_line(line).unwrap();
        assert_eq!(policy.resync, Resync::Deferred);
        assert_eq!(policy.pat, PatChoice::Layout(Pat::LINUX));
        assert_eq!(policy.bounds.gather, Duration::from_secs(5));
        assert_eq!(policy.write_combining, WriteCombining::Refused);
        let policy = policy.with_command_line("no_aps_delay nopat").unwrap();
        assert_eq!(policy.resync, Resync::Early);
        assert_eq!(policy.pat, PatChoice::Keep);
    }

    #[test]
    fn bad_values_are_named_and_the_good_words_kept() {
        for (list, value) in [
            ("soon", "soon"),
            ("", ""),
            ("early,,nothing", ""),
            ("pat=0x0203040506070001", "pat=0x0203040506070001"),
            ("pat=linus", "pat=linus"),
            ("gather=-1ms", "gather=-1ms"),
            ("gather=+1ms", "gather=+1ms"),
            ("gather=0s", "gather=0s"),
            ("gather=9us", "gather=9us"),
            ("gather=500", "gather=500"),
            ("hold=", "hold="),
            ("hold=ms", "hold=ms"),
            ("hold=1.5s", "hold=1.5s"),
            ("pat=0x6", "pat=0x6"),
            ("pat=0x+007040600070406", "pat=0x+007040600070406"),
            (
                "hold=99999999999999999999999s",
                "hold=99999999999999999999999s",
            ),
        ] {
            let line = std::format!("a mtrr_pat={list},deferred,hold=20ms b nowc");
            let error = Policy::DEFAULT.with_command_line(&line).unwrap_err();
            assert_eq!(error.value, value, "{line}");
            assert!(
                std::format!("{error}").contains("gather="),
                "what is allowed is said"
            );
            assert_eq!(error.policy.resync, Resync::Deferred, "{line}");
            assert_eq!(error.policy.bounds.hold, Duration::from_millis(20));
            assert_eq!(error.policy.write_combining, WriteCombining::Refused);
        }
    }

    #[test]
    fn misspelt_words_are_told_from_other_programs() {
        for word in [
            "mtrr-pat=early",
            "MTRR_PAT=early",
            "mtrr_pat",
            "mtrr_pat:early",
            "pat=linux",
            "mtrrpat=early",
            "mtr_pat=early",
            "mttr_pat=early",
            "mtrr_pats=early",
            "mtrr_pat.early",
            "gather=50ms",
            "flush=always",
        ] {
            let line = std::format!("quiet {word} mtrr_pat=deferred");
            let error = Policy::DEFAULT.with_command_line(&line).unwrap_err();
            assert_eq!((error.word, error.policy.resync), (word, Resync::Deferred));
            assert!(std::format!("{error}").contains("`mtrr_pat=`"));
        }
        for word in [
            "mtrr=debug",
            "mtrr_cleanup",
            "nomtrr",
            "mtrr_patrol=1",
            "early",
            "path=/x",
            "gather=1",
            "hold=yes",
            "flush=later",
            "mtrr_spare_reg_nr=1",
            "=",
            ":",
            "\u{1F600}mtrr_pat",
        ] {
            assert!(Policy::DEFAULT.with_command_line(word).is_ok(), "{word}");
        }
    }

    #[test]
    fn misspelt_flags_are_told_too() {
        for (word, meant) in [
            ("nowcc", "nowc"),
            ("NOWC", "nowc"),
            ("no_pat", "nopat"),
            ("NOPAT", "nopat"),
            ("nopat=1", ""),
            ("no-aps-delay", ""),
            ("no_aps_dela", "no_aps_delay"),
        ] {
            match Policy::DEFAULT.with_command_line(word) {
                Err(error) => assert!(
                    std::format!("{error}").ends_with(&std::format!("`{meant}`?")),
                    "{error}"
                ),
                Ok(_) => assert_eq!(meant, "", "{word}"),
            }
        }
        // Words of Linux that are as short.
        for word in [
            "nopti", "nosmp", "nosmt", "nohz", "noapic", "nopcid", "nowb2", "nopku", "nopv",
        ] {
            assert!(Policy::DEFAULT.with_command_line(word).is_ok(), "{word}");
        }
    }

    #[test]
    fn times_become_ticks_and_never_overflow() {
        let hz = core::num::NonZeroU64::new(2_500_000_000);
        let ticks = Bounds::DEFAULT.in_ticks(hz);
        assert_eq!(
            (ticks.gather, ticks.hold, ticks.finish),
            (2_500_000_000, 250_000_000, 25_000_000_000)
        );
        assert_eq!(Bounds::DEFAULT.in_ticks(None).gather, 4_000_000_000);
        for odd in [1, 9_999_999, 100_000_000_001, u64::MAX] {
            let odd = Bounds::DEFAULT.in_ticks(core::num::NonZeroU64::new(odd));
            assert_eq!(odd, Bounds::DEFAULT.in_ticks(None), "not believed");
        }
        let long = Bounds {
            finish: Duration::MAX,
            ..Bounds::DEFAULT
        };
        assert_eq!(long.in_ticks(hz).finish, u64::MAX);
        let short = Bounds {
            hold: Duration::from_micros(9),
            ..Bounds::DEFAULT
        };
        assert_eq!(
            (short.too_short(), Bounds::DEFAULT.too_short()),
            (Some("hold"), None)
        );
    }
}
