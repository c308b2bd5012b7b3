import { expect } from "vitest";
import { ExitKind, FileOperation, FrameType } from "../../../../../src/sandbox/channel/protocol.js";
import type { EgressAttempt } from "../../../../../src/sandbox/egress/attempt.js";
import { encodeAddress } from "../../../../../src/sandbox/network/sandbox-network.js";
import { openSandbox } from "../../../../../src/sandbox/open-sandbox.js";
import { type Sandbox, sandboxFrom } from "../../../../../src/sandbox/sandbox.js";
import type { SandboxOptions } from "../../../../../src/sandbox/sandbox-options.js";
import { resolveSettings } from "../../../../../src/sandbox/settings/resolve-settings.js";
import type { SetupChoice } from "../../../../../src/sandbox/setup/resolve-setup.js";
import { exitPayload, type FakeRunner, type SentFrame, uint64 } from "../../channel/fake-runner.js";
import type { PlayedContainer } from "../../played-engine.js";
import { playedPlace } from "../../played-sandbox.js";
import type { PlayedImage } from "./trust/played-image.js";

const proxy = { address: "127.83.0.1", port: 3128 };
const client = { address: "127.0.0.1", port: 40_000 };

export function socketExit(errno = 0): Buffer {
  const payload = exitPayload(0, ExitKind.socket);
  payload.writeUInt32LE(errno, 4);
  return payload;
}

interface Owner {
  channel: number;
  /** Null for a connection whose process is not found. */
  program: string | null;
}

/** The record of a process that belongs to a channel. */
function ownedBy({ channel, program }: Owner): Buffer {
  const record = Buffer.alloc(24);
  record.writeUInt32LE(channel, 0);
  record.writeUInt32LE(program === null ? 0 : 12, 4);
  record.write(program ?? "", 8);
  const head = exitPayload(0, ExitKind.file);
  uint64(record.length).copy(head, 16);
  return Buffer.concat([head, record]);
}

/** What the runner does of itself in a sandbox with an allow-list: it binds, closes, and knows whose connections are. */
function answers({ runner }: PlayedContainer, { type, channel, payload }: SentFrame, owner: Owner): void {
  if (type === FrameType.listen) runner.send(FrameType.bound, channel, payload.subarray(4));
  if (type === FrameType.kill && channel < 60) runner.send(FrameType.exit, channel, socketExit());
  if (type === FrameType.file && payload[0] === FileOperation.owners)
    runner.send(FrameType.exit, channel, ownedBy(owner));
}

interface Wanted extends SandboxOptions {
  setup?: SetupChoice;
  /** The files in it. Default: file requests are not answered. */
  files?: PlayedImage;
  /** Whose all connections are. Default: curl. */
  program?: string | null;
}

const OF_FILES: readonly number[] = [
  ...[FileOperation.read, FileOperation.write, FileOperation.stat, FileOperation.mkdir],
  FileOperation.sequence,
];

/** A sandbox with an allow-list, whose runner the test plays. */
export async function egressPlace({ setup, files, program = "curl", ...options }: Wanted = {}) {
  const { engine, environment, warnings } = await playedPlace();
  const attempts: EgressAttempt[] = [];
  /** The channels of commands, in their order. */
  const commands: { channel: number; payload: string }[] = [];
  let answerFile: ((sent: SentFrame) => void) | undefined;
  engine.onFrame = (container, sent) => {
    answerFile ??= files?.answers(container.runner);
    if (sent.type === FrameType.spawn)
      commands.push({ channel: sent.channel, payload: sent.payload.toString("latin1") });
    const isOfFiles = sent.type === FrameType.file && OF_FILES.includes(sent.payload.readUInt8(0));
    if (isOfFiles || sent.type === FrameType.input) answerFile?.(sent);
    answers(container, sent, { channel: commands.at(-1)?.channel ?? 0, program });
  };
  const settings = await resolveSettings({
    ...{ workspace: null, environment, network: "allowlist:a.test", setup },
    ...options,
  });
  const opened = await openSandbox(settings, {
    ...options,
    ...{ engine: engine.asEngine, toolboxVolume: "toolbox" },
    resolve: async () => [],
    onEgress: (attempt) => void attempts.push(attempt),
    onWarning: (warning) => void warnings.push(warning),
  });
  const sandbox = sandboxFrom(opened);
  const { runner } = engine.container;
  return { engine, sandbox, opened, runner, attempts, commands, warnings };
}

/** A program inside asks the proxy for a host. Resolves to the answer's first line. */
export async function asks(runner: FakeRunner, host: string): Promise<string> {
  const proxyChannel = runner.frames.find(
    ({ type, payload }) => type === FrameType.listen && payload.subarray(4).equals(encodeAddress(proxy)),
  )?.channel;
  const waiting = () =>
    runner.frames.filter(
      ({ type, payload }) => type === FrameType.accept && payload.readUInt32LE(0) === proxyChannel,
    );
  const taken = connections.get(runner) ?? 0;
  connections.set(runner, taken + 1);
  await expect.poll(() => waiting().length).toBeGreaterThan(taken);
  const channel = waiting()[taken]?.channel ?? 0;
  runner.send(
    FrameType.connected,
    channel,
    Buffer.concat([encodeAddress(proxy), encodeAddress({ ...client, port: client.port + taken })]),
  );
  runner.send(
    FrameType.stdout,
    channel,
    Buffer.from(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  );
  const answer = () =>
    Buffer.concat(
      runner.frames
        .filter((one) => one.type === FrameType.input && one.channel === channel)
        .map(({ payload }) => payload),
    ).toString();
  await expect.poll(answer).toContain("\r\n");
  return answer().split("\r\n")[0] ?? "";
}
const connections = new WeakMap<FakeRunner, number>();

/** A command during which a program of it asks the proxy for a host. */
export async function execAsking(
  { sandbox, runner, commands }: { sandbox: Sandbox; runner: FakeRunner; commands: { channel: number }[] },
  host: string,
  { exitCode = 7, ...options }: { exitCode?: number; callId?: string } = {},
) {
  const count = commands.length;
  const call = sandbox.exec(["curl"], options);
  await expect.poll(() => commands.length).toBe(count + 1);
  const line = await asks(runner, host);
  runner.exit(commands.at(-1)?.channel ?? 0, exitCode);
  return { line, result: await call };
}
