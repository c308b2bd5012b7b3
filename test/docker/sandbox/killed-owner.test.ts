import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { parseJson } from "../../../src/lib/json/parse-json.js";
import { compiledFixture } from "../../support/compiled-fixture.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";

const program = compiledFixture("own-sandbox.ts");

interface Said {
  name: string;
  data?: string;
  exitCode?: number;
  error?: string;
  closed?: string | null;
}

interface Place {
  directory: string;
  workspace: string;
  home: string;
  network?: string;
  kind?: "bind" | "overlay";
}

async function makePlace(directory: string, network?: string): Promise<Place> {
  const [workspace, home] = [join(directory, "workspace"), join(directory, "home")];
  for (const path of [workspace, home]) await mkdir(path);
  return { directory: join(home, "lasting"), workspace, home, ...(network !== undefined && { network }) };
}

/** A process that owns a sandbox, and what it has said. */
class Owner {
  readonly said: Said[] = [];
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown>;
  readonly begun: Promise<{ id: string; tree: string; containerId: string; resumed: string[] }>;
  #stderr = "";

  constructor({
    directory,
    workspace,
    home,
    how,
    network = "none",
    kind = "bind",
  }: Place & { how: "start" | "resume" }) {
    const env = { ...process.env, BRIG_HOME: home, TEST_NETWORK: network, TEST_WORKSPACE: kind };
    this.#child = spawn(process.execPath, [program.path, directory, workspace, how], { env });
    this.#ended = once(this.#child, "exit");
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.on("data", (data) => {
      this.#stderr += data;
    });
    this.begun = new Promise((resolve, reject) => {
      createInterface({ input: this.#child.stdout }).on("line", (line) => {
        // A killed process may leave half a line.
        const said = parseJson(line) as Said & {
          containerId?: string;
          id: string;
          tree: string;
          resumed: string[];
        };
        if (said === undefined) return;
        if (said.containerId !== undefined) resolve({ ...said, containerId: said.containerId });
        else this.said.push(said);
      });
      void this.#ended.then(() => reject(new Error(`the owner has ended: ${this.#stderr}`)));
    });
  }

  ask(what: object): void {
    this.#child.stdin.write(`${JSON.stringify(what)}\n`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  outputOf(name: string): string {
    return this.said.map((one) => (one.name === name ? (one.data ?? "") : "")).join("");
  }

  endOf(name: string): Said | undefined {
    return this.said.find(
      (one) => one.name === name && (one.exitCode !== undefined || one.error !== undefined),
    );
  }

  async close(): Promise<Said | undefined> {
    this.ask({ close: true, name: "" });
    await this.#ended;
    return this.said.find(({ closed }) => closed !== undefined);
  }
}

const KILLS = 5;

describe("a sandbox whose owner is killed", () => {
  sandboxTest(
    "goes on with the next owner, with its commands and all of their output",
    async ({ directory }) => {
      const [workspace, home] = [join(directory, "workspace"), join(directory, "home")];
      for (const path of [workspace, home]) await mkdir(path);
      const place = { directory: join(home, "lasting"), workspace, home };
      let owner = new Owner({ ...place, how: "start" });
      const { id, containerId } = await owner.begun;
      owner.ask({
        name: "counts",
        spawn: [
          "sh",
          "-c",
          "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo line $i; sleep 0.002; done; exit 7",
        ],
      });
      owner.ask({ name: "floods", spawn: ["sh", "-c", "seq 500000; exit 3"] });
      owner.ask({ name: "repeats", spawn: ["cat"] });
      let given = "";
      for (let killed = 0; killed < KILLS; killed++) {
        const word = `word ${killed}\n`;
        given += word;
        owner.ask({ name: "repeats", input: word });
        await expect.poll(() => owner.outputOf("repeats"), { timeout: 20_000 }).toBe(given);
        await sleep(Math.random() * 300);
        await owner.kill();
        owner = new Owner({ ...place, how: "resume" });
        const begun = await owner.begun;
        expect(begun).toMatchObject({ id, containerId });
        expect(begun.resumed.sort()).toEqual(["counts", "floods", "repeats"]);
      }
      owner.ask({ name: "repeats", end: true });
      for (const [name, exitCode] of [
        ["counts", 7],
        ["floods", 3],
        ["repeats", 0],
      ] as const)
        await expect.poll(() => owner.endOf(name), { timeout: 60_000 }).toEqual({ name, exitCode });
      expect(owner.outputOf("repeats")).toBe(given);
      expect(owner.outputOf("counts")).toBe(
        Array.from({ length: 1500 }, (_, i) => `line ${i + 1}\n`).join(""),
      );
      const numbers = Array.from({ length: 500_000 }, (_, i) => `${i + 1}\n`).join("");
      expect(owner.outputOf("floods") === numbers).toBe(true);
      expect((await owner.close())?.closed).toBeNull();
      const engine = await testEngine();
      expect(await engine.inspectContainer(containerId)).toBeNull();
      expect(await readdir(workspace)).toEqual([]);
      expect(await readdir(join(home, "sandboxes"))).toEqual([]);
    },
  );

  sandboxTest("keeps its allow-list, with the next owner as its only way out", async ({ directory }) => {
    const server = createServer((_, response) => response.end("from outside\n"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const place = await makePlace(directory, `allowlist:host.internal:${port}`);
    const ask = (url: string) => ["curl", "--silent", "--show-error", "--fail", url];
    const allowed = `http://host.internal:${port}/`;
    let owner = new Owner({ ...place, how: "start" });
    await owner.begun;
    owner.ask({ name: "before", spawn: ask(allowed) });
    await expect.poll(() => owner.endOf("before")).toBeDefined();
    expect(owner.outputOf("before")).toBe("from outside\n");
    await owner.kill();
    owner = new Owner({ ...place, how: "resume" });
    await owner.begun;
    owner.ask({ name: "after", spawn: ask(allowed) });
    owner.ask({
      name: "direct",
      spawn: ["env", "-u", "http_proxy", "-u", "all_proxy", "-u", "ALL_PROXY", ...ask(allowed)],
    });
    owner.ask({ name: "other", spawn: ask(`http://host.internal:${port + 1}/`) });
    for (const name of ["after", "direct", "other"])
      await expect.poll(() => owner.endOf(name), { timeout: 10_000 }).toBeDefined();
    expect(owner.outputOf("after")).toBe("from outside\n");
    expect(owner.outputOf("direct")).toBe("from outside\n");
    expect(owner.outputOf("other")).toContain("403");
    await owner.close();
    server.close();
  });

  sandboxTest(
    "keeps a copy-on-write workspace, its changes and its restore points",
    async ({ directory }) => {
      const place: Place = { ...(await makePlace(directory)), kind: "overlay" };
      await writeFile(join(place.workspace, "of-the-host"), "as it was");
      let owner = new Owner({ ...place, how: "start" });
      const { tree } = await owner.begun;
      const said = async (name: string, what: object) => {
        owner.ask({ name, ...what });
        await expect
          .poll(() => owner.said.find((one) => one.name === name), { timeout: 20_000 })
          .toBeDefined();
        return owner.outputOf(name);
      };
      const run = async (name: string, script: string) => {
        owner.ask({ name, spawn: ["sh", "-c", script] });
        await expect.poll(() => owner.endOf(name), { timeout: 20_000 }).toEqual({ name, exitCode: 0 });
        return owner.outputOf(name);
      };
      await run("first", "echo one >first; echo changed >of-the-host");
      expect(await said("point 1", { point: true })).toBe("1");
      await run("second", "echo two >second");
      expect(await said("point 2", { point: true })).toBe("2");
      await run("third", "echo three >third");
      await owner.kill();
      owner = new Owner({ ...place, how: "resume" });
      await owner.begun;
      expect(await run("look", "cat first second third of-the-host")).toBe("one\ntwo\nthree\nchanged\n");
      expect(await said("diff", { diff: true })).toBe("first,of-the-host,second,third");
      expect(await said("point 3", { point: true })).toBe("3");
      expect(await said("undo third", { undo: true })).toBe("3");
      expect(await said("undo second", { undo: true })).toBe("2");
      expect(await said("diff again", { diff: true })).toBe("first,of-the-host");
      await owner.kill();
      owner = new Owner({ ...place, how: "resume" });
      await owner.begun;
      expect(await said("undo first", { undo: true })).toBe("1");
      expect(await run("look again", "ls; cat of-the-host")).toBe("of-the-host\nas it was");
      await owner.close();
      expect(await readdir(join(place.home, "sandboxes"))).toEqual([]);
      const engine = await testEngine();
      expect(await engine.listVolumes([`brig.session=${tree}`])).toEqual([]);
      expect(await engine.listContainers([`brig.session=${tree}`])).toEqual([]);
    },
  );

  sandboxTest("cannot be gone on with once its container has ended", async ({ directory }) => {
    const place = await makePlace(directory);
    const owner = new Owner({ ...place, how: "start" });
    const { containerId } = await owner.begun;
    await owner.kill();
    const engine = await testEngine();
    await engine.removeContainer(containerId);
    const next = new Owner({ ...place, how: "resume" });
    await expect(next.begun).rejects.toThrow("its container has ended");
  });

  sandboxTest("is removed if its policy is not the one that it was started with", async ({ directory }) => {
    const place = await makePlace(directory);
    const owner = new Owner({ ...place, how: "start" });
    const { containerId } = await owner.begun;
    await owner.kill();
    const file = join(place.directory, "sandbox.json");
    const record = JSON.parse(await readFile(file, "utf8"));
    record.plan.limits.pids++;
    await writeFile(file, JSON.stringify(record));
    const next = new Owner({ ...place, how: "resume" });
    await expect(next.begun).rejects.toThrow("did not enforce the policy");
    const engine = await testEngine();
    await expect.poll(() => engine.inspectContainer(containerId), { timeout: 20_000 }).toBeNull();
    expect(await readdir(place.workspace)).toEqual([]);
    expect(await readdir(join(place.home, "sandboxes"))).toEqual([]);
  });
});
