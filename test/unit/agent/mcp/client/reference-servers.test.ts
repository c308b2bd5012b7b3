import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { strictSchema } from "../../../../../src/tools/json-schema.js";
import type { McpServers } from "../../../../../src/tools/mcp/mcp-servers.js";
import { mcpResultOutput } from "../../../../../src/tools/mcp/result-output.js";
import { freePort } from "../../../../support/free-port.js";
import { httpSettings, stdioSettings, testServers, toolOf } from "../../../../support/mcp-processes.js";
import { withReason } from "../../../../support/skip-reasons.js";
import { testProgram } from "../../../../support/test-program.js";

const everything = await testProgram("server-everything");
const filesystem = await testProgram("server-filesystem");
const missing = everything.missing ?? filesystem.missing;

type Finish = (end: () => Promise<void>) => void;

/** Serves server-everything over HTTP; returns its URL. */
async function everythingOverHttp(finish: Finish): Promise<string> {
  const port = await freePort();
  const child = spawn(process.execPath, [everything.path, "streamableHttp"], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  finish(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  for await (const chunk of child.stderr) if (String(chunk).includes("listening on port")) break;
  return `http://127.0.0.1:${port}/mcp`;
}

const transports = [
  { name: "stdio", settings: async () => stdioSettings(process.execPath, [everything.path, "stdio"]) },
  { name: "HTTP", settings: async (finish: Finish) => httpSettings(await everythingOverHttp(finish)) },
];

const overTransport = withReason("server-everything over $name", missing);

/** One server for these tests, which change nothing in it. */
describe.skipIf(missing !== null).each(transports)(overTransport, ({ settings }) => {
  const ends: (() => Promise<void> | void)[] = [];
  let servers: McpServers;

  beforeAll(async () => {
    ({ servers } = testServers(
      { all: await settings((end) => ends.push(end)) },
      { finish: (end) => ends.push(end) },
    ));
    await servers.ready();
  });

  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });

  it("offers its tools and answers", async () => {
    expect(servers.servers).toMatchObject([
      { status: "ready", error: null, instructions: expect.any(String) },
    ]);
    expect(servers.tools().length).toBeGreaterThan(10);
    for (const { modelName, inputSchema } of servers.tools()) {
      expect(modelName).toMatch(/^all__[a-z-]+$/);
      expect(strictSchema(inputSchema)).toMatchObject({ type: "object", additionalProperties: false });
    }
    expect(await servers.call(toolOf(servers, "echo"), { message: "hi" })).toMatchObject({
      content: [{ type: "text", text: "Echo: hi" }],
      isError: false,
    });
    const { parts } = mcpResultOutput(await servers.call(toolOf(servers, "get-tiny-image"), {}));
    expect(parts).toContainEqual({
      type: "input_image",
      image_url: expect.stringMatching(/^data:image\/png;base64,/),
    });
    const weather = await servers.call(toolOf(servers, "get-structured-content"), { location: "New York" });
    expect(JSON.parse(mcpResultOutput(weather).content)).toMatchObject({ temperature: expect.any(Number) });
    expect(await servers.call(toolOf(servers, "echo"), {})).toMatchObject({ isError: true });
  });

  it("reports progress and asks questions", async () => {
    const progress: number[] = [];
    await servers.call(
      toolOf(servers, "trigger-long-running-operation"),
      { duration: 0.3, steps: 3 },
      { onProgress: (one) => progress.push(one.progress) },
    );
    expect(progress).toEqual([1, 2, 3]);
    const asked: string[] = [];
    const answer = await servers.call(
      toolOf(servers, "trigger-elicitation-request"),
      {},
      {
        elicit: async (question) => {
          asked.push(
            question.kind,
            ...(question.kind === "form" ? question.fields.map(({ name }) => name) : []),
          );
          return { action: "decline" };
        },
      },
    );
    expect(asked).toEqual(expect.arrayContaining(["form", "name", "email"]));
    expect(JSON.stringify(answer.content)).toContain("declined");
  });

  it("lists resources", async () => {
    const { resources } = await servers.listResources("all");
    const { resourceTemplates } = await servers.listResourceTemplates("all");
    expect(resourceTemplates[0]?.uriTemplate).toContain("{");
    const { contents } = await servers.readResource("all", resources[0]?.uri ?? "");
    expect(contents).toMatchObject([{ uri: resources[0]?.uri }]);
    await expect(servers.readResource("all", "none://of/these")).rejects.toMatchObject({
      code: "mcp.failed",
    });
  });
});

describe.skipIf(missing !== null)(withReason("the reference servers", missing), () => {
  it("server-filesystem reads and writes in its directory, and nowhere else", async () => {
    const directory = mkdtempSync(join(tmpdir(), "brig-mcp-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const { servers } = testServers({ files: stdioSettings(process.execPath, [filesystem.path, directory]) });
    await servers.ready();
    const path = join(directory, "a.txt");
    await servers.call(toolOf(servers, "write_file"), { path, content: "hello" });
    expect(readFileSync(path, "utf8")).toBe("hello");
    const read = await servers.call(toolOf(servers, "read_text_file"), { path });
    expect(mcpResultOutput(read).content).toContain("hello");
    expect(await servers.call(toolOf(servers, "read_text_file"), { path: "/etc/passwd" })).toMatchObject({
      isError: true,
    });
    expect(toolOf(servers, "read_text_file").annotations.readOnly).toBe(true);
  });
});
