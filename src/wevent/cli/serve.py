"""`wevent serve`."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wevent.cli.console import remarks, report_private, report_run, say
from wevent.cli.flags import GroupedCommand, chosen_config, run_flags, service_flag, setting_flags, take_run_options
from wevent.cli.parameter_types import Word
from wevent.cli.standard_output import is_quiet, log_to_standard_error
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import load_settings
from wevent.publishing.session import RunCallbacks
from wevent.settings import Settings
from wevent.settings.values import parse_listen

_EXAMPLE = "Example: wevent serve --config wevent.toml --listen 127.0.0.1:8080"
_NEEDED = ("fastapi", "uvicorn", "uvloop", "httptools", "plotly")


@click.command("serve", cls=GroupedCommand, epilog=_EXAMPLE)
@setting_flags
@run_flags
@service_flag("listen")
@click.option(
    "--log", type=Word("debug", "info", "warning"), help="How much to log, warning unless told; wins over --verbose."
)
def command(config: Path | None, listen: str | None, **options: Any) -> None:
    """Publish events received over HTTP and serve the releases.

    Platforms send batches of events to POST /v1/events; users choose their level on a page. Run the same command again
    to resume: acknowledged events are counted, and no slot is drawn twice. `wevent token create` makes access tokens.
    """
    log = options.pop("log")
    log_to_standard_error(log)
    run_options = take_run_options(options)
    used = chosen_config(config, options)
    settings = load_settings(used, {**options, "inputs": "-"}, ("journal",))
    _refuse_unfit(settings)
    _refuse_missing_extra()
    from wevent.service.publishing_thread import ROLE_LOG
    from wevent.service.server import serve

    if log is None and not is_quiet():  # who takes over when is said unless it is told to be quiet
        logging.getLogger(ROLE_LOG).setLevel(logging.INFO)

    service = settings.service if listen is None else replace(settings.service, listen=parse_listen(listen))
    console = remarks()
    watch = RunCallbacks(
        imported=lambda difference: say(console, " ".join((f"Requirements: {difference}.", *difference.sentences()))),
        told=lambda sentence: say(console, sentence),
    )
    done = serve(
        settings,
        service,
        run_options,
        watch,
        listening=lambda address: say(console, f"Serving {address} (stop with Ctrl-C)."),
    )
    report_run(console, done.summary, settings)
    report_private(console, done.totals, done.malformed)


def _refuse_unfit(settings: Settings) -> None:
    """Refuse settings that a service cannot have: slots without a clock, or a run that ends at a bad line.

    Raises:
        InvalidSettings: naming the setting.
    """
    for key, unfit in (
        ("slot_column", settings.slot_column is not None),
        ("close_slots_by", settings.close_slots_by != "clock"),
        ("strict", settings.strict),
        ("start", settings.start_auto),
    ):
        if unfit:
            raise InvalidSettings(
                f"{key} does not apply to a service: the wall clock closes its slots.",
                f"Remove {key}, or use `wevent publish`.",
                key=key,
            )


def _refuse_missing_extra() -> None:
    """Refuse to start without the packages of the extra `serve`.

    Raises:
        InvalidSettings: if one of them is not installed.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSettings(
            f"Packages of the service are missing: {', '.join(missing)}.",
            "Install them: pip install 'wevent[serve]'.",
            key="serve",
        )
