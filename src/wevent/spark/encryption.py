"""Shuffles and spills hold people's events, on disks that outlive a process: Spark has to encrypt them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from wevent.errors import InvalidSettings

ENCRYPTION = "spark.io.encryption.enabled"
"""What makes Spark encrypt them, under keys that end with the application; read once, when the application starts."""


def is_encrypted(session: SparkSession) -> bool:
    """Whether the application writes them encrypted; what was said to a session later changes nothing, and is not asked."""
    said: str = session.sparkContext.getConf().get(ENCRYPTION, "false")
    return said.strip().lower() == "true"


def refuse_unencrypted(session: SparkSession, remedy: str) -> None:
    """Refuse an application that writes events as they are.

    Args:
        session: of the application.
        remedy: what to do about it.

    Raises:
        InvalidSettings: if it does.
    """
    if not is_encrypted(session):
        raise InvalidSettings(
            f"{ENCRYPTION}=true: shuffles and spills hold people's events, and stay on disk for a while",
            "a session that was started without it",
            remedy,
            key="unencrypted",
        )
