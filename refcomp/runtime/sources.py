"""The source texts of compiled code by language, including the disassembly on demand."""

from collections.abc import Callable, Mapping

from refcomp.foundation.errors import UserError

Disassemble = Callable[[], str]
# Classic names of languages.
_CLASSIC = {"ll": "llvm", "s": "asm"}


class Sources:
    """The texts of one module: language (`loop_ir`, `llvm`) -> text.

    `disassemble` makes the text `asm`, when it is first requested.
    """

    def __init__(
        self, texts: Mapping[str, str], disassemble: Disassemble | None = None
    ) -> None:
        self._texts = dict(texts)
        self._disassemble = disassemble

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of all texts, without a disassembly that was not yet made."""
        return tuple(self._texts)

    def get(self, format: str | None = None) -> str:
        """Return the text in `format`, by default the one nearest to the target.

        The classic names `ll` and `s` stand for `llvm` and `asm`.

        Raises UserError if the module has no such text.
        """
        if format is None:
            # `asm` is nearest, but takes long to make.
            printed = [name for name in self._texts if name not in ("loop_ir", "asm")]
            format = next(iter([*printed, *self._texts]), "loop_ir")
        else:
            format = _CLASSIC.get(format, format)
        if format == "asm" and format not in self._texts and self._disassemble:
            self._texts[format] = self._disassemble()
        if format not in self._texts:
            known = [*self._texts, *(["asm"] if self._disassemble else [])]
            raise UserError(
                f"the module has no source of format {format!r}",
                remedy=f"it has: {', '.join(known) or 'none'}",
            )
        return self._texts[format]
