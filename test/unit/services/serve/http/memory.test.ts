import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import type { BrigError } from "../../../../../src/errors.js";
import type { Sandbox } from "../../../../../src/sandbox/sandbox.js";
import { listEntries, readShort } from "../../../../../src/services/serve/files/file-calls.js";
import { MemoryBudget } from "../../../../../src/services/serve/http/memory-budget.js";
import type { Answer, Calls } from "../../../../../src/services/serve/http/response.js";
import { execBuffered, execStreamed } from "../../../../../src/services/serve/sandboxes/sandbox-calls.js";
import type { InUse } from "../../../../../src/services/serve/sandboxes/served-sandbox.js";
import { serveCalls } from "../http-fixture.js";

const MIB = 1024 * 1024;
const sent: ClientRequest[] = [];

afterEach(() => {
  for (const one of sent.splice(0)) one.destroy();
});

/** Sends a request, and reads nothing of its answer until the test does. */
async function answerTo(url: string, path: string, body?: Buffer | string): Promise<IncomingMessage> {
  const made = request(new URL(path, url), {
    method: body === undefined ? "GET" : path.includes("files") ? "PUT" : "POST",
    headers: { authorization: "Bearer token" },
  });
  sent.push(made);
  made.on("error", () => undefined);
  made.end(body);
  const [response] = (await once(made, "response")) as [IncomingMessage];
  return response;
}

async function read(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

const runs = {
  exitCode: 0,
  signal: null,
  durationMs: 1,
  timedOut: false,
  outOfMemory: false,
  treeEnded: true,
};

/** A sandbox whose commands print so much, and whose files have so much in them. */
function played(bytes: number): InUse {
  const text = "x".repeat(bytes);
  const sandbox = {
    exec: async (_argv: readonly string[], { maxOutputBytes = 0 }: { maxOutputBytes?: number }) => {
      const stdout = text.slice(0, maxOutputBytes);
      const omittedBytes = { stdout: bytes - stdout.length, stderr: 0 };
      return { ...runs, causes: [], stdout, stderr: "", output: stdout, truncated: false, omittedBytes };
    },
    files: {
      stat: async () => ({ sizeBytes: bytes }),
      read: async () => Buffer.alloc(bytes),
      list: async (_path: string, { onEntries }: { onEntries: (entries: object[]) => void }) =>
        onEntries(
          Array.from({ length: bytes }, () => ({ name: "a", nameBytes: Buffer.from("a"), type: "file" })),
        ),
    },
  };
  return { sandbox: sandbox as unknown as Sandbox, cwd: "/", env: {}, signal: new AbortController().signal };
}

const json = (value: unknown): Answer => ({ kind: "json", value });
const calls = (answered: Partial<Calls>) => answered as Calls;
const path = (name: string) => `/v1/sandboxes/a/${name}`;
const command = (maxOutputBytes: number) => JSON.stringify({ argv: ["x"], maxOutputBytes });

describe("what many clients leave unread together", () => {
  it("is no more than the service may keep: others are refused before their commands begin, and served later", async () => {
    let started = 0;
    const exec: Calls["exec"] = async ({ body, memory }) => {
      const answer = await execBuffered(body, played(8 * MIB), memory);
      started += 1;
      return json(answer);
    };
    const memory = new MemoryBudget(60 * MIB);
    await using served = await serveCalls(calls({ exec }), { memory });
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => await answerTo(served.url, path("exec"), command(8 * MIB))),
    );
    const refused = answers.filter(({ statusCode }) => statusCode === 429);
    const kept = answers.filter(({ statusCode }) => statusCode === 200);
    // Each may keep 24 MiB, and keeps 16 of them in the end.
    expect([started, kept.length, refused.length]).toEqual([3, 3, 17]);
    expect(memory.usedBytes).toBe(48 * MIB + 6 * command(8 * MIB).length);
    expect(refused[0]?.headers["retry-after"]).toBe("1");
    expect(JSON.parse(await read(refused[0] as IncomingMessage)).error.code).toBe("serve.busy");
    // Whoever reads gets all of it.
    for (const response of kept) expect(JSON.parse(await read(response)).stdout).toHaveLength(8 * MIB);
    await expect.poll(() => memory.usedBytes).toBe(0);
    const later = await answerTo(served.url, path("exec"), command(8 * MIB));
    expect(JSON.parse(await read(later)).stdout).toHaveLength(8 * MIB);
  });

  it("is given up after a while, and its memory with it", async () => {
    const memory = new MemoryBudget(40 * MIB);
    const limits = { unreadMs: 3000 };
    const exec: Calls["exec"] = async (call) =>
      json(await execBuffered(call.body, played(8 * MIB), call.memory));
    const files: Calls["readFile"] = async (call) => ({
      kind: "bytes",
      bytes: await readShort(
        { path: call.query.path, offset: 0, length: 16 * MIB },
        played(16 * MIB),
        call.memory,
      ),
    });
    await using served = await serveCalls(calls({ exec, readFile: files }), { memory, limits });
    await answerTo(served.url, path("exec"), command(8 * MIB));
    expect(memory.usedBytes).toBeGreaterThan(8 * MIB);
    await expect.poll(() => memory.usedBytes, { timeout: 20_000 }).toBe(0);
    await answerTo(served.url, path("files?path=/x"));
    expect(memory.usedBytes).toBe(16 * MIB);
    await expect.poll(() => memory.usedBytes, { timeout: 20_000 }).toBe(0);
  });
});

describe("what is kept while it is made", () => {
  const refused = { code: "serve.busy", status: 429 } satisfies Partial<BrigError> & { status: number };

  it("is what a command may print, three times over, and then what it has printed", async () => {
    const memory = new MemoryBudget(24 * MIB);
    const share = memory.share();
    await execBuffered({ argv: ["x"], maxOutputBytes: 8 * MIB }, played(10), share);
    expect(memory.usedBytes).toBe(20);
    await expect(
      execBuffered({ argv: ["x"], maxOutputBytes: 8 * MIB }, played(10), share),
    ).rejects.toMatchObject(refused);
    share[Symbol.dispose]();
    expect(memory.usedBytes).toBe(0);
  });

  it("is more of it in base64", async () => {
    const share = new MemoryBudget(24 * MIB).share();
    const request = { argv: ["x"], maxOutputBytes: 8 * MIB, encoding: "base64" as const };
    await expect(execBuffered(request, played(10), share)).rejects.toMatchObject(refused);
  });

  it("is what is on the way of a command whose output is sent as it comes", () => {
    const memory = new MemoryBudget(1.5 * MIB);
    const run = async () => undefined;
    execStreamed({ argv: ["x"] }, run, memory.share());
    expect(() => execStreamed({ argv: ["x"] }, run, memory.share())).toThrow(
      expect.objectContaining(refused),
    );
  });

  it("is twice what a file has or is asked for, but all that may come of a file that has no size", async () => {
    const budget = async (length: number | undefined, limit: number) => {
      const memory = new MemoryBudget(limit);
      const part = { path: "/x", offset: 0, length };
      const [error] = await Promise.allSettled([readShort(part, played(length ?? 0), memory.share())]);
      return error.status;
    };
    expect(await budget(MIB, 2 * MIB)).toBe("fulfilled");
    expect(await budget(MIB, 2 * MIB - 1)).toBe("rejected");
    expect(await budget(undefined, 100 * MIB)).toBe("rejected");
    expect(await budget(1000, 2000)).toBe("fulfilled");
  });

  it("is the entries of a directory", async () => {
    const memory = new MemoryBudget(MIB);
    await listEntries("/x", played(1024), memory.share());
    await expect(listEntries("/x", played(1025), new MemoryBudget(MIB).share())).rejects.toMatchObject(
      refused,
    );
  });

  it("is the bodies of requests, and is free again when they are answered", async () => {
    const memory = new MemoryBudget(10 * MIB);
    let answer: (value: Answer) => void = () => undefined;
    const answering = new Promise<Answer>((resolve) => {
      answer = resolve;
    });
    await using served = await serveCalls(calls({ writeInput: async () => await answering }), { memory });
    const first = answerTo(served.url, path("processes/p/stdin"), Buffer.alloc(6 * MIB));
    await expect.poll(() => memory.usedBytes).toBe(6 * MIB);
    const second = await answerTo(served.url, path("processes/p/stdin"), Buffer.alloc(6 * MIB));
    expect(second.statusCode).toBe(429);
    answer({ kind: "nothing" });
    expect((await first).statusCode).toBe(204);
    await expect.poll(() => memory.usedBytes).toBe(0);
  });
});
