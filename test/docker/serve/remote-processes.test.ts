import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BrigClient } from "../../../src/services/serve/client/brig-client.js";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { openServed, type Served } from "../../support/served.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await served.client.createSandbox();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

it("another client goes on with a process where the first one was", async () => {
  const first = await sandbox.spawn(["sh", "-c", "echo one; read line; echo got $line; exit 4"]);
  for await (const piece of first.stdout) {
    expect(String(piece)).toBe("one\n");
    break;
  }
  first.detach();
  await expect(first.exit).rejects.toMatchObject({ code: "aborted" });
  const client = new BrigClient({ url: served.url, token: served.tokens[0] });
  const again = await client.getSandbox(sandbox.id);
  const records = await again.processes();
  expect(records.find(({ id }) => id === first.id)).toMatchObject({ state: "running" });
  const second = await again.process(first.id, { after: first.readBytes });
  second.stdin?.write("it\n");
  expect(await text(second.stdout)).toBe("got it\n");
  expect(await second.exit).toEqual({ exitCode: 4, signal: null, timedOut: false });
  expect(second).toMatchObject({ readBytes: 11, lostBytes: 0 });
  const whole = await again.process(first.id);
  expect(await text(whole.stdout)).toBe("one\ngot it\n");
  client.close();
});

it("a process that is not there is unknown, and one whose sandbox is removed is killed", async () => {
  const unknown = { code: "serve.unknown" };
  await expect(sandbox.process("abcdef")).rejects.toMatchObject(unknown);
  const other = await served.client.createSandbox();
  const process = await other.spawn(["sleep", "1000"]);
  await other.close();
  // It was killed, unless the client asks how it ended when nobody knows that any more.
  const end = process.exit.then(
    ({ exitCode }) => exitCode,
    ({ code }) => code,
  );
  expect([137, "serve.unknown"]).toContain(await end);
  await process.kill();
  await expect(other.processes()).rejects.toMatchObject(unknown);
});

it("a process waits for no reader, who is told what is missing", async () => {
  const process = await sandbox.spawn(["sh", "-c", "head -c 40000000 /dev/zero; echo end >&2"]);
  await expect
    .poll(async () => (await sandbox.processes()).find(({ id }) => id === process.id)?.state, {
      timeout: 60_000,
    })
    .toBe("ended");
  let bytes = 0;
  for await (const piece of process.stdout) bytes += (piece as Buffer).length;
  expect(await text(process.stderr as NodeJS.ReadableStream)).toBe("end\n");
  expect(await process.exit).toMatchObject({ exitCode: 0 });
  expect(process.readBytes).toBe(40_000_004);
  expect(process.lostBytes).toBeGreaterThan(10_000_000);
  expect(bytes).toBe(40_000_000 - process.lostBytes);
});

it("a client whose service has gone is told so", async () => {
  const own = await openServed();
  const other = await own.client.createSandbox();
  const process = await other.spawn(["sleep", "1000"]);
  await own.stop();
  await expect(process.exit).rejects.toMatchObject({ code: expect.stringMatching(/^serve\.un/) });
});
