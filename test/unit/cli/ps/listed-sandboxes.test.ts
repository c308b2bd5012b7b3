import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { listSandboxes } from "../../../../src/cli/ps/listed-sandboxes.js";
import { type Owner, ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import type { ContainerState } from "../../../../src/sandbox/docker/engine-types.js";
import { type SandboxRecord, writeRecord } from "../../../../src/sandbox/sandbox-records.js";
import { temporaryFolder } from "../../../support/batch-runs.js";

type ConnectTo = Parameters<typeof listSandboxes>[1];

const id = (last: number) => `00000000-0000-4000-8000-00000000000${last}`;
const about = {
  mode: "workspace-write",
  network: "none",
  image: "brig/base",
  workspace: "/w",
  createdAt: "2026-01-01T00:00:00.000Z",
};

const living = async () => await ownerOf(process.pid, await readHostProcesses(hostname()));

async function ended(): Promise<Owner> {
  const child = spawn("sleep", ["60"]);
  const owner = await ownerOf(child.pid ?? 0, await readHostProcesses(hostname()));
  child.kill("SIGKILL");
  await once(child, "exit");
  return owner;
}

async function homeWith(...records: (Pick<SandboxRecord, "sessionId" | "owner"> & Partial<SandboxRecord>)[]) {
  const home = await temporaryFolder();
  for (const record of records)
    writeRecord(home, { endpoint: "unix:///e", containerId: "c", placeholders: [], about, ...record });
  return home;
}

/** An engine with these containers, and whether each runs. */
function engineWith(containers: Record<string, boolean>): ConnectTo {
  return async () => ({
    async inspectContainer(name) {
      const running = containers[name];
      const state = { id: name, running, paused: false, exitCode: 0, oomKilled: false, error: "", pid: 1 };
      return running === undefined ? null : ({ ...state, imageId: "i" } as ContainerState);
    },
  });
}

const silent: ConnectTo = async () => await Promise.reject(new Error("no engine"));

describe("the list of sandboxes", () => {
  it("has every field of one that runs, and no other", async () => {
    const home = await homeWith({ sessionId: id(1), owner: await living() });
    expect(await listSandboxes(home, engineWith({ c: true }))).toEqual([
      { name: null, id: id(1), state: "running", ...about, confirmed: true },
    ]);
  });

  it("is empty without a home, and without records", async () => {
    expect(await listSandboxes("/there/is/none", silent)).toEqual([]);
    expect(await listSandboxes(await homeWith(), silent)).toEqual([]);
  });

  it("says that a container has ended, and leaves out one that is gone", async () => {
    const owner = await living();
    const home = await homeWith(
      { sessionId: id(1), owner, containerId: "a" },
      { sessionId: id(2), owner, containerId: "b" },
    );
    const listed = await listSandboxes(home, engineWith({ a: false }));
    expect(listed).toMatchObject([{ id: id(1), state: "stopped", confirmed: true }]);
  });

  it("has one that was kept, although its process has ended", async () => {
    const home = await homeWith({ sessionId: id(1), owner: await ended() });
    expect(await listSandboxes(home, engineWith({ c: true }))).toMatchObject([
      { state: "running", confirmed: true },
    ]);
  });

  it("confirms nothing where the engine does not answer: then a living process stands for its sandbox", async () => {
    const home = await homeWith(
      { sessionId: id(1), owner: await living() },
      { sessionId: id(2), owner: await ended(), about: { ...about, createdAt: "2026-02" } },
    );
    expect(await listSandboxes(home, silent)).toMatchObject([
      { id: id(1), state: "running", confirmed: false },
      { id: id(2), state: "stopped", confirmed: false },
    ]);
  });

  it("asks no engine of this machine about a sandbox of another one", async () => {
    const owner = { ...(await living()), host: "elsewhere" };
    const home = await homeWith({ sessionId: id(1), owner });
    expect(await listSandboxes(home, engineWith({}))).toMatchObject([{ state: "running", confirmed: false }]);
  });

  it("leaves out what is no sandbox, what is only being created, and records of earlier versions", async () => {
    const owner = await living();
    const home = await homeWith(
      { sessionId: id(1), owner, about: null },
      { sessionId: id(2), owner, about: undefined },
      { sessionId: id(3), owner, containerId: null },
    );
    expect(await listSandboxes(home, engineWith({ c: true }))).toEqual([]);
  });

  it("begins with the oldest, and asks each engine for itself", async () => {
    const owner = await living();
    const home = await homeWith(
      { sessionId: id(1), owner, endpoint: "unix:///one", about: { ...about, createdAt: "2026-03" } },
      { sessionId: id(2), owner, endpoint: "unix:///other", about: { ...about, createdAt: "2026-02" } },
    );
    const asked: string[] = [];
    const listed = await listSandboxes(home, async (endpoint) => {
      asked.push(endpoint);
      return await engineWith({ c: endpoint === "unix:///one" })(endpoint);
    });
    expect(listed.map(({ id: one, state }) => [one, state])).toEqual([
      [id(2), "stopped"],
      [id(1), "running"],
    ]);
    expect(asked.toSorted()).toEqual(["unix:///one", "unix:///other"]);
  });
});
