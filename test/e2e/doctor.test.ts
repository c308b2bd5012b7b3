import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEnvironment } from "../../src/lib/env.js";
import { diagnoseRuntimes } from "../../src/sandbox/diagnose-runtimes.js";
import type { Check } from "../../src/sandbox/docker/diagnosis/check.js";
import { sharesEngineKernel } from "../../src/sandbox/docker/diagnosis/gvisor.js";
import { brigHere } from "../support/cli-here.js";
import { call, type HarmedEngine, harmedEngine, testEngine } from "../support/engine.js";

const runtimes = {
  other: 'exec runc "$@"',
  missing: null,
  broken: "echo it fails on purpose >&2; exit 3",
};
let harmed: HarmedEngine;

beforeAll(async () => {
  harmed = await harmedEngine({ runtimes });
  // The toolbox alone is image enough.
  const tag = `/images/${harmed.images.toolbox}/tag?repo=brig/base&tag=latest`;
  await text(await call(new URL(harmed.endpoint).pathname, { method: "POST", path: tag }));
});
afterAll(() => harmed[Symbol.asyncDispose]());

const isAboutRuntimes = ({ id }: Check) => id.startsWith("runtime");

async function checksOf(env: Record<string, string> = {}): Promise<Check[]> {
  const { stdout, stderr } = await brigHere(["doctor", "--json"], { env });
  expect(stderr).toBe("");
  return (JSON.parse(stdout) as { checks: Check[] }).checks.filter(isAboutRuntimes);
}

describe("brig doctor on the runtimes of an engine", () => {
  it("names those of this machine's, and gives a line of its own to each that is not a common one", async () => {
    const info = await (await testEngine()).info();
    const own = info.runtimes.filter((one) => !sharesEngineKernel(one)).map(({ name }) => `runtime-${name}`);
    const checks = await checksOf();
    expect(checks.map(({ id }) => id)).toEqual(["runtimes", ...own]);
    expect(checks[0]).toMatchObject({ status: "ok", advice: null });
    expect(checks[0]?.found).toContain(info.defaultRuntime);
  });

  it("says by a sandbox on each which of them work, and what to do about the others", async () => {
    const checks = await checksOf({ DOCKER_HOST: harmed.endpoint });
    expect(checks).toEqual([
      {
        id: "runtimes",
        title: "runtimes",
        found: "broken, missing, other, runc; default runc",
        status: "ok",
        advice: null,
      },
      notStarted("broken", /broken .*exit status 3/),
      notStarted("missing", /missing: no such file or directory/),
      {
        id: "runtime-other",
        title: "runtime other",
        found: "/run/outside/other; a sandbox starts",
        status: "ok",
        advice: null,
      },
    ]);
  });

  it("shows the same in lines, and calls the machine fit where the default works", async () => {
    const { exitCode, stdout } = await brigHere(["doctor"], { env: { DOCKER_HOST: harmed.endpoint } });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^ok +runtimes +broken, missing, other, runc; default runc$/m);
    expect(stdout).toMatch(/^ok +runtime other +\/run\/outside\/other; a sandbox starts$/m);
    for (const name of ["broken", "missing"])
      expect(stdout).toMatch(
        new RegExp(
          `^warn +runtime ${name} +/run/outside/${name}: cannot start .*\n +→ leave --runtime out$`,
          "m",
        ),
      );
  });

  it("fails an engine whose own runtime cannot run, and does not advise to leave it to the engine", async () => {
    const { engine } = harmed;
    const info = { ...(await engine.info()), defaultRuntime: "missing" };
    const checks = await diagnoseRuntimes(
      { ...engine, info: async () => info },
      { environment: readEnvironment() },
    );
    expect(checks.map(({ id, status }) => [id, status])).toEqual([
      ["runtime-broken", "warn"],
      ["runtime-missing", "fail"],
      ["runtime-other", "ok"],
    ]);
    expect(checks[1]?.advice).toContain("another default-runtime");
  });
});

/** The check of a runtime on which the engine could start nothing, for a reason that it gives. */
function notStarted(name: string, reason: RegExp) {
  return {
    id: `runtime-${name}`,
    title: `runtime ${name}`,
    found: expect.stringMatching(new RegExp(`^/run/outside/${name}: cannot start .*${reason.source}`)),
    status: "warn",
    advice: "leave --runtime out",
  };
}
