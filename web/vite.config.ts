import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a running `hangar up`.
const PORTAL = "http://127.0.0.1:8888";

export default defineConfig({
  resolve: { alias: { entities: new URL("./src/text/entities.ts", import.meta.url).pathname } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    // The server forbids inline anything, so nothing may be inlined into the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { "/api": { target: PORTAL, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
