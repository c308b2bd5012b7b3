import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox as E2bClient } from "e2b";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import type { RemoteProcess } from "../../src/services/serve/client/client-types.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { type KeptPlace, keptPlace, type RunningService } from "../support/kept-service.js";
import { tlsServer } from "../support/tls-server.js";

const keeps = ["--keep-sandboxes", "--warm", "0"];

/** Everything that a process has printed, from the beginning. */
async function wholeOutput({ send }: KeptPlace, sandbox: string, process: string) {
  const found = { text: "", lost: 0, next: 0 };
  for (;;) {
    const path = `/sandboxes/${sandbox}/processes/${process}/output?after=${found.next}&waitMs=30000`;
    const { answer } = await send("GET", path);
    const { chunks, next, lost, ended } = answer as {
      chunks: { data: string }[];
      next: number;
      lost: number;
      ended: boolean;
    };
    for (const { data } of chunks) found.text += Buffer.from(data, "base64").toString("latin1");
    found.lost += lost;
    found.next = next;
    if (ended) return found;
  }
}

async function readAll(process: RemoteProcess): Promise<string> {
  let text = "";
  for await (const piece of process.stdout) text += String(piece);
  return text;
}

async function containersOf(service: RunningService): Promise<string[]> {
  const engine = await testEngine();
  return (await engine.listContainers([`brig.owner-pid=${service.pid}`])).map(({ id }) => id);
}

const counting = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exit 7";
const counted = Array.from({ length: 300 }, (_, i) => `line ${i + 1}\n`).join("");

describe.each(["SIGTERM", "SIGKILL"] as const)("brig serve --keep-sandboxes after %s", (signal) => {
  it("has all sandboxes again, and their processes with all that they print", async () => {
    const place = await keptPlace();
    const { client, other } = place;
    const first = await place.start();
    const labels = { team: "search" };
    const key = { idempotencyKey: "one" };
    const sandbox = await client.createSandbox({ labels, env: { GIVEN: "value" } }, key);
    const foreign = await other.createSandbox();
    await sandbox.files.write("/tmp/file", "kept");
    await sandbox.extend(3_600_000);
    const { record } = await client.getSandbox(sandbox.id);
    const counts = await sandbox.spawn(["sh", "-c", counting]);
    const repeats = await sandbox.spawn(["cat"]);
    const terminal = await sandbox.spawn(["sh", "-c", "read x; stty size; echo $x $GIVEN"], {
      pty: { rows: 30, cols: 90 },
    });
    await new Promise<void>((resolve) => repeats.stdin?.write("before\n", () => resolve()));
    const over = await sandbox.spawn(["sh", "-c", "echo over; exit 4"]);
    expect((await over.exit).exitCode).toBe(4);
    const containers = await containersOf(first);
    expect(containers).toHaveLength(2);
    const { stderr } = await first.end(signal);
    if (signal === "SIGTERM") expect(stderr).toContain("2 sandboxes run on for 10 minutes");
    // Whoever cleans up while no service is there leaves them alone.
    expect((await brigHere(["gc"], { env: { BRIG_HOME: place.home } })).exitCode).toBe(0);
    const second = await place.start();
    expect((await client.listSandboxes({ labels })).map((one) => one.record)).toEqual([record]);
    expect((await client.createSandbox({ labels, env: { GIVEN: "value" } }, key)).id).toBe(sandbox.id);
    await expect(client.createSandbox({}, key)).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(client.getSandbox(foreign.id)).rejects.toMatchObject({ code: "serve.unknown" });
    expect((await other.listSandboxes()).map(({ id }) => id)).toEqual([foreign.id]);
    const again = await client.getSandbox(sandbox.id);
    const ids = [counts, repeats, terminal, over].map(({ id }) => id);
    expect((await again.processes()).map(({ id }) => id)).toEqual(ids);
    expect(await wholeOutput(place, sandbox.id, counts.id)).toMatchObject({ text: counted, lost: 0 });
    expect((await again.processes())[0]).toMatchObject({ state: "ended", exitCode: 7 });
    expect((await again.processes())[3]).toMatchObject({ state: "ended", exitCode: 4 });
    expect(await wholeOutput(place, sandbox.id, over.id)).toMatchObject({ text: "over\n", lost: 0 });
    const cat = await again.process(repeats.id);
    cat.stdin?.end("after\n");
    expect(await readAll(cat)).toBe("before\nafter\n");
    const shell = await again.process(terminal.id);
    shell.resize({ rows: 40, cols: 100 });
    shell.stdin?.write("typed\n");
    expect(await readAll(shell)).toContain("40 100\r\ntyped value\r\n");
    expect((await again.exec(["sh", "-c", "cat /tmp/file; echo $GIVEN"])).stdout).toBe("keptvalue\n");
    expect((await client.health()).sandboxes).toBe(2);
    await again.delete();
    await expect(client.getSandbox(sandbox.id)).rejects.toMatchObject({ code: "serve.unknown" });
    // A deleted one is not found again, and its key is free.
    await second.end(signal);
    await place.start();
    expect(await client.listSandboxes()).toEqual([]);
    const engine = await testEngine();
    expect(
      (await Promise.all(containers.map((id) => engine.inspectContainer(id)))).filter(Boolean),
    ).toHaveLength(1);
    const another = await client.createSandbox({ labels, env: { GIVEN: "value" } }, key);
    expect(another.id).not.toBe(sandbox.id);
  });
});

/** The files in memory in which services of this user have their keys. */
async function sealKeys(): Promise<string[]> {
  const uid = process.getuid?.();
  const places = [`/run/user/${uid}/brig-${uid}`, `/dev/shm/brig-${uid}`];
  const found = await Promise.all(
    places.map(async (path) => (await readdir(path).catch(() => [])).map((name) => join(path, name))),
  );
  return found
    .flat()
    .filter((path) => path.includes("/serve-"))
    .toSorted();
}

/** The paths below a directory whose mode lets others in. */
async function openToOthers(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name, parentPath } of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(parentPath, name);
    if (((await stat(path)).mode & 0o077) !== 0) found.push(path);
  }
  return found;
}

describe("what brig serve --keep-sandboxes leaves", () => {
  it("is ended by a later service without the flag, once that ends", async () => {
    const place = await keptPlace();
    const first = await place.start();
    const { id } = await place.client.createSandbox();
    const containers = await containersOf(first);
    await first.end("SIGTERM");
    const second = await place.start(["--warm", "0"]);
    const inherited = await place.client.getSandbox(id);
    expect((await inherited.exec(["echo", "here"])).stdout).toBe("here\n");
    const own = await place.client.createSandbox();
    expect((await second.end("SIGTERM")).stderr).not.toContain("run on");
    const engine = await testEngine();
    expect(await engine.inspectContainer(`${containers[0]}`)).toBeNull();
    expect(await containersOf(second)).toEqual([]);
    expect(await readdir(join(place.home, "sandboxes"))).toEqual([]);
    await place.start();
    await expect(place.client.getSandbox(id)).rejects.toMatchObject({ code: "serve.unknown" });
    await expect(place.client.getSandbox(own.id)).rejects.toMatchObject({ code: "serve.unknown" });
  });

  it("is nothing with secrets, nor what E2B's clients have", async () => {
    const place = await keptPlace();
    const first = await place.start([...keeps, "--allow-network"]);
    const kept = await place.client.createSandbox({ network: "allowlist:example.com" });
    const secrets = { KEY: { value: "not-to-be-written", hosts: ["example.com"] } };
    await place.client.createSandbox({ network: "allowlist:example.com", secrets });
    const created = await fetch(`${place.url}/e2b/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": "1".repeat(64), "content-type": "application/json" },
      body: JSON.stringify({ templateID: "base" }),
    });
    expect(created.status).toBe(201);
    expect((await place.client.listSandboxes()).length).toBe(3);
    const written = await execa("grep", ["-r", "not-to-be-written", place.home], { reject: false });
    expect(written.stdout).toBe("");
    expect((await first.end("SIGTERM")).stderr).toContain("one sandbox runs on for 10 minutes");
    expect(await containersOf(first)).toHaveLength(1);
    await place.start([...keeps, "--allow-network"]);
    expect((await place.client.listSandboxes()).map(({ id }) => id)).toEqual([kept.id]);
  });

  it("is also what has secrets, and what E2B's clients have, with --keep-secrets", async () => {
    const place = await keptPlace();
    const received: Record<string, unknown>[] = [];
    await using server = await tlsServer("host.internal", ({ headers }, response) => {
      received.push(headers);
      response.end("answered\n");
    });
    await mkdir(place.home, { recursive: true });
    const authorities = join(place.home, "company.pem");
    await writeFile(authorities, server.authority);
    await writeFile(
      join(place.home, "config.toml"),
      `[egress]\nca_files = [${JSON.stringify(authorities)}]\n`,
    );
    const host = `host.internal:${server.port}`;
    const keysBefore = await sealKeys();
    const args = [...keeps, "--keep-secrets", "--allow-network"];
    let service = await place.start(args);
    const secrets = { KEY: { value: "not-to-be-written", hosts: [host] } };
    const first = await place.client.createSandbox({ network: `allowlist:${host}`, secrets });
    const placeholder = (await first.exec(["printenv", "KEY"])).stdout;
    const e2b = { apiUrl: `${place.url}/e2b`, sandboxUrl: place.url, apiKey: "1".repeat(64) };
    const sending = (value: string) => ({ [host]: [{ transform: { headers: { "x-token": value } } }] });
    const created = await E2bClient.create("base", {
      ...e2b,
      metadata: { run: "7" },
      network: { allowOut: [host], rules: sending("not-to-be-written-either") },
    });
    await created.files.write("note", "kept");
    const counts = await created.commands.run(counting, { background: true });
    const resting = await E2bClient.create("base", e2b);
    const slept = await resting.commands.run("sleep 7713", { background: true });
    await resting.pause();
    const written = async () =>
      (await execa("grep", ["-r", "not-to-be-written", place.home], { reject: false })).stdout;
    expect(await written()).toBe("");
    expect((await sealKeys()).length).toBe(keysBefore.length + 1);
    const ask = `curl -sS -H "Authorization: Bearer $KEY" https://${host}/`;
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      await service.end(signal);
      service = await place.start(args);
      const again = await place.client.getSandbox(first.id);
      expect((await again.exec(["printenv", "KEY"])).stdout).toBe(placeholder);
      expect((await again.exec(["sh", "-c", ask])).stdout).toBe("answered\n");
      expect(received.pop()).toMatchObject({ authorization: "Bearer not-to-be-written" });
      const connected = await E2bClient.connect(created.sandboxId, e2b);
      expect(await connected.files.read("note")).toBe("kept");
      await expect.poll(async () => (await resting.getInfo()).state).toBe("paused");
      expect((await connected.getInfo()).metadata).toEqual({ run: "7" });
      const { stdout } = await connected.commands.run(`curl -sS https://${host}/`);
      expect(stdout).toBe("answered\n");
      const isFirst = signal === "SIGKILL";
      expect(received.pop()).toMatchObject({
        "x-token": isFirst ? "not-to-be-written-either" : "not-to-be-written-later",
      });
      await connected.updateNetwork({ allowOut: [host], rules: sending("not-to-be-written-later") });
      if (!isFirst) continue;
      const followed = await connected.commands.connect(counts.pid);
      await expect(followed.wait()).rejects.toMatchObject({ exitCode: 7, stdout: counted });
    }
    expect(await written()).toBe("");
    const resumed = await E2bClient.connect(resting.sandboxId, e2b);
    expect((await resumed.commands.list()).map(({ pid }) => pid)).toEqual([slept.pid]);
    await first.delete();
    await Promise.all([E2bClient.kill(created.sandboxId, e2b), resumed.kill()]);
    await service.end("SIGTERM");
    expect(await sealKeys()).toEqual(keysBefore);
  });

  it("is paused if it was to be while no service was there", async () => {
    const place = await keptPlace();
    const args = ["--keep-sandboxes", "--keep-secrets"];
    const first = await place.start(args);
    const e2b = { apiUrl: `${place.url}/e2b`, sandboxUrl: place.url, apiKey: "1".repeat(64) };
    const created = await E2bClient.create("base", { ...e2b, lifecycle: { onTimeout: "pause" } });
    await created.files.write("note", "kept");
    await created.setTimeout(1000);
    await first.end("SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const second = await place.start(args);
    await expect.poll(async () => (await created.getInfo()).state).toBe("paused");
    const connected = await E2bClient.connect(created.sandboxId, e2b);
    expect(await connected.files.read("note")).toBe("kept");
    await connected.kill();
    await second.end("SIGTERM");
  });

  it("has no secrets without their key, and its sandboxes end then", async () => {
    const place = await keptPlace();
    const keysBefore = await sealKeys();
    const args = [...keeps, "--keep-secrets", "--allow-network"];
    const first = await place.start(args);
    const secrets = { KEY: { value: "not-to-be-written", hosts: ["example.com"] } };
    await place.client.createSandbox({ network: "allowlist:example.com", secrets });
    const plain = await place.client.createSandbox();
    const containers = await containersOf(first);
    await first.end("SIGKILL");
    for (const key of await sealKeys()) if (!keysBefore.includes(key)) await rm(key);
    await place.start(args);
    expect((await place.client.listSandboxes()).map(({ id }) => id)).toEqual([plain.id]);
    const engine = await testEngine();
    const left = async () =>
      (await Promise.all(containers.map((id) => engine.inspectContainer(id)))).filter((one) => one !== null);
    await expect.poll(async () => (await left()).length, { timeout: 60_000 }).toBe(1);
    const { exitCode, stderr } = await place.run(["--keep-secrets"]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("--keep-sandboxes")]);
  });

  it("only its user can read, and one service at a time has it", async () => {
    const place = await keptPlace();
    const service = await place.start();
    await place.client.createSandbox({ env: { TOKEN: "of-the-client" }, workspaceKind: "overlay" });
    const kept = join(place.home, "serve");
    const workspace = (path: string) => path.endsWith("/workspace") || path.endsWith(".lock");
    expect((await openToOthers(kept)).filter((path) => !workspace(path))).toEqual([]);
    expect((await stat(kept)).mode & 0o777).toBe(0o700);
    const { exitCode, stderr } = await place.run(keeps);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${service.pid} keeps the sandboxes`)]);
    expect((await place.client.listSandboxes()).length).toBe(1);
  });

  it("has its workspaces, forks and snapshots again, and forks again", async () => {
    const place = await keptPlace();
    const { client } = place;
    const first = await place.start();
    const sandbox = await client.createSandbox({ workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "echo one > file"]);
    const snapshot = await sandbox.snapshot({ name: "one" });
    const fork = await sandbox.fork();
    await fork.exec(["sh", "-c", "echo two > file"]);
    const stored = await client.createSandbox({ snapshot: snapshot.id });
    await stored.exec(["sh", "-c", "echo three > other"]);
    const ids = [sandbox.id, fork.id, stored.id];
    await first.end("SIGKILL");
    const second = await place.start();
    const [a, b, c] = await Promise.all(ids.map((id) => client.getSandbox(id)));
    expect((await a?.exec(["cat", "file"]))?.stdout).toBe("one\n");
    expect((await b?.exec(["cat", "file"]))?.stdout).toBe("two\n");
    expect((await c?.diff())?.changes.map(({ path }) => path).toSorted()).toEqual(["file", "other"]);
    const another = await b?.fork();
    expect((await another?.exec(["cat", "file"]))?.stdout).toBe("two\n");
    await a?.delete();
    await second.end("SIGTERM");
    await place.start();
    expect((await client.listSandboxes()).map(({ id }) => id).toSorted()).toEqual(
      [...ids.slice(1), `${another?.id}`].toSorted(),
    );
    expect((await (await client.getSandbox(`${another?.id}`)).exec(["cat", "file"])).stdout).toBe("two\n");
  });

  it("reaches what it was allowed last, and counts for the places of its client", async () => {
    const place = await keptPlace();
    const { client } = place;
    const args = [...keeps, "--allow-network", "--max-per-client", "2"];
    const first = await place.start(args);
    const wide = await client.createSandbox({ network: "allowlist:host.internal:1,host.internal:2" });
    await wide.setNetwork("allowlist:host.internal:2");
    const closed = await client.createSandbox({ network: "allowlist:host.internal:1" });
    await closed.setNetwork("none");
    await first.end("SIGKILL");
    await place.start(args);
    const again = await client.getSandbox(wide.id);
    expect(again.record.network).toBe("allowlist:host.internal:2");
    const ask = async (id: string, port: number) =>
      (await (await client.getSandbox(id)).exec(["curl", "-sv", `http://host.internal:${port}/`])).stderr;
    // Nobody listens there: what is allowed is refused by the machine, and the rest by brig.
    expect(await ask(wide.id, 1)).toContain("403");
    expect(await ask(wide.id, 2)).toContain("502");
    expect((await client.getSandbox(closed.id)).record.network).toBe("none");
    expect(await ask(closed.id, 1)).toContain("403");
    await again.setNetwork("allowlist:host.internal:1");
    expect(await ask(wide.id, 1)).toContain("502");
    await expect(client.createSandbox()).rejects.toMatchObject({ code: "serve.busy" });
  });

  it("is what clients have, but not what is kept started; and what has expired is removed", async () => {
    const place = await keptPlace();
    const { client } = place;
    const args = ["--keep-sandboxes", "--warm", "2"];
    const first = await place.start(args);
    const warm = await client.createSandbox();
    await warm.exec(["sh", "-c", "echo kept > /tmp/file"]);
    const expiring = await client.createSandbox();
    await expect.poll(async () => (await containersOf(first)).length, { timeout: 60_000 }).toBe(4);
    const containers = await containersOf(first);
    await expiring.extend(1);
    await first.end("SIGKILL");
    const second = await place.start(args);
    expect((await client.listSandboxes()).map(({ id }) => id)).toEqual([warm.id]);
    expect((await (await client.getSandbox(warm.id)).exec(["cat", "/tmp/file"])).stdout).toBe("kept\n");
    const engine = await testEngine();
    const left = async () =>
      (await Promise.all(containers.map((id) => engine.inspectContainer(id)))).filter((one) => one !== null);
    await expect.poll(async () => (await left()).length, { timeout: 60_000 }).toBe(1);
    await second.end("SIGTERM");
    expect((await left()).length).toBe(1);
  });

  it("is gone, with all that belongs to it, if its container has ended meanwhile", async () => {
    const place = await keptPlace();
    const first = await place.start();
    const key = { idempotencyKey: "one" };
    const sandbox = await place.client.createSandbox({ workspaceKind: "overlay" }, key);
    const engine = await testEngine();
    await first.end("SIGKILL");
    const volumes = async () =>
      (await engine.listVolumes(["brig.session"])).filter(
        ({ labels }) => labels["brig.owner-pid"] === `${first.pid}`,
      );
    expect(await volumes()).not.toEqual([]);
    for (const id of await containersOf(first)) await engine.removeContainer(id);
    await place.start();
    expect(await place.client.listSandboxes()).toEqual([]);
    expect(await containersOf(first)).toEqual([]);
    expect(await volumes()).toEqual([]);
    expect((await place.client.health()).sandboxes).toBe(0);
    expect((await place.client.createSandbox({ workspaceKind: "overlay" }, key)).id).not.toBe(sandbox.id);
  });

  it("cannot be a sandbox of a task, which ends with its service", async () => {
    const place = await keptPlace();
    await writeFile(
      join(place.directory, "tasks.jsonl"),
      JSON.stringify({ name: "say-42", prompt: "write 42", check: "grep -qx 42 answer" }),
    );
    const first = await place.start([...keeps, "tasks.jsonl"]);
    const { id } = await place.client.createSandbox({ task: "say-42" });
    await first.end("SIGTERM");
    expect(await containersOf(first)).toEqual([]);
    await place.start([...keeps, "tasks.jsonl"]);
    await expect(place.client.getSandbox(id)).rejects.toMatchObject({ code: "serve.unknown" });
  });
});
