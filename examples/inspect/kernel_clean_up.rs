//! RAM that Linux gives up, and ranges that it re-arranges, by whose fault.

use super::dump::{Dump, Hint};
use super::findings::Severity;
use super::kernel_says::Answer;
use super::machine::Machine;

/// How the kernel is kept from re-arranging the ranges.
fn without_clean_up(dump: &Dump) -> &'static str {
    match dump
        .options
        .iter()
        .any(|word| word == "enable_mtrr_cleanup")
    {
        true => "boot without enable_mtrr_cleanup, which is on the command line in the log",
        false => "boot with disable_mtrr_cleanup",
    }
}

/// RAM given up: by whose fault.
pub fn trimmed(machine: &Machine, first: &Hint, cleaned_up: bool) -> Answer {
    let much = match first.text.contains("losing") {
        true => "that much",
        false => "some",
    };
    if machine.dump.hypervisor.is_some() && !cleaned_up {
        let meaning = format!(
            "no range of this virtual machine makes {much} RAM write-back, and the kernel gave it \
             up; the hypervisor decides what memory is, whatever the guest's ranges say"
        );
        let fix = "boot the guest with disable_mtrr_trim: nothing gets slower by it";
        return (Severity::Warning, meaning, fix.into());
    }
    let sizes = machine.dump.clean_up_sizes();
    let which = match machine.map_known() && !machine.gaps.variable() {
        true => "",
        false => "; which it is, the registers would tell",
    };
    let (meaning, fix) = if let (false, Some(sizes)) = (cleaned_up, sizes) {
        let meaning = format!(
            "the kernel re-arranged the ranges with the sizes on its command line ({sizes}) and gave \
             up {much} RAM that they leave out, or firmware's ranges do so before it"
        );
        (
            meaning,
            "boot without these options first: where the RAM is back, they lose it",
        )
    } else if !cleaned_up {
        (
            format!(
                "no range makes {much} RAM write-back, and the kernel gave it up rather than run \
                 slowly in it; the rest of the RAM is covered"
            ),
            "update the firmware; or add a range that makes it write-back, and boot with \
             disable_mtrr_trim (in a virtual machine that option alone is enough: the hypervisor \
             decides what memory is)",
        )
    } else {
        (
            "the kernel re-arranged the ranges itself (mtrr_cleanup) and left RAM out: the kernel's \
             doing, not the firmware's"
                .to_string(),
            without_clean_up(&machine.dump),
        )
    };
    (Severity::Warning, format!("{meaning}{which}"), fix.into())
}

/// `mtrr_cleanup: can not find optimal value`, and what it tried.
pub fn clean_up_failed(dump: &Dump) -> Answer {
    let covered = dump.hints.iter().find_map(|hint| {
        let rest = hint.text.split("total RAM covered: ").nth(1)?;
        rest.split_whitespace().next()
    });
    let covered = match covered {
        Some(size) => format!(" (they cover {size} of RAM)"),
        None => String::new(),
    };
    let meaning = format!(
        "the kernel looked for another arrangement of the ranges, to have some free, and found \
         none: the firmware's ranges stay in force{covered} and nothing is lost. Its lines are \
         what it tried: *BAD* ones would have made memory cacheable that is not RAM, \"lose cover \
         RAM\" is what others would have left out. No fault of the memory or the firmware"
    );
    let asked = dump
        .options
        .iter()
        .any(|word| word == "enable_mtrr_cleanup");
    let fix = match asked {
        true => {
            "take enable_mtrr_cleanup off the command line: it does nothing here, and where the \
             kernel has PAT no driver needs it"
        }
        false => "nothing, unless a driver needs a range of its own and the kernel has no PAT",
    };
    (Severity::Info, meaning, fix.into())
}

/// `Found optimal setting for mtrr clean up`
pub fn cleaned_up(dump: &Dump) -> Answer {
    let meaning = "the kernel re-arranged the ranges itself: what is in force is its arrangement, \
                   not the firmware's";
    let fix = format!("{} to keep the firmware's", without_clean_up(dump));
    (Severity::Info, meaning.into(), fix)
}
