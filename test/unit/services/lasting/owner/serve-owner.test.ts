import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { OwnerClient } from "../../../../../src/services/lasting/client/owner-client.js";
import { serveOwner } from "../../../../../src/services/lasting/owner/serve-owner.js";
import { readVersion } from "../../../../../src/version.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

const never = () => new AbortController().signal;

function own(brigHome: string, { lingerMs = 60_000, drain = never() } = {}) {
  let listening: () => void = () => undefined;
  const isListening = new Promise<void>((resolve) => {
    listening = resolve;
  });
  const ended = serveOwner({
    ...{ brigHome, lingerMs, drain, signal: never() },
    open: async () => await Promise.reject(new Error("none is opened here")),
    resume: async () => await Promise.reject(new Error("there is none to go on with")),
    discard: async () => await Promise.reject(new Error("nothing is left here")),
    watch: () => ({ [Symbol.dispose]: () => undefined }),
    onListening: listening,
    onWarning: () => undefined,
  });
  return { ended, isListening };
}

it("ends when nobody needs it any more, and leaves no socket", async () => {
  const home = await temporaryFolder();
  const { ended, isListening } = own(home, { lingerMs: 50 });
  await isListening;
  expect(await ended).toBe(true);
  expect(existsSync(join(home, "service.sock"))).toBe(false);
});

it("is the only one, says who it is, and ends when it is asked to and has no sandbox", async () => {
  const home = await temporaryFolder();
  const { ended, isListening } = own(home);
  await isListening;
  expect(await own(home).ended).toBe(false);
  const client = new OwnerClient(home);
  expect(await client.state(never())).toEqual({
    version: readVersion(),
    pid: process.pid,
    held: 0,
    isEnding: false,
  });
  await expect(client.stop("none", { signal: never() })).rejects.toMatchObject({ code: "sandbox.unknown" });
  await expect(client.usage("../x", never())).rejects.toMatchObject({ code: "sandbox.unknown" });
  const request = { name: "a/b", argv: [], env: {}, cwd: "/", variables: {} };
  const tell = () => undefined;
  await expect(client.up(request, { signal: never(), tell })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  await expect(client.up({ ...request, name: "a" }, { signal: never(), tell })).rejects.toMatchObject({
    code: "serve.failed",
  });
  await client.end(never());
  expect(await ended).toBe(true);
  expect(await client.state(never())).toBeNull();
});

it("ends when it is drained", async () => {
  const draining = new AbortController();
  const { ended, isListening } = own(await temporaryFolder(), { drain: draining.signal });
  await isListening;
  draining.abort();
  expect(await ended).toBe(true);
});
