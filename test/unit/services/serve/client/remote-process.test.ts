import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { HttpCalls } from "../../../../../src/services/serve/client/http-calls.js";
import { spawnedProcess } from "../../../../../src/services/serve/client/remote-process.js";
import { busy } from "../../../../../src/services/serve/http/refusal.js";
import type { Answer, Calls } from "../../../../../src/services/serve/http/response.js";
import { serveCalls } from "../http-fixture.js";

const record = { id: "p", argv: ["x"], state: "ended", exitCode: 0, signal: null, timedOut: false };
const json = (value: unknown): Answer => ({ kind: "json", value });
const chunk = (stream: string, data: string) => ({ stream, data: Buffer.from(data).toString("base64") });

/** A service with one process, whose output is read with these answers, one after the other. */
async function serveOutput(answers: (() => Answer)[], more: object = {}) {
  const cursors: unknown[] = [];
  const calls = {
    startProcess: async () => json(record),
    getProcess: async () => json(record),
    readOutput: async ({ query }: { query: { after: number } }) => {
      cursors.push(query.after);
      const answer = answers.shift();
      if (answer === undefined) throw new Error("the test has no further answer");
      return answer();
    },
    ...more,
  };
  const service = await serveCalls(calls as unknown as Calls);
  return { service, cursors, client: new HttpCalls({ url: service.url, token: "token" }) };
}

describe("the output of a process of a service", () => {
  it("is read on from where it was, also after a request that has failed", async () => {
    const { service, cursors, client } = await serveOutput([
      () => json({ chunks: [chunk("stdout", "one ")], next: 4, lost: 0, ended: false }),
      () => {
        throw busy("no memory", { status: 429, retrySeconds: 1 });
      },
      () => json({ chunks: [chunk("stderr", "err")], next: 7, lost: 0, ended: false }),
      () => json({ chunks: [chunk("stdout", "two")], next: 15, lost: 5, ended: true }),
    ]);
    await using _service = service;
    const process = await spawnedProcess({ calls: client, sandbox: "s" }, ["x"], {});
    expect(await Promise.all([text(process.stdout), text(process.stderr as NodeJS.ReadableStream)])).toEqual([
      "one two",
      "err",
    ]);
    expect(await process.exit).toEqual({ exitCode: 0, signal: null, timedOut: false });
    expect(cursors).toEqual([0, 4, 4, 7]);
    expect([process.readBytes, process.lostBytes]).toEqual([15, 5]);
    client.close();
  });

  it("is asked for only as fast as it is read", async () => {
    const piece = "x".repeat(300_000);
    const part = (count: number) => () =>
      json({ chunks: [chunk("stdout", piece)], next: count * piece.length, lost: 0, ended: count === 3 });
    const { service, cursors, client } = await serveOutput([part(1), part(2), part(3)]);
    await using _service = service;
    const process = await spawnedProcess({ calls: client, sandbox: "s" }, ["x"], {});
    await expect.poll(() => process.stdout.readableLength).toBe(piece.length);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(cursors).toEqual([0]);
    expect((await text(process.stdout)).length).toBe(3 * piece.length);
    client.close();
  });

  it("is an error of the streams and of the exit if the process is unknown", async () => {
    const { service, client } = await serveOutput([
      () => json({ chunks: [], next: 0, lost: 0, ended: false }),
      () => {
        throw Object.assign(busy("gone", { status: 429, retrySeconds: 1 }), { code: "serve.unknown" });
      },
    ]);
    await using _service = service;
    const process = await spawnedProcess({ calls: client, sandbox: "s" }, ["x"], {});
    await expect(process.exit).rejects.toMatchObject({ code: "serve.unknown" });
    await expect(text(process.stdout)).rejects.toMatchObject({ code: "serve.unknown" });
    client.close();
  });
});

describe("the input of a process of a service", () => {
  it("is sent in order, joined where it waits, and closed after it", async () => {
    const sent: string[] = [];
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { service, client } = await serveOutput([], {
      readOutput: async () => {
        await ended;
        return json({ chunks: [], next: 0, lost: 0, ended: true });
      },
      writeInput: async ({ body }: { body: Buffer }) => {
        sent.push(body.toString());
        return { kind: "nothing" };
      },
      closeInput: async () => {
        sent.push("closed");
        end();
        return { kind: "nothing" };
      },
    });
    await using _service = service;
    const process = await spawnedProcess({ calls: client, sandbox: "s" }, ["x"], {});
    for (const piece of ["a", "b", "c"]) process.stdin?.write(piece);
    process.stdin?.end("d");
    await process.exit;
    expect(sent).toEqual(["a", "bcd", "closed"]);
    client.close();
  });
});
