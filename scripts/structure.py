"""The structure of the package in figures: units, import levels, imports between units, lines.

`python scripts/structure.py [SOURCE]` prints them for src/rotarymae (or another copy of it). A unit is a package or a
module at the top of the source. A unit stands one level above the highest unit it imports.
`python scripts/structure.py --map` writes the map of files in CONTRIBUTING.md anew, from their docstrings.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "rotarymae"
START, END = "<!-- map -->", "<!-- end of the map -->"


def modules(source: Path) -> list[str]:
    """Dotted names of all modules below `source`; a package is named by its own name.

    The two front doors, the top package and `__main__`, are left out.
    """
    names = [file.relative_to(source).with_suffix("").parts for file in source.rglob("*.py")]
    dotted = {".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in names}
    return sorted(dotted - {"", "__main__"})


def path_of(source: Path, module: str) -> Path:
    file = source / (module.replace(".", "/") + ".py")
    return file if file.exists() else source / module.replace(".", "/") / "__init__.py"


def imports(source: Path, module: str, everywhere: bool = True) -> tuple[set[str], set[str]]:
    """(this package's modules, other packages) that a module imports; never what stands under TYPE_CHECKING.

    With `everywhere` also what functions import.
    """
    known, own, others = set(modules(source)), set(), set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{module} imports relatively; name the module in full.")
            base = node.module or ""
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix(f"{PACKAGE}.") in known else base for name in whole]
        for name in names:
            if name.split(".")[0] != PACKAGE:
                others.add(name.split(".")[0])
            elif name.removeprefix(f"{PACKAGE}.") in known:
                own.add(name.removeprefix(f"{PACKAGE}."))
        if everywhere or not isinstance(node, ast.FunctionDef):
            for child in ast.iter_child_nodes(node):
                walk(child)

    walk(ast.parse(path_of(source, module).read_text(encoding="utf-8")))
    return own - {module}, others


def units(source: Path) -> dict[str, set[str]]:
    """For every unit the units it imports."""
    graph: dict[str, set[str]] = {}
    for module in modules(source):
        unit = module.split(".")[0]
        own = {name.split(".")[0] for name in imports(source, module)[0]}
        graph.setdefault(unit, set()).update(own - {unit})
    return graph


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """The level of every unit, from 1. Raises ValueError that names a circle."""
    found: dict[str, int] = {}

    def level(unit: str, above: tuple[str, ...]) -> int:
        if unit in above:
            raise ValueError(f"units import one another in a circle: {' → '.join([*above, unit])}")
        if unit not in found:
            found[unit] = 1 + max((level(name, (*above, unit)) for name in graph[unit]), default=0)
        return found[unit]

    for unit in graph:
        level(unit, ())
    return found


def lines(folder: Path) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.rglob("*.py"))


def tree(source: Path) -> str:
    """Every file with the first sentence of its docstring, units in the order of their levels, as Markdown."""
    found = levels(units(source))
    text = []
    for unit in sorted(found, key=lambda unit: (found[unit], unit)):
        for module in (m for m in modules(source) if m.split(".")[0] == unit):
            doc = ast.get_docstring(ast.parse(path_of(source, module).read_text(encoding="utf-8"))) or ""
            first = " ".join(doc.split("\n\n")[0].split())
            name = module.replace(".", "/") + ("/" if (source / module.replace(".", "/")).is_dir() else ".py")
            text.append(f"{'  ' * module.count('.')}- `{name.split('/', module.count('.'))[-1]}`: {first}")
    return "\n".join(text)


def with_map(text: str, source: Path) -> str:
    """CONTRIBUTING.md with the map as it is now."""
    before, rest = text.split(START)
    return before + START + "\n" + tree(source) + "\n" + END + rest.split(END)[1]


def main() -> None:
    if sys.argv[1:] == ["--map"]:
        file = ROOT / "CONTRIBUTING.md"
        file.write_text(with_map(file.read_text(encoding="utf-8"), ROOT / "src" / PACKAGE), encoding="utf-8")
        return
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src" / PACKAGE
    graph = units(source)
    try:
        found = levels(graph)
        print(f"units {len(graph)}, import levels {max(found.values())}")
        for number in range(1, max(found.values()) + 1):
            print(f"  {number:2} {', '.join(sorted(unit for unit in found if found[unit] == number))}")
    except ValueError as circle:
        print(f"units {len(graph)}; {circle}")
    crossing = {
        (module, name)
        for module in modules(source)
        for name in imports(source, module)[0]
        if module.split(".")[0] != name.split(".")[0]
    }
    print(f"modules {len(modules(source))}, imports between units {len(crossing)}")
    root = source.parents[1]
    print("lines: " + ", ".join(f"{name} {lines(root / name):,}" for name in ("src", "tests", "benchmarks")))


if __name__ == "__main__":
    main()
