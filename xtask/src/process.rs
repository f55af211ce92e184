//! Child processes: shown before they start, and never left behind.

use std::{
    io::{ErrorKind, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};

use crate::setup;

/// What a finished process left.
pub(crate) struct Captured {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// The standard output as it came, for those who do not write text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) time: Duration,
}

impl Captured {
    /// An error with the last lines of the output, unless the process succeeded.
    pub(crate) fn expect_success(self) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        bail!("{}\n{}{}", self.status, tail(&self.stdout), tail(&self.stderr))
    }
}

/// Runs a command whose output the reader of the terminal sees.
pub(crate) fn run(command: &mut Command, root: &Path) -> Result<()> {
    show(command, root);
    let status = command.stdin(Stdio::null()).status().map_err(|error| not_started(command, error))?;
    if status.success() {
        return Ok(());
    }
    bail!("{} ended with {status}", program(command))
}

/// Runs a command and keeps its output. A process that is not done after `limit` is killed, which is an error.
pub(crate) fn capture(command: &mut Command, root: &Path, limit: Duration) -> Result<Captured> {
    show(command, root);
    capture_quietly(command, limit)
}

/// As [`capture`], without a word on the terminal.
pub(crate) fn capture_quietly(command: &mut Command, limit: Duration) -> Result<Captured> {
    let start = Instant::now();
    let mut child = KillOnDrop(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started(command, error))?,
    );
    let stdout = read_aside(child.0.stdout.take());
    let stderr = read_aside(child.0.stderr.take());
    let status = loop {
        if let Some(status) = child.0.try_wait().context("waiting for a child process")? {
            break Some(status);
        }
        if start.elapsed() > limit {
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let time = start.elapsed();
    // A dead process closes its ends of the pipes, so that the readers come to an end.
    drop(child);
    let bytes = stdout.join().unwrap_or_default();
    let [stdout, stderr] =
        [&bytes, &stderr.join().unwrap_or_default()].map(|bytes| String::from_utf8_lossy(bytes).into_owned());

    let program = program(command);
    let status = status.with_context(|| {
        let (stdout, stderr) = (tail(&stdout), tail(&stderr));
        format!("{program} was killed: not done after {} s\n{stdout}{stderr}", limit.as_secs())
    })?;
    Ok(Captured { status, stdout, bytes, stderr, time })
}

/// A process that ends with its owner, also when the owner leaves by an error or a panic.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads in a thread of its own: a full pipe would stop the child.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What arrived before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn not_started(command: &Command, error: std::io::Error) -> anyhow::Error {
    let program = program(command);
    if error.kind() == ErrorKind::NotFound {
        anyhow!(setup::how_to_get(&program))
    } else {
        anyhow!(error).context(format!("cannot start {program}"))
    }
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn show(command: &Command, root: &Path) {
    println!("  $ {}", line(command, root));
}

/// The command as one would type it in the workspace root.
fn line(command: &Command, root: &Path) -> String {
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut words = Vec::new();
    if let Some(directory) = command.get_current_dir().filter(|&directory| directory != root) {
        words.push(format!("cd {} &&", relative(directory)));
    }
    for (name, value) in command.get_envs() {
        let value = value.unwrap_or_default().to_string_lossy();
        words.push(format!("{}={}", name.to_string_lossy(), quoted(&value)));
    }
    words.push(program(command));
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        words.push(quoted(&relative(Path::new(argument.as_ref()))));
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

/// The last lines of an output: enough to see why a program failed.
fn tail(output: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = output.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    shown.iter().flat_map(|line| ["    ", line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed_in_the_root() {
        let root = Path::new("/project");
        let mut command = Command::new("cargo");
        command.arg("doc").env("RUSTDOCFLAGS", "-D warnings").current_dir("/project/firmware");
        assert_eq!(line(&command, root), "cd firmware && RUSTDOCFLAGS='-D warnings' cargo doc");

        let mut command = Command::new("qemu");
        command.args(["-kernel", "/project/target/a"]).current_dir(root);
        assert_eq!(line(&command, root), "qemu -kernel target/a");
    }

    #[test]
    fn output_and_exit_code_are_captured() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let captured = capture_quietly(&mut command, Duration::from_secs(10)).unwrap();
        assert_eq!(captured.stdout, "out\n");
        assert_eq!(captured.stderr, "err\n");
        assert_eq!(captured.status.code(), Some(3));
        assert!(captured.expect_success().is_err());
    }

    #[test]
    fn a_process_that_takes_too_long_is_killed() {
        let start = Instant::now();
        let mut command = Command::new("sleep");
        command.arg("60");
        let error = capture_quietly(&mut command, Duration::from_millis(50)).err().unwrap();
        assert!(error.to_string().contains("sleep was killed"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let mut command = Command::new("qemu-system-arm");
        command.env("PATH", "/nowhere");
        let error = not_started(&command, ErrorKind::NotFound.into());
        assert!(error.to_string().contains("package qemu-system-arm"), "{error}");
    }
}
