//! Finds out which functions a process runs: each has a breakpoint, which goes when it is hit.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

const BREAKPOINT: u8 = 0xcc;

/// Runs a command to its end. Returns those of the addresses, which are relative to the start of its program, that it came by.
pub(super) fn functions_run(command: &Command, addresses: &[u64]) -> Result<BTreeSet<u64>> {
    // A shell waits until it is traced, and then becomes the program.
    let mut waiting = Command::new("sh");
    waiting
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        waiting.current_dir(directory);
    }
    waiting.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    waiting.stdin(Stdio::null()).stdout(Stdio::null());
    let child = waiting.spawn().context("cannot start a shell")?;
    let main = Pid::from_raw(i32::try_from(child.id()).context("an id of a process")?);
    waitpid(main, Some(WaitPidFlag::WUNTRACED)).context("waiting for a shell")?;
    let options = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options).context("tracing is not allowed here")?;
    kill(main, Signal::SIGCONT).context("continuing a shell")?;
    let mut breakpoints = None;
    loop {
        // Processes that end under our hands are reported by the next wait.
        match waitpid(None, Some(WaitPidFlag::__WALL)).context("waiting for a traced process")? {
            WaitStatus::Exited(pid, code) if pid == main => {
                let Some(Breakpoints { hit, .. }) = breakpoints else { bail!("the program was not started") };
                anyhow::ensure!(code == 0, "the program failed with {code}");
                return Ok(hit);
            }
            WaitStatus::Signaled(pid, signal, _) if pid == main => bail!("the program was ended by {signal}"),
            WaitStatus::PtraceEvent(pid, _, event) if event == nix::libc::PTRACE_EVENT_EXEC => {
                if pid == main {
                    breakpoints = Some(Breakpoints::set(main, addresses)?);
                    let _ = ptrace::cont(pid, None);
                } else {
                    let _ = ptrace::detach(pid, None);
                }
            }
            WaitStatus::PtraceEvent(pid, ..) => drop(ptrace::cont(pid, None)),
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                if let Some(breakpoints) = &mut breakpoints {
                    breakpoints.pass(pid)?;
                }
                let _ = ptrace::cont(pid, None);
            }
            WaitStatus::Stopped(pid, signal) => drop(ptrace::cont(pid, signal)),
            _ => {}
        }
    }
}

struct Breakpoints {
    /// Address at which the program was loaded.
    base: u64,
    /// The bytes below the breakpoints.
    bytes: HashMap<u64, u8>,
    hit: BTreeSet<u64>,
}

impl Breakpoints {
    fn set(process: Pid, addresses: &[u64]) -> Result<Self> {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).context("reading the maps")?;
        let base = maps.split('-').next().unwrap_or_default();
        let base = u64::from_str_radix(base, 16).context("reading the maps")?;
        let memory = memory(process)?;
        let mut bytes = HashMap::new();
        for address in addresses {
            let mut byte = [0];
            memory.read_exact_at(&mut byte, base + address).context("reading the program")?;
            memory.write_all_at(&[BREAKPOINT], base + address).context("writing a breakpoint")?;
            bytes.insert(*address, byte[0]);
        }
        Ok(Self { base, bytes, hit: BTreeSet::new() })
    }

    /// Notes the breakpoint that a process stopped at, and takes it away there.
    fn pass(&mut self, process: Pid) -> Result<()> {
        let mut registers = ptrace::getregs(process).context("reading the registers")?;
        let at = registers.rip - 1;
        let address = at.wrapping_sub(self.base);
        if let Some(byte) = self.bytes.get(&address) {
            self.hit.insert(address);
            memory(process)?.write_all_at(&[*byte], at).context("removing a breakpoint")?;
            registers.rip = at;
            ptrace::setregs(process, registers).context("writing the registers")?;
        }
        Ok(())
    }
}

fn memory(process: Pid) -> Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{process}/mem")).context("opening the memory")
}
