import { expect, vi } from "vitest";
import { FrameType, Stage } from "../../../../src/sandbox/channel/protocol.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { RunningProcess } from "../../../../src/sandbox/process/process.js";
import { exec } from "../../../../src/sandbox/process/run-to-end.js";
import type { ExecOptions, SpawnOptions } from "../../../../src/sandbox/sandbox-types.js";
import { exitPayload, type SentFrame } from "../channel/fake-runner.js";
import { playedLink } from "../channel/played-link.js";

/** An EXIT of a command that could not be started. */
export function notStarted(stage: keyof typeof Stage, errno: number): Buffer {
  const payload = exitPayload(0, 2);
  payload.writeUInt32LE(errno, 4);
  payload.writeUInt32LE(Stage[stage], 8);
  return payload;
}

/** Where commands are started, of a runner that the test plays, and what the host has sent to it. */
export async function place(given: Partial<CommandContext> = {}) {
  const { runner, link } = await playedLink();
  const onStuck = vi.fn();
  const context: CommandContext = { link, cwd: "/work", env: { A: "1" }, onStuck, ...given };
  const sent = (type: number, channel?: number): SentFrame[] =>
    runner.frames.filter((one) => one.type === type && (channel === undefined || one.channel === channel));
  const spawned = async (count = 1) =>
    await vi.waitFor(() => expect(sent(FrameType.spawn)).toHaveLength(count), { timeout: 10_000 });
  const run = async (options: ExecOptions = {}, argv = ["true"]) => await exec(context, argv, options);
  const start = (options: SpawnOptions = {}, argv = ["true"]) => new RunningProcess(context, argv, options);
  return { runner, link, context, onStuck, sent, spawned, run, start };
}

export const bytesOf = (frames: SentFrame[]) => Buffer.concat(frames.map(({ payload }) => payload));
