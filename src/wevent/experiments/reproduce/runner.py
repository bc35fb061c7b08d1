"""Running the tasks of a reproduction, in this process or in several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from wevent.errors import InvalidOption
from wevent.experiments.choices import Choice
from wevent.experiments.datasets import REAL, StreamRequest, open_stream
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.processes import Progress
from wevent.experiments.reproduce.batches import batches, run_replicates, score_replicates
from wevent.experiments.reproduce.campaign import Campaign, Setting, all_settings
from wevent.experiments.reproduce.store import Store
from wevent.experiments.scores import Scores
from wevent.experiments.trial import Assigned, milliseconds_per_slot

_REPLICATES = 60  # of several settings that step together


@dataclass(frozen=True)
class Task:
    """One mechanism on one stream in a few settings; or how long its slots take."""

    campaign: Campaign
    stream: str
    group: int
    settings: tuple[str, ...]
    mechanism: str
    timing: bool
    data: Path

    @property
    def name(self) -> str:
        """A file name for its result."""
        return f"{self.stream}-{'time' if self.timing else 'errors'}-{self.group}-{self.mechanism}"


def absent_streams(streams: Sequence[str], data: Path) -> dict[str, str]:
    """The real streams that are not there, and why."""
    absent = {}
    for name in streams:
        if name in REAL:
            try:
                open_stream(StreamRequest(name, data=data, slots=2))
            except InvalidOption as error:
                absent[name] = str(error)
    return absent


def plan_tasks(
    campaign: Campaign, streams: Sequence[str], axes: Sequence[str], *, timing: bool, data: Path
) -> list[Task]:
    """All tasks for these streams and axes; those that take the time come last, so that nothing runs beside them."""
    settings = [setting for setting in all_settings() if any(axis in axes for axis, _ in setting.places)]
    size = max(1, _REPLICATES // campaign.repeats)
    groups = [settings[start : start + size] for start in range(0, len(settings), size)]
    tasks = [
        Task(campaign, stream, number, tuple(setting.key for setting in group), mechanism, False, data)
        for stream in streams
        for number, group in enumerate(groups)
        for mechanism in campaign.mechanisms
    ]
    if timing:
        timed = tuple(
            setting.key for setting in settings if any(axis in ("epsilon", "window") for axis, _ in setting.places)
        )
        tasks += [
            Task(campaign, stream, 0, timed, mechanism, True, data)
            for stream in streams
            for mechanism in campaign.mechanisms
        ]
    return tasks


def run_tasks(tasks: Sequence[Task], store: Store, *, jobs: int, progress: Progress) -> None:
    """Run what is not finished yet; `progress` is called with the name of every finished task, how many, of how many."""
    waiting = [task for task in tasks if not store.has(task.name)]
    finished = len(tasks) - len(waiting)
    for number, name in enumerate(_finished(waiting, store, jobs), start=finished + 1):
        progress(name, number, len(tasks))


def _finished(waiting: Sequence[Task], store: Store, jobs: int) -> Iterator[str]:
    """Run the tasks, and name each when it is done."""
    errors = [task for task in waiting if not task.timing]
    if jobs > 1 and len(errors) > 1:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                for future in as_completed([pool.submit(_run_and_put, task, store.folder) for task in errors]):
                    yield future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        errors = []
    for task in [*errors, *(task for task in waiting if task.timing)]:  # times: one at a time, nothing beside them
        yield _run_and_put(task, store.folder)


def _run_and_put(task: Task, folder: Path) -> str:
    Store(folder).put(task.name, run_task(task))
    return task.name


_streams: dict[tuple[object, ...], Stream] = {}


def _stream(task: Task) -> Stream:
    """Opened once per process: reading a real stream takes a while."""
    campaign = task.campaign
    key = (task.stream, campaign.users, campaign.slots, campaign.variant, task.data)
    if key not in _streams:
        users = None if task.stream in REAL else campaign.users
        request = StreamRequest(task.stream, users, campaign.slots, campaign.variant, task.data)
        _streams.clear()
        _streams[key] = open_stream(request)
    return _streams[key]


def run_task(task: Task) -> dict[str, Any]:
    """Figures per setting: one per repeat, or the time of a slot."""
    stream = _stream(task)
    known = {setting.key: setting for setting in all_settings()}
    settings = [known[key] for key in task.settings]
    choice = Choice.parse(task.mechanism)
    figures = _times(task, stream, settings, choice) if task.timing else _errors(task, stream, settings, choice)
    kind = "time" if task.timing else "errors"
    return {"kind": kind, "stream": task.stream, "mechanism": task.mechanism, "settings": figures}


def _errors(task: Task, stream: Stream, settings: Sequence[Setting], choice: Choice) -> dict[str, Any]:
    campaign = task.campaign
    draws = [(setting.assigner, repeat) for setting in settings for repeat in range(campaign.repeats)]
    parts, first = [], task.group * 1_000
    for replicates in batches(stream, draws, seed=campaign.seed):
        run = run_replicates(choice, replicates, seed=campaign.seed, first=first)
        parts.append(score_replicates(run, replicates))
        first += len(replicates)
    scores = Scores.joined(parts)
    figures = {}
    for number, setting in enumerate(settings):
        own = slice(number * campaign.repeats, (number + 1) * campaign.repeats)
        figures[setting.key] = {field.name: getattr(scores, field.name)[own].tolist() for field in fields(Scores)}
    return figures


def _times(task: Task, stream: Stream, settings: Sequence[Setting], choice: Choice) -> dict[str, Any]:
    figures = {}
    for setting in settings:
        trial = Assigned(setting.assigner, task.campaign.seed).trial(stream, 0)
        figures[setting.key] = {"ms_per_slot": [milliseconds_per_slot(choice, trial, slots=task.campaign.timed_slots)]}
    return figures
