#!/usr/bin/env python3
"""Enlarge a picture of 64x64 pixels to 256x256 by a network with 37 convolutions.

    enlarge_picture.py                     prints how close both enlargements come
    enlarge_picture.py astronaut.png       writes them side by side, too

The picture is scikit-image's astronaut, made four times smaller. The network has never seen it:
scripts/train_super_resolution.py trained on other photographs. A peak signal-to-noise ratio (PSNR)
compares each enlargement with the true picture; 1 dB more is an error that is 11 % smaller.

Needs LLVM, onnx, pillow and scikit-image. Exit code: 1 if bicubic interpolation is better.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import refcomp as rc

MODEL = Path(__file__).resolve().parents[1] / "data/super_resolution/super_resolution.onnx"
SIDE, SCALE = 256, 4
# Left and top of the square that is cut out of the photograph.
CORNER = (90, 0)


def read_pictures() -> tuple[Image.Image, Image.Image]:
    """Return the true picture of 256x256 pixels, and that of 64x64."""
    from skimage import data  # noqa: PLC0415 (a test's package)

    left, top = CORNER
    photograph = Image.fromarray(data.astronaut())
    true = photograph.crop((left, top, left + SIDE, top + SIDE))
    return true, true.resize((SIDE // SCALE, SIDE // SCALE), Image.Resampling.BICUBIC)


def psnr(picture: Image.Image, true: Image.Image) -> float:
    """Return the peak signal-to-noise ratio of two pictures of 8 bits, in dB."""
    difference = np.asarray(picture, np.float64) - np.asarray(true, np.float64)
    return float(10 * np.log10(255**2 / np.mean(difference**2)))


def enlarge(executor: rc.graph.StagedExecutor, small: Image.Image) -> Image.Image:
    """Return a picture that is four times larger, by the network."""
    pixels = np.asarray(small, np.float32).transpose(2, 0, 1)[None] / 255
    (enlarged,) = executor.run(picture=np.ascontiguousarray(pixels))
    shades = np.clip(enlarged.numpy()[0].transpose(1, 2, 0) * 255, 0, 255)
    return Image.fromarray(shades.round().astype(np.uint8))


def main(path: str = "") -> int:
    """Enlarge the picture both ways, compare, and return the exit code."""
    graph = rc.from_onnx(MODEL)
    executor = rc.graph.executor_for(graph)
    # Behind the first enlargement, nodes are converted for the height and width of a run.
    kinds = ("conv2d", "onnx.Conv")
    convolutions = len([node for node in graph.nodes if node.operator in kinds])
    print(f"The input is {graph.inputs[0]}: pictures of any size.")
    true, small = read_pictures()
    bicubic = small.resize(true.size, Image.Resampling.BICUBIC)
    ours = enlarge(executor, small)
    nodes = len(graph.nodes)
    print(f"{convolutions} convolutions in {nodes} nodes: {executor.launches} kernels")
    scores = {"bicubic": psnr(bicubic, true), "network": psnr(ours, true)}
    for name, score in scores.items():
        print(f"{name}: PSNR {score:.2f} dB")
    if path:
        pictures = [small.resize(true.size, Image.Resampling.NEAREST), bicubic, ours, true]
        sheet = Image.new("RGB", (SIDE * len(pictures), SIDE))
        for place, picture in enumerate(pictures):
            sheet.paste(picture, (SIDE * place, 0))
        sheet.save(path)
        print(f"{path}: 64x64 pixels, bicubic, network, truth")
    return int(scores["network"] <= scores["bicubic"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
