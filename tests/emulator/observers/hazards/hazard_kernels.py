"""Right kernels whose groups have several waves, and what else they are made into: wrong ones.

Each runs in two groups; what they compute is what `EXPECTED` says. With the machine code come lines
of the loop IR, which findings name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.codegen.amdgpu.module import print_amdgpu
from refcomp.codegen.debug_locations import add_debug_locations
from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.findings import Finding
from refcomp.emulator.limits import Limits
from refcomp.ir.func import PrimFunc
from refcomp.toolchain import compile_source, device_layout
from tests.emulator.kernels import SMALL, disassembled

THREADS, GROUPS = 128, 2
ALL = THREADS * GROUPS

_HEAD = "(A: f32[256], C: f32[256] out, F: f32[32] out) {\n  for g in range(2) blockIdx.x {"
_ALL = f"{_HEAD} for t in range(128) threadIdx.x {{"
KERNELS = {
    "scale": f"""func scale{_ALL}
        C@[g * 128 + t] = A@[g * 128 + t] * 2.0f32 + A@[255 - g * 128 - t]
      }} }} }}""",
    "mirror": f"""func mirror{_ALL}
        alloc S: f32[128] shared {{
          S@[t] = A@[g * 128 + t]
          barrier
          C@[g * 128 + t] = S@[127 - t]
        }}
      }} }} }}""",
    "tile": f"""func tile{_ALL}
        alloc S: f32[128] shared {{ alloc s: f32[1] local {{
          s@[0] = 0.0f32
          for k in range(3) {{
            S@[t] = A@[(g * 128 + t + k * 7) % 256]
            barrier
            for j in range(6) {{ s@[0] = s@[0] + S@[(t * 16 + j) % 128] }}
            if (k < 2) {{ barrier }}
          }}
          C@[g * 128 + t] = s@[0]
        }} }}
      }} }} }}""",
    "sums": f"""func sums{_ALL}
        alloc S: f32[256] shared {{
          S@[t] = A@[g * 128 + t]
          barrier
          for k in range(7) {{
            let p: i64 = k % 2 * 128 + t {{
              S@[(k + 1) % 2 * 128 + t] =
                S@[p] + if_then_else(1 << k <= t, S@[p - (1 << k)], 0.0f32)
            }}
            barrier
          }}
          C@[g * 128 + t] = S@[255 - t]
        }}
      }} }} }}""",
    "ends": f"""func ends{_ALL}
        alloc S: f32[130] shared {{
          S@[t + 1] = A@[g * 128 + t]
          if (t == 0) {{ S@[0] = 0.0f32 }}
          if (t == 127) {{ S@[129] = 0.0f32 }}
          barrier
          C@[g * 128 + t] = S@[t] + S@[t + 1] + S@[t + 2]
        }}
      }} }} }}""",
    "turns": f"""func turns{_ALL}
        alloc S: f32[256] shared {{
          S@[t] = A@[g * 128 + t]
          barrier
          for k in range(4) {{
            S@[(k + 1) % 2 * 128 + t] = S@[k % 2 * 128 + (t + 64) % 128] + 1.0f32
            barrier
          }}
          C@[g * 128 + t] = S@[127 - t]
        }}
      }} }} }}""",
    "twice": f"""func twice{_ALL}
        C@[g * 128 + t] = A@[g * 128 + t] + 1.0f32
        barrier
        alloc s: f32[1] local {{
          s@[0] = C@[g * 128 + 127 - t]
          barrier
          C@[g * 128 + t] = s@[0] * 2.0f32
        }}
      }} }} }}""",
    "counts": f"""func counts{_ALL}
        alloc H: f32[16] shared {{
          if (t < 16) {{ H@[t] = 0.0f32 }}
          barrier
          atomic add H[(g + t) % 16] with A@[g * 128 + t]
          barrier
          if (t < 16) {{ atomic add F[t] with H@[t] }}
        }}
      }} }} }}""",
    "turned": f"""func turned{_HEAD}
      for y in range(16) threadIdx.y {{ for x in range(8) threadIdx.x {{
        alloc S: f32[16, 9] shared {{
          S@[y * 9 + x] = A@[g * 128 + y * 8 + x]
          barrier
          C@[g * 128 + x * 16 + y] = S@[y * 9 + x]
          C@[g * 128 + x * 16 + y] = C@[g * 128 + x * 16 + y] + S@[(15 - y) * 9 + x]
        }}
      }} }} }} }}""",
    "product": f"""func product{_HEAD}
      for y in range(8) threadIdx.y {{ for x in range(16) threadIdx.x {{
        alloc P: f32[8, 16] shared {{ alloc Q: f32[16, 16] shared {{ alloc s: f32[1] local {{
          s@[0] = 0.0f32
          for k in range(1) {{
            P@[y * 16 + x] = A@[g * 128 + y * 16 + x]
            Q@[y * 16 + x] = A@[y * 16 + x]
            Q@[(y + 8) * 16 + x] = A@[(y + 8) * 16 + x]
            barrier
            for r in range(16) {{ s@[0] = s@[0] + P@[y * 16 + r] * Q@[r * 16 + x] }}
          }}
          C@[g * 128 + y * 16 + x] = s@[0]
        }} }} }}
      }} }} }} }}""",
}


def expected(name: str, a: Any) -> tuple[Any, Any]:
    """C and F after the kernel."""
    rows, c, f = a.reshape(2, 128), np.zeros((2, 128), np.float32), np.zeros(32, np.float32)
    match name:
        case "scale":
            c = a * 2 + a[::-1]
        case "mirror":
            c = rows[:, ::-1]
        case "tile":
            for k in range(3):
                tile = np.roll(a, -7 * k).reshape(2, 128)
                for j in range(6):
                    c = c + tile[:, (np.arange(128) * 16 + j) % 128]
        case "sums":
            c = rows.cumsum(1)[:, ::-1]
        case "ends":
            wide = np.pad(rows, ((0, 0), (1, 1)))
            c = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
        case "turns":
            c = rows[:, ::-1] + 4
        case "twice":
            c = (rows[:, ::-1] + 1) * 2
        case "counts":
            for g in range(2):
                np.add.at(f, (g + np.arange(128)) % 16, rows[g])
        case "turned":
            tiles = rows.reshape(2, 16, 8)
            c = np.swapaxes(tiles + tiles[:, ::-1], 1, 2)
        case "product":
            c = a.reshape(2, 8, 16) @ a.reshape(16, 16)
    return c.reshape(-1), f


@dataclass(frozen=True)
class Code:
    """A code object, its assembly as text, and the loop IR whose lines it names."""

    binary: bytes
    assembly: str
    loop_ir: str


def compile_located(kernels: Sequence[PrimFunc], mcpu: str, **options: str) -> Code:
    """The kernels, with lines of the loop IR."""
    source = print_amdgpu(kernels, layout=device_layout("rocm"), mcpu=mcpu, code_object=4)
    located, loop_ir = add_debug_locations(source, kernels)
    binary = compile_source(located, {"mcpu": mcpu, **options}, "hsaco", description="rocm").data
    return Code(binary, disassembled(binary), str(loop_ir))


def draw_arrays() -> dict[str, Any]:
    """What each kernel takes."""
    values = (np.arange(ALL) % 17).astype(np.float32)
    return {"A": values, "C": np.zeros(ALL, np.float32), "F": np.zeros(32, np.float32)}


def run_hazardous(
    code: Code, name: str, assembly: str = "", **options: Any
) -> tuple[tuple[Finding, ...], Mapping[str, Any]]:
    """What is found in the kernel, by all who look for hazards; `assembly` instead of its own. With
    what it read and wrote."""
    gpu = EmulatedGpu(lambda data: assembly or code.assembly, size=SMALL, hazards=True, **options)
    arrays = draw_arrays()
    arrays["A"].flags.writeable = False
    loaded = gpu.load(code.binary)
    kernel = loaded.kernel(name)
    block = kernel.block or (THREADS, 1, 1)
    x, y, z = block
    report = gpu.run(
        loaded, name, (GROUPS, 1, 1), (x, y, z), list(arrays.values()), limits=Limits(100_000)
    )
    return report.findings, arrays
