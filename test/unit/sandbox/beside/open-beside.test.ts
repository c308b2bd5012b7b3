import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { FileOperation, FrameType } from "../../../../src/sandbox/channel/protocol.js";
import type { ExecStream } from "../../../../src/sandbox/docker/engine-types.js";
import { openBeside } from "../../../../src/sandbox/open-beside.js";
import { FakeRunner } from "../channel/fake-runner.js";
import { failure, playedPlace } from "../played-sandbox.js";

const second = { uid: 2000, gid: 3000, home: "/home/second" };

/** A sandbox, and the second runner that the engine starts in its container. */
async function place() {
  const { engine, sandbox, warnings } = await playedPlace();
  const first = await sandbox();
  const runner = new FakeRunner();
  const started: { argv: string[]; user: string | undefined }[] = [];
  let isRunning = true;
  /** The same kernel, as another user and with another HOME would see it. */
  const sections = new Map(engine.container.sections);
  const ids = (id: number) => [id, id, id, id].join("\t");
  const status = sections.get("/proc/self/status") ?? "";
  sections.set(
    "/proc/self/status",
    status
      .replace(/^Uid:.*$/m, `Uid:\t${ids(second.uid)}`)
      .replace(/^Gid:.*$/m, `Gid:\t${ids(second.gid)}`)
      .replace(/^Groups:.*$/m, `Groups:\t${second.gid} `),
  );
  Object.assign(engine, {
    openExec: async (_id: string, argv: string[], { user }: { user?: string } = {}): Promise<ExecStream> => {
      started.push({ argv, user });
      const stream = await runner.dial();
      return { ...stream, inspect: async () => ({ running: isRunning, exitCode: isRunning ? null : 137 }) };
    },
  });
  runner.onFrame = ({ type, channel, payload }) => {
    if (type === FrameType.spawn) runner.exit(channel, 9);
    if (type === FrameType.file && payload[0] === FileOperation.report)
      engine.report(runner, channel, sections);
  };
  const end = () => {
    isRunning = false;
    runner.cut();
  };
  return { engine, first, runner, started, sections, end, warnings };
}

it("a second sandbox runs in the same container as another user, and is proved to", async () => {
  const { engine, first, runner, started } = await place();
  using beside = await openBeside(first, second);
  const [{ argv = [], user } = {}] = started;
  expect(user).toBe("2000:3000");
  expect(argv.slice(0, 3)).toEqual(["/.brig/runner", "serve", "--token-hash"]);
  expect(argv.slice(4)).toEqual(["--lease", "60", "--first-stream", "stdio", "--bridges", "none"]);
  const token = runner.hellos[0]?.subarray(4, 36) ?? Buffer.alloc(0);
  expect(createHash("sha256").update(token).digest("hex")).toBe(argv[3]);
  expect(beside.sandbox.containerId).toBe(first.containerId);
  expect(beside.sandbox.proof.differences).toEqual([]);
  expect((await beside.sandbox.exec(["id"])).exitCode).toBe(9);
  const spawn = runner.frames.find(({ type }) => type === FrameType.spawn);
  expect(spawn?.payload.toString("latin1")).toContain("HOME=/home/second");
  expect((await first.exec(["id"])).exitCode).toBe(0);
  await beside.sandbox.close();
  expect(engine.container.state).toBe("running");
  await first.close();
});

it("the end of a second sandbox ends its runner, and leaves the container alone", async () => {
  const { engine, first, runner } = await place();
  const beside = await openBeside(first, second);
  beside[Symbol.dispose]();
  await expect.poll(() => runner.wasEnded).toBe(true);
  expect(await failure(beside.sandbox.exec(["id"]))).toMatchObject({
    code: "sandbox.gone",
    reason: "killed",
    message: "the runner beside the sandbox's own has ended",
    hint: expect.stringContaining("may have killed it"),
  });
  expect((await first.exec(["id"])).exitCode).toBe(0);
  expect(engine.container).toMatchObject({ state: "running", runner: { wasEnded: false } });
  await first.close();
});

it("a second sandbox of which the policy is not proved is not opened, and its runner is ended", async () => {
  const { engine, first, runner, sections } = await place();
  sections.set("/proc/self/status", engine.container.sections.get("/proc/self/status") ?? "");
  expect(await failure(openBeside(first, second))).toMatchObject({
    code: "policy.not-enforced",
    message: expect.stringContaining("A6-user"),
  });
  await expect.poll(() => runner.wasEnded).toBe(true);
  await first.close();
});

it("a second runner that ends takes its calls with it, but not those of the first", async () => {
  const { first, runner, end } = await place();
  using beside = await openBeside(first, second);
  runner.onFrame = () => undefined;
  const call = failure(beside.sandbox.exec(["sleep"]));
  await beside.sandbox.ping();
  end();
  expect(await call).toMatchObject({ code: "sandbox.gone", reason: "killed" });
  expect(runner.connections).toBe(1);
  expect((await first.exec(["id"])).exitCode).toBe(0);
  await first.close();
});

it("a second sandbox whose container has ended says why the container did", async () => {
  const { engine, first, runner, end } = await place();
  using beside = await openBeside(first, second);
  runner.onFrame = () => undefined;
  const call = failure(beside.sandbox.exec(["sleep"]));
  await beside.sandbox.ping();
  engine.containerEvents = async () => [
    { action: "start", atMs: 0, exitCode: null },
    { action: "die", atMs: 1, exitCode: 70 },
  ];
  engine.end(engine.container);
  end();
  expect(await call).toMatchObject({ code: "sandbox.gone", reason: "lease" });
  await first.close();
});
