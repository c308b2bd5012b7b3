import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { logInWithBrowser } from "../../src/agent/model/login/browser-login.js";
import { logInWithCode } from "../../src/agent/model/login/device-login.js";
import { boundedFetch } from "../../src/agent/model/login/issuer/bounded-fetch.js";
import { openaiCodeTokens } from "../../src/agent/model/login/issuer/openai-device-code.js";
import { logOut } from "../../src/agent/model/login/log-out.js";
import { describeTree } from "../../src/agent/session/read/session-tree.js";
import { openTurn } from "../../src/agent/turn/turn.js";
import { beforeAbort } from "../../src/lib/time/before-abort.js";
import { openClient } from "../../src/sandbox/docker/client.js";
import type { Endpoint } from "../../src/sandbox/docker/endpoint.js";
import { openEngine } from "../../src/sandbox/docker/engine.js";
import { openModem } from "../../src/sandbox/docker/modem.js";
import { fileChunks } from "../../src/tools/files/read-file/file-chunks.js";
import { ImageResizer } from "../../src/tools/picture/image-resizer.js";
import { keepChatGptLogin, settingsOf } from "../support/chatgpt-login.js";
import { whileCollecting } from "../support/garbage.js";
import { MemorySandbox } from "../support/memory-sandbox.js";
import { clientId, openIdProvider } from "../support/openid-provider.js";
import { blackPng } from "../support/pictures.js";

const never = () => new Promise<never>(() => undefined);
const { signal } = new AbortController();

/** An issuer that takes every connection and says nothing. */
async function silentIssuer(): Promise<{ issuer: string; clientId: string }> {
  const server = createSocketServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => void server.close());
  return { issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, clientId };
}

async function httpServer(
  listen: RequestListener,
  at: string | number,
): Promise<ReturnType<Server["address"]>> {
  const server = createServer(listen);
  await new Promise<void>((resolve) => server.listen(at, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address();
}

/** An engine that tells its version, and goes silent at anything else. */
async function silentEngine({ greets }: { greets: boolean }): Promise<Endpoint> {
  const directory = mkdtempSync(join(tmpdir(), "brig-silent-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const socketPath = join(directory, "engine.sock");
  const version = { Version: "27.0.0", ApiVersion: "1.46", Arch: "amd64", Os: "linux" };
  await httpServer((request, response) => {
    if (greets && request.url?.startsWith("/version")) response.end(JSON.stringify(version));
  }, socketPath);
  return { kind: "unix", socketPath, address: `unix://${socketPath}` };
}

/** In Node 20 a limit that is combined with a signal carelessly is forgotten with the first garbage. */
describe("a limit ends its wait, although garbage is collected meanwhile:", () => {
  it("the engine's greeting", async () => {
    const endpoint = await silentEngine({ greets: false });
    const modem = await openModem(endpoint);
    const greeting = whileCollecting(() => openClient(modem, { limitMs: 300 }));
    await expect(greeting).rejects.toMatchObject({ code: "engine.unreachable" });
  });

  it("a call to the engine", async () => {
    const client = await openClient(await openModem(await silentEngine({ greets: true })), {
      limitMs: 10_000,
    });
    const call = whileCollecting(() =>
      client.call("ask", (api, limit) => api.json({ method: "GET", path: "/info" }, limit), { limitMs: 300 }),
    );
    await expect(call).rejects.toMatchObject({
      code: "engine.unreachable",
      message: expect.stringContaining("cannot ask: "),
    });
    const exec = whileCollecting(() =>
      client.call("go", (api, limit) => api.upgrade({ method: "POST", path: "/exec/1/start" }, limit), {
        limitMs: 300,
      }),
    );
    await expect(exec).rejects.toMatchObject({ code: "engine.unreachable" });
  });

  it("a call to the engine that its caller limits", async () => {
    const engine = await openEngine(
      await openClient(await openModem(await silentEngine({ greets: true })), { limitMs: 10_000 }),
    );
    const pull = whileCollecting(() => engine.pullImage("any", { signal: AbortSignal.timeout(300) }));
    await expect(pull).rejects.toMatchObject({ name: "TimeoutError" });
  });

  it("a login with a code, at an issuer that says nothing", async () => {
    const settings = await silentIssuer();
    for (const flow of [undefined, openaiCodeTokens]) {
      const login = whileCollecting(() =>
        logInWithCode({ settings, show: async () => undefined, timeoutMs: 300, signal }, flow),
      );
      await expect(login).rejects.toMatchObject({ message: "nobody entered the code within 0 seconds" });
    }
  });

  it("a login in a browser where nobody comes", async () => {
    await using provider = await openIdProvider();
    const login = whileCollecting(() =>
      logInWithBrowser({
        settings: settingsOf(provider),
        port: 0,
        show: async () => undefined,
        timeoutMs: 1000,
        signal,
      }),
    );
    await expect(login).rejects.toMatchObject({ message: "nobody logged in within 1 seconds" });
  });

  it("an answer of an issuer that never ends", async () => {
    const address = await httpServer((_, response) => void response.write("{"), 0);
    const fetch = boundedFetch(AbortSignal.timeout(300));
    const url = `http://127.0.0.1:${(address as AddressInfo).port}/`;
    const options = { method: "GET", headers: {}, redirect: "manual", body: null } as const;
    await expect(whileCollecting(() => fetch(url, { ...options, signal: undefined }))).rejects.toMatchObject({
      name: "TimeoutError",
    });
    const unlimited = boundedFetch();
    const limited = whileCollecting(() => unlimited(url, { ...options, signal: AbortSignal.timeout(300) }));
    await expect(limited).rejects.toMatchObject({ name: "TimeoutError" });
  });

  it("the end of a login at an issuer that says nothing any more", async () => {
    const home = mkdtempSync(join(tmpdir(), "brig-home-"));
    onTestFinished(() => rmSync(home, { recursive: true }));
    await using provider = await openIdProvider();
    await keepChatGptLogin(provider, home);
    provider.server.removeAllListeners("request");
    const outcome = await whileCollecting(() =>
      logOut(home, settingsOf(provider), { signal, revocationLimitMs: 300 }),
    );
    expect(outcome).toMatchObject({
      wasLoggedIn: true,
      notRevoked: expect.stringContaining("does not answer in time"),
    });
    provider.server.closeAllConnections();
  });

  it("a look at a tree that takes for ever", async () => {
    const sandbox = Object.assign(new MemorySandbox(), {
      files: {
        list: (_: string, options: { signal?: AbortSignal }) =>
          beforeAbort(never(), options.signal ?? signal),
        stat: never,
        read: never,
      },
    });
    const limits = { maxFiles: 10, maxBytes: 10, maxMs: 300 };
    const tree = await whileCollecting(() => describeTree(sandbox, "/", { limits }));
    expect(tree).toMatchObject({ kind: "left-out", reason: "it takes more than 0.3 seconds to read" });
  });

  it("a picture", async () => {
    const bytes = blackPng({ width: 8000, height: 8000 });
    const fitted = await whileCollecting(() => new ImageResizer({ maxMs: 100 }).fit(bytes));
    expect(fitted).toMatchObject({ kind: "unusable" });
  });

  it("a turn that its caller limits", async () => {
    using turn = openTurn("1", {
      outside: AbortSignal.timeout(300),
      timeoutMs: 600_000,
      onDispose: () => undefined,
    });
    const wait = whileCollecting(() => beforeAbort(never(), turn.signal));
    await expect(wait).rejects.toMatchObject({ name: "TimeoutError" });
  });

  it("a file that is read ahead", async () => {
    let pieces = 0;
    const files = {
      readPastHole: async (_: string, { signal: own }: { signal?: AbortSignal | undefined }) =>
        pieces++ < 1
          ? { holeBytes: 0, data: Buffer.alloc(60 * 1024) }
          : await beforeAbort(never(), own ?? signal),
    };
    const source = { files, path: "/file", signal: AbortSignal.timeout(300) } as unknown as Parameters<
      typeof fileChunks
    >[0];
    const read = whileCollecting(async () => {
      for await (const _ of fileChunks(source));
    });
    await expect(read).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
