import { afterAll, beforeAll, expect, it } from "vitest";
import { Sandbox } from "../../../src/sandbox/sandbox.js";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.js";
import { pngPicture } from "../../support/pictures.js";
import { testRuntime } from "../../support/runtime-differences.js";

const picture = `data:image/png;base64,${pngPicture({ width: 2, height: 2 }).toString("base64")}`;

let sandbox: Sandbox;
let tools: ToolRegistry;

beforeAll(async () => {
  sandbox = await Sandbox.create({ workspaceKind: "none", runtime: testRuntime });
  tools = createToolRegistry(sandbox, { cwd: "/tmp" });
});

afterAll(async () => {
  await tools.close();
  await sandbox.close();
});

it("js_repl remembers, times out, starts anew and leaves no process behind in a container", async () => {
  const cell = async (input: string) => (await tools.get("js_repl").execute({ input })).content;
  expect(await cell("const os = await import('node:os'); let count = 1; console.log(os.tmpdir())")).toBe(
    "/tmp\n",
  );
  expect(await cell("count += 1")).toBe("2\n");
  expect(await cell("nowhere()")).toBe("ReferenceError: nowhere is not defined\n    at js_repl:1:1\n");
  expect(await cell("// codex-js-repl: timeout_ms=500\nfor (;;) {}")).toBe(
    "js_repl execution timed out; kernel reset, rerun your request",
  );
  expect(await cell("typeof count")).toBe("'undefined'\n");
  expect(await tools.get("js_repl").execute({ input: `await codex.emitImage("${picture}")` })).toMatchObject({
    content: "[1 image]",
    parts: [{ type: "input_image", image_url: picture }],
  });
  expect(await cell("(await codex.tool('list_dir', { dir_path: '/etc/../etc', limit: 1 })).success")).toBe(
    "true\n",
  );
  await tools.get("js_repl_reset").execute({});
  const { stdout } = await sandbox.exec(["sh", "-c", "cat /proc/[0-9]*/comm"]);
  expect(stdout.split("\n")).not.toContain("node");
});
