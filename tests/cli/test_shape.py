"""The shape of the code: short functions in ``cli/``, no long module without a reason."""

import ast
from pathlib import Path

import pytest

import influx_wrap

PACKAGE = Path(influx_wrap.__file__).parent
CLI = sorted((PACKAGE / "cli").rglob("*.py"))
MOST_LINES, MOST_PARAMETERS, MOST_MODULE_LINES = 60, 12, 400
REASON = "Longer than most because"
"""How the sentence of a docstring begins that says why a module is long."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> list[Function]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def is_command(function: Function) -> bool:
    """Whether it declares a click command: decorated with something that ends in command(...)."""
    names = [
        ast.unparse(decorator.func)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
    ]
    return any(name.endswith("command") for name in names)


def n_lines(function: Function) -> int:
    """Lines of a function; of a command, whose declaration is long, of its body only.

    A command's docstring is its help, so it does not count there either.
    """
    if not is_command(function):
        assert function.end_lineno is not None
        return function.end_lineno - function.lineno + 1
    has_docstring = ast.get_docstring(function) is not None
    body = function.body[1:] if has_docstring else function.body
    if not body:
        return 0
    assert body[-1].end_lineno is not None
    return body[-1].end_lineno - body[0].lineno + 1


def n_parameters(function: Function) -> int:
    taken = function.args
    starred = [one for one in (taken.vararg, taken.kwarg) if one is not None]
    return len([*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *starred])


@pytest.mark.parametrize("path", CLI, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_of_the_commands(path: Path) -> None:
    for function in functions(path):
        assert n_lines(function) <= MOST_LINES, function.name
        assert is_command(function) or n_parameters(function) <= MOST_PARAMETERS, function.name


def test_long_modules_say_why() -> None:
    silent = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if len(text.splitlines()) <= MOST_MODULE_LINES:
            continue
        lines = (ast.get_docstring(ast.parse(text)) or "").splitlines()
        if not any(line.startswith(REASON) for line in lines):
            silent.append(str(path.relative_to(PACKAGE)))
    assert silent == []
