import { once } from "node:events";
import { type IncomingMessage, request as openRequest } from "node:http";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { startShowing } from "../../support/port-server.js";
import { openServed, type Served } from "../../support/served.js";
import { openSocket } from "../../support/web-socket-client.js";

let served: Served;
let sandbox: Sandbox;
let other: Sandbox;
const tokenOf = (one: Sandbox) => Reflect.get(one, "envdAccessToken") as string;

beforeAll(async () => {
  served = await openServed();
  sandbox = await Sandbox.create("base", {
    ...served.e2b[0],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how clients write it.
    network: { maskRequestHost: "localhost:${PORT}" },
  });
  other = await Sandbox.create("base", { ...served.e2b[1], network: { allowPublicTraffic: false } });
  await startShowing(await remote(sandbox), 3000);
  await startShowing(await remote(other, 1), 3000);
});

afterAll(async () => {
  await sandbox.kill();
  await other.kill();
  await served[Symbol.asyncDispose]();
  expect(served.warnings).toEqual([]);
});

/** The same sandbox, as a client of the service has it. */
async function remote({ sandboxId }: Sandbox, client: 0 | 1 = 0): Promise<RemoteSandbox> {
  const all = await (client === 0 ? served.client : served.otherClient).listSandboxes();
  const found = all.find(({ id }) => id === sandboxId);
  if (found === undefined) throw new Error("the sandbox is not there");
  return found;
}

async function send(headers: Record<string, string>, { path = "/", method = "GET" } = {}) {
  const request = openRequest(`${served.url}${path}`, { method, headers });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of response) text += piece;
  return { status: response.statusCode, text };
}

const byHeaders = (one: Sandbox, port: number, token?: string) => ({
  "e2b-sandbox-id": one.sandboxId,
  "e2b-sandbox-port": `${port}`,
  ...(token !== undefined && { "x-access-token": token }),
});

describe("the daemon of a sandbox", () => {
  it("answers whoever has the access token of that sandbox, and nobody else", async () => {
    const health = { path: "/health" };
    expect((await send(byHeaders(sandbox, 49983, tokenOf(sandbox)), health)).status).toBe(204);
    for (const token of [undefined, "", "wrong", tokenOf(other), served.e2b[0].apiKey])
      expect(await send(byHeaders(sandbox, 49983, token), health), token).toMatchObject({ status: 401 });
    const list = { path: "/process.Process/List", method: "POST" };
    expect((await send(byHeaders(sandbox, 49983), list)).status).toBe(401);
    // A name of a host is no access token for it, as it is for a port.
    expect((await send({ host: sandbox.getHost(49983) }, health)).status).toBe(401);
    const named = { host: sandbox.getHost(49983), "x-access-token": tokenOf(sandbox) };
    expect((await send(named, health)).status).toBe(204);
    expect(tokenOf(sandbox)).not.toBe(tokenOf(other));
  });

  it("is 502 for a sandbox that is gone, or never was", async () => {
    const gone = await Sandbox.create("base", served.e2b[0]);
    await gone.kill();
    for (const id of [gone.sandboxId, "0".repeat(40), "x"])
      expect(
        await send({ "e2b-sandbox-id": id, "e2b-sandbox-port": "49983", "x-access-token": tokenOf(gone) }),
      ).toMatchObject({
        status: 502,
        text: expect.stringContaining('"code":502'),
      });
  });

  it("is not for pages of other sites, nor under a foreign name", async () => {
    const right = byHeaders(sandbox, 49983, tokenOf(sandbox));
    const all: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { host: "evil.example" },
      { origin: "null" },
    ];
    for (const foreign of all) {
      expect((await send({ ...right, ...foreign }, { path: "/health" })).status).toBe(403);
      expect(
        (await send({ "x-api-key": served.e2b[0].apiKey, ...foreign }, { path: "/e2b/v2/sandboxes" })).status,
      ).toBe(403);
    }
    const own = { ...right, origin: "http://localhost:5173" };
    expect((await send(own, { path: "/health" })).status).toBe(204);
  });

  it("gives files by signed URLs, each for one file, one way and its time", async () => {
    await sandbox.files.write("signed.txt", "text");
    await sandbox.files.write("other.txt", "other");
    const url = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: 60 });
    const get = async (changed: string, init?: RequestInit) => (await fetch(changed, init)).status;
    expect(await get(url)).toBe(200);
    expect(await get(url.replace("signed.txt", "other.txt"))).toBe(401);
    expect(await get(url, { method: "POST", body: "x" })).toBe(401);
    expect(await get(url.replace(/signature_expiration=\d+/, "signature_expiration=99999999999"))).toBe(401);
    const expired = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: -5 });
    expect(await get(expired)).toBe(401);
    expect(await get(url, { headers: { origin: "https://evil.example" } })).toBe(403);
    expect(await get(`${served.url}/files?path=signed.txt&signature=v1_${"a".repeat(43)}`)).toBe(401);
    // Without a signature it is a path like any other, of which there is none.
    expect(await get(`${served.url}/files?path=signed.txt`)).toBe(404);
  });
});

describe("a port of a sandbox", () => {
  it("is reached by the name of its host, and by headers with the access token", async () => {
    const named = await send(
      { host: sandbox.getHost(3000), authorization: "Basic b3duOmFwcA==" },
      { path: "/a?b=c" },
    );
    expect(named.status).toBe(200);
    const seen = JSON.parse(named.text);
    expect(seen).toMatchObject({ url: "/a?b=c" });
    // The program's own login is its own, and the client has said what its name is to be.
    expect(seen.rawHeaders.join("|")).toMatch(/authorization\|Basic b3duOmFwcA==/);
    expect(seen.rawHeaders.join("|")).toMatch(/Host\|localhost:3000/);
    const headers = await send(byHeaders(sandbox, 3000, tokenOf(sandbox)), { path: "/health" });
    expect(JSON.parse(headers.text)).toMatchObject({ url: "/health" });
    for (const secret of [tokenOf(sandbox), "e2b-sandbox-id", "x-access-token"])
      expect(headers.text).not.toContain(secret);
    expect((await send(byHeaders(sandbox, 3000))).status).toBe(401);
    expect((await send(byHeaders(sandbox, 3000, tokenOf(other)))).status).toBe(401);
  });

  it("is 502 where nothing listens, and 404 for what is no port", async () => {
    expect(await send({ host: sandbox.getHost(3999) })).toMatchObject({
      status: 502,
      text: expect.stringContaining('"code":502'),
    });
    expect((await send(byHeaders(sandbox, 3999, tokenOf(sandbox)))).status).toBe(502);
    expect((await send({ host: `3000-${"0".repeat(40)}.e2b.app` })).status).toBe(502);
    expect((await send(byHeaders(sandbox, 70_000, tokenOf(sandbox)))).status).toBe(404);
    expect(
      (await send({ ...byHeaders(sandbox, 3000, tokenOf(sandbox)), "e2b-sandbox-port": "x" })).status,
    ).toBe(404);
  });

  it("needs a token of its own where its client wants that", async () => {
    const host = other.getHost(3000);
    const token = other.trafficAccessToken ?? "";
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect((await send({ host })).status).toBe(403);
    expect((await send({ host, "e2b-traffic-access-token": "wrong" })).status).toBe(403);
    const answered = await send({ host, "e2b-traffic-access-token": token });
    expect(answered.status).toBe(200);
    expect(answered.text).not.toContain(token);
    expect(sandbox.trafficAccessToken).toBeUndefined();
  });

  it("takes WebSockets in both ways, from its own pages and not from those of other sites", async () => {
    const host = sandbox.getHost(3000);
    for (const headers of [{ host, origin: `http://${host}` }, byHeaders(sandbox, 3000, tokenOf(sandbox))]) {
      const { socket, frames, text, closed } = await openSocket(`${served.url}/ws`, { headers });
      await expect.poll(() => frames).toMatchObject([{ url: "/ws" }]);
      socket.send("hello");
      await expect.poll(text).toBe("hello");
      socket.close(1000);
      await closed;
    }
    const refused = async (headers: Record<string, string>) =>
      await openSocket(`${served.url}/ws`, { headers });
    await expect(refused({ host, origin: "https://evil.example" })).rejects.toThrow("403");
    await expect(refused(byHeaders(sandbox, 3000))).rejects.toThrow("401");
    await expect(refused(byHeaders(sandbox, 49983, tokenOf(sandbox)))).rejects.toThrow("404");
    await expect(refused({ host: other.getHost(3000) })).rejects.toThrow("403");
  });
});
