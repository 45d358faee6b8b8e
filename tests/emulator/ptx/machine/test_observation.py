"""What observers see of a launch."""

import numpy as np

from refcomp.emulator.ptx.execution.launch import PtxLaunch, launch
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from tests.emulator.ptx.texts import kernel


class _Recorder(PtxObserver):
    def __init__(self):
        self.seen = []

    def launched(self, module, grid, block, extent):
        self.seen.append(("launched", grid, block))

    def began(self, threads):
        self.seen.append(("began", threads.count))

    def accessed(self, threads, access):
        deed = "stores" if access.is_store else "loads"
        self.seen.append((deed, access.space, access.size, access.numbers.tolist()))

    def ran(self, threads, instructions, warps):
        self.seen.append(("ran", len(instructions), warps, threads.size()))

    def skipped(self, threads, instruction, count):
        self.seen.append(("skipped", instruction.opcode, count))

    def synchronized(self, threads, numbers, is_warp):
        self.seen.append(("synchronized", "warp" if is_warp else "block", len(numbers)))

    def fenced(self, threads, numbers):
        self.seen.append(("fenced", len(numbers)))


def test_observers_see_accesses_barriers_and_fences():
    text = kernel("""
        .shared .align 8 .b8 tile[16]; .local .align 4 .b8 own[4];
        setp.lt.u32 %p1, %r1, 2;
        @%p1 st.shared.v2.u32 [tile], {5, 5};
        bar.sync 0; bar.warp.sync -1; fence.acq_rel.gpu;
        st.local.u32 [own], 1;
        ld.volatile.shared.u16 %rs1, [tile];
        ret;
    """)
    gpu = EmulatedNvidiaGpu(size=1 << 20)
    recorder = _Recorder()
    request = PtxLaunch("k", (1, 1, 1), (3, 1, 1), bytes(16), observers=(recorder,))
    assert launch(gpu.load(text), request).findings == ()
    assert recorder.seen == [
        ("launched", (1, 1, 1), (3, 1, 1)),
        ("began", 32),
        ("skipped", "st", 1),
        ("stores", "shared", 8, [0, 1]),
        ("ran", 5, 1, 3),
        ("synchronized", "block", 3),
        ("ran", 1, 1, 3),
        ("synchronized", "warp", 3),
        ("fenced", 3),
        ("loads", "shared", 2, [0, 1, 2]),
        ("ran", 4, 1, 3),
    ]


def test_an_observer_may_ignore_everything():
    gpu = EmulatedNvidiaGpu(size=1 << 20)
    text = kernel("ld.global.u32 %r2, [%rd1]; ret;", ".param .u64 data")
    place = gpu.arena.allocate(4, "data")
    gpu.arena.write(place.address, np.zeros(4, np.uint8))
    request = PtxLaunch(
        "k", (1, 1, 1), (1, 1, 1), place.address.to_bytes(8, "little"), observers=(PtxObserver(),)
    )
    assert launch(gpu.load(text), request).findings == ()
