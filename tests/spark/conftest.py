"""One Spark for all tests in this folder, in one of the parallel processes: starting one takes longer than most tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def local_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where shuffles and spills go."""
    return tmp_path_factory.mktemp("spark-local")


@pytest.fixture(scope="session")
def spark(local_folder: Path) -> Iterator[SparkSession]:
    """Two cores, tasks that may fail (a killed worker is one), and a time zone that is nobody's."""
    settings = {
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(local_folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small work, done once: half the time
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.sql.streaming.stateStore.maintenanceInterval": "1s",  # the first query of an application sets it for all
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
