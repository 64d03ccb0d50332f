//! What there is to say beside a code.

use core::ffi::c_char;
use core::fmt::{self, Display, Write};

use mtrr_pat::error::{Error, Left};
use mtrr_pat::report::Outcome;
use mtrr_pat::sync::{Attendance, Summary};

use crate::code::mtrr_pat_code::{self, MTRR_PAT_OK, MTRR_PAT_OUT_OF_SYNC};

/// Bytes of `mtrr_pat_info.text`, with the zero at its end.
pub const MTRR_PAT_TEXT: usize = 232;

/// What a call came to, in full. Every call that takes one sets all of it; NULL is taken where nobody
/// wants it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct mtrr_pat_info {
    /// 1: the call was carried out, and an error is about registers, of this CPU or of those that met.
    /// 0: it was refused, and nothing was done, or not to the end.
    pub done: u32,
    /// What the call returned: an `enum mtrr_pat_code`.
    pub code: u32,
    /// The CPU an error is about, or the first of `count`.
    pub cpu: u32,
    /// How many CPUs an error is about.
    pub count: u32,
    /// The register an error is about.
    pub msr: u32,
    /// What a failed write left in force: an `enum mtrr_pat_left`.
    pub left: u32,
    /// The value an error is about: of a register, or an APIC id.
    pub value: u64,
    /// boot_init, ap_online, boot_resume: ticks of the time-stamp counter it took.
    pub ticks: u64,
    /// resync, check, change: generation of the target; suspend too.
    pub epoch: u32,
    /// resync, check, change: CPUs that took part.
    pub cpus: u32,
    /// resync, check, change: CPUs that differed when they were compared.
    pub differed: u32,
    /// resync, check, change: CPUs that are not in line now.
    pub out_of_sync: u32,
    /// attend: an `enum mtrr_pat_attendance`.
    pub attendance: u32,
    /// boot_init, ap_online, boot_resume: the MTRR and PAT groups that differed before (0: none).
    pub changes: u32,
    /// The error, or what was done, as a line of text. Cut off where it is too long.
    pub text: [c_char; MTRR_PAT_TEXT],
}

/// What a failed write left in force on its CPU.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum mtrr_pat_left {
    /// Nothing had been written.
    MTRR_PAT_LEFT_UNCHANGED = 0,
    /// The old map was put back.
    MTRR_PAT_LEFT_ROLLED_BACK = 1,
    /// The MTRRs are off: all memory is uncachable on this CPU.
    MTRR_PAT_LEFT_TORN = 2,
    /// The map is right; only what does not bear on it differs.
    MTRR_PAT_LEFT_UNUSED_PAIRS = 3,
    /// Somebody else wrote to the registers meanwhile.
    MTRR_PAT_LEFT_ALTERED = 4,
}

impl From<Left> for mtrr_pat_left {
    fn from(left: Left) -> Self {
        match left {
            Left::Unchanged => Self::MTRR_PAT_LEFT_UNCHANGED,
            Left::RolledBack => Self::MTRR_PAT_LEFT_ROLLED_BACK,
            Left::Torn => Self::MTRR_PAT_LEFT_TORN,
            Left::UnusedPairs => Self::MTRR_PAT_LEFT_UNUSED_PAIRS,
            Left::Altered => Self::MTRR_PAT_LEFT_ALTERED,
        }
    }
}

/// How a CPU's part in a rendezvous went.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum mtrr_pat_attendance {
    /// There is none that wants this CPU.
    MTRR_PAT_NOT_NOW = 0,
    /// It was called off; nothing was changed.
    MTRR_PAT_CALLED_OFF = 1,
    /// This CPU did what it had to; the report has the outcome.
    MTRR_PAT_DONE = 2,
}

/// Nothing yet.
const EMPTY: mtrr_pat_info = mtrr_pat_info {
    done: 0,
    code: 0,
    cpu: 0,
    count: 0,
    msr: 0,
    left: 0,
    value: 0,
    ticks: 0,
    epoch: 0,
    cpus: 0,
    differed: 0,
    out_of_sync: 0,
    attendance: 0,
    changes: 0,
    text: [0; MTRR_PAT_TEXT],
};

/// Where a call's answer goes.
pub(crate) type Out<'a> = Option<&'a mut mtrr_pat_info>;

/// What a call that was carried out has to say.
pub(crate) trait Answer {
    /// Writes it down, and what it makes of the call: OK, or an error of registers.
    fn put(&self, info: Out<'_>) -> mtrr_pat_code;
}

/// The end of every call.
pub(crate) fn answer<T: Answer>(result: Result<T, Error>, mut info: Out<'_>) -> mtrr_pat_code {
    if let Some(info) = info.as_deref_mut() {
        *info = EMPTY;
    }
    let code = match result {
        Ok(found) => {
            if let Some(info) = info.as_deref_mut() {
                info.done = 1;
            }
            found.put(info.as_deref_mut())
        }
        Err(error) => failed(error, info.as_deref_mut()),
    };
    if let Some(info) = info {
        info.code = code as u32;
    }
    code
}

/// A call that was refused before the library had a word in it.
pub(crate) fn refused(code: mtrr_pat_code, text: &dyn Display, info: Out<'_>) -> mtrr_pat_code {
    if let Some(info) = info {
        *info = EMPTY;
        info.code = code as u32;
        info.say(text);
    }
    code
}

/// Sets what an error says; the rest stays.
fn failed(error: Error, info: Out<'_>) -> mtrr_pat_code {
    if let Some(info) = info {
        info.details(error);
        info.say(&error);
    }
    error.into()
}

impl mtrr_pat_info {
    pub(crate) fn say(&mut self, text: &dyn Display) {
        self.text = [0; MTRR_PAT_TEXT];
        let mut room = Room {
            text: &mut self.text,
            used: 0,
        };
        let _ = write!(room, "{text}"); // cut off where it is too long
    }

    fn details(&mut self, error: Error) {
        match error {
            Error::ReadFault { msr } | Error::InvalidTarget { msr } => self.msr = msr.0,
            Error::WriteFault { msr, value, left } | Error::WriteIgnored { msr, value, left } => {
                (self.msr, self.value) = (msr.0, value);
                self.left = mtrr_pat_left::from(left) as u32;
            }
            Error::ReadBackFault { msr, left } => {
                self.msr = msr.0;
                self.left = mtrr_pat_left::from(left) as u32;
            }
            Error::TooManyVariable { vcnt } => self.value = u64::from(vcnt),
            Error::CapDiffers { cap } => self.value = cap,
            Error::CpuOutOfRange { cpu, .. }
            | Error::NotDeclared { cpu }
            | Error::ArrivedTwice { cpu }
            | Error::AlreadyDeclared { cpu }
            | Error::SiblingStuck { cpu }
            | Error::SiblingsNotHeld { cpu }
            | Error::NotBootCpu { cpu, .. }
            | Error::IsBootCpu { cpu } => (self.cpu, self.count) = (cpu as u32, 1),
            Error::ApicIdDiffers { cpu, own, .. } => {
                (self.cpu, self.count, self.value) = (cpu as u32, 1, u64::from(own));
            }
            Error::ApicIdTaken { apic_id, by } => {
                (self.cpu, self.count, self.value) = (by as u32, 1, u64::from(apic_id));
            }
            Error::Missing { count, first } | Error::Stuck { count, first } => {
                (self.cpu, self.count) = (first as u32, count);
            }
            Error::OutOfSync { count } => self.count = count,
            _ => {}
        }
    }
}

impl Answer for () {
    fn put(&self, _: Out<'_>) -> mtrr_pat_code {
        MTRR_PAT_OK
    }
}

impl Answer for Outcome {
    fn put(&self, mut info: Out<'_>) -> mtrr_pat_code {
        if let Some(info) = info.as_deref_mut() {
            info.ticks = self.ticks;
            info.changes = u32::from(self.changes.bits());
            info.say(self);
        }
        match self.error {
            None => MTRR_PAT_OK,
            Some(error) => {
                if let Some(info) = info {
                    info.details(error);
                }
                error.into()
            }
        }
    }
}

impl Answer for Summary {
    fn put(&self, info: Out<'_>) -> mtrr_pat_code {
        if let Some(info) = info {
            (info.epoch, info.cpus) = (self.epoch, self.cpus);
            (info.differed, info.out_of_sync) = (self.differed, self.out_of_sync);
            info.count = self.out_of_sync;
            info.say(self);
        }
        match self.out_of_sync {
            0 => MTRR_PAT_OK,
            _ => MTRR_PAT_OUT_OF_SYNC,
        }
    }
}

impl Answer for Attendance {
    fn put(&self, info: Out<'_>) -> mtrr_pat_code {
        if let Some(info) = info {
            info.attendance = match self {
                Self::NotNow => mtrr_pat_attendance::MTRR_PAT_NOT_NOW,
                Self::CalledOff => mtrr_pat_attendance::MTRR_PAT_CALLED_OFF,
                Self::Done => mtrr_pat_attendance::MTRR_PAT_DONE,
            } as u32;
        }
        MTRR_PAT_OK
    }
}

/// What is left of a text's room; the last byte stays zero.
struct Room<'a> {
    text: &'a mut [c_char; MTRR_PAT_TEXT],
    used: usize,
}

impl Write for Room<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            match self.text.get_mut(self.used) {
                Some(place) if self.used < MTRR_PAT_TEXT - 1 => *place = byte as c_char,
                _ => return Err(fmt::Error),
            }
            self.used += 1;
        }
        Ok(())
    }
}
