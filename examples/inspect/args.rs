//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Parser};
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::ranges::PhysBits;

use super::style::When;
use super::{typed, words};

/// Says what memory types a machine has, what is wrong with them, and how to do it better. Reads
/// what people post: /proc/mtrr, kernel and firmware logs, MSR dumps, in any mixture.
#[derive(Debug, Parser)]
#[command(name = "inspect", max_term_width = 100, after_help = AFTER, disable_help_flag = true)]
pub struct Args {
    /// Files to read as one dump; `-` is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read this machine (Linux, as root)
    #[arg(long, conflicts_with = "files")]
    pub live: bool,
    /// Physical address bits the MTRRs decode, 32 to 52
    #[arg(long, value_name = "N", value_parser = phys_bits)]
    pub phys_bits: Option<PhysBits>,
    /// Default type, where the dump does not say (UC, WB, ...)
    #[arg(long, value_name = "TYPE", value_parser = memtype)]
    pub default: Option<MemType>,
    /// What a change would cost: 0xe0000000-0xefffffff=WC, 0xe0000000+256M=WC; may be repeated
    #[arg(long, value_name = "RANGE=TYPE", value_parser = want)]
    pub want: Vec<Want>,
    /// The memory type of one address
    #[arg(long = "type", value_name = "ADDR", value_parser = typed::number)]
    pub addr: Option<u64>,
    /// The page's PAT type, for the effective type of --type
    #[arg(long, value_name = "TYPE", requires = "addr", value_parser = pat_type)]
    pub pat: Option<PatType>,
    /// Write the map as a picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: When,
    /// Print this
    #[arg(short, long, action = ArgAction::HelpShort)]
    help: Option<bool>,
}

const AFTER: &str = "\
An address or size is 0x and hexadecimal digits, or decimal, which K, M, G or T may follow. Without
0x, hexadecimal digits are refused, and so is a decimal number with a zero in front.
Without FILE: standard input, or --live when that is a terminal.
Exit code: 0 nothing wrong, 1 something found, 2 input not readable.
Example: dmesg | inspect --want 0xe0000000+256M=WC";

/// One `--want`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// The type.
    pub memtype: MemType,
}

fn phys_bits(text: &str) -> Result<PhysBits, String> {
    let bits = text.parse().ok().and_then(PhysBits::new);
    bits.ok_or_else(|| "a number from 32 to 52 is wanted".into())
}

fn memtype(text: &str) -> Result<MemType, String> {
    words::memtype(text)
        .and_then(|byte| MemType::from_field(byte).ok())
        .ok_or_else(|| "one of UC, WC, WT, WP, WB is wanted".into())
}

fn pat_type(text: &str) -> Result<PatType, String> {
    words::pat_type(text)
        .or_else(|| memtype(text).ok().map(PatType::from))
        .ok_or_else(|| "one of UC, UC-, WC, WT, WP, WB is wanted".into())
}

/// Reads `START-LAST=TYPE`, `START+SIZE=TYPE` or `START/SIZE=TYPE`.
fn want(text: &str) -> Result<Want, String> {
    let (range, name) = text.rsplit_once('=').ok_or("RANGE=TYPE is wanted")?;
    let memtype = memtype(name)?;
    let (start, end) = if let Some((start, size)) = range.split_once(['+', '/']) {
        let start = typed::number(start)?;
        (
            start,
            start
                .checked_add(typed::number(size)?)
                .ok_or("the range wraps around")?,
        )
    } else if let Some((start, last)) = range.split_once('-') {
        let last = typed::number(last)?;
        // A page multiple is the first byte after, anything else the last byte.
        let end = if last.is_multiple_of(0x1000) {
            last
        } else {
            last.saturating_add(1)
        };
        (typed::number(start)?, end)
    } else {
        return Err("a range is START-LAST or START+SIZE".into());
    };
    if end <= start {
        return Err("the range is empty".into());
    }
    if start % 0x1000 != 0 || end % 0x1000 != 0 {
        return Err("MTRRs know pages: start and size must be multiples of 4 KiB".into());
    }
    Ok(Want {
        start,
        end,
        memtype,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_can_be_written_four_ways() {
        let wanted = Want {
            start: 0xe000_0000,
            end: 0xf000_0000,
            memtype: MemType::WriteCombining,
        };
        for text in [
            "0xe0000000-0xefffffff=WC",
            "0xe0000000-0xf0000000=write-combining",
            "0xE0000000+256M=wc",
            "3584M/0x10000000=WC",
        ] {
            assert_eq!(want(text), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "=WC",
            "0-0=WB",
            "1-2=WB",
            "0-4096",
            "0xffffffffffffffff+4K=WB",
            "a+b=c",
        ] {
            assert!(want(text).is_err(), "{text}");
        }
        for text in [
            "0100000000-0x100ffffff=WC",
            "0x100000000-0100ffffff=WC",
            "0100000000+16M=WC",
            "0x100000000+01000000=WC",
            "0x100000000/e000=WC",
            "e0000000-0xefffffff=WC",
        ] {
            let why = want(text).unwrap_err();
            assert!(why.contains("write 0x"), "{text}: {why}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
