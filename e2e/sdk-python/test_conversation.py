"""A conversation: answers, pieces, tools of the client, permissions, hooks, questions, what the model is told."""

import json

from copilot import PermissionHandler
from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject
from copilot.tools import Tool, ToolResult
from stage import MODEL_URL, Stage, answer, asked, call, mark, of_type, run, told

APPROVE = PermissionHandler.approve_all


class Answers(Stage):
    async def test_a_session_answers_and_its_history_says_so(self):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE)
        reply = await session.send_and_wait("SAY:hello there")
        self.assertEqual(reply.data.content, "hello there")
        history = await session.get_events()
        self.assertEqual(history[0].type.value, "session.start")
        self.assertEqual(answer(history), "hello there")

    async def test_pieces_make_up_the_answer(self):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, streaming=True)
        events = await run(session, "STREAM:20")
        pieces = [piece.delta_content for piece in of_type(events, "assistant.message_delta")]
        self.assertGreater(len(pieces), 1)
        self.assertEqual("".join(pieces), answer(events))


class Tools(Stage):
    async def ended(self, handler):
        """How a call of a tool with this handler ends, what the model reads, and what it says then."""
        client = await self.started()
        schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
        lookup = Tool("lookup", "Looks a key up.", handler, schema, skip_permission=True)
        session = await client.create_session(on_permission_request=APPROVE, tools=[lookup])
        word = mark()
        events = await run(session, f"{word}\n{call('lookup', {'key': 'a'})}\nSAY:done")
        return of_type(events, "tool.execution_complete")[0], told(word), answer(events)

    async def test_a_result_reaches_the_model(self):
        async def handler(invocation):
            text = f"{invocation.arguments['key']} by {invocation.tool_name}"
            return ToolResult(text_result_for_llm=text, result_type="success")

        ended, read, said = await self.ended(handler)
        self.assertTrue(ended.success)
        self.assertIn("a by lookup", read)
        self.assertEqual(said, "done")

    async def test_a_tool_that_raises_fails_and_the_model_goes_on(self):
        async def handler(_):
            raise ValueError("the shelf is empty")

        ended, read, said = await self.ended(handler)
        self.assertFalse(ended.success)
        self.assertIn("lookup", read)
        self.assertEqual(said, "done")

    async def test_results_that_are_no_success(self):
        for kind in ["failure", "denied", "timeout"]:
            with self.subTest(kind):

                async def handler(_, kind=kind):
                    return ToolResult(text_result_for_llm=f"it was {kind}", result_type=kind)

                ended, read, said = await self.ended(handler)
                self.assertFalse(ended.success)
                self.assertIn(kind, read)
                self.assertEqual(said, "done")


class Permissions(Stage):
    async def write(self, decision):
        path = self.directory / "new.txt"
        requests = []

        def decide(request, _):
            requests.append(request)
            return decision

        client = await self.started()
        session = await client.create_session(on_permission_request=decide)
        arguments = {"path": str(path), "file_text": "text\n"}
        events = await run(session, f"{call('create', arguments)}\nSAY:done")
        return path, next(one for one in requests if one.kind == "write"), events

    async def test_granted(self):
        path, request, events = await self.write(PermissionDecisionApproveOnce())
        self.assertEqual(request.file_name, str(path))
        self.assertIn("text", request.diff)
        self.assertEqual(path.read_text(), "text\n")
        self.assertEqual(answer(events), "done")

    async def test_refused_with_feedback(self):
        path, _, events = await self.write(PermissionDecisionReject(feedback="not there"))
        self.assertFalse(path.exists())
        self.assertIn("not there", of_type(events, "tool.execution_complete")[0].error.message)
        self.assertEqual(answer(events), "done")

    async def test_a_handler_that_raises_grants_nothing(self):
        path = self.directory / "new.txt"

        def decide(_request, _invocation):
            raise RuntimeError("no idea")

        client = await self.started()
        session = await client.create_session(on_permission_request=decide)
        await run(session, f"{call('create', {'path': str(path), 'file_text': 'x'})}\nSAY:done")
        self.assertFalse(path.exists())


class Hooks(Stage):
    async def test_hooks_see_and_change(self):
        seen = []

        def prompt(_input, _invocation):
            seen.append("prompt")
            return {"additionalContext": "the hook says hello"}

        def before(details, _invocation):
            seen.append(f"pre {details['toolName']}")
            return {"permissionDecision": "allow"}

        def after(details, _invocation):
            seen.append("post")
            return {"modifiedResult": {**details["toolResult"], "textResultForLlm": "changed by the hook"}}

        hooks = {"on_user_prompt_submitted": prompt, "on_pre_tool_use": before, "on_post_tool_use": after}
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, hooks=hooks)
        word = mark()
        command = {"command": "echo plain", "description": "d"}
        await run(session, f"{word}\n{call('bash', command)}\nSAY:done")
        self.assertEqual(seen, ["prompt", "pre bash", "post"])
        self.assertIn("changed by the hook", told(word))
        self.assertIn("the hook says hello", told(word))

    async def test_a_denial_is_obeyed(self):
        def deny(_input, _invocation):
            return {"permissionDecision": "deny", "permissionDecisionReason": "not today"}

        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, hooks={"on_pre_tool_use": deny})
        word, path = mark(), self.directory / "made"
        command = {"command": f"touch {path}", "description": "d"}
        await run(session, f"{word}\n{call('bash', command)}\nSAY:done")
        self.assertFalse(path.exists())
        self.assertIn("not today", told(word))


class Questions(Stage):
    async def test_a_question_is_answered(self):
        def choose(request, _):
            return {"answer": request["choices"][1], "wasFreeform": False}

        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, on_user_input_request=choose)
        word = mark()
        question = {"question": "which?", "choices": ["left", "right"]}
        await run(session, f"{word}\n{call('ask_user', question)}\nSAY:done")
        self.assertIn("User selected: right", told(word))


class WhatTheModelIsTold(Stage):
    async def system(self, config):
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, system_message=config)
        word = mark()
        await run(session, f"{word}\nSAY:x")
        return json.dumps(asked(word)[-1]["body"]["messages"][0]["content"])

    async def test_the_system_message(self):
        self.assertEqual(await self.system({"mode": "replace", "content": "You are a teapot."}), '"You are a teapot."')
        self.assertIn("Speak softly.", await self.system({"mode": "append", "content": "Speak softly."}))
        sections = {
            "tone": {"action": "replace", "content": "Answer in verse."},
            "safety": {"action": lambda text: text + " And mind the gap."},
        }
        changed = await self.system({"mode": "customize", "sections": sections})
        self.assertIn("Answer in verse.", changed)
        self.assertIn("And mind the gap.", changed)

    async def test_a_provider_of_the_client(self):
        provider = {
            "type": "anthropic",
            "base_url": MODEL_URL,
            "api_key": "their-key",
            "headers": {"x-team": "blue"},
        }
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE, model="their-model", provider=provider)
        word = mark()
        self.assertEqual(answer(await run(session, f"{word}\nSAY:from afar")), "from afar")
        request = asked(word)[-1]
        self.assertTrue(request["path"].endswith("/messages"), request["path"])
        self.assertEqual(request["headers"]["x-team"], "blue")
        self.assertEqual(request["body"]["model"], "their-model")

    async def test_attachments(self):
        path = self.directory / "notes.txt"
        path.write_text("attached words")
        client = await self.started()
        session = await client.create_session(on_permission_request=APPROVE)
        word = mark()
        attachments = [
            {"type": "file", "path": str(path)},
            {"type": "directory", "path": str(self.directory)},
            {"type": "selection", "filePath": str(path), "displayName": "part", "text": "selected words"},
        ]
        events = await run(session, f"{word}\nSAY:read", attachments=attachments)
        self.assertEqual(len(of_type(events, "user.message")[0].attachments), 3)
        self.assertIn("notes.txt", told(word))
        self.assertIn("selected words", told(word))
