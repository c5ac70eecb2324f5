// Extension NAME: ABOUT
import { createServer } from "node:http";
import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const page = createServer((request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end("<h1>NAME</h1>");
});
await new Promise((listening) => page.listen(0, "127.0.0.1", listening));

await joinSession({
    canvases: [
        createCanvas({
            id: "NAME",
            displayName: "NAME",
            description: "ABOUT",
            open: async () => ({ url: `http://127.0.0.1:${page.address().port}/`, title: "NAME" }),
        }),
    ],
});
