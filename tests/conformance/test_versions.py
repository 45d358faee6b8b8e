"""Each version of each ONNX operator has a test, and the page of disagreements is true.

A version is tested by a case of ONNX's suite, or by a NodeCase beside the converters.
"""

from importlib import import_module
from pathlib import Path

import onnx
import pytest

from tests.conformance.suite import cases
from tests.frontend.onnx import converters
from tests.frontend.onnx.converters.cases import NodeCase

PAGE = Path(__file__).parents[2] / "refcomp" / "frontend" / "onnx" / "DISAGREEMENTS.md"
HEAD = """# Disagreements

ONNX Runtime and ONNX's own evaluator judge refcomp's converters. Here they are wrong by the text of
the operator, and refcomp follows the text. A test holds this page against the cases of the tests.

| operator, version | who is wrong | why |
| --- | --- | --- |
"""
Pair = tuple[str, str, int]


def node_cases() -> list[NodeCase]:
    """All cases beside the converters."""
    folder = Path(*converters.__path__)
    modules = [
        import_module(f"{converters.__name__}.{path.stem}") for path in folder.glob("test_*.py")
    ]
    return [case for module in modules for case in getattr(module, "CASES", ())]


def pairs_in(graph: onnx.GraphProto, versions: dict[str, int]) -> set[Pair]:
    """The operators of a graph and of its subgraphs, each with its version."""
    found: set[Pair] = set()
    for node in graph.node:
        schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
        found.add((node.domain, node.op_type, schema.since_version))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= pairs_in(attribute.g, versions)
    return found


def test_each_version_of_each_operator_has_a_test() -> None:
    tested = {case.pair for case in node_cases()}
    for case in cases():
        versions = {one.domain: one.version for one in case.model.opset_import}
        tested |= pairs_in(case.model.graph, versions)
    schemas = onnx.defs.get_all_schemas_with_history()
    known = {(schema.domain, schema.name, schema.since_version) for schema in schemas}
    assert sorted(known - tested) == []


def test_the_page_of_disagreements_is_true(request: pytest.FixtureRequest) -> None:
    rows = {
        f"| {case.domain or 'ai.onnx'} {case.operator}-{case.pair[2]} | {who} | {why} |\n"
        for case in node_cases()
        for who, why in case.wrong.items()
    }
    text = HEAD + "".join(sorted(rows))
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "if that is right: pytest --update-golden"


@pytest.mark.parametrize("case", node_cases()[:1], ids=str)
def test_a_case_knows_its_version(case: NodeCase) -> None:
    assert case.pair[:2] == (case.domain, case.operator)
    assert case.pair[2] <= case.version
