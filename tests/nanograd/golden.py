"""Writes the checkpoints beside it with Python's cbor2, an encoder that slabgrad has no part in, as nanograd's cbor egg
writes them (see `cbor_v1` in tests/golden/seed_vectors.json), and reads them again. No file of nanograd's own was at hand.

    pip install cbor2
    python tests/nanograd/golden.py           # writes
    python tests/nanograd/golden.py FILE...   # prints the layers of checkpoints, such as one that slabgrad has written
"""

import pathlib
import struct
import sys

import cbor2

FOLDER = pathlib.Path(__file__).parent


def symbol(name):
    return cbor2.CBORTag(39, name)


def pair(key, value):
    return cbor2.CBORTag(6049280, [symbol(key), value])


def tensor(key, dtype, shape):
    count = 1
    for axis in shape:
        count *= axis
    values = [(i - count // 2) / 16 for i in range(count)]
    tag, letter = {"f32": (85, "f"), "f64": (86, "d")}[dtype]
    data = cbor2.CBORTag(tag, struct.pack(f"<{count}{letter}", *values))
    return [
        symbol(key),
        pair("dtype", symbol(dtype)),
        [symbol("shape"), *shape],
        pair("requires-grad", True),
        pair("data", data),
    ]


def layer(kind, name, *rest):
    return [pair("type", symbol(kind)), pair("name", name), *rest]


def activation(name):
    return [symbol("activation"), pair("type", symbol("activation")), pair("name", name)]


def dense(name, inputs, outputs, dtype, act, bias=True):
    biases = tensor("biases", dtype, [outputs]) if bias else pair("biases", False)
    sizes = [pair("input-size", inputs), pair("output-size", outputs), pair("dtype", symbol(dtype))]
    return layer("dense-layer", name, *sizes, tensor("weights", dtype, [outputs, inputs]), biases, activation(act))


def conv(name, inputs, outputs, kernel, stride, padding, dtype, act):
    sizes = {"in-channels": inputs, "out-channels": outputs, "kernel-size": kernel, "stride": stride, "padding": padding}
    return layer(
        "conv2d-layer",
        name,
        *[pair(key, value) for key, value in sizes.items()],
        pair("dtype", symbol(dtype)),
        tensor("weights", dtype, [outputs, inputs, kernel, kernel]),
        tensor("biases", dtype, [outputs]),
        activation(act),
    )


def checkpoint(model):
    top = [pair("format", symbol("nanograd-checkpoint")), pair("version", 1), [symbol("model"), *model]]
    return cbor2.CBORTag(55799, top)


def sequential(name, *layers):
    return layer("sequential", name, [symbol("layers"), *layers])


FILES = {
    "cnn_f32.cbor": sequential(
        "Sequential",
        conv("conv1", 1, 2, 3, 1, 1, "f32", "ReLU"),
        layer("flatten-layer", "flat"),
        sequential("head", dense("fc1", 8, 4, "f32", "GeLU"), dense("fc2", 4, 3, "f32", "Identity")),
    ),
    "dense_f64.cbor": dense("Linear", 3, 2, "f64", "Tanh", bias=False),
}


def show(item, indent=0):
    tags = {39: lambda value: value, 6049280: lambda value: f"{show_key(value[0])} . {value[1]!r}"[:100]}
    if isinstance(item, cbor2.CBORTag):
        print(" " * indent + str(tags.get(item.tag, repr)(item.value)))
    elif isinstance(item, (list, tuple)):
        for inner in item:
            show(inner, indent + 1)
    else:
        print(" " * indent + repr(item))


def show_key(key):
    return key.value if isinstance(key, cbor2.CBORTag) else key


def main():
    for path in sys.argv[1:]:
        item = cbor2.loads(pathlib.Path(path).read_bytes())
        show(item.value if isinstance(item, cbor2.CBORTag) else item)
    if len(sys.argv) == 1:
        for name, model in FILES.items():
            data = cbor2.dumps(checkpoint(model))
            assert cbor2.dumps(cbor2.loads(data)) in (data, data[3:]), name
            (FOLDER / name).write_bytes(data)
            print(f"{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
