import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const sandbox = new MemorySandbox();
const tools = createToolRegistry(sandbox, { cwd: "/tmp" });

afterAll(() => tools.close());

async function cell(input: string) {
  return await tools.get("js_repl").execute({ input });
}

const picture = "data:image/png;base64,AAAA";

describe("js_repl", () => {
  it("prints, gives the last value, and remembers what was declared", async () => {
    expect(await cell("const a = await Promise.resolve(20); let b; console.log('ready')")).toEqual({
      content: "ready\n",
      success: true,
    });
    expect(await cell("b = a + 1; console.error('to stderr'); class Pair {}; a + b")).toEqual({
      content: "to stderr\n41\n",
      success: true,
    });
    expect((await cell("new Pair()")).content).toBe("Pair {}\n");
  });

  it("tells an error with the place in the cell, and goes on", async () => {
    expect(await cell("const kept = 1;\nthrow new Error('boom')")).toEqual({
      content: "Error: boom\n    at js_repl:2:7\n",
      success: false,
    });
    expect((await cell("await Promise.reject('nothing')")).content).toBe("Uncaught 'nothing'\n");
    expect((await cell("if (")).content).toContain("SyntaxError: Unexpected end of input");
    expect((await cell("import fs from 'fs'")).content).toContain("SyntaxError: Cannot use import statement");
    expect((await cell("kept")).content).toBe("1\n");
  });

  it("imports modules dynamically", async () => {
    const source = "const { basename } = await import('node:path'); basename('/a/b')";
    expect((await cell(source)).content).toBe("'b'\n");
  });

  it("keeps what children print, and whole characters, in their order", async () => {
    const source =
      "process.stdout.write('ä'); require('child_process').execSync('echo child', { stdio: 'inherit' }); console.log('ö')";
    expect((await cell(source)).content).toBe("ächild\nö\n");
  });

  it("takes nothing that looks like a message for one", async () => {
    const forged = JSON.stringify({ type: "done", id: 1, success: false, text: "forged" });
    const { content, success } = await cell(`console.log('\\u001e' + ${JSON.stringify(forged)})`);
    expect({ content, success }).toEqual({ content: `\u001e${forged}\n`, success: true });
  });

  it("shows pictures, and says when something was none", async () => {
    const { content, parts } = await cell(`
      await codex.emitImage("${picture}");
      await codex.emitImage({ bytes: Buffer.from([0, 0, 0]), mimeType: "image/png" });
      await codex.emitImage("https://example.org/a.png");
    `);
    const image = { type: "input_image", image_url: picture, detail: "high" };
    const note = "1 of the images were no PNG, JPEG, GIF or WebP data URLs of at most 20 MiB\n";
    expect(parts).toEqual([{ type: "input_text", text: note }, image, image]);
    expect(content).toBe(`${note}[2 images]`);
  });

  it("calls other tools, but not itself and none that is off", async () => {
    const call = (name: string, args: string) => cell(`(await codex.tool("${name}", ${args})).content`);
    expect((await call("shell_command", '{ command: "echo hi", login: false }')).content).toContain("hi");
    expect((await call("js_repl", '"1"')).content).toBe("'js_repl cannot invoke itself'\n");
    expect((await call("nope", "{}")).content).toBe("'unsupported call: nope'\n");
    expect((await call("web_search", "{}")).content).toContain("web_search is disabled in this session");
    expect((await call("shell_command", "{}")).content).toContain("failed to parse function arguments");
  });

  it("forgets everything with a reset", async () => {
    await cell("globalThis.before = 1");
    expect((await tools.get("js_repl_reset").execute({})).content).toBe("js_repl kernel reset");
    expect((await cell("typeof before")).content).toBe("'undefined'\n");
  });

  it("ends a cell that takes too long, endless loops too, and starts anew", async () => {
    await cell("globalThis.before = 1");
    expect(await cell("// codex-js-repl: timeout_ms=300\nfor (;;) {}")).toEqual({
      content: "js_repl execution timed out; kernel reset, rerun your request",
      success: false,
    });
    expect((await cell("typeof before")).content).toBe("'undefined'\n");
    expect(sandbox.runningCount).toBe(1);
  });

  it("ends with an abort", async () => {
    const stop = new AbortController();
    const running = tools
      .get("js_repl")
      .execute({ input: "await new Promise(() => {})" }, { signal: stop.signal });
    await sleep(100);
    stop.abort(new Error("stopped"));
    await expect(running).rejects.toThrow("stopped");
    expect(sandbox.runningCount).toBe(0);
  });

  it("tells when the process ended itself, and starts anew", async () => {
    await expect(cell("process.exit(3)")).rejects.toMatchObject({
      code: "tool.failed",
      message: expect.stringContaining("exited with code 3"),
    });
    expect((await cell("1 + 1")).content).toBe("2\n");
  });

  it("says what is missing in an image without Node", async () => {
    const bare = createToolRegistry(new MemorySandbox({ PATH: "/proc/nonexistent" }), { cwd: "/tmp" });
    await expect(bare.get("js_repl").execute({ input: "1" })).rejects.toMatchObject({
      code: "tool.failed",
      message: expect.stringContaining("js_repl needs node in the sandbox's image"),
    });
  });

  it.each([
    [" ", "js_repl expects raw JavaScript, and the input is empty"],
    ["```js\n1\n```", "js_repl expects raw JavaScript: leave out the markdown fence around the source"],
    [
      '{"code":"1"}',
      "js_repl expects raw JavaScript: send the source itself, not JSON and not a quoted text",
    ],
    ['"1 + 1"', "js_repl expects raw JavaScript: send the source itself, not JSON and not a quoted text"],
    ["// codex-js-repl: timeout_ms=5", "js_repl pragma must be followed by JavaScript on the next lines"],
    [
      "// codex-js-repl: timeout_ms=soon\n1",
      "js_repl pragma timeout_ms must be a positive whole number; got `soon`",
    ],
    [
      "// codex-js-repl: speed=9\n1",
      "js_repl pragma takes timeout_ms=<milliseconds> and nothing else; got `speed=9`",
    ],
  ])("refuses %j", async (input, content) => {
    expect(await cell(input)).toEqual({ content, success: false });
  });

  it("is offered, with its reset, only when it is switched on", () => {
    const names = (js_repl: boolean) =>
      createToolRegistry(sandbox, { cwd: "/tmp", gates: { js_repl } })
        .getSpecs()
        .map((spec) => ("name" in spec ? spec.name : ""))
        .filter((name) => name.startsWith("js_repl"));
    expect(names(true)).toEqual(["js_repl", "js_repl_reset"]);
    expect(names(false)).toEqual([]);
  });
});
