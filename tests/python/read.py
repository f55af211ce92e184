"""Reads the files that tests/python.rs has written into the folder that is the argument, with Python's cbor2, PyTorch's package
safetensors, and numpy: names, shapes, types and numbers have to be those that were written. `cargo xtask test python` runs it."""

import sys
from pathlib import Path

import cbor2
import numpy
from safetensors.numpy import load_file

TYPES = {85: "<f4", 86: "<f8"}
TAGS = {"f32": 85, "f64": 86}
MODEL = {
    "conv.weight": (2, 1, 3, 3),
    "conv.bias": (2,),
    "fc1.weight": (4, 8),
    "fc1.bias": (4,),
    "fc2.weight": (3, 4),
    "fc2.bias": (3,),
}
DICT = {
    "conv.weight": (2, 1, 3, 3),
    "conv.bias": (2,),
    "bn.weight": (2,),
    "bn.bias": (2,),
    "bn.running_mean": (2,),
    "bn.running_var": (2,),
    "fc.weight": (3, 8),
    "fc.bias": (3,),
}


def ramp(shape, dtype):
    count = int(numpy.prod(shape))
    return ((numpy.arange(count) - count // 2) / 16).astype(dtype).reshape(shape)


def same(name, found, shape, dtype):
    assert found.dtype == numpy.dtype(dtype), f"{name}: {found.dtype}"
    assert found.shape == shape, f"{name}: {found.shape}"
    assert numpy.array_equal(found, ramp(shape, dtype)), f"{name}: {found}"


def array(item, shape, element):
    assert item.tag == TAGS[element], item.tag
    return numpy.frombuffer(item.value, dtype=TYPES[item.tag]).reshape(shape)


def load(path):
    data = path.read_bytes()
    assert data[:3] == b"\xd9\xd9\xf7", "the tag that says that this is CBOR"
    return cbor2.loads(data[3:])


def model(path, element):
    file = load(path)
    assert (file["format"], file["version"], file["element"], list(file["sample"])) == ("slabgrad-model", 1, element, [1, 2, 2])
    assert len(file["tensors"]) == len(MODEL)
    for tensor, (name, shape) in zip(file["tensors"], MODEL.items()):
        assert (tensor["name"], tensor["role"], tuple(tensor["shape"])) == (name, "trained", shape), tensor
        same(name, array(tensor["data"], shape, element), shape, TYPES[TAGS[element]])


def plain(item):
    """Symbols as texts, and pairs as lists of two, as lists with more elements are."""
    if isinstance(item, cbor2.CBORTag) and item.tag in (39, 6049280):
        return plain(item.value)
    return [plain(inner) for inner in item] if isinstance(item, (list, tuple)) else item


def entries(items):
    return {key: rest[0] if len(rest) == 1 else rest for key, *rest in items}


def nanograd(path, element):
    file = entries(plain(load(path)))
    assert (file["format"], file["version"]) == ("nanograd-checkpoint", 1), file
    found = []
    for layer in entries(file["model"])["layers"]:
        layer = entries(layer)
        found += [(layer["name"], key, entries(layer[key])) for key in ("weights", "biases") if key in layer]
    assert len(found) == len(MODEL)
    for (layer, key, tensor), (name, shape) in zip(found, MODEL.items()):
        assert (layer, key[:4], name.split(".")[0]) == (name.split(".")[0], {"weight": "weig", "bias": "bias"}[name.split(".")[1]], layer)
        axes = tensor["shape"] if isinstance(tensor["shape"], list) else [tensor["shape"]]
        assert (tuple(axes), tensor["dtype"]) == (shape, element), tensor
        same(name, array(tensor["data"], shape, element), shape, TYPES[TAGS[element]])


def state_dict(path, element):
    found = load_file(path)
    assert set(found) == set(DICT), set(found) ^ set(DICT)
    for name, shape in DICT.items():
        same(name, found[name], shape, TYPES[TAGS[element]])


def main(folder):
    for element in TAGS:
        model(folder / f"model_{element}.cbor", element)
        nanograd(folder / f"nanograd_{element}.cbor", element)
        state_dict(folder / f"dict_{element}.safetensors", element)
    print("6 files have the names, shapes, types and numbers that were written")


main(Path(sys.argv[1]))
