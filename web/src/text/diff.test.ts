import { expect, test } from "vitest";
import { parseDiff } from "./diff";

/** Each line as `kind before/after text`, with `[]` around what changed within it. */
function check(diff: string, expected: string[]) {
  const shown = parseDiff(diff).flatMap((file) => [
    `${file.change} ${file.path} +${file.added} -${file.removed}`,
    ...file.hunks.flatMap((hunk) =>
      hunk.lines.map((line) => {
        const { changed, text } = line;
        const marked = changed === null ? text : `${text.slice(0, changed.from)}[${text.slice(changed.from, changed.to)}]${text.slice(changed.to)}`;
        return `${line.kind} ${line.before ?? ""}/${line.after ?? ""} ${marked}`;
      }),
    ),
  ]);
  expect(shown).toEqual(expected);
}

test("a change is shown with its numbers and what differs", () => {
  check("diff --git a/calc.py b/calc.py\nindex 0..0 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n", [
    "changed calc.py +1 -1",
    "same 1/1 def add(a, b):",
    "removed 2/     return a [-] b",
    "added /2     return a [+] b",
  ]);
});

test("a file may come or go", () => {
  check("diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", ["created n +1 -0", "added /1 x"]);
  check("diff --git a/n b/n\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", ["deleted n +0 -1", "removed 1/ x"]);
});

test("a removed line that looks like a heading is a line", () => {
  check("--- a/q\n+++ b/q\n@@ -1,2 +1,1 @@\n--- old\n+++ new\n-gone\n", [
    "changed q +1 -2",
    "removed 1/ -- old",
    "added /1 ++ new",
    "removed 2/ gone",
  ]);
});

test("several files, and the end of a file without a line break", () => {
  check("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n--- a/y\n+++ b/y\n@@ -3 +3 @@\n same\n", [
    "changed x +1 -1",
    "removed 1/ a",
    "added /1 b",
    "note / No newline at end of file",
    "changed y +0 -0",
    "same 3/3 same",
  ]);
});

test("lines with little in common are not pairs", () => {
  check("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-alpha beta\n+something else\n", ["changed x +1 -1", "removed 1/ alpha beta", "added /1 something else"]);
});

test("what is no diff has no files", () => check("hello\nworld", []));
