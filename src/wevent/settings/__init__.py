"""The settings of a stream: their declaration, their values as users write them, and their loading."""

from __future__ import annotations

from wevent.settings.declaration import RestoreOptions, RunOptions, ServiceSettings, Settings, StreamSettings

__all__ = ["RestoreOptions", "RunOptions", "ServiceSettings", "Settings", "StreamSettings"]
