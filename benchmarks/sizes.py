"""How large modules and functions are, and how much of them is explained; beside well-kept packages of the field.

`python -m benchmarks.sizes [NAME=FOLDER …]`: folders of other packages' source, such as unpacked wheels of river,
structlog and Tumult Core. Nothing is imported or run: sources are read as text.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import wevent
from benchmarks import report


def main() -> None:
    """Measure wevent and what is named on the command line."""
    packages = {"wevent": Path(wevent.__file__).parent}
    packages |= {
        name: Path(folder) for name, _, folder in (word.partition("=") for word in sys.argv[1:] if "=" in word)
    }
    report.write("sizes", "Sizes", [_row(name, folder) for name, folder in packages.items()], _NOTES)


_NOTES = (
    "Lines that hold something. Functions: from `def` to the last line, docstring included. Comments: lines with a "
    "comment, per 100 lines of code; documented: public modules, classes and functions with a docstring.",
)


def _row(name: str, folder: Path) -> dict[str, Any]:
    modules, functions, arguments, comments, code, documented, public = [], [], [], 0, 0, 0, 0
    for path in sorted(folder.rglob("*.py")):
        if "test" in path.relative_to(folder).as_posix():
            continue
        text = path.read_text(encoding="utf-8")
        filled = sum(1 for line in text.splitlines() if line.strip())
        if not filled:
            continue
        modules.append(filled)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        comments += len({token.start[0] for token in tokens if token.type == tokenize.COMMENT})
        code += filled
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
                arguments.append(len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs))
            described = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if described and not getattr(node, "name", "").startswith("_"):
                public += 1
                documented += ast.get_docstring(node) is not None
    return {
        "package": name,
        "modules": len(modules),
        "lines": code,
        "module median": round(median(modules)),
        "module 95 %": round(quantiles(modules, n=20)[-1]),
        "module largest": max(modules),
        "function median": round(median(functions)),
        "function 95 %": round(quantiles(functions, n=20)[-1]),
        "function largest": max(functions),
        "arguments 95 %": round(quantiles(arguments, n=20)[-1]),
        "comments per 100": round(100 * comments / code, 1),
        "documented": f"{documented / public:.0%}",
    }


if __name__ == "__main__":
    main()
