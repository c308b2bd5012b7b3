import type { McpServer } from "@agentclientprotocol/sdk";
import { expect, it, onTestFinished } from "vitest";
import type { ModelClient } from "../../../../src/agent/model/model-client.js";
import { type ClientLink, featuresOf } from "../../../../src/services/acp/client-link.js";
import { type OpenRequest, SessionList } from "../../../../src/services/acp/session-list.js";
import type { PreparedSession } from "../../../../src/services/acp/session-opener.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const setting = {
  cwd: "/",
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

const link: ClientLink = {
  features: featuresOf(undefined),
  update: async () => undefined,
  askPermission: () => Promise.reject(new Error("not asked")),
  elicit: () => Promise.reject(new Error("not asked")),
};

const never = new AbortController().signal;

/** A model that answers nothing until its turn is interrupted. */
const silentModel: ModelClient = {
  provider: "test",
  model: "silent",
  maxStreamRetries: 0,
  async *stream(_request, signal) {
    // The turn may be interrupted before its request is begun.
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    signal.throwIfAborted();
    yield* [];
  },
};

function openList() {
  let opened = 0;
  const list = new SessionList({
    onStuck: () => undefined,
    opener: {
      home: "/proc/nowhere",
      login: { withBrowser: async () => undefined, withApiKey: async () => undefined },
      deleteSession: async () => undefined,
      prepare: async (): Promise<PreparedSession> => {
        const threadId = `session ${opened++}`;
        return {
          options: { model: silentModel, sandbox: async () => new MemorySandbox(), setting, threadId },
          setting,
          config: {},
          commands: [],
          inMode: () => Promise.reject(new Error("no modes")),
          otherModels: null,
        };
      },
    },
  });
  onTestFinished(() => list.close());
  const open = (request: Partial<OpenRequest> = {}) =>
    list.open({ cwd: "/", additionalDirectories: [], mcpServers: [], resume: null, ...request }, link);
  return { list, open };
}

it("counts the MCP servers of sessions that are being opened", async () => {
  const { open } = openList();
  const mcpServers: McpServer[] = Array.from({ length: 40 }, (_, at) => ({
    name: `server ${at}`,
    command: "true",
    args: [],
    env: [],
  }));
  const opened = await Promise.allSettled([open({ mcpServers }), open({ mcpServers })]);
  expect(opened).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: -32_600, message: expect.stringContaining("64 MCP servers") } },
  ]);
});

it("opens a session while as many prompts run as may, and refuses only its prompt", async () => {
  const { list, open } = openList();
  const blocks = [{ type: "text" as const, text: "go" }];
  const prompts: Promise<unknown>[] = [];
  for (let at = 0; at < 32; at++) prompts.push((await open()).prompt(blocks, never));
  const session = await open();
  expect(session.hasSandbox).toBe(false);
  await expect(session.prompt(blocks, never)).rejects.toMatchObject({ code: -32_600 });
  await list.close();
  expect(await Promise.all(prompts)).toEqual(prompts.map(() => ({ stopReason: "cancelled" })));
});
