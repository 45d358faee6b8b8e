#!/usr/bin/env python3
"""Judges three foreign backends by `refcomp judge`: numpy in f32, ONNX Runtime, and a broken C.

The computation is y = softmax(x w), as tensor expressions (`computation`) and as an ONNX model. A
backend is a command that reads its inputs from an .npz file and writes its results, also those in
between, to another; judge gives it both paths. No tolerance is chosen: the error bound of each
element follows from its dtype, lengths and operations. Without a C compiler the third is left out.
"""

import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import refcomp as rc

# house: allow-long (three backends, and what they compute in two forms)
ROWS, DEPTH, COLUMNS = 6, 64, 10
BROKEN = r"""
void product(const float *x, const float *w, float *z) {
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 10; j++) {
      z[i * 10 + j] = 0;
      for (int k = 0; k < 63; k++) z[i * 10 + j] += x[i * 64 + k] * w[k * 10 + j];
    }
}
"""


def computation():
    """Return what a back end should compute: a schedule, and x, w and y."""
    x, w = rc.placeholder((ROWS, DEPTH), name="x"), rc.placeholder((DEPTH, COLUMNS), name="w")
    k, j = rc.reduce_axis((0, DEPTH), "k"), rc.reduce_axis((0, COLUMNS), "j")
    z = rc.compute((ROWS, COLUMNS), lambda i, c: rc.sum(x[i, k] * w[k, c], axis=k), name="z")
    m = rc.compute((ROWS,), lambda i: rc.max(z[i, j], axis=j), name="m")
    e = rc.compute((ROWS, COLUMNS), lambda i, c: rc.exp(z[i, c] - m[i]), name="e")
    j = rc.reduce_axis((0, COLUMNS), "j")
    t = rc.compute((ROWS,), lambda i: rc.sum(e[i, j], axis=j), name="t")
    y = rc.compute((ROWS, COLUMNS), lambda i, c: e[i, c] / t[i], name="y")
    return rc.create_schedule(y), [x, w, y], "softmax_of_product"


def by_numpy(x, w, product=np.matmul):
    z = product(x, w)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return {"z": z, "y": e / e.sum(axis=1, keepdims=True)}


def by_broken_c(x, w, library):
    z = np.empty((ROWS, COLUMNS), np.float32)
    ctypes.CDLL(library).product(*(array.ctypes.data_as(ctypes.c_void_p) for array in (x, w, z)))
    return by_numpy(x, w, lambda _x, _w: z)


def by_onnxruntime(x, w, model):
    import onnxruntime  # noqa: PLC0415 (optional)

    return {"y": onnxruntime.InferenceSession(model).run(["y"], {"x": x, "w": w})[0]}


def write_model(path):
    """Write the computation as an ONNX model."""
    from onnx import helper, save  # noqa: PLC0415 (optional)

    product = helper.make_node("MatMul", ["x", "w"], ["z"])
    softmax = helper.make_node("Softmax", ["z"], ["y"], axis=1)
    shapes = {"x": (ROWS, DEPTH), "w": (DEPTH, COLUMNS), "y": (ROWS, COLUMNS)}
    x, w, y = (helper.make_tensor_value_info(n, 1, shape) for n, shape in shapes.items())
    graph = helper.make_graph([product, softmax], "softmax_of_product", [x, w], [y])
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def judge(title, what, *backend):
    """Print the verdict of `refcomp judge` on this script as a back end."""
    command = [sys.executable, "-m", "refcomp.cli", "judge", what, "--json", "--"]
    command += [sys.executable, __file__]
    done = subprocess.run([*command, *backend, "{inputs}", "{results}"], capture_output=True)
    report = json.loads(done.stdout)
    told = [f"{result['name']}: {result['summary']}" for result in report["results"]]
    told += [f"suspected: {suspect}" for suspect in report["suspects"]]
    print(f"{title}: {report['verdict']}", *told, sep="\n  ")


def walk(folder):
    """Judge the three back ends one after the other."""
    model, source, library = (str(Path(folder, f"product.{end}")) for end in ("onnx", "c", "so"))
    judge("numpy in f32", __file__, "numpy", "")
    write_model(model)
    judge("ONNX Runtime", model, "onnxruntime", model)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("broken C: left out, because no C compiler was found (apt-get install gcc)")
        return
    Path(source).write_text(BROKEN)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    judge("broken C", __file__, "c", library)


def run_backend(name, extra, given, results):
    """Act as one of the back ends."""
    function = {"numpy": by_numpy, "onnxruntime": by_onnxruntime, "c": by_broken_c}[name]
    arrays = np.load(given)
    np.savez(results, **function(arrays["x"], arrays["w"], *([extra] if extra else [])))


if __name__ == "__main__" and len(sys.argv) > 1:
    run_backend(*sys.argv[1:])
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as private:
        walk(private)
