"""State is data: nothing in the package compares, searches or parses a sentence."""

import ast

from benchmarks.count_lines import experiment_files, library_files

PARSERS = ("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition")
FOREIGN = {"Stages|Stages"}  # of a file format that is not ours


def _is_sentence(node):
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and len(node.value.split()) > 1 and node.value not in FOREIGN


def sentences_read(tree):
    """The sentences that are compared, searched or parsed by this code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from filter(_is_sentence, [node.left, *node.comparators])
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in PARSERS:
            yield from filter(_is_sentence, node.args)


def test_a_sentence_that_is_read_would_be_noticed():
    for code in ('x == "it is so"', '"it is so" in x', 'x.startswith("it is")'):
        assert list(sentences_read(ast.parse(code)))
    for code in ('x == "auto"', '"u" in x', 'print("it is so")'):
        assert not list(sentences_read(ast.parse(code)))


def test_no_sentence_is_read():
    found = {
        f"{path}:{node.lineno}": node.value
        for path in library_files() + experiment_files()
        for node in sentences_read(ast.parse(path.read_text()))
    }
    assert found == {}
