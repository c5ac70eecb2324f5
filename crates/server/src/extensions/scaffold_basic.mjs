// Extension NAME: ABOUT
import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
    tools: [
        {
            name: "NAME_OF_TOOL_hello",
            description: "ABOUT",
            parameters: {
                type: "object",
                properties: { who: { type: "string", description: "Whom to greet" } },
                required: ["who"],
            },
            handler: async ({ who }) => `Hello, ${who}!`,
        },
    ],
});

await session.log("The extension NAME is ready");
