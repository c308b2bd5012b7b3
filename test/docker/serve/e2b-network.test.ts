import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxOpts } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServed, type Served } from "../../support/served.js";
import { tlsServer } from "../../support/tls-server.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0452";
const HOST = "host.internal";
/** What requests have reached this machine with: the URL and the headers that matter here. */
const received: { url?: string | undefined; headers: Record<string, unknown> }[] = [];
let served: Served;
let closed: Served;
let secure: Awaited<ReturnType<typeof tlsServer>>;
const plain = createServer((request, response) => {
  received.push({ url: request.url, headers: request.headers });
  response.end(JSON.stringify(request.headers));
});
let plainPort: number;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "brig-e2b-network-"));
  secure = await tlsServer(HOST, (request, response) => {
    received.push({ url: request.url, headers: request.headers });
    response.end(JSON.stringify(request.headers));
  });
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  plainPort = (plain.address() as AddressInfo).port;
  await writeFile(join(folder, "company.pem"), secure.authority);
  served = await openServed({
    allowsNetwork: true,
    caFiles: [join(folder, "company.pem")],
    limits: { maxPlaces: 8, maxPerClient: 8 },
  });
  closed = await openServed();
});

afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
  await closed?.[Symbol.asyncDispose]();
  await secure?.[Symbol.asyncDispose]();
  plain.close();
  await rm(folder, { recursive: true });
});

async function create(network: SandboxOpts["network"], more: SandboxOpts = {}, on: Served = served) {
  const sandbox = await Sandbox.create("base", { ...on.e2b[0], network, ...more });
  return { sandbox, [Symbol.asyncDispose]: async () => void (await sandbox.kill()) };
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const answer = await fetch(`${served.url}/v1/sandboxes/${sandbox.sandboxId}/exec`, {
    method: "POST",
    headers: { authorization: `Bearer ${served.tokens[0]}` },
    body: JSON.stringify({ argv: ["sh", "-c", script], timeoutMs: 60_000 }),
  });
  return ((await answer.json()) as { output: string }).output;
}

const networkOf = async (sandbox: Sandbox) =>
  (await served.client.listSandboxes()).find(({ id }) => id === sandbox.sandboxId)?.record.network;
const secureUrl = (path = "/") => `https://${HOST}:${secure.port}${path}`;
const plainUrl = (path = "/") => `http://${HOST}:${plainPort}${path}`;

describe("a service without --allow-network", () => {
  it("has sandboxes without any network, and refuses one in words", async () => {
    await using created = await create(undefined, {}, closed);
    await created.sandbox.updateNetwork({});
    const record = (await closed.client.listSandboxes())[0]?.record;
    expect(record).toMatchObject({ id: created.sandbox.sandboxId, network: "none" });
    await using none = await create(undefined, { allowInternetAccess: false }, closed);
    expect((await none.sandbox.getInfo()).allowInternetAccess).toBe(false);
    for (const network of [
      { allowOut: ["example.com"] },
      { rules: { "example.com": [{ transform: { headers: { a: "b" } } }] } },
    ]) {
      await expect(create(network, {}, closed)).rejects.toThrow(/network/);
      await expect(created.sandbox.updateNetwork(network)).rejects.toThrow(/network/);
    }
    await expect(create(undefined, { allowInternetAccess: true }, closed)).rejects.toThrow(/network/);
  });
});

describe("the network of a sandbox", () => {
  it("is the public internet if nothing is said, none if the client says so, and the list that it names", async () => {
    await using usual = await create(undefined);
    expect(await networkOf(usual.sandbox)).toBe("allowlist:@public");
    // This machine and private networks are no part of it.
    expect(await run(usual.sandbox, `curl -sS -m 20 ${plainUrl()}`)).toMatch(/host\.internal/);
    expect(received).toEqual([]);
    await using none = await create(undefined, { allowInternetAccess: false });
    expect(await networkOf(none.sandbox)).toBe("none");
    await using denied = await create({ denyOut: ["0.0.0.0/0"] });
    expect(await networkOf(denied.sandbox)).toBe("none");
    await using listed = await create({
      allowOut: ["Example.com", "*.example.org", "192.0.2.0/24", "2001:db8::1"],
      denyOut: ["0.0.0.0/0", "10.0.0.0/8"],
    });
    expect(await networkOf(listed.sandbox)).toBe(
      "allowlist:example.com,*.example.org,192.0.2.0/24,[2001:db8::1]",
    );
    await using all = await create({ allowOut: ["0.0.0.0/0"] });
    expect(await networkOf(all.sandbox)).toBe("allowlist:@public");
  });

  it("is told as it was asked for", async () => {
    const network = {
      allowOut: ["example.com"],
      denyOut: ["0.0.0.0/0"],
      rules: { "example.com": [{ transform: { headers: { "X-Own": "1" } } }] },
      maskRequestHost: "localhost:8080",
    };
    await using created = await create(network);
    const info = await created.sandbox.getInfo();
    expect(info.network).toMatchObject(network);
    await created.sandbox.updateNetwork({ allowOut: ["example.org"] });
    const after = (await created.sandbox.getInfo()).network;
    expect(after).toMatchObject({ allowOut: ["example.org"], maskRequestHost: "localhost:8080" });
    expect(after?.rules).toBeUndefined();
  });

  it.each([
    ["no host", { allowOut: ["not a host"] }, "not a host"],
    ["several hosts in one", { allowOut: ["a.example,b.example"] }, "a.example,b.example"],
    ["this machine", { allowOut: ["127.0.0.1"] }, "127.0.0.1"],
    ["metadata services", { allowOut: ["169.254.169.254"] }, "169.254.169.254"],
    ["public addresses that are denied one by one", { denyOut: ["8.8.8.8"] }, "8.8.8.8"],
    ["a range that is more than private", { denyOut: ["10.0.0.0/7"] }, "10.0.0.0/7"],
    ["rules for no host", { rules: { "*": [{ transform: { headers: { a: "b" } } }] } }, "rules"],
    [
      "the Host header",
      { rules: { "a.example": [{ transform: { headers: { Host: "b.example" } } }] } },
      "Host",
    ],
    [
      "a length",
      { rules: { "a.example": [{ transform: { headers: { "content-length": "1" } } }] } },
      "content-length",
    ],
    [
      "a header with a line break",
      { rules: { "a.example": [{ transform: { headers: { a: "b\r\nc: d" } } }] } },
      "ASCII",
    ],
    ["a name with a colon", { rules: { "a.example": [{ transform: { headers: { "a:": "b" } } }] } }, "a:"],
  ])("cannot be %s", async (_, network, words) => {
    const before = (await served.client.listSandboxes()).length;
    await expect(create(network as SandboxOpts["network"])).rejects.toThrow(words);
    expect(await served.client.listSandboxes()).toHaveLength(before);
  });

  it("changes while the sandbox runs, whole or not at all", async () => {
    await using created = await create({ allowOut: [`${HOST}:${plainPort}`] });
    const { sandbox } = created;
    received.length = 0;
    expect(await run(sandbox, `curl -sS ${plainUrl("/first")}`)).toContain("curl");
    await expect(sandbox.updateNetwork({ allowOut: ["example.com", "not a host"] })).rejects.toThrow(
      "not a host",
    );
    expect(await run(sandbox, `curl -sS ${plainUrl("/second")}`)).toContain("curl");
    await sandbox.updateNetwork({ allowInternetAccess: false });
    expect(await networkOf(sandbox)).toBe("none");
    expect(await run(sandbox, `curl -sS -m 20 ${plainUrl("/third")}`)).not.toContain("user-agent");
    await sandbox.updateNetwork({});
    expect(await networkOf(sandbox)).toBe("allowlist:@public");
    expect(received.map(({ url }) => url)).toEqual(["/first", "/second"]);
  });
});

describe("headers of rules", () => {
  const rules = () => ({
    [`${HOST}:${secure.port}`]: [
      { transform: { headers: { Authorization: `Bearer ${SECRET}`, "x-own": "a value" } } },
    ],
    [`${HOST}:${plainPort}`]: [{ transform: { headers: { Authorization: `Bearer ${SECRET}` } } }],
  });
  const allowOut = () => [`${HOST}:${secure.port}`, `${HOST}:${plainPort}`];

  it("are added outside, in TLS only, in place of the program's own, and nothing inside has their secrets", async () => {
    await using created = await create({ allowOut: allowOut(), rules: rules() });
    const { sandbox } = created;
    received.length = 0;
    const output = await run(
      sandbox,
      `curl -sS -H 'authorization: mine' -H 'X-Own: mine' -H 'X-Kept: 1' ${secureUrl("/a")}`,
    );
    expect(received).toMatchObject([
      { url: "/a", headers: { authorization: `Bearer ${SECRET}`, "x-own": "a value", "x-kept": "1" } },
    ]);
    expect(output).toContain(`Bearer ${"*".repeat(SECRET.length)}`);
    // Only what is a credential by its name is masked.
    expect(output).toContain('"x-own":"a value"');
    await run(sandbox, `curl -sS ${plainUrl("/b")}`);
    expect(received[1]).toMatchObject({ url: "/b" });
    expect(received[1]?.headers.authorization).toBeUndefined();
    const search = `pattern='${SECRET.slice(0, -1)}[${SECRET.slice(-1)}]'; env | grep sk-; grep -rIl --binary-files=text "$pattern" /home /tmp /run /dev/shm /etc 2>/dev/null; grep -al "$pattern" /proc/[0-9]*/environ 2>/dev/null`;
    expect(await run(sandbox, search)).toBe("");
  });

  it("allow nothing by themselves, and come and go while the sandbox runs", async () => {
    await using created = await create({ allowOut: [`${HOST}:${plainPort}`], rules: rules() });
    const { sandbox } = created;
    received.length = 0;
    await run(sandbox, `curl -sS -m 20 ${secureUrl("/refused")}`);
    expect(received).toEqual([]);
    await sandbox.updateNetwork({ allowOut: allowOut() });
    await run(sandbox, `curl -sSk ${secureUrl("/without")}`);
    await sandbox.updateNetwork({ allowOut: allowOut(), rules: rules() });
    await run(sandbox, `curl -sS ${secureUrl("/with")}`);
    expect(received.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ["/without", undefined],
      ["/with", `Bearer ${SECRET}`],
    ]);
  });

  it("of a sandbox without any can be set later, and forks have those of the moment", async () => {
    await using created = await create({ allowOut: allowOut() });
    const { sandbox } = created;
    await sandbox.updateNetwork({ allowOut: allowOut(), rules: rules() });
    const [fork] = await sandbox.fork();
    if (!(fork instanceof Sandbox)) throw fork;
    await sandbox.updateNetwork({ allowOut: allowOut() });
    received.length = 0;
    await run(fork, `curl -sS ${secureUrl("/fork")}`);
    await run(sandbox, `curl -sSk ${secureUrl("/parent")}`);
    expect(received.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ["/fork", `Bearer ${SECRET}`],
      ["/parent", undefined],
    ]);
    // What the fork is told is its own, too.
    expect((await fork.getInfo()).network?.rules).toEqual(rules());
    await fork.kill();
  });
});
