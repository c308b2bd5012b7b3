import { setTimeout as sleep } from "node:timers/promises";
import Docker from "dockerode";
import { describe, expect, it, vi } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { createPool } from "../../../src/sandbox/pool.js";
import { Sandbox } from "../../../src/sandbox/sandbox.js";
import { socketOf, testEngine } from "../../support/engine.js";
import { testRuntime } from "../../support/runtime-differences.js";

/** A client of the real package with these settings, and the requests that it was given. */
async function ownClient(settings: ConstructorParameters<typeof Docker>[0] = {}) {
  const docker = new Docker({ socketPath: socketOf(await testEngine()), ...settings });
  const dial = vi.spyOn(docker.modem, "dial");
  const requests = () => dial.mock.calls.map(([{ method, path }]) => `${method} ${path.replace(/\?.*/, "")}`);
  return { docker, requests };
}

const bare = { workspaceKind: "none", runtime: testRuntime } as const;

describe("a program's own client of dockerode", () => {
  it("carries every request of a sandbox, its stream included", async () => {
    const { docker, requests } = await ownClient();
    // Whoever asks elsewhere finds nobody.
    vi.stubEnv("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    await using sandbox = await Sandbox.create({ ...bare, docker });
    vi.unstubAllEnvs();
    const { stdout } = await sandbox.exec(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; cat"], {
      stdin: "the end",
    });
    expect(stdout.endsWith("the end")).toBe(true);
    expect(sandbox.engine.endpoint).toBe((await testEngine()).endpoint);
    const asked = requests();
    const kinds = asked.map((one) =>
      one.replace(/^(\w+) (?:\/v[\d.]+)?/, "$1 ").replace(/\b[0-9a-f]{64}\b/, "ID"),
    );
    const creation = ["POST /containers/create", "POST /containers/ID/attach", "POST /containers/ID/start"];
    expect(kinds).toEqual(expect.arrayContaining(["GET /version", "GET /info", ...creation]));
    await sandbox.close();
    expect(requests().length).toBeGreaterThan(asked.length);
  });

  it("may name an API version and a time limit, which are not brig's", async () => {
    const { docker } = await ownClient({ version: "v1.40", timeout: 300 });
    await using sandbox = await Sandbox.create({ ...bare, docker });
    await sleep(700);
    expect((await sandbox.exec(["echo", "there"])).stdout).toBe("there\n");
  });

  it("is used by a pool", async () => {
    const { docker, requests } = await ownClient();
    await using pool = createPool({ runtime: testRuntime, size: 1, docker });
    await using sandbox = await pool.acquire();
    expect((await sandbox.exec(["echo", "ready"])).stdout).toBe("ready\n");
    expect(requests().length).toBeGreaterThan(5);
  });

  it("that finds the socket itself is asked where it is", async () => {
    const { docker } = await ownClient({ socketPath: undefined });
    Object.assign(docker.modem, { socketPath: async () => "/nonexistent/docker.sock" });
    await expect(Sandbox.create({ ...bare, docker })).rejects.toMatchObject({
      code: "engine.unreachable",
      message: expect.stringContaining("at unix:///nonexistent/docker.sock does not answer (no such socket)"),
    });
  });

  it("for an address where nobody is gets the usual error", async () => {
    const docker = new Docker({ protocol: "http", host: "127.0.0.1", port: 1 });
    await expect(Sandbox.create({ ...bare, docker })).rejects.toMatchObject({
      code: "engine.unreachable",
      message: expect.stringContaining("at tcp://127.0.0.1:1 does not answer (connection refused)"),
    });
  });

  it("is refused if it is not one, or beside another engine", async () => {
    await expect(Sandbox.create({ ...bare, docker: {} as Docker })).rejects.toMatchObject({
      code: "usage.invalid",
      hint: "pass a new Docker() of the package dockerode",
    });
    const { docker } = await ownClient();
    const engine = { endpoint: readEnvironment().dockerHost ?? "unix:///var/run/docker.sock" };
    await expect(Sandbox.create({ ...bare, docker, engine })).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });
});
