"""No public class, function or type of the package means two things."""

import ast
from collections import defaultdict
from pathlib import Path

import influx_wrap

PACKAGE = Path(influx_wrap.__file__).parent

SAME_ROLE = {"command", "main", "detect", "load"}
"""What every command, program, detector or runner has, called by its module's name."""


def defined(module: ast.Module) -> list[str]:
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    # A single letter, or a name in capitals, is a type variable or a module's own constant.
    return [name for name in names if not name.startswith("_") and not name.isupper()]


def test_names_mean_one_thing() -> None:
    where = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in defined(ast.parse(path.read_text())):
            where[name].append(str(path.relative_to(PACKAGE)))
    twice = {name: paths for name, paths in where.items() if len(paths) > 1}
    assert set(twice) - SAME_ROLE <= {"log", "Task", "Result"}, twice
