//! Result codes: their names and their texts.

use core::ffi::{CStr, c_char};

use mtrr_pat::error::Error;
use mtrr_pat::layout::LayoutError;

/// What a function returns. `mtrr_pat_name` and `mtrr_pat_text` put it into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum mtrr_pat_code {
    /// All is well.
    MTRR_PAT_OK = 0,
    /// The machine has no usable MTRRs.
    MTRR_PAT_NO_MTRR = 1,
    /// The machine has no PAT.
    MTRR_PAT_NO_PAT = 2,
    /// More variable ranges than MSRs for them (`value`: MTRRCAP's count).
    MTRR_PAT_TOO_MANY_VARIABLE = 3,
    /// RDMSR of `msr` raised #GP. No MTRR was written.
    MTRR_PAT_READ_FAULT = 4,
    /// WRMSR of `value` to `msr` raised #GP; `left` says what is in force.
    MTRR_PAT_WRITE_FAULT = 5,
    /// The target does not fit this CPU's MTRRCAP (`value`); no MTRR was written.
    MTRR_PAT_CAP_DIFFERS = 6,
    /// `mtrr_pat_boot_init` has not succeeded yet.
    MTRR_PAT_NOT_INITIALISED = 7,
    /// It was called already.
    MTRR_PAT_ALREADY_INITIALISED = 8,
    /// The number `cpu` is not below MTRR_PAT_CPUS.
    MTRR_PAT_CPU_OUT_OF_RANGE = 9,
    /// CPU `cpu` came without being declared starting; left as it is.
    MTRR_PAT_NOT_DECLARED = 10,
    /// CPU `cpu` came a second time; left as it is.
    MTRR_PAT_ARRIVED_TWICE = 11,
    /// CPU `cpu` is starting or running already.
    MTRR_PAT_ALREADY_DECLARED = 12,
    /// CPU `cpu` came with another APIC id (`value`) than it was declared with; left as it is.
    MTRR_PAT_APIC_ID_DIFFERS = 13,
    /// The APIC id (`value`) is CPU `cpu`'s; not declared.
    MTRR_PAT_APIC_ID_TAKEN = 14,
    /// Another rendezvous is under way: `mtrr_pat_attend`, and again.
    MTRR_PAT_BUSY = 15,
    /// `count` CPUs did not come, `cpu` first; nothing was changed.
    MTRR_PAT_MISSING = 16,
    /// `count` CPUs came and did not finish, `cpu` first; the others did.
    MTRR_PAT_STUCK = 17,
    /// The sibling `cpu` is in its window for too long.
    MTRR_PAT_SIBLING_STUCK = 18,
    /// Which threads share a core is not known: left to the next rendezvous.
    MTRR_PAT_TOPOLOGY_UNKNOWN = 19,
    /// The sibling `cpu` did not answer: left to the next rendezvous.
    MTRR_PAT_SIBLINGS_NOT_HELD = 20,
    /// The target was being replaced while it was read: again.
    MTRR_PAT_TARGET_BUSY = 21,
    /// `msr` of the wanted target is invalid; nothing was changed.
    MTRR_PAT_INVALID_TARGET = 22,
    /// The wanted target is another machine's; nothing was changed.
    MTRR_PAT_FOREIGN_TARGET = 23,
    /// The machine is suspended: no CPU starts, and none meet.
    MTRR_PAT_SUSPENDED = 24,
    /// The machine is not suspended.
    MTRR_PAT_NOT_SUSPENDED = 25,
    /// A time on the command line that no healthy CPU can keep.
    MTRR_PAT_BOUND_TOO_SHORT = 26,
    /// `count` CPUs are not in line; the report says why.
    MTRR_PAT_OUT_OF_SYNC = 27,
    /// Only the boot CPU may do this.
    MTRR_PAT_NOT_BOOT_CPU = 28,
    /// The boot CPU cannot be declared gone.
    MTRR_PAT_IS_BOOT_CPU = 29,
    /// `msr` was written and cannot be read back; `left` says what is in force.
    MTRR_PAT_READ_BACK_FAULT = 30,
    /// `msr` does not hold `value` after the write; `left` says what is in force.
    MTRR_PAT_WRITE_IGNORED = 31,
    /// An error that this header is too old for: `text` has it.
    MTRR_PAT_OTHER = 32,
    /// The range cannot have that type by MTRRs (too few registers, RAM, alignment: `text` says
    /// which): by page tables it can. Nothing was changed.
    MTRR_PAT_NO_LAYOUT = 33,
    /// A type that does not exist, a NULL where a pointer must be.
    MTRR_PAT_BAD_ARGUMENT = 34,
    /// No slot of the PAT holds the type or one that may stand in for it.
    MTRR_PAT_NO_SLOT = 35,
}

/// A code with its name, as its source has it, and its text.
macro_rules! words {
    ($name:ident, $text:literal) => {
        (
            mtrr_pat_code::$name,
            const { c_str(concat!(stringify!($name), "\0")) },
            const { c_str(concat!($text, "\0")) },
        )
    };
}

const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a zero inside"), // when this is compiled
    }
}

const CODES: usize = mtrr_pat_code::MTRR_PAT_NO_SLOT as usize + 1;

/// By code.
static WORDS: [(mtrr_pat_code, &CStr, &CStr); CODES] = [
    words!(MTRR_PAT_OK, "all is well"),
    words!(MTRR_PAT_NO_MTRR, "no usable MTRRs on this machine"),
    words!(MTRR_PAT_NO_PAT, "no PAT on this machine"),
    words!(
        MTRR_PAT_TOO_MANY_VARIABLE,
        "more variable ranges than there are registers for"
    ),
    words!(MTRR_PAT_READ_FAULT, "reading a register faulted"),
    words!(MTRR_PAT_WRITE_FAULT, "writing a register faulted"),
    words!(
        MTRR_PAT_CAP_DIFFERS,
        "this CPU's MTRRCAP does not fit the target"
    ),
    words!(
        MTRR_PAT_NOT_INITIALISED,
        "mtrr_pat_boot_init has not succeeded yet"
    ),
    words!(
        MTRR_PAT_ALREADY_INITIALISED,
        "mtrr_pat_boot_init has been called already"
    ),
    words!(MTRR_PAT_CPU_OUT_OF_RANGE, "the CPU number is out of range"),
    words!(
        MTRR_PAT_NOT_DECLARED,
        "a CPU came online without being declared starting"
    ),
    words!(MTRR_PAT_ARRIVED_TWICE, "a CPU came a second time"),
    words!(
        MTRR_PAT_ALREADY_DECLARED,
        "a CPU is starting or running already"
    ),
    words!(
        MTRR_PAT_APIC_ID_DIFFERS,
        "a CPU came with another APIC id than it was declared with"
    ),
    words!(MTRR_PAT_APIC_ID_TAKEN, "the APIC id is another CPU's"),
    words!(MTRR_PAT_BUSY, "another rendezvous is under way"),
    words!(
        MTRR_PAT_MISSING,
        "CPUs did not come to the rendezvous; nothing was changed"
    ),
    words!(MTRR_PAT_STUCK, "CPUs did not finish the rendezvous"),
    words!(MTRR_PAT_SIBLING_STUCK, "a sibling is stuck with caches off"),
    words!(
        MTRR_PAT_TOPOLOGY_UNKNOWN,
        "core topology unknown; postponed to the rendezvous"
    ),
    words!(
        MTRR_PAT_SIBLINGS_NOT_HELD,
        "a sibling did not answer; postponed to the rendezvous"
    ),
    words!(
        MTRR_PAT_TARGET_BUSY,
        "the target was being replaced while it was read"
    ),
    words!(
        MTRR_PAT_INVALID_TARGET,
        "a register of the wanted target is invalid"
    ),
    words!(
        MTRR_PAT_FOREIGN_TARGET,
        "the wanted target is of another machine"
    ),
    words!(MTRR_PAT_SUSPENDED, "the machine is suspended"),
    words!(MTRR_PAT_NOT_SUSPENDED, "the machine is not suspended"),
    words!(MTRR_PAT_BOUND_TOO_SHORT, "a time bound is too short"),
    words!(
        MTRR_PAT_OUT_OF_SYNC,
        "CPUs are not in line after a rendezvous; the report says why"
    ),
    words!(MTRR_PAT_NOT_BOOT_CPU, "only the boot CPU may do this"),
    words!(MTRR_PAT_IS_BOOT_CPU, "the boot CPU cannot be declared gone"),
    words!(
        MTRR_PAT_READ_BACK_FAULT,
        "a register that was written cannot be read back"
    ),
    words!(
        MTRR_PAT_WRITE_IGNORED,
        "a register does not hold what was written"
    ),
    words!(MTRR_PAT_OTHER, "another error"),
    words!(
        MTRR_PAT_NO_LAYOUT,
        "the range cannot have that type by MTRRs"
    ),
    words!(
        MTRR_PAT_BAD_ARGUMENT,
        "an argument is none that may be given"
    ),
    words!(
        MTRR_PAT_NO_SLOT,
        "no slot of the PAT holds the type or a stand-in"
    ),
];

/// Name and text of a code.
fn words(code: u32) -> (&'static CStr, &'static CStr) {
    let known = WORDS.iter().find(|(known, ..)| *known as u32 == code);
    known.map_or((c"?", c"no code of this library"), |(_, name, text)| {
        (*name, *text)
    })
}

impl From<Error> for mtrr_pat_code {
    fn from(error: Error) -> Self {
        match error {
            Error::NoMtrr => Self::MTRR_PAT_NO_MTRR,
            Error::NoPat => Self::MTRR_PAT_NO_PAT,
            Error::TooManyVariable { .. } => Self::MTRR_PAT_TOO_MANY_VARIABLE,
            Error::ReadFault { .. } => Self::MTRR_PAT_READ_FAULT,
            Error::WriteFault { .. } => Self::MTRR_PAT_WRITE_FAULT,
            Error::CapDiffers { .. } => Self::MTRR_PAT_CAP_DIFFERS,
            Error::NotInitialised => Self::MTRR_PAT_NOT_INITIALISED,
            Error::AlreadyInitialised => Self::MTRR_PAT_ALREADY_INITIALISED,
            Error::CpuOutOfRange { .. } => Self::MTRR_PAT_CPU_OUT_OF_RANGE,
            Error::NotDeclared { .. } => Self::MTRR_PAT_NOT_DECLARED,
            Error::ArrivedTwice { .. } => Self::MTRR_PAT_ARRIVED_TWICE,
            Error::AlreadyDeclared { .. } => Self::MTRR_PAT_ALREADY_DECLARED,
            Error::ApicIdDiffers { .. } => Self::MTRR_PAT_APIC_ID_DIFFERS,
            Error::ApicIdTaken { .. } => Self::MTRR_PAT_APIC_ID_TAKEN,
            Error::Busy => Self::MTRR_PAT_BUSY,
            Error::Missing { .. } => Self::MTRR_PAT_MISSING,
            Error::Stuck { .. } => Self::MTRR_PAT_STUCK,
            Error::SiblingStuck { .. } => Self::MTRR_PAT_SIBLING_STUCK,
            Error::TopologyUnknown => Self::MTRR_PAT_TOPOLOGY_UNKNOWN,
            Error::SiblingsNotHeld { .. } => Self::MTRR_PAT_SIBLINGS_NOT_HELD,
            Error::TargetBusy => Self::MTRR_PAT_TARGET_BUSY,
            Error::InvalidTarget { .. } => Self::MTRR_PAT_INVALID_TARGET,
            Error::ForeignTarget { .. } => Self::MTRR_PAT_FOREIGN_TARGET,
            Error::Suspended => Self::MTRR_PAT_SUSPENDED,
            Error::NotSuspended => Self::MTRR_PAT_NOT_SUSPENDED,
            Error::BoundTooShort { .. } => Self::MTRR_PAT_BOUND_TOO_SHORT,
            Error::OutOfSync { .. } => Self::MTRR_PAT_OUT_OF_SYNC,
            Error::NotBootCpu { .. } => Self::MTRR_PAT_NOT_BOOT_CPU,
            Error::IsBootCpu { .. } => Self::MTRR_PAT_IS_BOOT_CPU,
            Error::ReadBackFault { .. } => Self::MTRR_PAT_READ_BACK_FAULT,
            Error::WriteIgnored { .. } => Self::MTRR_PAT_WRITE_IGNORED,
            _ => Self::MTRR_PAT_OTHER,
        }
    }
}

impl From<LayoutError> for mtrr_pat_code {
    fn from(_: LayoutError) -> Self {
        Self::MTRR_PAT_NO_LAYOUT
    }
}

/// The name of a code: "MTRR_PAT_MISSING"; "?" for a number that is none. Any CPU, any time.
#[unsafe(no_mangle)]
pub extern "C" fn mtrr_pat_name(code: u32) -> *const c_char {
    words(code).0.as_ptr()
}

/// A code in plain English, without the numbers that `mtrr_pat_info.text` has. Any CPU, any time.
#[unsafe(no_mangle)]
pub extern "C" fn mtrr_pat_text(code: u32) -> *const c_char {
    words(code).1.as_ptr()
}
