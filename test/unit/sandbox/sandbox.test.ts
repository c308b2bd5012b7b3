import { describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { ExitFlag, FileOperation, FrameType } from "../../../src/sandbox/channel/protocol.js";
import { openedSandboxOf, Sandbox } from "../../../src/sandbox/sandbox.js";
import { exitPayload } from "./channel/fake-runner.js";
import { emptyWorkspace, failure, playedPlace } from "./played-sandbox.js";

const broken = new BrigError("no", { code: "engine.failed" });
const closedError = { code: "sandbox.gone", reason: "closed", message: "the sandbox was closed" };

describe("a sandbox", () => {
  it("says what it is", async () => {
    const { engine, sandbox } = await playedPlace();
    await using opened = await sandbox();
    expect(opened).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      containerId: engine.container.id,
      image: "brig/base",
      workingDirectory: "/",
      maskSecrets: null,
      snapshotId: null,
    });
    expect(opened.engine.endpoint).toBe(engine.endpoint);
    expect(engine.container.name).toBe(`brig-${opened.id}`);
    await opened.ping();
  });

  it("runs commands in its workspace, with its variables, and spawns others", async () => {
    const path = await emptyWorkspace();
    const { engine, sandbox } = await playedPlace();
    await using opened = await sandbox({ workspaceKind: "bind", workspace: path, env: { MINE: "1" } });
    expect(opened.workingDirectory).toBe(path);
    expect((await opened.exec(["make", "all"])).exitCode).toBe(0);
    const process = await opened.spawn(["sleep", "1"], { stdin: "closed" });
    process.stdout.resume();
    expect((await process.exit).exitCode).toBe(0);
    const spawns = engine.container.runner.frames.filter(({ type }) => type === FrameType.spawn);
    const [first = "", second = ""] = spawns.map(({ payload }) => payload.toString("latin1"));
    for (const text of ["make", "all", path, "MINE=1", "HOME=/home/brig"]) expect(first).toContain(text);
    expect(second).toContain("sleep");
  });

  it.for<[string, (sandbox: Sandbox) => Promise<unknown>]>([
    ["exec", (one) => one.exec(["true"], { tineoutMs: 1 } as object)],
    ["spawn", (one) => one.spawn(["true"], { pyt: true } as object)],
    ["forward", (one) => one.forward(1, { port: 1 } as object)],
    ["diff", (one) => one.diff({ path: "/" } as object)],
    ["apply", (one) => one.apply({ path: "/" } as object)],
    ["fork", (one) => one.fork({ image: "x" } as object)],
    ["changesSinceFork", (one) => one.changesSinceFork({ path: "/" } as object)],
    ["applyTo", (one) => one.applyTo(one, { path: "/" } as object)],
    ["snapshot", (one) => one.snapshot({ name: "x" } as object)],
    ["restorePoint", (one) => one.restorePoint({ name: "x" } as object)],
    ["restore", (one) => one.restore(0, { name: "x" } as object)],
    ["undo", (one) => one.undo({ name: "x" } as object)],
  ])("refuses an option of %s that there is not, by its name", async ([name, call]) => {
    const { engine, sandbox } = await playedPlace();
    await using opened = await sandbox();
    const before = engine.container.runner.frames.length;
    expect(await failure(call(opened))).toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(`sandbox.${name}`),
    });
    await opened.ping();
    expect(engine.container.runner.frames).toHaveLength(before);
  });

  it("is not created with an option that there is not", async () => {
    expect(await failure(Sandbox.create({ imgae: "x" } as object))).toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining("Sandbox.create"),
    });
  });

  it.for<[string, (sandbox: Sandbox) => Promise<unknown>]>([
    ["a difference", (one) => one.diff()],
    ["changes to apply", (one) => one.apply()],
    ["a fork", (one) => one.fork()],
    ["changes since a fork", (one) => one.changesSinceFork()],
    ["changes for another sandbox", (one) => one.applyTo(one)],
    ["a snapshot", (one) => one.snapshot()],
    ["a restore point", (one) => one.restorePoint()],
    ["a state to go back to", (one) => one.restore(0)],
    ["a call to undo", (one) => one.undo()],
  ])("without a copy-on-write workspace has no %s", async ([, call]) => {
    const { sandbox } = await playedPlace();
    await using opened = await sandbox();
    expect(await failure(call(opened))).toMatchObject({ code: "workspace.invalid" });
  });

  it("without an allow-list has no network that can change, and nothing to watch", async () => {
    const { sandbox } = await playedPlace();
    await using opened = await sandbox();
    const listener = vi.fn();
    opened.watchEgress(listener);
    expect(() => opened.setNetwork("allowlist:example.org")).toThrow(
      expect.objectContaining({ code: "policy.not-enforced", hint: expect.stringContaining("allowlist:") }),
    );
    expect(() => opened.setNetwork("some")).toThrow(
      expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining('"some"') }),
    );
    expect(await failure(opened.applyTo({}))).toMatchObject({ code: "usage.invalid" });
    expect(listener).not.toHaveBeenCalled();
  });
});

describe("a sandbox that is closed", () => {
  it("ends its calls and refuses others, once for all who close it", async () => {
    const { engine, sandbox } = await playedPlace();
    engine.onFrame = () => undefined;
    const opened = await sandbox();
    const call = failure(opened.exec(["sleep", "9"]));
    await opened.ping();
    const receipts = await Promise.all([opened.close(), opened.close()]);
    expect(receipts[0]).toBe(receipts[1]);
    expect(receipts[0]).toEqual({ findings: [], omitted: 0, incomplete: null });
    expect(await call).toMatchObject(closedError);
    for (const later of [opened.exec(["true"]), opened.ping(), opened.files.stat("/")])
      expect(await failure(later)).toMatchObject(closedError);
    expect(await opened.close()).toBe(receipts[0]);
    expect(engine.calls.filter((one) => one === "waitRemoved")).toHaveLength(1);
    expect(engine.container.state).toBe("gone");
  });

  it("asks for a receipt of what it could write, but not where no command has run", async () => {
    for (const hasRun of [true, false]) {
      const path = await emptyWorkspace();
      const { engine, sandbox } = await playedPlace();
      const opened = await sandbox({ workspaceKind: "bind", workspace: path });
      if (hasRun) await opened.exec(["true"]);
      engine.onFrame = ({ runner }, { type, channel, payload }) => {
        expect([type, payload[0]]).toEqual([FrameType.file, FileOperation.receipt]);
        expect(payload.toString()).toContain(path);
        runner.send(FrameType.exit, channel, Buffer.concat([exitPayload(0, 4), Buffer.alloc(15)]));
      };
      // The answer is cut off, which is no reason to keep the container.
      expect(await opened.close()).toMatchObject({ findings: [], incomplete: hasRun ? "failed" : null });
      expect(engine.container.state).toBe("gone");
    }
  });

  it("fails when the engine does not confirm that it is gone, and may be closed again", async () => {
    const { engine, sandbox } = await playedPlace();
    const opened = await sandbox();
    const { waitRemoved, removeContainer } = engine;
    engine.waitRemoved = engine.removeContainer = async () => {
      throw broken;
    };
    expect(await failure(opened.close())).toMatchObject({
      code: "engine.failed",
      message: expect.stringContaining(engine.container.id),
    });
    expect(engine.container.state).toBe("running");
    Object.assign(engine, { waitRemoved, removeContainer });
    await opened.close();
    expect(engine.container.state).toBe("gone");
  });

  it("by leaving its scope only warns of such a failure", async () => {
    const { engine, sandbox, warnings } = await playedPlace();
    {
      await using _opened = await sandbox();
      engine.waitRemoved = engine.removeContainer = async () => {
        throw broken;
      };
    }
    expect(warnings).toEqual([expect.objectContaining({ code: "engine.failed", cause: broken })]);
  });

  it("closes its forwarded ports first, also one that is forwarded meanwhile", async () => {
    const { engine, sandbox } = await playedPlace();
    const opened = await sandbox();
    const forwarded = await opened.forward(3000);
    const closes = vi.fn();
    openedSandboxOf(opened).closedFirst?.push({
      [Symbol.asyncDispose]: async () => closes(engine.container.state, forwarded.port),
    });
    const late = opened.forward(3001);
    const closing = opened.close();
    await late.catch(() => undefined);
    await closing;
    expect(closes).toHaveBeenCalledExactlyOnceWith("running", forwarded.port);
    for (const port of [forwarded, await late.catch(() => null)])
      if (port !== null) expect(await failure(fetch(port.url))).toBeInstanceOf(TypeError);
  });

  it("that ended by itself has its container removed at once, without anybody asking", async () => {
    const { engine, sandbox, warnings } = await playedPlace();
    const opened = await sandbox();
    const call = failure(opened.exec(["true"]));
    engine.end(engine.container);
    await call;
    await expect.poll(() => engine.calls.includes("removeContainer")).toBe(true);
    await opened.close();
    expect(engine.calls.filter((one) => one === "removeContainer")).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  it("because a process in it does not end is gone for every other call", async () => {
    const { engine, sandbox } = await playedPlace();
    const opened = await sandbox();
    engine.onFrame = ({ runner }, { type, channel, payload }) => {
      if (type !== FrameType.spawn || payload.includes("other")) return;
      const exit = exitPayload(0);
      exit[1] = ExitFlag.treeLeft;
      runner.send(FrameType.exit, channel, exit);
    };
    const other = failure(opened.exec(["other"]));
    await opened.exec(["stuck"]);
    expect(await other).toMatchObject({
      code: "sandbox.gone",
      reason: "killed",
      message: expect.stringContaining("did not end on SIGKILL"),
    });
    await expect.poll(() => engine.container.state).toBe("gone");
  });
});
