"""What Spark needs and wevent does not: the package, and Java. One sentence each where they are missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess

from wevent.errors import InvalidSettings

_PACKAGES = ("pyspark", "pyarrow")
_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
_REMEDY = (
    "Install Java 17 or 21 (Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless), and let JAVA_HOME name it "
    "if another one comes first."
)


def require_pyspark() -> None:
    """Refuse an installation without the extra.

    Raises:
        InvalidSettings: naming what is missing.
    """
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSettings(
            "the packages of Spark",
            f"an installation without {' and '.join(missing)}",
            "Install them: pip install 'wevent[spark]'. Spark also needs Java 17 or 21.",
            key="engine",
        )


def require_java() -> None:
    """Refuse a machine on which Spark could not start: it would say so in many lines.

    Raises:
        InvalidSettings: if there is no Java, or an old one.
    """
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = "none on the path" if not home else f"none in JAVA_HOME ({home})"
        raise InvalidSettings("Java 17 or 21, for Spark", where, _REMEDY, key="engine")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = _VERSION.search(said.stderr + said.stdout)
    if found is None or int(found[1]) < _JAVA:
        version = "one that does not say its version" if found is None else f"Java {found[1]}"
        raise InvalidSettings("Java 17 or 21, for Spark", f"{version} ({java})", _REMEDY, key="engine")
