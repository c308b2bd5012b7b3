import { expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { openSandbox } from "../../../../src/sandbox/open-sandbox.js";
import { sandboxFrom } from "../../../../src/sandbox/sandbox.js";
import { resolveSettings } from "../../../../src/sandbox/settings/resolve-settings.js";
import { stopSandbox } from "../../../../src/sandbox/stopped-sandbox.js";
import { failure, playedPlace } from "../played-sandbox.js";

const broken = new BrigError("no", { code: "engine.failed" });

/** A sandbox whose container stays when its processes have ended. */
async function lasting() {
  const place = await playedPlace();
  const { engine, environment } = place;
  const kills: string[] = [];
  const stop = () => {
    engine.container.state = "created";
  };
  Object.assign(engine, {
    waitContainer: async (_id: string, { signal }: { signal?: AbortSignal } = {}) => {
      engine.calls.push("waitContainer");
      if (engine.container.state !== "running") return 0;
      if (engine.container.runner.wasEnded) stop();
      else await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      return 0;
    },
    killContainer: async (id: string) => {
      engine.calls.push("killContainer");
      kills.push(id);
      stop();
    },
  });
  const resolved = await resolveSettings({ workspace: null, environment });
  const opened = await openSandbox(
    { ...resolved, outlivesProcesses: true },
    { engine: engine.asEngine, toolboxVolume: "toolbox", onWarning: (one) => place.warnings.push(one) },
  );
  engine.calls.length = 0;
  return { ...place, sandbox: sandboxFrom(opened), opened, kills, stop };
}

it("a sandbox that is stopped has no process, and keeps its container", async () => {
  const { engine, sandbox, kills } = await lasting();
  expect(engine.container.body.HostConfig.AutoRemove).toBe(false);
  const stopped = await stopSandbox(sandbox);
  expect(stopped).toMatchObject({ containerId: engine.container.id, engine: engine.asEngine });
  expect(engine.container).toMatchObject({ state: "created", runner: { wasEnded: true } });
  expect(engine.calls).toEqual(["waitContainer"]);
  expect(kills).toEqual([]);
  expect(await failure(sandbox.exec(["true"]))).toMatchObject({
    code: "sandbox.gone",
    reason: "closed",
    message: "the sandbox was stopped",
    hint: expect.stringContaining("restart"),
  });
});

it("a sandbox that is started again has another runner, and its policy is proved again", async () => {
  const { engine, sandbox, opened } = await lasting();
  const stopped = await stopSandbox(sandbox);
  engine.calls.length = 0;
  const again = await stopped.restart();
  expect(engine.calls).toEqual(["attachContainer", "startContainer"]);
  expect(again.proof).toEqual(opened.proof);
  expect((await again.exec(["true"])).exitCode).toBe(0);
  engine.calls.length = 0;
  await again.close();
  expect(engine.calls).toContain("removeContainer");
  expect(engine.container.state).toBe("gone");
  await sandbox.close();
});

it("a sandbox that is started again on a kernel that has changed is refused", async () => {
  const { engine, sandbox } = await lasting();
  const stopped = await stopSandbox(sandbox);
  engine.container.sections.set("/proc/sys/kernel/hostname", "elsewhere\n");
  expect(await failure(stopped.restart())).toMatchObject({ code: "policy.not-enforced" });
});

it("a runner that cannot be asked to end is killed by the engine", async () => {
  const { engine, sandbox, opened, kills } = await lasting();
  opened.link.close(new BrigError("lost", { code: "sandbox.gone", reason: "engine" }));
  await stopSandbox(sandbox);
  // Nobody waits for an end that cannot come.
  expect(engine.calls[0]).toBe("killContainer");
  expect(kills).toEqual([engine.container.id]);
  expect(engine.container.state).toBe("created");
});

it("a container that runs on although its runner ended is killed, and its stop fails when that does not help", async () => {
  const { engine, sandbox, kills } = await lasting();
  engine.waitContainer = async () => 0;
  Object.assign(engine, {
    killContainer: async (id: string) => {
      kills.push(id);
      if (kills.length === 2) engine.container.state = "created";
    },
  });
  await stopSandbox(sandbox);
  expect(kills).toHaveLength(2);
  const other = await lasting();
  other.engine.waitContainer = async () => 0;
  Object.assign(other.engine, { killContainer: async () => undefined });
  expect(await failure(stopSandbox(other.sandbox))).toMatchObject({
    code: "engine.failed",
    message: "the container still runs after it was killed",
  });
});

it("the engine's own failure is that of the stop, after three attempts", async () => {
  const { engine, sandbox } = await lasting();
  let asked = 0;
  engine.inspectContainer = async () => {
    asked++;
    throw broken;
  };
  expect(await failure(stopSandbox(sandbox))).toBe(broken);
  expect(asked).toBe(3);
});

it("a sandbox whose container ends with its processes cannot be stopped", async () => {
  const { engine, sandbox } = await playedPlace();
  const opened = await sandbox();
  expect(await failure(stopSandbox(opened))).toBeInstanceOf(TypeError);
  expect((await opened.exec(["true"])).exitCode).toBe(0);
  expect(engine.container.runner.wasEnded).toBe(false);
  await opened.close();
});
