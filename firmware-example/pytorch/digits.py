"""Trains the network of src/digits.rs in PyTorch, and writes its state_dict as digits.safetensors into the folder that is the
argument. `cargo xtask pytorch` runs this; the file beside it is its output."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

DATA = Path(__file__).resolve().parents[2] / "data" / "digits.bin"


def digits():
    """Images and labels of the samples that the device and the test leave: see examples/data/mod.rs."""
    records = torch.frombuffer(bytearray(DATA.read_bytes()), dtype=torch.uint8).reshape(-1, 65)
    place = torch.arange(len(records)) % 9
    records = records[(place != 4) & (place != 1) & (place != 7)]
    return records[:, :64].reshape(-1, 1, 8, 8) / 16, records[:, 64].long()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)  # for so small a network, threads wait for one another
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    images, labels = digits()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(15):
        total = 0.0
        batches = torch.randperm(len(images)).split(24)
        for batch in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch:2}: loss {total / len(batches):.4f}")
    save_file(net.state_dict(), folder / "digits.safetensors")


main(Path(sys.argv[1]))
