"""The life of sessions and servers: ends, restarts, many sessions, several clients, lists, and what goes wrong."""

import asyncio
import os
import signal
import uuid

from copilot import PermissionHandler, RuntimeConnection
from copilot.tools import Tool, ToolResult
from stage import PROGRAM, Stage, Watch, answer, call, mark, of_type, run, told

APPROVE = PermissionHandler.approve_all


def tool(name, handler):
    return Tool(name, f"The tool {name}.", handler, {"type": "object"}, skip_permission=True)


def saying(text):
    async def handler(_):
        return ToolResult(text_result_for_llm=text, result_type="success")

    return handler


class Ends(Stage):
    async def test_an_abort_ends_the_run_and_the_session_goes_on(self):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE)
        watch = Watch(session)
        begun, idle = watch.next("assistant.turn_start"), watch.next("session.idle")
        await session.send("DELAY:3600000\nSAY:never")
        await begun
        await session.abort()
        self.assertTrue((await idle).data.aborted)
        self.assertEqual(answer(await run(session, "SAY:still here")), "still here")

    async def test_a_session_outlives_a_server_that_is_killed_in_the_middle_of_a_call(self):
        called = asyncio.Event()

        async def slow(_):
            called.set()
            await asyncio.Event().wait()

        pid_file = self.directory / "pid"
        first = await self.started(env={**os.environ, "HANGAR_E2E_PID_FILE": str(pid_file)})
        before = await first.create_session(on_permission_request=APPROVE, tools=[tool("slow", slow)])
        word = mark()
        await run(before, f"{word}\nSAY:noted")
        await before.send(f"{call('slow', {})}\nSAY:never")
        await called.wait()
        os.kill(int(pid_file.read_text()), signal.SIGKILL)

        second = await self.started()
        after = await second.resume_session(before.session_id, on_permission_request=APPROVE)
        prompts = [message.content for message in of_type(await after.get_events(), "user.message")]
        self.assertTrue(any(word in prompt for prompt in prompts), prompts)
        self.assertEqual(answer(await run(after, "SAY:back again")), "back again")
        self.assertIn("interrupted", told(word))

    async def test_disconnecting_keeps_a_session_and_deleting_does_not(self):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE)
        await run(session, "SAY:x")
        await session.disconnect()
        again = await client.resume_session(session.session_id, on_permission_request=APPROVE)
        self.assertEqual(answer(await again.get_events()), "x")
        await again.disconnect()
        await client.delete_session(session.session_id)
        self.assertIsNone(await client.get_session_metadata(session.session_id))


class Crowds(Stage):
    async def test_many_sessions_work_side_by_side_and_none_is_lost(self):
        client = await self.started()

        async def one(number):
            handler = saying(str(number))
            session = await client.create_session(on_permission_request=APPROVE, tools=[tool("number", handler)])
            events = await run(session, f"{call('number', {})}\nSAY:answer {number}")
            self.assertEqual(of_type(events, "tool.execution_complete")[0].result.content, str(number))
            return session.session_id, answer(events)

        done = await asyncio.gather(*(one(number) for number in range(30)))
        self.assertEqual([said for _, said in done], [f"answer {number}" for number in range(30)])
        listed = {session.session_id for session in await client.list_sessions()}
        self.assertLessEqual({session_id for session_id, _ in done}, listed)

    async def test_two_clients_of_one_server_share_a_session(self):
        token = str(uuid.uuid4())
        connection = RuntimeConnection.for_tcp(path=PROGRAM, connection_token=token)
        owner = await self.started(connection=connection)
        uri = RuntimeConnection.for_uri(f"127.0.0.1:{owner.runtime_port}", connection_token=token)
        guest = await self.started(connection=uri)
        theirs = await owner.create_session(on_permission_request=APPROVE, tools=[tool("hammer", saying("by hammer"))])
        tools = [tool("chisel", saying("by chisel"))]
        ours = await guest.resume_session(theirs.session_id, on_permission_request=APPROVE, tools=tools)
        watch = Watch(theirs)
        idle = watch.next("session.idle")
        events = await run(ours, f"{call('hammer', {})}\n{call('chisel', {})}\nSAY:done")
        await idle
        results = [ended.result.content for ended in of_type(events, "tool.execution_complete")]
        self.assertEqual(results, ["by hammer", "by chisel"])
        self.assertEqual(answer(watch.events), "done")

    async def test_a_wrong_connection_token_is_refused(self):
        connection = RuntimeConnection.for_tcp(path=PROGRAM, connection_token="right")
        owner = await self.started(connection=connection)
        uri = RuntimeConnection.for_uri(f"127.0.0.1:{owner.runtime_port}", connection_token="wrong")
        with self.assertRaisesRegex(Exception, "AUTHENTICATION_FAILED"):
            await self.client(connection=uri).start()


class Lists(Stage):
    async def test_models_status_and_metadata(self):
        client = await self.started()
        models = await client.list_models()
        self.assertTrue(all(model.id and model.name for model in models) and models)
        self.assertEqual((await client.get_status()).protocol_version, 3)
        self.assertFalse((await client.get_auth_status()).isAuthenticated)
        session = await client.create_session(on_permission_request=APPROVE)
        await run(session, "SAY:x")
        metadata = await client.get_session_metadata(session.session_id)
        self.assertEqual(metadata.context.working_directory, os.getcwd())
        self.assertIsInstance(await client.get_last_session_id(), str)


class WhatGoesWrong(Stage):
    async def test_a_session_that_is_not_there_is_named(self):
        client = await self.started()
        unknown = str(uuid.uuid4())
        with self.assertRaisesRegex(Exception, unknown):
            await client.resume_session(unknown, on_permission_request=APPROVE)

    async def test_a_model_that_refuses_the_key(self):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE)
        events = await run(session, "FAIL:401")
        self.assertEqual(of_type(events, "session.error")[0].error_type, "authentication")
        self.assertEqual(answer(await run(session, "SAY:better")), "better")
