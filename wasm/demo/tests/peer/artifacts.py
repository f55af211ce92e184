"""Prepares the networks W1, W2 and W3 of bench.js for ONNX Runtime's training in the browser: python artifacts.py FOLDER.

FOLDER/NAME gets the graphs of training and of the optimizer, and a checkpoint with the first parameters.
"""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

# These parts of the package are for PyTorch, which is not needed here.
for part in ["amp", "optim"]:
    sys.modules[f"onnxruntime.training.{part}"] = ModuleType(part)
from onnxruntime.training import artifacts  # noqa: E402

OPSET = 15


class Network:
    """A chain of layers, whose parameters are drawn as they are added."""

    def __init__(self, shape):
        self.shape, self.value, self.nodes, self.parameters = shape, "x", [], []
        self.random = np.random.default_rng(1)

    def node(self, kind, *parameters, **attributes):
        names = []
        for values in parameters:
            names.append(f"p{len(self.parameters)}")
            self.parameters.append(numpy_helper.from_array(values.astype(np.float32), names[-1]))
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self.value, *names], [output], **attributes))
        self.value = output
        return self

    def linear(self, inputs, outputs):
        weight = self.random.uniform(-1, 1, (outputs, inputs)) * (6 / inputs) ** 0.5
        return self.node("Gemm", weight, np.zeros(outputs), transB=1)

    def conv2d(self, inputs, outputs, stride):
        weight = self.random.uniform(-1, 1, (outputs, inputs, 3, 3)) * (6 / inputs / 9) ** 0.5
        return self.node("Conv", weight, np.zeros(outputs), kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4)

    def relu(self):
        return self.node("Relu")

    def flatten(self):
        return self.node("Flatten")

    def write(self, folder, classes):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *self.shape])
        logits = helper.make_tensor_value_info(self.value, TensorProto.FLOAT, ["batch", classes])
        graph = helper.make_graph(self.nodes, "network", [x], [logits], self.parameters)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        checker.check_model(model)
        folder.mkdir(parents=True, exist_ok=True)
        artifacts.generate_artifacts(
            model,
            requires_grad=[parameter.name for parameter in self.parameters],
            loss=artifacts.LossType.CrossEntropyLoss,
            optimizer=artifacts.OptimType.AdamW,
            artifact_directory=str(folder),
        )


folder = Path(sys.argv[1])
Network([64]).linear(64, 32).relu().linear(32, 10).write(folder / "W1", 10)
Network([784]).linear(784, 256).relu().linear(256, 128).relu().linear(128, 10).write(folder / "W2", 10)
images = Network([1, 28, 28]).conv2d(1, 16, 1).relu().conv2d(16, 32, 2).relu().flatten()
images.linear(32 * 14 * 14, 64).relu().linear(64, 4).write(folder / "W3", 4)
