import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFile, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request } from "node:https";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import type { BrigClientOptions } from "../../src/services/serve/client/http-calls.js";
import { Authority } from "../support/certificates.js";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { freePort } from "../support/free-port.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

interface Announced {
  url: string;
  token: string;
  ca: string;
  fingerprint: string;
  port: number;
  program: ReturnType<typeof brig>;
  stderr: () => string;
}

async function start(directory: TemporaryDirectory, args: readonly string[]): Promise<Announced> {
  const program = brig(["serve", "--json", "--warm", "0", ...args], {
    ...{ cwd: directory.path, env: { BRIG_HOME: join(directory.path, "home") } },
  });
  onTestFinished(async () => {
    program.kill("SIGTERM");
    await program;
  });
  let [stdout, stderr] = ["", ""];
  program.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  program.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  await expect.poll(() => stdout.includes("\n") || stderr).toBe(true);
  const announced = JSON.parse(stdout);
  const port = Number(/:([0-9]+)$/.exec(announced.url)?.[1]);
  return { ...announced, port, program, stderr: () => stderr };
}

function clientOf(options: BrigClientOptions): BrigClient {
  const client = new BrigClient(options);
  onTestFinished(() => client.close());
  return client;
}

/** The status of the answer to one request over TLS. */
async function statusOf(
  { port, token }: Pick<Announced, "port" | "token">,
  { ca, headers = {}, host = "127.0.0.1" }: { ca: string; headers?: Record<string, string>; host?: string },
): Promise<number | undefined> {
  const sent = request({
    ...{ host, port, path: "/v1/sandboxes", ca, agent: false },
    // The Host header may be a lie.
    checkServerIdentity: () => undefined,
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  sent.end();
  const [response] = await once(sent, "response");
  response.resume();
  return response.statusCode;
}

it("brig serve with a certificate is reached by its names, and by no page of another site", async () => {
  await using directory = await temporaryDirectory();
  const authority = await Authority.make(directory.path);
  const { cert, key } = await authority.sign("server", {
    names: "DNS:brig.test,DNS:*.labs.test,IP:127.0.0.1",
  });
  const served = await start(directory, [
    ...["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--allow-host", "tunnel.test"],
  ]);
  const { url, token, port } = served;
  expect(url).toBe(`https://127.0.0.1:${port}`);
  const ca = await readFile(authority.cert, "utf8");
  const client = clientOf({ url, token, ca });
  const sandbox = await client.createSandbox();
  expect((await sandbox.exec(["echo", "hello"])).stdout).toBe("hello\n");
  await expect(clientOf({ url, token }).listSandboxes()).rejects.toMatchObject({
    ...{ code: "serve.unreachable", hint: expect.stringContaining("as ca") },
  });

  // A WebSocket.
  const { id } = await sandbox.spawn(["cat"]);
  const socket = new WebSocket(
    `${url.replace("https", "wss")}/v1/sandboxes/${sandbox.id}/processes/${id}/attach`,
    {
      ...{ ca, headers: { authorization: `Bearer ${token}` } },
    },
  );
  await once(socket, "open");
  socket.send(Buffer.from("over TLS\n"));
  expect(String((await once(socket, "message"))[0])).toBe("over TLS\n");
  socket.close();

  // Names.
  const withHost = async (host: string, origin?: string) =>
    await statusOf(served, { ca, headers: { host, ...(origin !== undefined && { origin }) } });
  for (const host of [
    "brig.test",
    `BRIG.test:${port}`,
    "a.labs.test",
    "tunnel.test",
    "localhost",
    "127.0.0.1",
  ])
    expect([host, await withHost(host)]).toEqual([host, 200]);
  for (const host of ["evil.test", "brig.test.evil.test", "a.b.labs.test", "10.1.2.3", "brig.test@evil.test"])
    expect([host, await withHost(host)]).toEqual([host, 403]);
  expect(await withHost("brig.test", "https://brig.test")).toBe(200);
  expect(await withHost(`brig.test:${port}`, `https://brig.test:${port}`)).toBe(200);
  for (const origin of ["https://evil.test", "https://brig.test:1", "null", "https://brig.test.evil.test"])
    expect([origin, await withHost(`brig.test:${port}`, origin)]).toEqual([origin, 403]);

  // Without TLS, and with an old one.
  const plain = httpRequest({ port, path: "/health", agent: false });
  plain.end();
  await expect(once(plain, "response")).rejects.toThrow(/hang up|RESET|Parse/);
  const old = connectTls({
    port,
    host: "127.0.0.1",
    ca,
    maxVersion: "TLSv1.1",
    minVersion: "TLSv1",
    ciphers: "ALL:@SECLEVEL=0",
  });
  await expect(once(old, "secureConnect")).rejects.toThrow();
  expect((await client.health()).status).toBe("ok");

  // Renewed while it runs.
  const shown = async () => {
    const opened = connectTls({ port, host: "127.0.0.1", servername: "brig.test", ca, session: undefined });
    await once(opened, "secureConnect");
    const { serialNumber } = opened.getPeerCertificate();
    opened.destroy();
    return serialNumber;
  };
  const before = await shown();
  await writeFile(cert, "no certificate");
  await expect.poll(served.stderr).toContain("is not in PEM");
  expect(await shown()).toBe(before);
  const renewed = await authority.sign("renewed", { names: "DNS:brig.test,IP:127.0.0.1" });
  await copyFile(renewed.key, key);
  await copyFile(renewed.cert, cert);
  await expect.poll(shown).not.toBe(before);
  expect((await sandbox.exec(["echo", "again"])).stdout).toBe("again\n");
});

it("asks clients for a certificate, and takes none of others or of earlier times", async () => {
  await using directory = await temporaryDirectory();
  const authority = await Authority.make(directory.path);
  const foreign = await Authority.make(directory.path, "foreign");
  const { cert, key } = await authority.sign("server", { names: "DNS:localhost,IP:127.0.0.1" });
  const { url, token } = await start(directory, [
    ...["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", authority.cert],
  ]);
  const ca = await readFile(authority.cert);
  const withCertificate = async (files: { cert: string; key: string } | null) =>
    await clientOf({
      ...{ url, token, ca },
      ...(files !== null && { cert: await readFile(files.cert), key: await readFile(files.key) }),
    }).listSandboxes();
  expect(await withCertificate(await authority.sign("client"))).toEqual([]);
  const refused = { code: "serve.unreachable" };
  await expect(withCertificate(null)).rejects.toMatchObject(refused);
  await expect(withCertificate(await foreign.sign("stranger"))).rejects.toMatchObject(refused);
  const over = await authority.sign("over", { days: 0 });
  await expect
    .poll(async () => await withCertificate(over).catch((error: { code: string }) => error.code))
    .toBe("serve.unreachable");
  // It also needs its token.
  const right = await authority.sign("another");
  const files = { cert: await readFile(right.cert), key: await readFile(right.key) };
  await expect(clientOf({ url, ca, ...files, token: "x".repeat(32) }).listSandboxes()).rejects.toMatchObject({
    code: "serve.refused",
  });
});

it("makes its own certificate for a lab, of an authority that stays, and is reached from other machines with it", async () => {
  await using directory = await temporaryDirectory();
  const args = ["--listen", "0.0.0.0:0", "--tls-self-signed", "--allow-host", "lab.test"];
  const first = await start(directory, args);
  const ca = await readFile(first.ca, "utf8");
  expect(first.fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  expect(await clientOf({ ...first, ca }).listSandboxes()).toEqual([]);
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);
  for (const host of addresses)
    expect(await clientOf({ ...first, ca, url: `https://${host}:${first.port}` }).listSandboxes()).toEqual(
      [],
    );
  expect(await statusOf(first, { ca, headers: { host: "lab.test" } })).toBe(200);
  expect(await statusOf(first, { ca, headers: { host: "evil.test" } })).toBe(403);
  expect((await stat(join(directory.path, "home", "serve-tls", "authority-key.pem"))).mode & 0o777).toBe(
    0o600,
  );
  const second = await start(directory, args);
  expect(second.fingerprint).toBe(first.fingerprint);
  expect(await clientOf({ ...second, ca }).listSandboxes()).toEqual([]);
});

it("answers its clients while others open connections and never finish anything", async () => {
  await using directory = await temporaryDirectory();
  const authority = await Authority.make(directory.path);
  const { cert, key } = await authority.sign("server", { names: "IP:127.0.0.1" });
  const { url, token, port } = await start(directory, [
    ...["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key],
  ]);
  const client = clientOf({ url, token, ca: await readFile(authority.cert) });
  const sandbox = await client.createSandbox();
  const running = sandbox.exec(["sh", "-c", "sleep 3; echo kept"]);
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  // The beginning of a handshake, or nothing at all.
  for (let count = 0; count < 2000; count++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    if (count % 2 === 0) socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
    sockets.push(socket);
    if (count % 100 === 99) await once(socket, "connect");
  }
  const fresh = clientOf({ url, token, ca: await readFile(authority.cert) });
  expect((await fresh.listSandboxes()).length).toBe(1);
  expect((await running).stdout).toBe("kept\n");
  // Those that have sent nothing are gone in the end.
  await expect.poll(() => sockets.filter(({ closed }) => !closed).length).toBe(0);
});

it("reads its clients anew when their file changes, and keeps them when it is broken", async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "clients.toml");
  const [alice, bob] = ["alice".padEnd(32, "-"), "bob".padEnd(32, "-")];
  const hash = createHash("sha256").update(alice).digest("hex");
  await writeFile(file, `[clients.alice]\ntokenSha256 = "${hash}"\nmaxSandboxes = 1\n`);
  const served = await start(directory, ["--listen", "127.0.0.1:0", "--tokens", file]);
  const { url } = served;
  expect(served.token).toBe(undefined);
  const [first, second] = [clientOf({ url, token: alice }), clientOf({ url, token: bob })];
  await first.createSandbox();
  await expect(first.createSandbox()).rejects.toMatchObject({
    ...{ code: "serve.busy", message: expect.stringContaining("of 1 that it may have") },
  });
  await expect(second.listSandboxes()).rejects.toMatchObject({ code: "serve.refused" });
  await writeFile(file, "[clients");
  await expect.poll(served.stderr).toContain("is not TOML");
  expect((await first.listSandboxes()).length).toBe(1);
  await writeFile(file, `[clients.bob]\ntoken = "${bob}"\nmayChange = false\nseesAll = true\n`);
  await expect.poll(async () => await second.listSandboxes().catch(() => null)).toEqual([]);
  await expect(first.listSandboxes()).rejects.toMatchObject({ code: "serve.refused" });
  await expect(second.createSandbox()).rejects.toMatchObject({
    ...{ code: "serve.refused", message: expect.stringContaining("may only look") },
  });
});

it("goes on counting the minutes of its clients after a restart", async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "clients.toml");
  const token = "alice".padEnd(32, "-");
  await writeFile(file, `[clients.alice]\ntoken = "${token}"\nminutesPerDay = 1\n`);
  const args = ["--listen", `127.0.0.1:${await freePort()}`, "--tokens", file];
  const first = await start(directory, args);
  await clientOf({ url: first.url, token }).createSandbox();
  const home = join(directory.path, "home", "serve");
  const kept = async () => (await readdir(home).catch(() => [])).filter((name) => name.endsWith(".json"));
  await expect.poll(kept, { timeout: 60_000 }).toHaveLength(1);
  first.program.kill("SIGTERM");
  await first.program;
  const path = join(home, (await kept())[0] ?? "");
  const counted = JSON.parse(await readFile(path, "utf8"));
  expect(counted.clients).toEqual([["alice", expect.any(Number)]]);
  // As if the sandbox had been there for longer.
  await writeFile(path, JSON.stringify({ ...counted, clients: [["alice", 59_000]] }));
  const second = await start(directory, args);
  const client = clientOf({ url: second.url, token });
  await client.createSandbox();
  await expect.poll(async () => await client.listSandboxes(), { timeout: 30_000 }).toEqual([]);
  await expect(client.createSandbox()).rejects.toMatchObject({ code: "serve.quota" });
}, 180_000);

it("notes who has asked for what, without secrets, in a file that may be moved away", async () => {
  await using directory = await temporaryDirectory();
  const log = join(directory.path, "audit.jsonl");
  const { url, token } = await start(directory, ["--listen", "127.0.0.1:0", "--audit-log", log]);
  const client = clientOf({ url, token });
  const sandbox = await client.createSandbox({ env: { SECRET: "of-the-environment" } });
  await sandbox.exec(["sh", "-c", "true", "--token", "of-the-arguments", "API_KEY=of-a-variable"], {
    stdin: "of-the-input",
  });
  await sandbox.files.write("/tmp/file", "of-a-file");
  await expect(clientOf({ url, token: "wrong".repeat(8) }).listSandboxes()).rejects.toThrow();
  const lines = async (path: string) =>
    (await readFile(path, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  await expect.poll(async () => (await lines(log)).length).toBe(4);
  const [created, ran, wrote, refused] = await lines(log);
  const from = { client: "client", address: "127.0.0.1", sandbox: sandbox.id };
  expect(created).toMatchObject({
    ...{ client: "client", call: "createSandbox", method: "POST", status: 201, made: [sandbox.id] },
    ...{ time: expect.any(String), durationMs: expect.any(Number) },
  });
  expect(ran).toMatchObject({
    ...from,
    ...{ call: "exec", status: 200, argv: ["sh", "-c", "true", "--token", "***", "API_KEY=***"] },
  });
  expect(wrote).toMatchObject({ ...from, call: "writeFile", status: 204, file: "/tmp/file" });
  expect(refused).toMatchObject({ client: null, status: 401, path: "/v1/sandboxes" });
  const all = await readFile(log, "utf8");
  expect(all).not.toMatch(/of-the|of-a-|wrong/);
  expect(all).not.toContain(token);
  expect((await stat(log)).mode & 0o777).toBe(0o600);
  await rename(log, `${log}.1`);
  await expect
    .poll(async () => {
      await client.listSandboxes();
      return await lines(log).catch(() => []);
    })
    .toContainEqual(expect.objectContaining({ call: "listSandboxes", status: 200 }));
});

it("is reached through a socket that only its user can open", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "serve.sock");
  const { url, token, program } = await start(directory, ["--listen", `unix:${path}`]);
  expect(url).toBe(`unix:${path}`);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await clientOf({ url, token }).listSandboxes()).toEqual([]);
  await expect(clientOf({ url, token: "x".repeat(32) }).listSandboxes()).rejects.toMatchObject({
    code: "serve.refused",
  });
  // It is not taken away from the one that listens there, and is from one that was killed.
  const { exitCode, stderr } = await brigHere(["serve", "--warm", "0", "--listen", `unix:${path}`], {
    cwd: directory.path,
  });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining("cannot listen")]);
  program.kill("SIGKILL");
  await program;
  const next = await start(directory, ["--listen", `unix:${path}`]);
  expect(await clientOf(next).listSandboxes()).toEqual([]);
});

it.each([
  [["--listen", "[::]:0"], ":::0, and are served with TLS only"],
  [["--listen", "nonsense"], "must be HOST:PORT"],
  [["--tls-cert", "x"], "needs its key"],
  [["--tls-cert", "x", "--tls-key", "y"], "does not exist"],
  [["--tls-self-signed", "--tls-cert", "x", "--tls-key", "y"], "two certificates"],
  [["--tls-client-ca", "x"], "need TLS"],
  [["--tokens", "x", "--token-file", "y"], "two places"],
  [["--tokens", "none.toml"], "does not exist"],
  [["--audit-log", "/dev/null"], "no regular file"],
  [["--audit-log", "/none/x"], "cannot be written"],
])("brig serve %j is refused", async (args, reason) => {
  await using directory = await temporaryDirectory();
  const { exitCode, stderr } = await brigHere(["serve", ...args], { cwd: directory.path });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(reason)]);
});

it("a key of another certificate is refused, and so is a certificate that is over", async () => {
  await using directory = await temporaryDirectory();
  const authority = await Authority.make(directory.path);
  const [one, other] = [await authority.sign("one"), await authority.sign("other")];
  const over = await authority.sign("over", { days: 0 });
  const refused = async (cert: string, key: string) =>
    (await brigHere(["serve", "--tls-cert", cert, "--tls-key", key], { cwd: directory.path })).stderr;
  expect(await refused(one.cert, other.key)).toContain("is not that of the certificate");
  await expect.poll(async () => Date.now() > (await stat(over.cert)).mtimeMs + 1500).toBe(true);
  expect(await refused(over.cert, over.key)).toContain("was valid until");
});
