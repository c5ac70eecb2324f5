import { CopilotClient, RuntimeConnection, approveAll, defineTool } from "@github/copilot-sdk";

const weather = defineTool("weather", {
    description: "Tells the weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    handler: ({ city }) => `It is sunny in ${city}.`,
});
const client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: process.env.HANGAR ?? "hangar" }),
});
const session = await client.createSession({ tools: [weather], onPermissionRequest: approveAll });
const prompt = process.argv[2] ?? "What is the weather in Oslo?";
const answer = await session.sendAndWait({ prompt });
console.log(answer.data.content);
await session.disconnect();
await client.stop();
