//! What drivers asked of the kernel and did not get, and what that means.

use super::dump::Hint;
use super::findings::Severity;
use super::kernel_says::Answer;
use super::machine::Machine;
use super::words;

/// `type mismatch for e0000000,10000000 old: write-back new: write-combining`, `overlaps existing`.
pub fn refused(first: &Hint) -> Answer {
    let text = &first.text;
    let after = |key: &str| text.split(key).nth(1).map(str::trim_start);
    let pair = after("mismatch for").or_else(|| after("mtrr:"));
    let pair = pair.and_then(|pair| pair.split_whitespace().next());
    let pair = pair.and_then(|pair| pair.split_once(','));
    let range = pair.and_then(|(base, size)| Some((words::hex(base)?, words::hex(size)?)));
    let name = |key: &str| after(key).and_then(|rest| rest.split_whitespace().next());
    let (old, new) = (name("old:"), name("new:"));
    let range = range.filter(|(base, size)| *size > 0 && base.checked_add(*size).is_some());
    let wanted = match (range, new) {
        (Some((base, size)), Some(new)) => {
            format!(
                "a driver wanted {new} for {base:#x}-{:#x}",
                base + (size - 1)
            )
        }
        (Some((base, size)), None) => {
            format!("a driver wanted {base:#x}-{:#x}", base + (size - 1))
        }
        _ => "a driver wanted a range".into(),
    };
    let there = match old {
        Some(old) => {
            let article = if old.starts_with('u') { "an" } else { "a" };
            format!("{article} {old} range already covers it")
        }
        None => "another range is in the way".into(),
    };
    let fix = match range {
        Some((base, size)) => format!(
            "nothing, where page tables do it (\"x86 PAT enabled\"); else see what it costs: \
             --want {base:#x}+{size:#x}=WC"
        ),
        None => "nothing, where page tables do it (\"x86 PAT enabled\")".into(),
    };
    let meaning = format!("{wanted}, {there}, so it was refused; {HARMLESS}");
    (Severity::Info, meaning, fix)
}

/// Why a driver without its range is no worse off.
const HARMLESS: &str = "with PAT, which every kernel since about 2008 uses, drivers get \
    write-combining through page tables, and this is harmless";

/// `no more MTRRs available`
pub fn none_free(machine: &Machine) -> Answer {
    let fix = if machine.map_known() {
        "nothing, where page tables do it; else free one: see the layout, and --want for the range"
    } else {
        "nothing, where page tables do it; else paste /proc/mtrr to see which could be freed"
    };
    let meaning = format!("a driver wanted a range and all are in use; {HARMLESS}");
    (Severity::Info, meaning, fix.into())
}

/// `MTRR allocation failed` and the like.
pub fn driver_without() -> Answer {
    let meaning = format!("a driver got no write-combining range; {HARMLESS}");
    let fix = "look for \"type mismatch\" or \"no more MTRRs\" before it, which say why";
    (Severity::Info, meaning, fix.into())
}

/// `base(0x430000000) is not aligned on a size(0x20000000) boundary`: what would be.
pub fn not_expressible(first: &Hint) -> Answer {
    let number = |key: &str| {
        let rest = first.text.split(key).nth(1)?;
        words::hex(rest.split(')').next()?)
    };
    let meaning = "the range asked for is none that one register can express: its size has to be a \
                   power of two, its base a multiple of the size, both within the address width";
    let fix = match (number("base("), number("size(")) {
        (Some(base), Some(size)) if size > 0 && base.checked_add(size).is_some() => {
            format!(
                "ask for its pieces: {}",
                pieces(base, base + size).join(", ")
            )
        }
        _ => "ask for the power-of-two pieces it consists of".into(),
    };
    (Severity::Info, meaning.into(), fix)
}

/// `start..end` in aligned powers of two, at most eight of them.
fn pieces(mut start: u64, end: u64) -> Vec<String> {
    let mut out = Vec::new();
    while start < end && out.len() < 8 {
        let aligned = if start == 0 {
            1 << 62
        } else {
            start & start.wrapping_neg()
        };
        let fits = 1 << (end - start).ilog2();
        let size = aligned.min(fits);
        out.push(format!("{start:#x}+{size:#x}"));
        start += size;
    }
    out
}

/// An InfiniBand or network adapter's buffers.
pub fn send_buffers(first: &Hint) -> Answer {
    if first.text.contains("is not supported") || first.text.contains("blue flame") {
        let meaning = "writes to the adapter are not combined, or it has nowhere to take them: short \
                       messages take longer to send, nothing else. Page tables ask for it, so a \
                       hypervisor, the platform or a kernel without PAT withholds it";
        let fix = "see `dmesg | grep PAT`; in a virtual machine it is the hypervisor's to give";
        return (Severity::Warning, meaning.into(), fix.into());
    }
    let meaning = "the adapter's driver wanted a write-combining range for its send buffers and \
                   got none: short messages take longer to send. Old drivers (ib_ipath) know \
                   MTRRs only; ib_qib uses page tables, unless told otherwise";
    let fix = "load ib_qib with wc_pat=1, its default; else free a range for it: paste /proc/mtrr";
    (Severity::Warning, meaning.into(), fix.into())
}

/// X servers take write-combining off memory with registers in it.
pub fn taken_away(first: &Hint) -> Answer {
    if first.text.contains("Failed") {
        let meaning = "an X server wanted to take write-combining off memory that holds registers, and \
                       could not: writes to them may be combined, which can confuse the card";
        let fix = "see which range of /proc/mtrr covers it, and free that: echo \"disable=N\"";
        return (Severity::Warning, meaning.into(), fix.into());
    }
    let meaning = "an X server took write-combining off memory that holds registers, as it has to: \
                   nothing is wrong";
    (Severity::Info, meaning.into(), String::new())
}
