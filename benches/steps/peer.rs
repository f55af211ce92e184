//! Other programs that train the workloads, each in a process of its own.
//!
//! A peer first writes a line with its name and version. Then it reads lines: `t N` asks for N training steps, `i N` for N
//! inferences, each from the parameters that it was given a file of. It answers with the nanoseconds of the processor that they took, and the
//! loss of the training step that would come next. Batches come in order, from the first one. `benches/baseline/run.c`,
//! `benches/peers/peer.py` and `benches/peers/src/main.rs` are the other end.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::{What, workloads::Data};

pub(crate) struct Peer {
    pub(crate) name: String,
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// The hand-tiled C, compiled for this machine.
    pub(crate) fn c(name: &str, defines: [&str; 2], start: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline/run.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("steps-{name}"));
        // The root of Adam is an instruction only without errno.
        let status = Command::new("gcc")
            .args(["-O3", "-march=native", "-fno-math-errno", "-w"])
            .args(defines)
            .arg(source)
            .args(["-lm", "-o"])
            .arg(&program)
            .status();
        assert!(status.expect("gcc has to be installed").success(), "gcc failed");
        Self::start(Command::new(&program).arg(start))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        let (to, from) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        let mut peer = Self { name: String::new(), process, to, from: BufReader::new(from) };
        peer.name = peer.line();
        peer
    }

    /// The seconds that so many steps take, from fresh parameters, and the loss of the training step that would come next.
    pub(crate) fn run(&mut self, what: What, steps: usize) -> (f64, f32) {
        let what = if what == What::Train { 't' } else { 'i' };
        writeln!(self.to, "{what} {steps}").expect("the peer listens");
        let answer = self.line();
        let (time, loss) = answer.split_once(' ').expect("a time and a loss");
        (time.parse::<f64>().expect("nanoseconds") / 1e9, loss.parse().expect("a loss"))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the peer answers");
        assert!(!line.is_empty(), "the peer {} has gone", self.name);
        line.trim_end().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes the file that peers start from: parameters, samples and labels, as `f32` with the least significant byte first.
pub(crate) fn write_start(name: &str, parameters: &[f32], data: &Data) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("steps-{name}.f32"));
    let numbers = parameters.iter().chain(&data.x).chain(&data.labels);
    let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    path
}
