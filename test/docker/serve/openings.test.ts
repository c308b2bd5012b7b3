import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testEngine } from "../../support/engine.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../support/sandbox.js";
import { openServed, type Served } from "../../support/served.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0451";

let home: TemporaryDirectory;
let closed: Served;
let open: Served;
let server: Server;
let host: string;
const received: (string | undefined)[] = [];

beforeAll(async () => {
  home = await temporaryDirectory();
  closed = await openServed();
  open = await openServed({ allowsNetwork: true, brigHome: home.path });
  server = createServer(({ headers }, response) => {
    received.push(headers.authorization);
    response.end(`${headers.authorization ?? "nothing"}\n`);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  host = `host.internal:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.close();
  await Promise.all([closed, open, home].map((one) => one[Symbol.asyncDispose]()));
});

/** All that is written below a directory, as latin1. */
async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), "latin1")));
}

/** Empty for a process that is gone. */
async function commandLine(pid: string): Promise<string> {
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return text.replaceAll("\0", " ");
}

async function post(served: Served, body: unknown) {
  const response = await fetch(`${served.url}/v1/sandboxes`, {
    method: "POST",
    headers: { authorization: `Bearer ${served.tokens[0]}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const network = () => `allowlist:${host}` as const;
const curl = ["curl", "-sSf", "-m", "20"];

describe("the secrets of a sandbox of a service", () => {
  const secrets = () => ({ API_KEY: { value: SECRET, hosts: [host], plainHttp: true } });

  it("are put into requests outside of it, and are in nothing that anybody gets to see", async () => {
    await using sandbox = await open.client.createSandbox({ network: network(), secrets: secrets() });
    const sent = `curl -sS -m 20 -H "Authorization: Bearer $API_KEY" http://${host}/`;
    const { stdout } = await sandbox.exec(["sh", "-c", `${sent}; env; cat /proc/1/environ`]);
    expect(received.at(-1)).toBe(`Bearer ${SECRET}`);
    expect(stdout).toMatch(/^Bearer \*+\n/);
    expect(stdout).toMatch(/^API_KEY=/m);
    const process = await sandbox.spawn(["sh", "-c", sent]);
    let printed = "";
    for await (const piece of process.stdout) printed += piece;
    expect(printed).toMatch(/^Bearer \*+\n$/);
    const seen = [
      ...[stdout, printed, sandbox.record, await sandbox.proof(), await sandbox.egress()],
      ...[open.warnings, await (await testEngine()).listContainers([]), await filesBelow(home.path)],
    ];
    expect(JSON.stringify(seen)).not.toContain(SECRET);
    expect((await sandbox.proof()).egress?.secrets).toEqual([{ name: "API_KEY", hosts: [host] }]);
  });

  it("go to their own hosts only, and nowhere in plain text unless that is said", async () => {
    const other = { ...secrets().API_KEY, hosts: ["elsewhere.example"] };
    const inTls = { ...secrets().API_KEY, plainHttp: false };
    received.length = 0;
    for (const API_KEY of [other, inTls]) {
      await using sandbox = await open.client.createSandbox({ network: network(), secrets: { API_KEY } });
      await sandbox.exec(["sh", "-c", `curl -sS -m 20 -H "Authorization: Bearer $API_KEY" http://${host}/`]);
    }
    expect(received.join()).not.toContain(SECRET);
  });

  it("are those of its forks, too", async () => {
    const options = { network: network(), secrets: secrets(), workspaceKind: "overlay" } as const;
    await using sandbox = await open.client.createSandbox(options);
    await using fork = await sandbox.fork();
    received.length = 0;
    await fork.exec(["sh", "-c", `curl -sS -m 20 -H "Authorization: Bearer $API_KEY" http://${host}/`]);
    expect(received).toEqual([`Bearer ${SECRET}`]);
  });

  it("are refused where they could not be used, or would be read on the machine of the service", async () => {
    const ask = async (served: Served, more: object) =>
      await post(served, { network: network(), secrets: secrets(), ...more });
    const without = [await ask(closed, {}), await ask(closed, { network: "none" })];
    for (const { status, text } of without) {
      expect(status).toBe(400);
      expect(text).toContain("--allow-network");
    }
    for (const more of [{ network: "none", mode: "read-only" }, { network: "full" }])
      expect(await ask(open, more)).toMatchObject({ status: 400, text: expect.stringContaining("list of") });
    for (const secret of [
      { env: "PATH" },
      { file: "/etc/shadow" },
      { command: ["id"] },
      { value: "short" },
    ]) {
      const { status, text } = await ask(open, { secrets: { KEY: { hosts: [host], ...secret } } });
      expect(status, text).toBe(400);
      expect(text).not.toMatch(/root:|uid=/);
    }
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`K${at}`, secrets().API_KEY]));
    expect((await ask(open, { secrets: many })).text).toContain("at most 64 secrets");
    const wrong = { KEY: { hosts: [], value: SECRET }, "not a name": secrets().API_KEY };
    expect(await ask(open, { secrets: wrong })).toMatchObject({
      status: 400,
      text: expect.not.stringContaining(SECRET),
    });
  });
});

describe("what a sandbox of a service tries to reach", () => {
  it("is told, with a list of hosts if it is to be learned", async () => {
    await using sandbox = await open.client.createSandbox({ network: `learn:${host}` });
    expect(sandbox.record.network).toMatch(/^learn/);
    expect(await sandbox.egress()).toMatchObject({ attempts: [], proposal: { entries: [] } });
    await sandbox.exec([...curl, `http://${host}/`]);
    await sandbox.exec([...curl, `http://${host}/`]);
    const seen = async () => (await sandbox.egress()).attempts;
    await expect.poll(async () => (await seen())[0]?.count).toBe(2);
    const { attempts, proposal } = await sandbox.egress();
    expect(attempts).toMatchObject([{ outcome: "allowed", program: "curl", phase: "run" }]);
    expect(proposal).toMatchObject({ network: `allowlist:${host}`, isComplete: true, left: [] });
    await using listed = await open.client.createSandbox({
      network: proposal?.network as `allowlist:${string}`,
    });
    expect((await listed.exec([...curl, `http://${host}/`])).stdout).toBe("nothing\n");
    await listed.exec([...curl, "http://refused.invalid/"]);
    await expect
      .poll(async () => (await listed.egress()).attempts.find(({ outcome }) => outcome === "denied")?.reason)
      .toBe("no-rule");
    expect((await listed.egress()).proposal).toBeNull();
    expect(await open.otherClient.getSandbox(listed.id).catch(({ code }) => code)).toBe("serve.unknown");
  });

  it("is nothing without a network, and learning is refused without --allow-network", async () => {
    await using sandbox = await closed.client.createSandbox();
    expect(await sandbox.egress()).toEqual({ attempts: [], proposal: null });
    for (const wanted of ["learn", `learn:${host}`])
      expect(await post(closed, { network: wanted })).toMatchObject({
        status: 400,
        text: expect.stringContaining("--allow-network"),
      });
    expect(await post(open, { network: "learn:127.0.0.1:22" })).toMatchObject({ status: 400 });
    await using learning = await open.client.createSandbox({ network: "learn" });
    await expect(learning.setNetwork("learn" as "none")).rejects.toMatchObject({ code: "usage.invalid" });
  });
});

describe("the set-up of a sandbox of a service", () => {
  it("has a network of its own, and the sandbox that is handed over has not", async () => {
    const command = [
      "sh",
      "-c",
      `curl -sS -m 20 http://${host}/ > /tmp/fetched; echo $GIVEN >> /tmp/fetched; sleep 4321 &`,
    ];
    await using sandbox = await open.client.createSandbox({
      ...{ env: { GIVEN: "given" }, setup: { command, network: network() } },
    });
    expect((await sandbox.exec(["cat", "/tmp/fetched"])).stdout).toBe("nothing\ngiven\n");
    expect((await sandbox.exec([...curl, `http://${host}/`])).exitCode).not.toBe(0);
    // Whatever it has started is ended with it.
    expect((await sandbox.exec(["pgrep", "-f", "sleep 4321"])).exitCode).toBe(1);
    const phases = async () =>
      (await sandbox.egress()).attempts.map(({ phase, outcome }) => [phase, outcome]);
    await expect.poll(phases).toEqual([
      ["setup", "allowed"],
      ["run", "denied"],
    ]);
  });

  it("needs no network, works in the workspace, and is not run again in a fork", async () => {
    const setup = { command: ["sh", "-c", "pwd; echo run >> ran"] };
    await using sandbox = await closed.client.createSandbox({ workspaceKind: "overlay", setup });
    await using fork = await sandbox.fork();
    for (const one of [sandbox, fork]) expect((await one.exec(["cat", "ran"])).stdout).toBe("run\n");
  });

  it("leaves no sandbox if it fails, and says why", async () => {
    const before = (await open.client.listSandboxes()).length;
    const failing = async (setup: object) => await post(open, { setup });
    expect(await failing({ command: ["sh", "-c", "echo it is broken >&2; exit 3"] })).toMatchObject({
      status: 422,
      text: expect.stringMatching(/"setup\.failed"[\s\S]*exit status 3[\s\S]*it is broken/),
    });
    expect((await failing({ command: ["sleep", "1000"], timeoutMs: 300 })).text).toContain("took longer");
    expect((await failing({ command: ["no-such-program"] })).status).toBe(422);
    expect((await failing({ command: [] })).status).toBe(400);
    expect((await open.client.listSandboxes()).length).toBe(before);
    expect(await post(closed, { setup: { command: ["true"], network: network() } })).toMatchObject({
      status: 400,
      text: expect.stringContaining("--allow-network"),
    });
  });

  it("is ended with its sandbox when the client does not wait", async () => {
    const abort = new AbortController();
    const setup = { command: ["sleep", "7654"] };
    const creating = open.client.createSandbox({ setup }, { signal: abort.signal });
    const processes = async () =>
      (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map((pid) => commandLine(pid));
    const sleeping = async () =>
      (await Promise.all(await processes())).filter((line) => line === "sleep 7654 ");
    await expect.poll(async () => (await sleeping()).length).toBeGreaterThan(0);
    abort.abort(new Error("enough"));
    await expect(creating).rejects.toThrow("enough");
    await expect.poll(async () => (await sleeping()).length).toBe(0);
  });
});

describe("the account of a sandbox of a service", () => {
  it("has the proof of its policy, and what it has left once it is gone", async () => {
    await using sandbox = await closed.client.createSandbox({ mode: "read-only" });
    expect(await sandbox.proof()).toMatchObject({
      ...{ policy: "read-only", differences: [], imageId: expect.stringMatching(/^sha256:/) },
      summary: { noNewPrivileges: "true" },
    });
    await expect(sandbox.receipt()).rejects.toMatchObject({ code: "usage.invalid" });
    await sandbox.exec(["true"]);
    await sandbox.close();
    expect(await sandbox.receipt()).toEqual({ findings: [], omitted: 0, incomplete: null });
    await expect(sandbox.proof()).rejects.toMatchObject({ code: "serve.unknown" });
    const ofOther = await fetch(`${closed.url}/v1/sandboxes/${sandbox.id}/receipt`, {
      headers: { authorization: `Bearer ${closed.tokens[1]}` },
    });
    expect(ofOther.status).toBe(404);
  });

  it("keeps no restore points of a sandbox that is gone", async () => {
    const stored = async () => await readdir(join(home.path, "snapshots")).catch(() => []);
    const sandbox = await open.client.createSandbox({ workspaceKind: "overlay" });
    await sandbox.exec(["touch", "a"]);
    const point = await sandbox.restorePoint();
    expect(await stored()).toContain(point?.snapshot);
    await sandbox.close();
    expect(await stored()).not.toContain(point?.snapshot);
    await using plain = await open.client.createSandbox();
    for (const call of [plain.restorePoint(), plain.restorePoints(), plain.restore(0), plain.undo()])
      await expect(call).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
