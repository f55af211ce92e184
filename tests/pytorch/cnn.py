"""Trains a small convolutional network with batch norm in PyTorch for a few steps, and writes its state_dict, an input and
the logits for it into the folder that is the argument. `cargo xtask pytorch` runs this; the files beside it are its output."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(32, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(20):
        x, y = 0.5 + torch.randn(16, 1, 8, 8), torch.randint(10, (16,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    x = 0.5 + torch.randn(4, 1, 8, 8)
    with torch.no_grad():
        logits = net(x)
    save_file(net.state_dict(), folder / "cnn.safetensors")
    save_file({"x": x, "logits": logits}, folder / "cnn_expected.safetensors")
    for name, dtype in [("f16", torch.float16), ("bf16", torch.bfloat16), ("f64", torch.float64)]:
        tensors = {key: value.to(dtype) for key, value in net.state_dict().items() if value.is_floating_point()}
        save_file(tensors, folder / f"cnn_{name}.safetensors")


main(Path(sys.argv[1]))
