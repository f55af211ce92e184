//! What of a network the device trains: choices that papers about training on devices make, and what each of them takes.
//!
//! - The last layers, whose gradients need nothing of those before them (Lin et al., *On-Device Training Under 256KB Memory*, 2022).
//! - Biases alone, whose gradients need no activations (Cai et al., *`TinyTL`*, 2020), or norms alone (Mudrakarta et al., *K for the
//!   Price of 1*, 2019); with the last layer where the classes change.
//!
//! `cargo xtask plan` prints a table of RAM and work for each.

use slabgrad::prelude::*;

/// The choices that are compared, by name.
pub const ALL: [(&str, Choice); 7] = [
    ("last layer", Choice::last(1)),
    ("last 2 layers", Choice::last(2)),
    ("all layers", Choice::last(3)),
    ("biases", Choice::biases()),
    ("norms", Choice::norms()),
    ("biases and last layer", Choice::biases().and_last()),
    ("norms and last layer", Choice::norms().and_last()),
];

/// The layers of a network from the first to the last, each as the names of what belongs to it.
pub struct Layers {
    /// Of each layer its own name, and those of the norms behind it.
    pub layers: &'static [&'static [&'static str]],
    /// The norms.
    pub norms: &'static [&'static str],
}

/// What is trained; all else lies in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    last: usize,
    biases: bool,
    norms: bool,
}

impl Choice {
    /// The last `count` layers, with their norms.
    #[must_use]
    pub const fn last(count: usize) -> Self {
        Self { last: count, biases: false, norms: false }
    }

    /// All biases, those of norms too.
    #[must_use]
    pub const fn biases() -> Self {
        Self { last: 0, biases: true, norms: false }
    }

    /// The weights and biases of all norms.
    #[must_use]
    pub const fn norms() -> Self {
        Self { last: 0, biases: false, norms: true }
    }

    /// The last layer too.
    #[must_use]
    pub const fn and_last(self) -> Self {
        Self { last: 1, ..self }
    }

    /// Freezes what is not trained.
    ///
    /// # Panics
    /// When the network has fewer layers, or nothing of a name.
    #[must_use]
    pub const fn apply_to(self, mut g: Graph, net: &Layers) -> Graph {
        g.freeze("");
        let mut i = net.layers.len() - self.last;
        while i < net.layers.len() {
            unfreeze_all(&mut g, net.layers[i]);
            i += 1;
        }
        if self.biases {
            g.unfreeze_leaves("bias");
        }
        if self.norms {
            unfreeze_all(&mut g, net.norms);
        }
        g
    }
}

const fn unfreeze_all(g: &mut Graph, names: &[&str]) {
    let mut i = 0;
    while i < names.len() {
        g.unfreeze(names[i]);
        i += 1;
    }
}
