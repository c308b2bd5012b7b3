import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { attack } from "../../../../src/sandbox/attack/attack.js";
import { allAttempts } from "../../../../src/sandbox/attack/attempts.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { resolveSettings } from "../../../../src/sandbox/settings/resolve-settings.js";
import { failure, playedPlace } from "../played-sandbox.js";

const refused = allAttempts.map(({ attempt }) => `${attempt}\t#1\n`).join("");

/** Sandboxes in which the program that makes the attempts prints this. */
async function place(output: string, exitCode = 0) {
  const { engine, environment } = await playedPlace();
  const ran: string[] = [];
  const answer = engine.onFrame;
  engine.onFrame = (container, sent) => {
    const { type, channel, payload } = sent;
    const { runner } = container;
    if (type !== FrameType.spawn) {
      answer(container, sent);
      return;
    }
    ran.push(payload.toString("latin1"));
    for (let at = 0; at < output.length; at += 8192)
      runner.send(FrameType.stdout, channel, Buffer.from(output.slice(at, at + 8192)));
    runner.send(FrameType.stderr, channel, Buffer.from(" it said why \n"));
    runner.exit(channel, exitCode);
  };
  const settings = async (mode: "read-only" | "workspace-write", network?: string) =>
    await resolveSettings({ workspace: "/not/there", environment, mode, network });
  const progress: string[] = [];
  const rest = {
    hasControl: false,
    signal: new AbortController().signal,
    onProgress: (step: string) => void progress.push(step),
  };
  return { engine, ran, settings, progress, rest };
}

it("each sandbox is attacked in its turn, with an empty workspace, and nothing is left", async () => {
  const { engine, ran, settings, progress, rest } = await place(refused);
  const attacked = await attack(engine.asEngine, {
    ...rest,
    settings: [await settings("read-only"), await settings("workspace-write")],
  });
  expect(progress).toEqual([
    "starting a sandbox: read-only (1 of 2)",
    "making the attempts in the sandbox (1 of 2)",
    "starting a sandbox: workspace-write (2 of 2)",
    "making the attempts in the sandbox (2 of 2)",
  ]);
  expect(attacked.map(({ policy }) => policy)).toEqual(["read-only", "workspace-write"]);
  for (const one of attacked) {
    expect(one).toMatchObject({ image: "brig/base", runtime: null, kernel: "shared", egress: null });
    expect(one.judgements).toHaveLength(allAttempts.length);
  }
  expect(engine.containers).toHaveLength(2);
  expect(engine.running).toEqual([]);
  const workspaces = engine.containers.map(
    ({ body }) => body.HostConfig.Mounts.find(({ Source }) => Source?.includes("brig-attack-"))?.Source ?? "",
  );
  expect(new Set(workspaces).size).toBe(2);
  for (const [index, path] of workspaces.entries()) {
    expect(ran[index]).toContain(path);
    expect(existsSync(path)).toBe(false);
  }
  for (const text of ran) expect(text).toContain("/dev/shm");
});

it("of a single sandbox nobody has to know which one it is", async () => {
  const { engine, settings, progress, rest } = await place(refused);
  await attack(engine.asEngine, { ...rest, settings: [await settings("read-only")] });
  expect(progress).toEqual(["starting a sandbox: read-only", "making the attempts in the sandbox"]);
});

it("attempts of which nothing is known are an error with what was said", async () => {
  const { engine, settings, rest } = await place("", 3);
  expect(
    await failure(attack(engine.asEngine, { ...rest, settings: [await settings("read-only")] })),
  ).toMatchObject({
    code: "engine.failed",
    message: "the attempts could not be made in the sandbox: exit 3, it said why",
    hint: expect.stringContaining("/.brig/attempts all"),
  });
  expect(engine.running).toEqual([]);
});

it("an abort ends it between two sandboxes, and the first one is closed", async () => {
  const { engine, settings, rest } = await place(refused);
  const controller = new AbortController();
  const onProgress = (step: string) => {
    if (step.endsWith("(2 of 2)")) controller.abort(new Error("enough"));
  };
  const all = [await settings("read-only"), await settings("read-only")];
  const outcome = await failure(
    attack(engine.asEngine, { ...rest, settings: all, signal: controller.signal, onProgress }),
  );
  expect(outcome).toBe(controller.signal.reason);
  expect(engine.running).toEqual([]);
  const before = AbortSignal.abort(new Error("before"));
  const other = await place(refused);
  expect(await failure(attack(other.engine.asEngine, { ...other.rest, settings: all, signal: before }))).toBe(
    before.reason,
  );
  expect(other.progress).toEqual([]);
  expect(other.engine.containers).toEqual([]);
});
