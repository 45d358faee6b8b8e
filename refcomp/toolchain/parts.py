"""Several texts become one result: each is compiled in the background, and then all are joined.

The toolchain file marks the outputs whose last step joins the results of the steps before
(`joins_parts`). Each part has its own entry in the cache, and so has the result.

Ensures: at most as many tools run at the same time as asked for. The result does not depend on
their speed. If several parts fail, the error is that of the first one. No tool is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Self

from refcomp.foundation.artifacts import Binary, Source
from refcomp.toolchain.compile import request
from refcomp.toolchain.run import ToolRunner, tool_timeout_s


class PartsBuild:
    """Compiles texts in the background. It is a context, whose end kills the tools that still run.

    Args:
        target_options, output, description: as of `compile_source`.
        processes: how many tools may run at the same time.
        notice: called after each part, in any thread.
    """

    def __init__(
        self,
        target_options: Mapping[str, str],
        output: str,
        *,
        processes: int,
        description: str = "llvm",
        notice: Callable[[], None] = lambda: None,
    ) -> None:
        asked = request(description, target_options, output)
        self._of_part = replace(asked, output=asked.output.of_part)
        self._of_all = replace(asked, output=asked.output.of_all_parts)
        self._notice = notice
        self._timeout_s = tool_timeout_s()
        self._runners: list[ToolRunner] = []
        self._results: list[Future[bytes]] = []
        self._has_failed = False
        self._pool = ThreadPoolExecutor(processes, thread_name_prefix="refcomp-part")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill_from(0)
        self._pool.shutdown(cancel_futures=True)

    def start(self, source: Source, options: Mapping[str, str] | None = None) -> None:
        """Compile `source` as soon as a process is free. `options` are those of this part alone."""
        asked = self._of_part
        asked = replace(asked, options={**asked.options, **(options or {})})
        number = len(self._runners)
        runner = ToolRunner(self._timeout_s)
        self._runners.append(runner)
        if self._has_failed:
            runner.kill()
        result = self._pool.submit(asked.result, source, runner=runner)
        self._results.append(result)
        result.add_done_callback(lambda done: self._part_is_done(number, done))

    def join(self, requires: frozenset[str]) -> Binary:
        """Wait for all parts, and return their result. `requires` are libraries, as of a Source.

        Raises the error of the first part that failed.
        """
        objects = [result.result() for result in self._results]
        source = Source("", self._of_all.chain.language, requires=requires)
        runner = ToolRunner(self._timeout_s)
        data = self._of_all.result(source, objects, runner=runner)
        return Binary(data, self._of_all.output.format)

    def _part_is_done(self, number: int, done: Future[bytes]) -> None:
        if done.cancelled() or done.exception() is not None:
            # Earlier parts go on: `join` raises their error, should one of them fail, too.
            self._has_failed = True
            self._kill_from(number + 1)
        else:
            self._notice()

    def _kill_from(self, number: int) -> None:
        for runner in self._runners[number:]:
            runner.kill()
