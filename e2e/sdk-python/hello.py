import asyncio
import os
import sys

from copilot import CopilotClient, PermissionHandler, RuntimeConnection


async def main():
    prompt = sys.argv[1] if len(sys.argv) > 1 else "What is the capital of Norway?"
    connection = RuntimeConnection.for_stdio(path=os.environ.get("HANGAR", "hangar"))
    async with CopilotClient(connection=connection) as client:
        session = await client.create_session(on_permission_request=PermissionHandler.approve_all)
        answer = await session.send_and_wait(prompt)
        print(answer.data.content)
        await session.disconnect()


asyncio.run(main())
