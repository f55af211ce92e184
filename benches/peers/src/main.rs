//! The end in Rust of a peer that `benches/steps/peer.rs` talks to: `slabgrad-peers burn W1 FILE`, or `candle`.

mod burn;
mod candle;
mod workload;

use std::io::BufRead;

use cpu_time::ProcessTime;
use workload::Workload;

/// A framework that trains.
trait Peer {
    /// Starts anew from the parameters that it was given.
    fn restart(&mut self);

    /// Makes a training step with this batch, and returns the loss before it.
    fn step(&mut self, batch: usize) -> f32;
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [framework, name, file] = words[..] else { panic!("the arguments are a framework, a workload and a file") };
    let workload = Workload::read(name, file);
    let batches = workload.batches.len();
    let (name, mut peer): (&str, Box<dyn Peer>) = match framework {
        "burn" => ("burn 0.22.1, flex", Box::new(burn::Burn::new(workload))),
        "candle" => ("candle 0.11.1", Box::new(candle::Candle::new(workload))),
        _ => panic!("{framework} is not known"),
    };

    println!("{name}");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let steps = line.strip_prefix("t ").and_then(|steps| steps.parse().ok());
        let steps: usize = steps.unwrap_or_else(|| panic!("only training is known, not {line}"));
        peer.restart();
        let start = ProcessTime::now();
        for i in 0..steps {
            peer.step(i % batches);
        }
        let time = start.elapsed().as_nanos();
        println!("{time} {}", peer.step(steps % batches));
    }
}
