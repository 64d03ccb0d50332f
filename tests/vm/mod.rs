//! Runs the kernel of `examples/kernel` in a virtual machine: builds it, starts QEMU, wakes it from S3, and collects its log.
//!
//! Shared by the QEMU test and the QEMU bench.

pub mod c_kernel;
pub mod object;

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

pub const QEMU: &str = "qemu-system-x86_64";

/// What the kernel's success becomes on its way through QEMU's debug-exit device.
pub const SUCCESS: i32 = 33;
/// And a failure.
pub const FAILURE: i32 = 35;

/// One virtual machine to run.
#[derive(Clone, Debug)]
pub struct Vm {
    /// `pc` or `q35`.
    pub machine: &'static str,
    /// As QEMU's `-smp` takes it.
    pub smp: &'static str,
    /// Command line of the kernel.
    pub append: String,
    /// `tcg` or `kvm`.
    pub accel: &'static str,
    /// As QEMU's `-cpu` takes it; empty for its default.
    pub cpu: &'static str,
    /// As QEMU's `-device` takes it; empty for none.
    pub device: &'static str,
    /// Another image than the kernel of `examples/kernel`.
    pub image: Option<PathBuf>,
    pub timeout: Duration,
}

/// How it went.
#[derive(Debug)]
pub struct Run {
    /// Exit code, or none after a timeout or a signal.
    pub code: Option<i32>,
    /// Everything that came out of the serial port.
    pub serial: String,
    /// What QEMU itself had to say.
    pub stderr: String,
    /// Times the machine was woken from S3.
    pub wakes: u32,
    pub elapsed: Duration,
}

impl Vm {
    pub fn new(machine: &'static str, smp: &'static str, append: impl Into<String>) -> Self {
        let factor = number("MTRR_PAT_QEMU_PATIENCE").unwrap_or(1);
        let timeout = Duration::from_secs(120) * factor;
        Self {
            machine,
            smp,
            append: append.into(),
            accel: "tcg",
            cpu: "",
            device: "",
            image: None,
            timeout,
        }
    }

    /// Boots the kernel and waits for its end. No more than `MTRR_PAT_QEMU_JOBS` (2) machines run at a time.
    pub fn run(&self) -> Run {
        let kernel = match &self.image {
            Some(image) => image,
            None => kernel(self.accel),
        };
        let _turn = Turn::take();
        let scratch = Scratch::new();
        let (serial, monitor, errors) = (
            scratch.path("serial"),
            scratch.path("monitor"),
            scratch.path("stderr"),
        );
        let started = Instant::now();
        let mut machine = self.start(kernel, &serial, &monitor, &errors);
        let deadline = started + self.timeout;
        let wakes = wake_whenever_it_sleeps(&monitor, &mut machine, deadline);
        let status = wait(&mut machine, deadline);
        let read =
            |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Run {
            code: status.and_then(|status| status.code()),
            serial: read(&serial),
            stderr: read(&errors),
            wakes,
            elapsed: started.elapsed(),
        }
    }

    fn start(&self, kernel: &Path, serial: &Path, monitor: &Path, errors: &Path) -> Child {
        let mut qemu = Command::new(QEMU);
        qemu.args([
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
            "-m",
            "512M",
        ])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
        .args([
            "-machine",
            self.machine,
            "-accel",
            self.accel,
            "-smp",
            self.smp,
        ])
        .args(["-serial", &format!("file:{}", serial.display())])
        .args([
            "-qmp",
            &format!("unix:{},server=on,wait=off", monitor.display()),
        ]);
        if !self.cpu.is_empty() {
            qemu.args(["-cpu", self.cpu]);
        }
        if !self.device.is_empty() {
            qemu.args(["-device", self.device]);
        }
        qemu.arg("-kernel")
            .arg(kernel)
            .args(["-append", &self.append]);
        let errors = fs::File::create(errors).expect("scratch file for QEMU's messages");
        qemu.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        qemu.spawn()
            .unwrap_or_else(|error| panic!("{QEMU} does not start ({error}). {MISSING}"))
    }
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "-machine {} -smp {} -accel {}",
            self.machine, self.smp, self.accel
        )?;
        if !self.cpu.is_empty() {
            write!(f, " -cpu {}", self.cpu)?;
        }
        if !self.device.is_empty() {
            write!(f, " -device {}", self.device)?;
        }
        if let Some(image) = &self.image {
            write!(f, " -kernel {}", image.display())?;
        }
        write!(f, " -append \"{}\"", self.append)
    }
}

impl Run {
    /// The end line *and* the exit code: a silent kernel is a failed one.
    pub fn succeeded(&self) -> bool {
        self.code == Some(SUCCESS)
            && self
                .serial
                .lines()
                .next_back()
                .is_some_and(|line| line.trim_end() == "ALL DONE differ=0")
    }
}

/// An environment variable that holds a number.
pub fn number(name: &str) -> Option<u32> {
    let value = env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value}: not a number")),
    )
}

const MISSING: &str = "Run ./tests/run.sh, which installs what is missing and runs every test; \
     or set MTRR_PAT_QEMU=skip to leave the tests in virtual machines out.";

/// False when the caller of the tests asked for no virtual machines.
///
/// A machine without QEMU that did not ask fails: a test that quietly does not run is worse than none.
pub fn wanted() -> bool {
    if env::var("MTRR_PAT_QEMU").is_ok_and(|value| value == "skip") {
        // Straight to the error stream: the test runner swallows what the print macros say.
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            let _ = io::stderr().write_all(
                b"SKIPPED: the tests that run the kernel in virtual machines, because MTRR_PAT_QEMU=skip\n",
            );
        });
        return false;
    }
    let found = Command::new(QEMU)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "{QEMU} is not installed. {MISSING}"
    );
    true
}

/// Path of the kernel image for an accelerator; built at the first call. For KVM it is built without vector instructions, which
/// software KVM does not emulate.
/// The kernel for TCG; `None` where the tests in virtual machines are left out.
pub fn built() -> Option<&'static Path> {
    wanted().then(|| kernel("tcg"))
}

fn kernel(accel: &str) -> &'static Path {
    static PLAIN: OnceLock<PathBuf> = OnceLock::new();
    static WITHOUT_VECTORS: OnceLock<PathBuf> = OnceLock::new();
    match accel {
        "kvm" => WITHOUT_VECTORS
            .get_or_init(|| build("target/no-sse", &["--config", ".cargo/no-sse.toml"])),
        _ => PLAIN.get_or_init(|| build("target", &[])),
    }
}

fn build(target: &str, extra: &[&str]) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kernel");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // In the package's folder, without flags from outside: the kernel's own .cargo/config.toml must be read, and win.
    cargo
        .current_dir(&package)
        .args(["build", "--release", "--target-dir", target])
        .args(extra);
    for variable in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
    ] {
        cargo.env_remove(variable);
    }
    let output = cargo.output().expect("cargo can be started");
    assert!(
        output.status.success(),
        "the kernel does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    package
        .join(target)
        .join("x86_64-unknown-linux-gnu/release/kernel")
}

/// QEMU says SUSPEND on its monitor when the guest has gone to S3; it is woken at once. Returns the number of times, when QEMU hangs up.
fn wake_whenever_it_sleeps(socket: &Path, machine: &mut Child, deadline: Instant) -> u32 {
    let Some(stream) = connect(socket, machine, deadline) else {
        return 0;
    };
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a time limit on the socket");
    let mut commands = stream.try_clone().expect("a second handle on the socket");
    let mut events = BufReader::new(stream);
    let mut wakes = 0;
    let mut line = String::new();
    // A guest that ended is not there to hear it.
    let _ = commands.write_all(b"{\"execute\":\"qmp_capabilities\"}\n");
    while Instant::now() < deadline {
        match events.read_line(&mut line) {
            Ok(0) => break,
            Ok(_) => {
                let event = serde_json::from_str::<serde_json::Value>(&line).unwrap_or_default();
                if event["event"] == "SUSPEND" {
                    let _ = commands.write_all(b"{\"execute\":\"system_wakeup\"}\n");
                    wakes += 1;
                }
                line.clear();
            }
            // What has been read so far stays in `line`.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    wakes
}

pub fn connect(socket: &Path, machine: &mut Child, deadline: Instant) -> Option<UnixStream> {
    while Instant::now() < deadline {
        if let Ok(stream) = UnixStream::connect(socket) {
            return Some(stream);
        }
        if machine.try_wait().is_ok_and(|status| status.is_some()) {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Waits for the end, and makes one at the deadline.
fn wait(machine: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = machine.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            let _ = machine.kill();
            let _ = machine.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A folder of its own for each machine, gone afterwards. Not below the target folder: a socket's path may have 107 bytes only.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "mtrr-pat-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a scratch folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The right to run one machine.
pub struct Turn;

static RUNNING: Mutex<u32> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl Turn {
    pub fn take() -> Self {
        let most = number("MTRR_PAT_QEMU_JOBS").unwrap_or(2);
        let mut running = RUNNING.lock().expect("nobody panics with this lock");
        while *running >= most {
            running = ENDED.wait(running).expect("nobody panics with this lock");
        }
        *running += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().expect("nobody panics with this lock") -= 1;
        ENDED.notify_one();
    }
}
