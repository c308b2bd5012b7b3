import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import { serveMcpStdio } from "../../../../../src/services/mcp-server/serve-stdio.js";
import { serveTools } from "../../../../../src/services/mcp-server/tools/serve-tools.js";
import type {
  ServedSandbox,
  ToolService,
} from "../../../../../src/services/mcp-server/tools/served-sandbox.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";
import { StreamClientTransport } from "../../../../support/stream-client-transport.js";

/** A sandbox without a container, which a test can end. */
class TestSandbox extends MemorySandbox implements ServedSandbox {
  isGone = false;

  override async spawn(...args: Parameters<MemorySandbox["spawn"]>) {
    if (this.isGone) throw new BrigError("the sandbox is gone", { code: "sandbox.gone", reason: "killed" });
    return await super.spawn(...args);
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/** The tools, with what a test looks at. `isShared` as for clients without a session. */
async function openTools({
  isShared = false,
  ...options
}: Partial<ToolService> & { isShared?: boolean } = {}) {
  const directory = await temporaryDirectory();
  const sandboxes: TestSandbox[] = [];
  const openClient = serveTools({
    openSandbox: async () => {
      const sandbox = new TestSandbox();
      sandboxes.push(sandbox);
      return sandbox;
    },
    cwd: directory.path,
    gates: { apply_patch: "function", update_plan: false },
    hasNetwork: false,
    canWrite: true,
    version: "1",
    ...options,
  });
  const connect = async () => {
    const [input, output, stop] = [new PassThrough(), new PassThrough(), new AbortController()];
    const ended = serveMcpStdio({
      input,
      output,
      openClient: () => openClient({ isShared }),
      signal: stop.signal,
    });
    const client = new Client({ name: "test", version: "1" });
    await client.connect(new StreamClientTransport(output, input));
    return { client, ended };
  };
  const { client, ended } = await connect();
  return {
    client,
    ended,
    connect,
    sandboxes,
    directory: directory.path,
    async [Symbol.asyncDispose]() {
      await client.close();
      await ended;
      await directory[Symbol.asyncDispose]();
    },
  };
}

const textOf = (result: { content?: unknown }) => (result.content as { text: string }[]).at(-1)?.text ?? "";

describe("the tools of a client with a session", () => {
  it("are listed with what they may do", async () => {
    await using tools = await openTools();
    const listed = (await tools.client.listTools()).tools;
    expect(listed.map(({ name }) => name)).toEqual([
      "exec_command",
      "write_stdin",
      "read_file",
      "list_dir",
      "grep_files",
      "view_image",
      "apply_patch",
    ]);
    for (const { title, description, inputSchema } of listed) {
      expect(title).toMatch(/^[A-Z]/);
      expect(description).not.toBe("");
      expect(inputSchema).toMatchObject({ type: "object" });
      expect(Object.keys(inputSchema.properties ?? {})).not.toContain("sandbox_permissions");
    }
    const annotations = Object.fromEntries(listed.map(({ name, annotations: one }) => [name, one]));
    expect(annotations).toMatchObject({
      exec_command: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
      read_file: { readOnlyHint: true, openWorldHint: false },
      apply_patch: { readOnlyHint: false, destructiveHint: true },
    });
    expect(tools.sandboxes).toEqual([]);
  });

  it("say that commands reach the network, or change nothing, where that is so", async () => {
    await using tools = await openTools({ hasNetwork: true, canWrite: false });
    const listed = (await tools.client.listTools()).tools;
    expect(listed.find(({ name }) => name === "exec_command")?.annotations).toMatchObject({
      destructiveHint: false,
      openWorldHint: true,
    });
  });

  it("work in one sandbox, opened at the first call and closed with the connection", async () => {
    const tools = await openTools();
    const patch = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch";
    const patched = await tools.client.callTool({ name: "apply_patch", arguments: { input: patch } });
    expect(patched.isError).toBe(false);
    expect(await readFile(join(tools.directory, "a.txt"), "utf8")).toBe("hello\n");
    const read = await tools.client.callTool({
      name: "exec_command",
      arguments: { cmd: "cat a.txt; exit 3" },
    });
    expect(textOf(read)).toMatch(/exited with code 3[\s\S]*hello/);
    expect(tools.sandboxes).toHaveLength(1);
    await tools[Symbol.asyncDispose]();
    expect(tools.sandboxes[0]?.isClosed).toBe(true);
  });

  it("answer wrong arguments, unknown tools, and requests to leave the sandbox", async () => {
    await using tools = await openTools();
    const wrong = await tools.client.callTool({ name: "read_file", arguments: { file_path: 7 } });
    expect(wrong).toMatchObject({ isError: true });
    expect(textOf(wrong)).toContain("expected string");
    const missing = await tools.client.callTool({ name: "read_file" });
    expect(missing.isError).toBe(true);
    await expect(tools.client.callTool({ name: "update_plan", arguments: {} })).rejects.toMatchObject({
      code: -32602,
    });
    const escalated = await tools.client.callTool({
      name: "exec_command",
      arguments: { cmd: "id", sandbox_permissions: "require_escalated", justification: "please" },
    });
    expect(escalated.isError).toBe(true);
    expect(textOf(escalated)).toContain("you cannot ask for escalated permissions");
  });

  it("show images as images", async () => {
    await using tools = await openTools();
    const pixel =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    await writeFile(join(tools.directory, "a.png"), Buffer.from(pixel, "base64"));
    const shown = await tools.client.callTool({ name: "view_image", arguments: { path: "a.png" } });
    expect(shown.content).toEqual([
      { type: "image", mimeType: "image/png", data: pixel },
      { type: "text", text: expect.stringContaining("1×1") },
    ]);
  });

  it("tell of output while a command runs, to a client that asks for it", async () => {
    await using tools = await openTools();
    const heard: string[] = [];
    const running = tools.client.callTool(
      {
        name: "exec_command",
        arguments: { cmd: "echo first; until [ -e go ]; do sleep 0.02; done; echo last" },
      },
      {
        onprogress: ({ message }) => {
          heard.push(message ?? "");
          void writeFile(join(tools.directory, "go"), "");
        },
      },
    );
    expect(textOf(await running)).toContain("first\nlast");
    expect(heard[0]).toBe("first\n");
  });

  it("end a command that the client cancels", async () => {
    await using tools = await openTools();
    const stop = new AbortController();
    const started = join(tools.directory, "started");
    const running = tools.client.callTool(
      { name: "exec_command", arguments: { cmd: "touch started; sleep 600", yield_time_ms: 30_000 } },
      { signal: stop.signal },
    );
    await expect.poll(() => existsSync(started)).toBe(true);
    stop.abort();
    await expect(running).rejects.toThrow();
    await expect.poll(() => tools.sandboxes[0]?.runningCount).toBe(0);
    // The sandbox is still the client's.
    expect((await tools.client.callTool({ name: "exec_command", arguments: { cmd: "true" } })).isError).toBe(
      false,
    );
    expect(tools.sandboxes).toHaveLength(1);
  });

  it("get another sandbox when theirs has ended by itself, and say so", async () => {
    await using tools = await openTools();
    const run = () => tools.client.callTool({ name: "shell_command", arguments: { command: "true" } });
    const list = () => tools.client.callTool({ name: "exec_command", arguments: { cmd: "echo ok" } });
    await expect(run()).rejects.toMatchObject({ code: -32602 });
    expect((await list()).isError).toBe(false);
    for (const sandbox of tools.sandboxes) sandbox.isGone = true;
    await tools.client.callTool({ name: "grep_files", arguments: { pattern: "x" } }).then((lost) => {
      expect(lost.isError).toBe(true);
      expect(textOf(lost)).toContain("the next call opens another sandbox");
    });
    expect((await list()).isError).toBe(false);
    expect(tools.sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  });

  it("tell why a sandbox cannot be opened, and try again at the next call", async () => {
    let isUp = false;
    await using tools = await openTools({
      openSandbox: async () => {
        if (isUp) return new TestSandbox();
        throw new BrigError("the engine does not answer", { code: "engine.unreachable", hint: "start it" });
      },
    });
    const run = () => tools.client.callTool({ name: "exec_command", arguments: { cmd: "echo up" } });
    const down = await run();
    expect(down).toMatchObject({ isError: true });
    expect(textOf(down)).toBe("the engine does not answer (start it)");
    isUp = true;
    expect(textOf(await run())).toContain("up");
  });

  it("are refused a sandbox when too many are open", async () => {
    await using tools = await openTools({ maxSandboxes: 1 });
    const run = { name: "exec_command", arguments: { cmd: "true" } };
    expect((await tools.client.callTool(run)).isError).toBe(false);
    const second = await tools.connect();
    const refused = await second.client.callTool(run);
    expect(textOf(refused)).toMatch(/^1 sandboxes are open already/);
    await tools.client.close();
    await tools.ended;
    expect((await second.client.callTool(run)).isError).toBe(false);
    await second.client.close();
    await second.ended;
  });
});

describe("the tools of clients without a session", () => {
  it("work in sandboxes that clients open, name and close", async () => {
    await using tools = await openTools({ isShared: true });
    const { client } = tools;
    const listed = (await client.listTools()).tools;
    expect(listed.slice(0, 2).map(({ name }) => name)).toEqual(["open_sandbox", "close_sandbox"]);
    for (const { inputSchema } of listed.slice(2)) expect(inputSchema.required?.[0]).toBe("sandbox");
    const opened = await client.callTool({ name: "open_sandbox", arguments: {} });
    const { sandbox } = opened.structuredContent as { sandbox: string };
    expect(textOf(opened)).toBe(`sandbox: ${sandbox}`);
    const ran = await client.callTool({ name: "exec_command", arguments: { sandbox, cmd: "echo in it" } });
    expect(textOf(ran)).toContain("in it");
    await client.callTool({ name: "open_sandbox", arguments: {} });
    expect(tools.sandboxes).toHaveLength(2);
    await client.callTool({ name: "close_sandbox", arguments: { sandbox } });
    expect(tools.sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    const late = await client.callTool({ name: "exec_command", arguments: { sandbox, cmd: "true" } });
    expect(textOf(late)).toMatch(/^there is no such sandbox/);
    await tools[Symbol.asyncDispose]();
    expect(tools.sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it("tell what a sandbox leaves on the host when it is closed, by the client or with it", async () => {
    const told: unknown[] = [];
    const onReceipt = (receipt: unknown) => {
      told.push(receipt);
      return "brig: review .vscode/tasks.json\n";
    };
    const sandboxes = ["first", "second"].map((name) => {
      const sandbox = new TestSandbox();
      return Object.assign(sandbox, { close: async () => ({ name }) });
    });
    const openSandbox = async () => sandboxes.shift() ?? new TestSandbox();
    const tools = await openTools({ isShared: true, openSandbox, onReceipt });
    const open = async () => await tools.client.callTool({ name: "open_sandbox", arguments: {} });
    const { structuredContent } = await open();
    await open();
    const closed = await tools.client.callTool({
      name: "close_sandbox",
      arguments: { ...Object(structuredContent) },
    });
    expect(textOf(closed)).toBe("the sandbox is closed\nbrig: review .vscode/tasks.json");
    expect(told).toEqual([{ name: "first" }]);
    await tools[Symbol.asyncDispose]();
    expect(told).toEqual([{ name: "first" }, { name: "second" }]);
  });

  it.each<[string, unknown, RegExp]>([
    ["no sandbox", undefined, /^the argument `sandbox` is missing: call open_sandbox first/],
    ["an invented sandbox", "3", /^there is no such sandbox/],
    ["something else", { __proto__: 1 }, /^there is no such sandbox/],
  ])("say what to do when a call names %s", async (_, sandbox, text) => {
    await using tools = await openTools({ isShared: true });
    const result = await tools.client.callTool({ name: "list_dir", arguments: { sandbox, dir_path: "/" } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(text);
    expect(tools.sandboxes).toEqual([]);
  });

  it("lose a sandbox that is unused for too long, but not while a command runs", async () => {
    await using tools = await openTools({ isShared: true, idleMs: 100 });
    const opened = await tools.client.callTool({ name: "open_sandbox", arguments: {} });
    const { sandbox } = opened.structuredContent as { sandbox: string };
    const ran = await tools.client.callTool({
      name: "exec_command",
      arguments: { sandbox, cmd: "sleep 0.4; echo done" },
    });
    expect(textOf(ran)).toContain("done");
    await expect.poll(() => tools.sandboxes[0]?.isClosed).toBe(true);
  });

  it("are told why a sandbox cannot be opened, and the name is not kept", async () => {
    await using tools = await openTools({ isShared: true, maxSandboxes: 1 });
    await tools.client.callTool({ name: "open_sandbox", arguments: {} });
    const refused = await tools.client.callTool({ name: "open_sandbox", arguments: {} });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toMatch(/^1 sandboxes are open already/);
  });
});
