"""The end of a peer in Python that `benches/steps/peer.rs` talks to."""

import sys
import time

import numpy

# For each workload: shapes of the weights, each of which has a bias behind it; features and samples; the batch.
WORKLOADS = {
    "W1": ([(32, 64), (10, 32)], (64,), 256, 16),
    "W2": ([(256, 784), (128, 256), (10, 128)], (784,), 512, 32),
    "W3": ([(16, 1, 3, 3), (32, 16, 3, 3), (64, 6272), (4, 64)], (1, 28, 28), 512, 32),
}


class Workload:
    """Parameters to start from, and batches of samples and labels."""

    def __init__(self, name, file):
        weights, features, samples, batch = WORKLOADS[name]
        shapes = [shape for weight in weights for shape in (weight, weight[:1])]
        shapes += [(samples // batch, batch, *features), (samples // batch, batch)]
        sizes = [numpy.prod(shape) for shape in shapes]
        numbers = numpy.fromfile(file, "<f4")
        assert numbers.size == sum(sizes), f"{name}: {numbers.size} numbers in {file}"
        parts = numpy.split(numbers, numpy.cumsum(sizes)[:-1])
        *self.parameters, self.x, labels = [part.reshape(shape) for part, shape in zip(parts, shapes)]
        self.labels = labels.astype(numpy.int64)


def serve(name, prepare):
    """`prepare` makes of a workload what starts anew, what makes step `i` and returns its loss, and what waits for it."""
    restart, step, wait = prepare(Workload(*sys.argv[1:]))
    print(name, flush=True)
    for line in sys.stdin:
        what, steps = line.split()
        assert what == "t", f"only training is known, not {line}"
        restart()
        start = time.process_time_ns()
        for i in range(int(steps)):
            loss = step(i)
        wait(loss)
        elapsed = time.process_time_ns() - start
        print(elapsed, float(step(int(steps))), flush=True)
