import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect } from "vitest";
import { readEnvironment } from "../../src/lib/env.js";
import { type AttackedPolicy, attack } from "../../src/sandbox/attack/attack.js";
import type { Verdict } from "../../src/sandbox/attack/judge.js";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { resolveSettings } from "../../src/sandbox/settings/resolve-settings.js";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { isGvisor } from "../support/runtime-differences.js";
import { sandboxTest } from "../support/sandbox.js";

const tags: string[] = [];
afterAll(async () => {
  const engine = await testEngine();
  for (const tag of tags) await engine.removeImage(tag);
});

async function image(...lines: string[]): Promise<string> {
  const engine = await testEngine();
  const tag = `brig-test/attack:${randomBytes(6).toString("hex")}`;
  const content = Buffer.from([...lines, ""].join("\n"));
  tags.push(tag);
  await engine.buildImage(packTar([{ path: "Dockerfile", mode: 0o644, content }]), { tag });
  return tag;
}

/** The attempts with one of these verdicts, by their names. */
function named(attacked: AttackedPolicy | undefined, ...verdicts: Verdict[]): string[] {
  const found = attacked?.judgements.filter(({ verdict }) => verdicts.includes(verdict)) ?? [];
  return found.map(({ attempt }) => attempt).toSorted();
}

async function attacked(
  args: string[],
): Promise<{ exitCode: number | undefined; attacked: AttackedPolicy[] }> {
  const { exitCode, stdout } = await brigHere(["doctor", "--attack", "--json", ...args]);
  const printed = JSON.parse(stdout) as { exitStatus: number; attacked: AttackedPolicy[] };
  expect(printed.exitStatus).toBe(exitCode);
  return { exitCode, attacked: printed.attacked };
}

const OPEN_TO_NETWORK = [
  ...["datagram-out", "host-address", "interfaces", "metadata-service", "metadata-service-6"],
  ...["name-lookup", "public-addresses", "public-addresses-6"],
];

/** These are the attempts of the test of isolation, which says on what gVisor does otherwise. */
const attacksTitle = "brig doctor --attack [not on gVisor: gvisor.test.ts makes its attempts there]";
describe.skipIf(isGvisor)(attacksTitle, () => {
  sandboxTest("finds that everything holds in brig's own modes, and exits with 0", async ({ directory }) => {
    const page = join(directory, "page.html");
    const found = await attacked(["-s", "read-only", "-s", "workspace-write", "--html", page]);
    expect(found.exitCode).toBe(0);
    const [readOnly, workspaceWrite] = found.attacked;
    expect(named(readOnly, "failed", "unjudged", "allowed")).toEqual([]);
    expect(named(workspaceWrite, "failed", "unjudged")).toEqual([]);
    expect(named(workspaceWrite, "allowed")).toEqual(["workspace-change"]);
    for (const one of found.attacked) expect(named(one, "held").length).toBeGreaterThan(45);
    expect(await readFile(page, "utf8")).toContain("no process of the host can be seen");
  });

  sandboxTest(
    "says exactly what a policy that is weaker allows, and by which setting",
    async ({ directory }) => {
      const file = join(directory, "open.toml");
      const own = await readFile(
        new URL("../../sandbox-policies/workspace-write.toml", import.meta.url),
        "utf8",
      );
      await writeFile(
        file,
        own.replace('network = "none"', 'network = "full"').replace(/protected = .*/, "protected = []"),
      );
      const found = await attacked(["--policy", file]);
      expect(found.exitCode).toBe(0);
      const [one] = found.attacked;
      expect(named(one, "failed", "unjudged")).toEqual([]);
      expect(named(one, "allowed")).toEqual(
        [...OPEN_TO_NETWORK, "protected-names", "workspace-change"].toSorted(),
      );
      const reasons = one?.judgements.flatMap(({ verdict, reason }) =>
        verdict === "allowed" ? [reason] : [],
      );
      expect([...new Set(reasons)].toSorted()).toEqual([
        'the policy says network = "full"',
        'the policy says workspace.access = "rw"',
        "the policy says workspace.protected = []",
      ]);
    },
  );

  sandboxTest("exits with 1 and names what did not hold: here keys that an image brings", async () => {
    const tag = await image("FROM brig/base", "RUN mkdir -p /root/.aws && chmod 755 /root /root/.aws");
    const { exitCode, stdout } = await brigHere(["doctor", "--attack", "--container-image", tag]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^ {2}A23 +no home directory has keys or logins: did not hold \(found \/root\/\.aws\)$/m,
    );
    expect(stdout).toMatch(/^workspace-write: .*1 did not hold/m);
  });

  sandboxTest("needs nothing of the image: neither a shell nor Python", async () => {
    const tag = await image("FROM scratch", "LABEL empty=yes", "WORKDIR /etc");
    const { exitCode, attacked: found } = await attacked(["--container-image", tag]);
    expect(exitCode).toBe(0);
    expect(named(found[0], "failed", "unjudged")).toEqual([]);
    expect(named(found[0], "held").length).toBeGreaterThan(45);
  });

  sandboxTest("refuses flags that only mean something with --attack", async () => {
    const { exitCode, stderr } = await brigHere(["doctor", "--no-control", "--html", "x"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("--html and --no-control can only be used with --attack");
  });

  sandboxTest("leaves neither container nor directory when it is interrupted", async ({ directory }) => {
    for (const moment of ["without protection, as the control", "making the attempts in the sandbox"]) {
      const running = brig(["doctor", "--attack"], { env: { TMPDIR: directory } });
      let stderr = "";
      running.stderr?.on("data", (chunk: Buffer) => {
        if (!stderr.includes(moment) && `${stderr}${chunk}`.includes(moment)) running.kill("SIGINT");
        stderr += chunk;
      });
      const { exitCode } = await running;
      expect(stderr).toContain(moment);
      expect(exitCode).toBe(130);
      expect(await containersOf(running.pid)).toEqual([]);
      expect((await readdir(directory)).filter((name) => name.startsWith("brig-"))).toEqual([]);
    }
  });
});

/** The engine of this machine, which makes the container without protection a little less weak. */
async function engineThatHides(): Promise<Engine> {
  const engine = await testEngine();
  const createContainer: Engine["createContainer"] = async (body, options) => {
    const { PidMode: _, ...HostConfig } = body.HostConfig as typeof body.HostConfig & { PidMode?: string };
    return await engine.createContainer({ ...body, HostConfig }, options);
  };
  return Object.assign(Object.create(engine) as Engine, { createContainer });
}

const controlTitle =
  "a control that does not succeed [not on gVisor: gvisor.test.ts makes its attempts there]";
describe.skipIf(isGvisor)(controlTitle, () => {
  sandboxTest("keeps the refusals that it should have proved from counting", async () => {
    const environment = readEnvironment();
    const settings = [await resolveSettings({ workspace: null, environment })];
    const options = { settings, signal: new AbortController().signal, onProgress: () => undefined };
    const engine = await engineThatHides();
    const [found] = await attack(engine, { ...options, hasControl: true });
    expect(named(found, "unjudged")).toEqual(
      expect.arrayContaining(["environment-of-processes", "host-processes"]),
    );
    expect(named(found, "failed")).toEqual([]);
    const [without] = await attack(engine, { ...options, hasControl: false });
    expect(named(without, "unjudged")).toEqual([]);
  });
});
