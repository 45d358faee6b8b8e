"""The kernels of a Module for a device, as its imported module."""

from collections.abc import Iterable, Mapping

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.runtime.programs.bare_kernel import BareKernel, PackedSignature
from refcomp.runtime.programs.program import DeviceCode
from refcomp.runtime.sources import Disassemble, Sources


class DeviceModule:
    """The code of kernels for one kind of device.

    The Module that imports it calls the kernels, and saves them. Only the `bare` kernels of a code
    object can be called here.
    """

    imported_modules: tuple["DeviceModule", ...] = ()

    def __init__(
        self,
        code: DeviceCode,
        *,
        target: str,
        sources: Mapping[str, str],
        disassemble: Disassemble | None = None,
        bare: Iterable[PackedSignature] = (),
    ) -> None:
        self.target = target
        self._bare = {signature.name: BareKernel(code, signature) for signature in bare}
        self._code = code
        self._sources = Sources(sources, disassemble)

    @property
    def code(self) -> Source | Binary:
        """The code for the device's driver."""
        return self._code.code

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The names of the kernels in the device's code."""
        return tuple(kernel.symbol for kernel in self._code.kernels)

    @property
    def languages(self) -> tuple[str, ...]:
        """The formats that `get_source` knows, without the disassembly."""
        return self._sources.languages

    def get_source(self, format: str | None = None) -> str:
        """Return the text in `format`, by default the one in the device's language.

        Raises UserError if the text is missing.
        """
        return self._sources.get(format)

    def __contains__(self, name: object) -> bool:
        """Return True if `self[name]` is a kernel."""
        return name in self._bare

    def __getitem__(self, name: str) -> BareKernel:
        """Return the kernel `name` of a bare code object. UserError if it is missing."""
        if name in self._bare:
            return self._bare[name]
        if self._bare:
            raise UserError(
                f"the code object has no kernel {name!r}",
                remedy=f"it has: {', '.join(self._bare)}",
            )
        raise UserError(
            f"{name!r} cannot be called in the module of a device",
            why="the host function of a kernel computes its grid and allocates its workspaces",
            remedy="call the module that imports this one",
        )

    def __repr__(self) -> str:
        return (
            f"<refcomp device module for {self.target}: {', '.join(self.kernel_names)}>"
        )
