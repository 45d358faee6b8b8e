"""Functions of PTX: their heads, and the statements between their braces.

Source: "Parallel Thread Execution ISA", sections "PTX Statements", "Kernel and Function
Directives", "Control Flow Directives" and "Performance-Tuning Directives".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from refcomp.emulator.ptx.text.constants import read_whole
from refcomp.emulator.ptx.text.declarations import (
    SPACES,
    read_head,
    read_parameter,
    read_registers,
    read_variables,
    skip_parentheses,
)
from refcomp.emulator.ptx.text.module import (
    LabelName,
    Location,
    PtxFunction,
    PtxInstruction,
    Register,
    Variable,
)
from refcomp.emulator.ptx.text.operands import OperandReader
from refcomp.emulator.ptx.text.scopes import Scopes
from refcomp.emulator.ptx.text.tokens import Tokens
from refcomp.foundation.counted import counted

# Opcodes after which the following instruction does not run.
_LEAVING = frozenset({"ret", "exit", "trap", "bra", "brx"})
# Directives between the parameters and the body -> the greatest number of numbers that follow.
_LIMITS = {
    ".maxntid": 3,
    ".reqntid": 3,
    ".minnctapersm": 1,
    ".maxnctapersm": 1,
    ".maxnreg": 1,
    ".noreturn": 0,
    ".explicitcluster": 0,
    ".reqnctapercluster": 3,
    ".maxclusterrank": 1,
    ".blocksareclusters": 0,
    ".abi_preserve": 1,
    ".abi_preserve_control": 1,
}


def read_function(
    tokens: Tokens,
    *,
    is_extern: bool,
    globals_: Container[str],
    files: Mapping[int, str],
    use: Callable[[str], None],
) -> PtxFunction:
    """Read a function from its directive `.entry` or `.func` on.

    Args:
        tokens: the tokens; the current one is the directive.
        is_extern: True for a declaration of a function of another module.
        globals_: the names of variables and functions of the module.
        files: number of a source file in `.loc` -> its name.
        use: called with each name that the function uses and does not declare.
    """
    tokens.count_piece()
    line = tokens.line
    is_entry = tokens.advance() == ".entry"
    scopes = Scopes(tokens, globals_)
    results = () if is_entry else _parameters(tokens, scopes)
    if tokens.accept(".attribute"):
        skip_parentheses(tokens)
    name = tokens.name("a function")
    parameters = _parameters(tokens, scopes)
    limits = _limits(tokens)
    function = PtxFunction(
        name, is_entry, results, parameters, limits=limits, line=line
    )
    if tokens.accept(";"):
        return replace(function, is_declaration=True)
    if is_extern:
        tokens.fail(f"{name} is declared .extern and has a body")
    body = _Body(tokens, scopes, files, use)
    body.read()
    body.return_at_end()
    return replace(
        function,
        registers=scopes.registers,
        variables=tuple(scopes.variables.values()),
        instructions=tuple(body.instructions),
        labels=body.labels,
        branch_targets=body.lists,
    )


def _parameters(tokens: Tokens, scopes: Scopes) -> tuple[Variable, ...]:
    """Read parameters or results in parentheses, if there are any."""
    found: list[Variable] = []
    if tokens.accept("("):
        while tokens.text != ")":
            found.append(read_parameter(tokens))
            scopes.declare_parameter(found[-1])
            if not tokens.accept(","):
                break
        tokens.expect(")", "behind the parameters of a function")
    return tuple(found)


def _limits(tokens: Tokens) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    while tokens.kind == "directive":
        text = tokens.advance()
        if text == ".pragma":
            skip_pragma(tokens)
            continue
        if text not in _LIMITS:
            tokens.fail(f"{text} does not belong in front of the body of a function")
        numbers: list[int] = []
        if _LIMITS[text]:
            numbers.append(read_whole(tokens, f"a number of {text}"))
            while tokens.accept(","):
                numbers.append(read_whole(tokens, f"a number of {text}"))
        if len(numbers) > _LIMITS[text]:
            tokens.fail(f"{text} has {counted(len(numbers), 'number')}")
        found[text[1:]] = tuple(numbers)
    return found


def skip_pragma(tokens: Tokens) -> None:
    """Skip the strings of `.pragma`."""
    tokens.string("a pragma")
    while tokens.accept(","):
        tokens.string("a pragma")
    tokens.expect(";", "behind a pragma")


class _Body:
    """The body of a function while it is read."""

    def __init__(
        self,
        tokens: Tokens,
        scopes: Scopes,
        files: Mapping[int, str],
        use: Callable[[str], None],
    ) -> None:
        self._tokens = tokens
        self._scopes = scopes
        self._files = files
        self._use = use
        self._operands = OperandReader(tokens, scopes, use)
        self._location: Location | None = None
        # File, line and column of a place in an inlined function -> its location.
        self._inlined: dict[tuple[int, int, int], Location] = {}
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.instructions: list[PtxInstruction] = []
        self.labels: dict[str, int] = {}
        # Name of a list -> the labels or functions in it.
        self.lists: dict[str, tuple[str, ...]] = {}

    def read(self) -> None:
        """Read the body, with its braces."""
        tokens = self._tokens
        scopes = self._scopes
        tokens.expect("{", "in front of the body of a function")
        while True:
            if tokens.kind == "word":
                self._statement()
            elif tokens.kind == "directive":
                self._directive()
            elif tokens.text == "@":
                self._predicated()
            elif tokens.accept("{"):
                scopes.open()
            elif tokens.accept("}"):
                scopes.close()
                if not scopes.depth:
                    break
            elif not tokens.accept(";"):
                tokens.fail(f"expected a statement, not {tokens.shown}")
        self._rename()

    def _statement(self) -> None:
        """Read a label or an instruction."""
        tokens = self._tokens
        start = tokens.start
        line = tokens.line
        name = tokens.advance()
        if tokens.accept(":"):
            self._label(name)
        else:
            self._instruction(name, start, line)

    def _predicated(self) -> None:
        tokens = self._tokens
        start = tokens.start
        line = tokens.line
        tokens.advance()
        is_negated = tokens.accept("!")
        predicate = self._operands.read_predicate()
        name = tokens.name("an instruction")
        self._instruction(name, start, line, predicate, is_negated)

    def _instruction(
        self,
        name: str,
        start: int,
        line: int,
        predicate: Register | None = None,
        is_negated: bool = False,
    ) -> None:
        tokens = self._tokens
        tokens.count_piece()
        while tokens.kind == "directive":  # a modifier after a blank
            name += tokens.advance()
        split = self._opcodes.get(name)
        if split is None:
            opcode, *modifiers = name.split(".")
            split = self._opcodes[name] = (opcode, tuple(modifiers))
        number = len(self.instructions)
        operands = self._operands.read_all(split[0], number)
        if tokens.text != ";":
            tokens.fail(f"expected ; behind {name}, not {tokens.shown}")
        text = tokens.since(start)
        tokens.advance()
        self.instructions.append(
            PtxInstruction(
                number,
                line,
                split[0],
                split[1],
                operands,
                text,
                predicate,
                is_negated,
                self._location,
            )
        )

    def return_at_end(self) -> None:
        """Add `ret` after the last instruction if threads can reach the end."""
        count = len(self.instructions)
        last = self.instructions[-1] if count else None
        goes_on = last is None or last.predicate or last.opcode not in _LEAVING
        if goes_on or count in {self.labels[name] for name in self._branched_to()}:
            line = last.line if last else self._tokens.line
            self.instructions.append(PtxInstruction(count, line, "ret", (), (), "ret"))

    def _branched_to(self) -> set[str]:
        """Return the labels to which a branch may lead."""
        named = {name for names in self.lists.values() for name in names}
        for one in self.instructions:
            if one.opcode == "bra":
                named |= {to.name for to in one.operands if isinstance(to, LabelName)}
        return named & self.labels.keys()

    # Labels and lists of labels.

    def _label(self, name: str) -> None:
        tokens = self._tokens
        if "." in name or (name[0] == "%" and self._scopes.find(name) is not None):
            tokens.fail(f"{name} cannot be a label")
        unique = self._scopes.declare_label(name)
        if tokens.accept(".branchtargets"):
            self.lists[unique] = self._names(unique)
        elif tokens.accept(".calltargets"):
            self.lists[unique] = self._names(None)
        elif tokens.accept(".callprototype"):
            self._skip_prototype()
        else:
            self.labels[unique] = len(self.instructions)

    def _names(self, user: str | None) -> tuple[str, ...]:
        """Read labels that a list uses, or functions if `user` is None."""
        tokens = self._tokens
        names: list[str] = []
        while True:
            name = tokens.name("a label" if user else "a function")
            names.append(name)
            if user:
                self._scopes.use_label(user, name)
            else:
                self._use(name)
            if not tokens.accept(","):
                break
        tokens.expect(";", "behind a list of places in the code")
        return tuple(names)

    def _skip_prototype(self) -> None:
        """Skip `(results) _ (parameters) .noreturn;`."""
        tokens = self._tokens
        _parameters(tokens, Scopes(tokens, ()))
        if tokens.name("a prototype") != "_":
            tokens.fail("a prototype has _ in place of a name")
        if tokens.accept("("):
            while tokens.text != ")":
                read_parameter(tokens)
                if not tokens.accept(","):
                    break
            tokens.expect(")", "behind the parameters of a prototype")
        _limits(tokens)
        tokens.expect(";", "behind a prototype")

    def _rename(self) -> None:
        """Rename the labels in branches and lists to their unique names."""
        for renamed in self._scopes.renamed:
            if isinstance(renamed.user, str):
                self.lists[renamed.user] = tuple(
                    renamed.unique if name == renamed.name else name
                    for name in self.lists[renamed.user]
                )
            else:
                instruction = self.instructions[renamed.user]
                old = LabelName(renamed.name)
                new = LabelName(renamed.unique)
                operands = tuple(
                    new if one == old else one for one in instruction.operands
                )
                self.instructions[renamed.user] = replace(
                    instruction, operands=operands
                )

    # Directives.

    def _directive(self) -> None:
        tokens = self._tokens
        text = tokens.text
        if text == ".loc":
            self._read_location()
        elif text == ".reg":
            head = read_head(tokens)
            read_registers(tokens, head, self._scopes)
        elif text in SPACES or text in (".extern", ".align"):
            is_extern = tokens.accept(".extern")
            head = read_head(tokens)
            for variable in read_variables(
                tokens, head, is_extern=is_extern, use=self._use
            ):
                self._scopes.declare_variable(variable)
        elif text == ".pragma":
            tokens.advance()
            skip_pragma(tokens)
        else:
            tokens.fail(f"{text} does not belong into a function")

    def _read_location(self) -> None:
        """Read `.loc file line column, function_name name, inlined_at file line column`."""
        tokens = self._tokens
        tokens.advance()
        place = self._place()
        caller: Location | None = None
        while tokens.accept(","):
            word = tokens.name("function_name or inlined_at")
            if word == "function_name":
                tokens.name("a function")
                if tokens.accept("+"):
                    read_location_number(tokens)
            elif word == "inlined_at":
                caller = self._caller(self._place())
            else:
                tokens.fail(f"{word} does not belong to .loc")
        location = self._known_location(place, caller)
        if caller is not None:
            self._inlined[place] = location
        self._location = location if location.line else None

    def _place(self) -> tuple[int, int, int]:
        """Read the file, the line and the column of a place."""
        file, line, column = (read_location_number(self._tokens) for _ in range(3))
        return file, line, column

    def _caller(self, place: tuple[int, int, int]) -> Location:
        """Return the location of the outermost call into which a place was inlined."""
        known = self._inlined.get(place)
        if known is not None and known.caller is not None:
            return known.caller
        return self._known_location(place, None)

    def _known_location(
        self, place: tuple[int, int, int], caller: Location | None
    ) -> Location:
        file, line, _ = place
        if file not in self._files:
            self._tokens.fail(f".loc names file {file}, which no .file declares")
        return Location(self._files[file], line, caller)


def read_location_number(tokens: Tokens) -> int:
    """Read a number of `.loc`."""
    if tokens.kind != "number":
        tokens.fail(f"expected a number of .loc, not {tokens.shown}")
    return read_whole(tokens, "a number of .loc")
