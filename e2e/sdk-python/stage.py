"""What every test of the Python SDK stands on: a client on the program under test, and what the model was asked.

The tests are started by ``crates/cli/tests/it/clients.rs``, which names the program, the scripted model and the file
that the model writes its requests to.
"""

import asyncio
import json
import os
import tempfile
import unittest
import uuid
from pathlib import Path

from copilot import CopilotClient, RuntimeConnection

# Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
PATIENCE = 60.0


def required(name):
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set: these tests are started by `cargo xtask test`")
    return value


PROGRAM = required("HANGAR_E2E_PROGRAM")
MODEL_URL = required("HANGAR_E2E_MODEL")
REQUEST_LOG = required("HANGAR_E2E_REQUESTS")


def call(tool, arguments):
    return f"TOOL:{tool}:{json.dumps(arguments)}"


def mark():
    """A word that finds the requests of one test again."""
    return f"mark-{uuid.uuid4()}"


def asked(word):
    """The requests that the model has answered and whose text holds the word."""
    lines = Path(REQUEST_LOG).read_text().splitlines()
    return [json.loads(line) for line in lines if word in line]


def told(word):
    """All that the model was told in the last of those requests."""
    return json.dumps(asked(word)[-1]["body"]["messages"])


def of_type(events, kind):
    return [event.data for event in events if event.type.value == kind]


def answer(events):
    return of_type(events, "assistant.message")[-1].content


class Watch:
    """All events of a session from now on, and a way to wait for one."""

    def __init__(self, session):
        self.events = []
        self._waiting = []
        session.on(self._take)

    def _take(self, event):
        self.events.append(event)
        for kind, future in self._waiting:
            if event.type.value == kind and not future.done():
                future.get_loop().call_soon_threadsafe(self._resolve, future, event)

    @staticmethod
    def _resolve(future, event):
        if not future.done():
            future.set_result(event)

    def next(self, kind):
        """The next event of a type."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((kind, future))
        return asyncio.wait_for(future, PATIENCE)


async def run(session, prompt, **options):
    """Sends a prompt and gives back all events until the session is idle again."""
    watch = Watch(session)
    idle = watch.next("session.idle")
    await session.send(prompt, **options)
    await idle
    return watch.events


class Stage(unittest.IsolatedAsyncioTestCase):
    """Tests with clients that are stopped at their end."""

    async def asyncSetUp(self):
        self._clients = []
        self._directory = tempfile.TemporaryDirectory()
        self.directory = Path(self._directory.name)

    async def asyncTearDown(self):
        await asyncio.gather(*(client.force_stop() for client in self._clients), return_exceptions=True)
        self._directory.cleanup()

    def client(self, **options):
        options.setdefault("connection", RuntimeConnection.for_stdio(path=PROGRAM))
        client = CopilotClient(working_directory=os.getcwd(), log_level="error", **options)
        self._clients.append(client)
        return client

    async def started(self, **options):
        client = self.client(**options)
        await client.start()
        return client
