"""Spark: the same loop and journal, fed by Structured Streaming; Spark counts, and the step sees class × cell only.

It needs pyspark (`pip install 'wevent[spark]'`) and Java 17 or 21. A name is imported when it is first asked for.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from wevent.errors import InvalidSettings

if TYPE_CHECKING:
    from wevent.spark.class_counts import count
    from wevent.spark.publication import SparkPublication, publish

__all__ = ["SparkPublication", "count", "publish"]

_HOME_OF = {"SparkPublication": "publication", "count": "class_counts", "publish": "publication"}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'wevent.spark' has no attribute {name!r}")
    require_pyspark()
    found = getattr(importlib.import_module(f"wevent.spark.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)


def require_pyspark() -> None:
    """Refuse an installation without the extra."""
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSettings(
            f"This is an installation without {' and '.join(missing)}.",
            "Install them: pip install 'wevent[spark]'. Spark also needs Java 17 or 21.",
            key="engine",
        )


def require_java() -> None:
    """Refuse a machine on which Spark could not start: it would say so in many lines."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        found = f"none in JAVA_HOME ({home})" if home else "none on the path"
    else:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        version = re.search(r'version "(\d+)', said.stderr + said.stdout)
        if version is not None and int(version[1]) >= 17:
            return
        found = f"{'one that does not say its version' if version is None else f'Java {version[1]}'} ({java})"
    raise InvalidSettings(
        f"Spark needs Java 17 or 21, and there is {found}.",
        "Install it (Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless), and let JAVA_HOME name it if another "
        "one comes first.",
        key="engine",
    )
