//! A virtual machine with a screen, a keyboard and a disc, and somebody who watches it.

use super::picture::Picture;
use super::shown::Shown;
use super::vm::{self, Scratch, Turn};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub struct Watched {
    machine: Child,
    commands: UnixStream,
    answers: BufReader<UnixStream>,
    /// Names of events since the last look.
    events: Vec<String>,
    scratch: Scratch,
    /// Pages seen.
    seen: usize,
    deadline: Instant,
    /// QEMU hung up.
    over: bool,
    _turn: Turn,
}

/// Makes a disc with the kernel and these words for it.
fn image(scratch: &Scratch, words: &str, text: bool) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kernel/iso.sh");
    let image = scratch.path("kernel.iso");
    let mut make = Command::new(&script);
    make.arg(&image).args(words.split(' '));
    if text {
        make.env("GFX", "text");
    }
    let output = make.output().expect("the script can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && image.exists(),
        "{} fails; it needs grub-mkrescue, xorriso and mtools, which ./tests/run.sh installs\n{said}",
        script.display()
    );
    image
}

impl Watched {
    /// Boots the kernel from a disc with these words; `text`: on a text screen. `more` are options for QEMU.
    pub fn boot(words: &str, text: bool, more: &[String]) -> Self {
        let turn = Turn::take();
        let scratch = Scratch::new();
        let image = image(&scratch, words, text);
        let (monitor, errors) = (scratch.path("monitor"), scratch.path("stderr"));
        let mut qemu = Command::new(vm::QEMU);
        qemu.args("-nodefaults -display none -vga std -m 512M -accel tcg -smp 4".split(' '));
        qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-cdrom"])
            .arg(&image);
        qemu.args(["-trace", "ps2_set_ledstate", "-serial"])
            .arg(format!("file:{}", scratch.path("serial").display()));
        qemu.arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", monitor.display()));
        let errors = fs::File::create(errors).expect("scratch file for QEMU's messages");
        qemu.args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let mut machine = qemu.spawn().expect("QEMU is there");
        let patience = vm::number("MTRR_PAT_QEMU_PATIENCE").unwrap_or(1);
        let deadline = Instant::now() + Duration::from_secs(180) * patience;
        let stream = vm::connect(&monitor, &mut machine, deadline).expect("QEMU's monitor");
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a time limit on the socket");
        let mut watched = Self {
            machine,
            commands: stream.try_clone().expect("a second handle on the socket"),
            answers: BufReader::new(stream),
            events: Vec::new(),
            scratch,
            seen: 0,
            deadline,
            over: false,
            _turn: turn,
        };
        watched.command("qmp_capabilities", json!({}));
        watched
    }

    /// Runs a command of the monitor.
    pub fn command(&mut self, name: &str, arguments: Value) -> Value {
        let command = json!({ "execute": name, "arguments": arguments });
        writeln!(self.commands, "{command}").expect("QEMU listens");
        while self.in_time() {
            if let Some(answer) = self.line() {
                assert!(answer.get("error").is_none(), "{name}: {answer}");
                if answer.get("return").is_some() {
                    return answer;
                }
            }
        }
        panic!("no answer to {name}\n{}", self.log())
    }

    /// The next line of the monitor, if one comes soon; events are noted.
    fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            match self.answers.read_line(&mut line) {
                Ok(0) => {
                    // It ended, and may have said all it had to.
                    self.over = true;
                    return None;
                }
                Ok(_) => break,
                // What has been read so far stays in `line`.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if line.is_empty() {
                        return None;
                    }
                }
                Err(error) => panic!("{error}\n{}", self.log()),
            }
        }
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        if let Some(event) = answer["event"].as_str() {
            self.events.push(event.into());
        }
        Some(answer)
    }

    fn in_time(&self) -> bool {
        Instant::now() < self.deadline && !self.over
    }

    /// Waits for an event of the machine.
    pub fn wait_for(&mut self, event: &str) {
        while self.in_time() {
            if let Some(at) = self.events.iter().position(|seen| seen == event) {
                self.events.drain(..=at);
                return;
            }
            self.line();
        }
        panic!("no {event}\n{}", self.log())
    }

    /// Waits for a line in the log.
    pub fn wait_for_line(&mut self, wanted: &str) {
        while self.in_time() {
            if self.log().lines().any(|line| line == wanted) {
                return;
            }
            self.line();
        }
        panic!("no {wanted:?}\n{}", self.log())
    }

    /// Waits for the next page, and gives it as the kernel wrote it to the serial port.
    pub fn next_page(&mut self) -> Shown {
        loop {
            let last = !self.in_time();
            if let Some(page) = Shown::all(&self.log()).into_iter().nth(self.seen) {
                self.seen += 1;
                return page;
            }
            if last {
                break;
            }
            self.line();
        }
        panic!("no page after {}\n{}", self.seen, self.log())
    }

    pub fn press(&mut self, key: &str) {
        let keys = json!({ "keys": [{ "type": "qcode", "data": key }] });
        self.command("send-key", keys);
    }

    /// What is on the screen.
    pub fn picture(&mut self) -> Picture {
        let file = self.scratch.path("picture");
        self.command("screendump", json!({ "filename": file }));
        Picture::read(&fs::read(&file).expect("the picture"))
    }

    /// Physical memory.
    pub fn memory(&mut self, address: u64, bytes: u64) -> Vec<u8> {
        let file = self.scratch.path("memory");
        let which = json!({ "val": address, "size": bytes, "filename": file });
        self.command("pmemsave", which);
        fs::read(&file).expect("the memory")
    }

    /// What came out of the serial port.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.scratch.path("serial")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// States of the keyboard's lights, in order.
    pub fn lights(&self) -> Vec<u8> {
        let said = fs::read_to_string(self.scratch.path("stderr")).unwrap_or_default();
        let states = said.lines().filter_map(|line| {
            let (_, rest) = line.split_once("ps2_set_ledstate ")?;
            rest.rsplit(' ').next()?.parse().ok()
        });
        states.collect()
    }

    /// Waits for the end, and gives QEMU's exit code.
    pub fn end(mut self) -> Option<i32> {
        while Instant::now() < self.deadline {
            if let Ok(Some(status)) = self.machine.try_wait() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end\n{}", self.log())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}
