import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { type LinkOptions, RunnerLink } from "../../../../src/sandbox/channel/runner-link.js";
import { sandboxFiles } from "../../../../src/sandbox/files/files.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { isWithoutRoom } from "../../../../src/sandbox/process/exit-record.js";
import { exec } from "../../../../src/sandbox/process/run-to-end.js";
import type { ExecResult } from "../../../../src/sandbox/sandbox-types.js";
import { chunked, chunking } from "./chunking.js";
import { exitPayload, FakeRunner, frame, uint32, uint64, welcome } from "./fake-runner.js";

const token = Buffer.alloc(32, 0xab);
const patience = { timeout: 15_000 };

let runner: FakeRunner;
let link: RunnerLink;
let isStuck: boolean;

beforeEach(() => {
  runner = new FakeRunner();
  isStuck = false;
});

afterEach(() => {
  link?.close(new BrigError("the test is over", { code: "sandbox.gone", reason: "closed" }));
});

async function open(options: Partial<LinkOptions> = {}): Promise<CommandContext> {
  link = await RunnerLink.open({
    token,
    dial: runner.dial,
    diagnose: async () => "runs",
    reconnectForMs: 5000,
    onLate: () => undefined,
    ...options,
  });
  return {
    link,
    cwd: "/",
    env: {},
    onStuck: () => {
      isStuck = true;
    },
  };
}

/** A call whose request the runner already has, on channel 1 of a new link. */
async function openCall(options?: Partial<LinkOptions>) {
  const setting = await open(options);
  const outcome = exec(setting, ["true"], {}).then(
    (result: ExecResult<string | Buffer>) => ({ kind: "result" as const, result }),
    (error: unknown) => ({ kind: "error" as const, error: error as BrigError }),
  );
  await until(() => runner.frames.length === 1);
  return { setting, outcome };
}

/** For what takes a few turns of the event loop; the test's own limit ends the waiting. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate);
}

describe("the greeting", () => {
  it("carries the version, the token and what was received", async () => {
    await open();
    expect(runner.hellos).toEqual([Buffer.concat([uint32(1), token, uint64(0)])]);
  });

  it.for<[string, Buffer]>([
    ["a frame that is no WELCOME", frame(FrameType.pong, 0)],
    ["a WELCOME of the wrong size", frame(FrameType.welcome, 0, Buffer.alloc(12))],
    ["a WELCOME of another version", welcome({ version: 2 })],
    ["a WELCOME for frames that were never sent", welcome({ received: 1 })],
    ["noise", Buffer.alloc(100, 0xff)],
  ])("answered with %s is refused", async ([, answer]) => {
    runner.answer = () => answer;
    await expect(open()).rejects.toMatchObject({ code: "protocol.invalid" });
    await until(() => runner.isConnected === false);
  });

  it("that the bridge cannot pass on fails with the bridge's words, without their control characters", async () => {
    runner.answer = () => {
      runner.sendRaw(Buffer.from("brig: the runner does not answer:\x1b[2J no\n"), 2);
      setImmediate(() => runner.cut());
      return null;
    };
    await expect(open()).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringMatching(/cannot be reached: brig: the runner does not answer: \[2J no$/),
    });
  });

  it("keeps no more of the bridge's words than a few lines", async () => {
    runner.answer = () => {
      for (let i = 0; i < 100; i++) runner.sendRaw(Buffer.alloc(1000, "x"), 2);
      setImmediate(() => runner.cut());
      return null;
    };
    const error: unknown = await open().catch((one: unknown) => one);
    expect(error).toMatchObject({ code: "engine.failed" });
    expect((error as Error).message.length).toBeLessThan(6000);
  });

  it("fails with the engine's words where the engine could not start the bridge", async () => {
    runner.answer = () => {
      runner.sendRaw(Buffer.from("OCI runtime exec failed: container is stopped"));
      setImmediate(() => runner.cut());
      return null;
    };
    await expect(open()).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringContaining("OCI runtime exec failed: container is stopped"),
    });
  });

  it("that nobody answers is given up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    runner.answer = () => null;
    const opening = expect(open()).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringContaining("did not answer"),
    });
    await vi.advanceTimersByTimeAsync(11_000);
    await opening;
    vi.useRealTimers();
  });

  it("passes on why the engine could not even dial", async () => {
    const refusal = new BrigError("no such container", { code: "sandbox.gone", reason: "killed" });
    await expect(open({ dial: () => Promise.reject(refusal) })).rejects.toBe(refusal);
  });
});

describe("a call", () => {
  it("has its output and its end, in whatever pieces they come", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.boolean(), fc.string({ unit: "grapheme", maxLength: 40 })), { maxLength: 10 }),
        fc.nat(255),
        chunking,
        async (pieces, code, cuts) => {
          runner = new FakeRunner();
          const { outcome } = await openCall();
          const answer = Buffer.concat([
            ...pieces.map(([isStderr, text]) =>
              frame(isStderr ? FrameType.stderr : FrameType.stdout, 1, Buffer.from(text)),
            ),
            frame(FrameType.exit, 1, exitPayload(code)),
          ]);
          for (const chunk of chunked(answer, cuts)) runner.sendRaw(chunk);
          const of = (wanted: boolean) =>
            pieces
              .filter(([isStderr]) => isStderr === wanted)
              .map(([, text]) => text)
              .join("");
          expect(await outcome).toMatchObject({
            kind: "result",
            result: {
              exitCode: code,
              stdout: of(false),
              stderr: of(true),
              output: pieces.map(([, text]) => text).join(""),
            },
          });
          link.close(new BrigError("next", { code: "sandbox.gone" }));
        },
      ),
      { numRuns: 50 },
    );
  });

  it("is granted more output as it is consumed", async () => {
    const { outcome } = await openCall();
    for (let i = 0; i < 4; i++) runner.send(FrameType.stdout, 1, Buffer.alloc(64 * 1024));
    await vi.waitFor(() => {
      const granted = runner.frames.filter(({ type }) => type === FrameType.credit);
      expect(granted.reduce((sum, { payload }) => sum + payload.readUInt32LE(0), 0)).toBe(256 * 1024);
    }, patience);
    runner.exit(1);
    expect(await outcome).toMatchObject({ kind: "result" });
  });

  it("sends no more input than it is granted", async () => {
    const setting = await open();
    const call = exec(setting, ["cat"], { stdin: Buffer.alloc(1_000_000) });
    const inputBytes = () =>
      runner.frames
        .filter(({ type }) => type === FrameType.input)
        .reduce((sum, { payload }) => sum + payload.length, 0);
    await vi.waitFor(() => expect(inputBytes()).toBe(256 * 1024), patience);
    runner.send(FrameType.creditFromRunner, 1, uint32(100_000));
    await vi.waitFor(() => expect(inputBytes()).toBe(256 * 1024 + 100_000), patience);
    await sleep(20);
    expect(inputBytes()).toBe(256 * 1024 + 100_000);
    runner.exit(1);
    await call;
  });

  it("whose request is too large for a frame fails alone and leaves nothing behind", async () => {
    const setting = await open();
    const argv = Array.from({ length: 50 }, () => "x".repeat(100_000));
    await expect(exec(setting, argv, {})).rejects.toMatchObject({ code: "exec.invalid" });
    const call = exec(setting, ["true"], {});
    await until(() => runner.frames.length === 1);
    expect(runner.frames[0]).toMatchObject({ type: FrameType.spawn, channel: 1 });
    runner.exit(1);
    await call;
  });

  it("is told to the session as stuck when a kill does not end it", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const setting = await open();
    const controller = new AbortController();
    const call = exec(setting, ["true"], { signal: controller.signal }).catch((error: unknown) => error);
    controller.abort(new Error("enough"));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(isStuck).toBe(false);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(isStuck).toBe(true);
    vi.useRealTimers();
    link.close(new BrigError("stuck", { code: "sandbox.gone", reason: "killed" }));
    expect(await call).toMatchObject({ code: "sandbox.gone" });
  });

  it("hears that the sandbox is over when its runner is asked to end, and the runner hears it first", async () => {
    const { outcome } = await openCall();
    expect(link.end(new BrigError("over", { code: "sandbox.gone", reason: "closed" }))).toBe(true);
    await until(() => !runner.isConnected);
    expect(runner.wasEnded).toBe(true);
    expect(await outcome).toMatchObject({ error: { message: "over" } });
    expect(link.end(new BrigError("again", { code: "sandbox.gone" }))).toBe(false);
  });

  it("hears that the sandbox is over although there is no stream to ask through", async () => {
    const { outcome } = await openCall({ diagnose: async () => "paused" });
    runner.cut();
    await until(() => !runner.isConnected);
    await new Promise(setImmediate);
    expect(link.end(new BrigError("over", { code: "sandbox.gone", reason: "closed" }))).toBe(false);
    expect(runner.wasEnded).toBe(false);
    expect(await outcome).toMatchObject({ error: { message: "over" } });
  });

  it("is not taken for stuck while the runner says nothing at all", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const setting = await open();
    const call = exec(setting, ["true"], { timeoutMs: 1000 });
    await until(() => runner.frames.length === 1);
    runner.dumb();
    await vi.advanceTimersByTimeAsync(600_000);
    runner.exit(1, 4);
    expect(await call).toMatchObject({ exitCode: 4 });
    expect(isStuck).toBe(false);
    vi.useRealTimers();
  });
});

describe("a file operation", () => {
  it("leaves no listener on its signal, however it ends", async () => {
    const setting = await open();
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, "removeEventListener");
    const added = vi.spyOn(signal, "addEventListener");
    for (const errno of [0, 2]) {
      const stat = sandboxFiles(setting).list("/etc", { signal });
      const outcome = stat.catch((error: unknown) => error);
      const channel = errno === 0 ? 1 : 2;
      await until(() => runner.frames.length === channel);
      const payload = exitPayload(0, 4);
      payload.writeUInt32LE(errno, 4);
      runner.send(FrameType.exit, channel, payload);
      await outcome;
    }
    expect(added.mock.calls.length).toBeGreaterThan(1);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    );
  });

  it.for([
    ["ELOOP", 40, true, "file.symlink"],
    ["ELOOP", 40, false, "file.failed"],
    ["ENOENT", 2, true, "file.not-found"],
  ] as const)(
    "that ends with %s (%i), links refused: %s, fails with %s",
    async ([name, errno, refuseSymlinks, code]) => {
      const setting = await open();
      const stat = sandboxFiles(setting).stat("/asked", { refuseSymlinks });
      const outcome = expect(stat).rejects.toMatchObject({ code, errno: name, cause: { code: name } });
      await until(() => runner.frames.length === 1);
      const payload = exitPayload(0, 4);
      payload.writeUInt32LE(errno, 4);
      runner.send(FrameType.exit, 1, payload);
      await outcome;
    },
  );
});

describe("a command for which there is no process", () => {
  const withoutProcess = () => {
    const payload = exitPayload(0, 2);
    payload.writeUInt32LE(11, 4);
    payload.writeUInt32LE(1, 8);
    return payload;
  };

  it("is asked for again once what the calls before it left running has been ended", async () => {
    const setting = await open();
    const first = exec(setting, ["true"], {});
    await until(() => runner.frames.length === 1);
    runner.exit(1);
    await first;
    const call = exec(setting, ["cat"], { stdin: "typed" });
    await until(() => runner.frames.length === 4);
    runner.send(FrameType.exit, 2, withoutProcess());
    await until(() => runner.frames.length === 9);
    const again = runner.frames.slice(4).map(({ type, channel }) => [type, channel]);
    expect(again).toEqual([
      [FrameType.kill, 1],
      [FrameType.kill, 2],
      [FrameType.spawn, 3],
      [FrameType.input, 3],
      [FrameType.input, 3],
    ]);
    runner.exit(3, 5);
    expect(await call).toMatchObject({
      exitCode: 5,
      stderr: expect.stringMatching(/^brig: processes left running by earlier commands were ended/),
    });
  });

  it("is asked for again when only a terminal is missing, and not for want of anything else", async () => {
    for (const [errno, again] of [
      [28, true],
      [24, false],
    ] as const) {
      const refused = exitPayload(0, 2);
      refused.writeUInt32LE(errno, 4);
      refused.writeUInt32LE(4, 8);
      expect([errno, isWithoutRoom(refused)]).toEqual([errno, again]);
    }
  });

  it("says when leftovers were ended that held the memory it lacked", async () => {
    const setting = await open();
    const call = exec(setting, ["true"], {});
    await until(() => runner.frames.length === 1);
    const killed = exitPayload(137, 0);
    killed.writeUInt8(4 | 64, 1);
    runner.send(FrameType.exit, 1, killed);
    expect(await call).toMatchObject({
      exitCode: 137,
      stderr: expect.stringContaining("because they held most of the sandbox's memory"),
    });
  });

  it("that is cancelled meanwhile is not asked for again", async () => {
    const setting = await open();
    const controller = new AbortController();
    const call = exec(setting, ["true"], { signal: controller.signal });
    await until(() => runner.frames.length === 1);
    controller.abort(new Error("enough"));
    runner.send(FrameType.exit, 1, withoutProcess());
    await expect(call).rejects.toThrow("enough");
    expect(runner.frames.filter(({ type }) => type === FrameType.spawn)).toHaveLength(1);
  });
});

describe("a runner that breaks the protocol", () => {
  const hostile: [string, () => Buffer][] = [
    ["acknowledges what was never sent", () => frame(FrameType.ackFromRunner, 0, uint64(1000))],
    ["acknowledges backwards", () => frame(FrameType.ackFromRunner, 0, uint64(2n ** 64n - 1n))],
    ["sends half an ACK", () => frame(FrameType.ackFromRunner, 0, Buffer.alloc(4))],
    ["sends output of a channel that was never opened", () => frame(FrameType.stdout, 99, Buffer.of(1))],
    ["ends a channel that was never opened", () => frame(FrameType.exit, 99, exitPayload(0))],
    [
      "grants credit to a channel that was never opened",
      () => frame(FrameType.creditFromRunner, 99, uint32(1)),
    ],
    ["sends late output of a channel that was never opened", () => frame(FrameType.late, 99, Buffer.of(1))],
    [
      "grants credit in a frame of the wrong size",
      () => frame(FrameType.creditFromRunner, 1, Buffer.alloc(8)),
    ],
    ["ends a channel in too few bytes", () => frame(FrameType.exit, 1, Buffer.alloc(43))],
    ["ends a channel in an unknown way", () => frame(FrameType.exit, 1, exitPayload(0, 77))],
    [
      "sends a frame too large",
      () => Buffer.concat([uint32(64 * 1024 + 1), uint32(FrameType.stdout), uint32(1)]),
    ],
    ["sends a frame of an unknown type", () => frame(0xee, 1)],
    ["sends a frame that only the host may send", () => frame(FrameType.spawn, 1)],
    ["sends output on the session's own channel", () => frame(FrameType.stdout, 0, Buffer.of(1))],
    ["greets a second time", () => welcome()],
    ["sends noise", () => Buffer.from("8badf00d".repeat(10), "hex")],
  ];
  it.for(hostile)("and %s: every call ends with that, and so does the session", async ([, bytes]) => {
    const { setting, outcome } = await openCall();
    const gone = vi.fn();
    link.onGone = gone;
    runner.sendRaw(bytes());
    expect(await outcome).toMatchObject({ kind: "error", error: { code: "protocol.invalid" } });
    await until(() => runner.isConnected === false);
    expect(runner.connections).toBe(1);
    expect(gone).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "protocol.invalid" }));
    await expect(exec(setting, ["true"], {})).rejects.toMatchObject({ code: "protocol.invalid" });
    await expect(link.ping()).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("and sends more output than it was granted: the call ends with that, and so does the session", async () => {
    const setting = await open();
    const call = exec(setting, ["true"], { onStdout: () => new Promise(() => undefined) });
    const outcome = expect(call).rejects.toMatchObject({ code: "protocol.invalid" });
    await until(() => runner.frames.length === 1);
    for (let i = 0; i < 4; i++) runner.send(FrameType.stdout, 1, Buffer.alloc(64 * 1024));
    await link.ping();
    runner.send(FrameType.stdout, 1, Buffer.of(1));
    await outcome;
    await expect(link.ping()).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("and sends more of a file than was asked for: the read is ended there", async () => {
    const setting = await open();
    const read = sandboxFiles(setting).read("/endless", { lengthBytes: 100_000 });
    const outcome = expect(read).rejects.toMatchObject({
      code: "protocol.invalid",
      message: expect.stringContaining("more of a file than was asked for"),
    });
    await until(() => runner.frames.length === 1);
    for (let i = 0; i < 2; i++) runner.send(FrameType.stdout, 1, Buffer.alloc(64 * 1024));
    await until(() => runner.frames.some(({ type }) => type === FrameType.kill));
    runner.exit(1);
    await outcome;
  });

  it("and answers with more of a file than was asked for: the read fails", async () => {
    const setting = await open();
    const read = sandboxFiles(setting).read("/short", { lengthBytes: 10 });
    const outcome = expect(read).rejects.toMatchObject({ code: "protocol.invalid" });
    await until(() => runner.frames.length === 1);
    runner.send(FrameType.exit, 1, Buffer.concat([exitPayload(0, 4), Buffer.alloc(16 + 11)]));
    await outcome;
  });

  it("and ends a channel twice: the call has its result, the session ends", async () => {
    const { outcome } = await openCall();
    const gone = vi.fn();
    link.onGone = gone;
    runner.sendRaw(
      Buffer.concat([frame(FrameType.exit, 1, exitPayload(3)), frame(FrameType.exit, 1, exitPayload(0))]),
    );
    expect(await outcome).toMatchObject({ kind: "result", result: { exitCode: 3 } });
    await vi.waitFor(() => expect(gone).toHaveBeenCalledOnce(), patience);
  });

  it("and is another one after a break: the session ends", async () => {
    const { outcome } = await openCall();
    runner.answer = () => welcome({ received: 1, bootId: 8 });
    runner.cut();
    expect(await outcome).toMatchObject({ kind: "error", error: { code: "protocol.invalid" } });
  });

  it("and forgets after a break what it had acknowledged: the session ends", async () => {
    const { outcome } = await openCall();
    runner.send(FrameType.ackFromRunner, 0, uint64(1));
    await link.ping();
    runner.answer = () => welcome({ received: 0 });
    runner.cut();
    expect(await outcome).toMatchObject({ kind: "error", error: { code: "protocol.invalid" } });
  });

  it("in any way at all ends in a refusal or in nothing, never in another failure", async () => {
    const aFrame = fc
      .record({
        type: fc.constantFrom(...Object.values(FrameType), 0xee),
        channel: fc.nat(3),
        payload: fc.uint8Array({ maxLength: 60 }),
      })
      .map(({ type, channel, payload }) => frame(type, channel, payload));
    const noise = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(aFrame, noise), { maxLength: 12 }),
        chunking,
        async (pieces, cuts) => {
          runner = new FakeRunner();
          const { setting, outcome } = await openCall();
          const stat = sandboxFiles(setting)
            .stat("/etc")
            .catch((error: unknown) => error);
          for (const chunk of chunked(Buffer.concat(pieces), cuts)) runner.sendRaw(chunk);
          await new Promise(setImmediate);
          link.close(new BrigError("over", { code: "sandbox.gone", reason: "closed" }));
          const ended = await outcome;
          if (ended.kind === "error")
            expect(ended.error.code).toMatch(/^(?:protocol\.invalid|sandbox\.gone|exec\..*)$/);
          const answer = await stat;
          if (answer instanceof Error)
            expect(answer).toMatchObject({ code: expect.stringMatching(/^(?:protocol|sandbox|file)\./) });
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("a stream that breaks", () => {
  it("is opened again, with what the other side lacks", async () => {
    runner.isAcknowledging = false;
    const { outcome } = await openCall();
    runner.send(FrameType.stdout, 1, Buffer.from("one "));
    await link.ping();
    runner.answer = (hello) => {
      expect(hello.readBigUInt64LE(36)).toBe(1n);
      // The runner had the first frame already.
      return Buffer.concat([
        welcome({ received: 1 }),
        frame(FrameType.stdout, 1, Buffer.from("two")),
        frame(FrameType.exit, 1, exitPayload(0)),
      ]);
    };
    link.breakStream();
    expect(await outcome).toMatchObject({ kind: "result", result: { stdout: "one two" } });
    expect(runner.frames).toHaveLength(1);
  });

  it("sends a request again that the runner never got", async () => {
    const setting = await open();
    runner.cut();
    const call = exec(setting, ["true"], {});
    await until(() => runner.frames.length === 1);
    runner.exit(1, 5);
    expect(await call).toMatchObject({ exitCode: 5 });
  });

  it("loses and doubles nothing, wherever and however often it is cut", async () => {
    const action = fc.oneof(
      fc.constant("cut by the host" as const),
      fc.constant("cut by the runner" as const),
      fc.constant("wait" as const),
      fc.record({ output: fc.string({ minLength: 1, maxLength: 20 }) }),
      fc.record({ input: fc.string({ minLength: 1, maxLength: 20 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
        runner = new FakeRunner();
        const setting = await open();
        let received = "";
        const channel = link.openChannel(
          { type: FrameType.spawn, payload: Buffer.from("request") },
          {
            onOutput: (data) => {
              received += data.toString();
            },
            onCredit: () => undefined,
            onExit: () => undefined,
            onGone: () => undefined,
          },
        );
        let [sent, typed] = ["", ""];
        for (const one of actions) {
          if (one === "cut by the host") setting.link.breakStream();
          else if (one === "cut by the runner") runner.cut();
          else if (one === "wait") await setting.link.ping();
          else if ("output" in one) {
            runner.send(FrameType.stdout, channel, Buffer.from(one.output));
            sent += one.output;
          } else {
            link.send(FrameType.input, channel, Buffer.from(one.input));
            typed += one.input;
          }
        }
        await vi.waitFor(async () => {
          await link.ping();
          expect(received).toBe(sent);
          const inputs = runner.frames.filter(({ type }) => type === FrameType.input);
          expect(inputs.map(({ payload }) => payload.toString()).join("")).toBe(typed);
        }, patience);
        expect(runner.frames.filter(({ type }) => type === FrameType.spawn)).toHaveLength(1);
        link.close(new BrigError("next", { code: "sandbox.gone" }));
      }),
      { numRuns: 40 },
    );
  });

  it("ends every call when the container turns out to be gone", async () => {
    const gone = new BrigError("removed", { code: "sandbox.gone", reason: "killed" });
    const { outcome } = await openCall({ diagnose: async () => gone });
    runner.cut();
    expect(await outcome).toEqual({ kind: "error", error: gone });
  });

  it("and cannot be opened again is given up after the given time, as the engine's fault", async () => {
    let dials = 0;
    const { outcome } = await openCall({
      reconnectForMs: 200,
      dial: () => {
        dials++;
        return dials === 1 ? runner.dial() : Promise.reject(new Error("connection refused"));
      },
    });
    runner.cut();
    expect(await outcome).toMatchObject({ kind: "error", error: { code: "sandbox.gone", reason: "engine" } });
    expect(dials).toBeGreaterThan(2);
  });

  it("waits for an engine that is away for a moment", async () => {
    let isAway = false;
    const { outcome } = await openCall({
      diagnose: async () => {
        if (isAway) throw new Error("connection refused");
        return "runs";
      },
    });
    isAway = true;
    runner.cut();
    await sleep(100);
    isAway = false;
    await until(() => runner.hellos.length === 2);
    runner.exit(1);
    expect(await outcome).toMatchObject({ kind: "result" });
  });

  it("waits for a container that is paused, however long", async () => {
    let found: "runs" | "paused" = "paused";
    const { outcome } = await openCall({ diagnose: async () => found, reconnectForMs: 100 });
    runner.cut();
    await sleep(400);
    expect(runner.connections).toBe(1);
    found = "runs";
    await until(() => runner.hellos.length === 2);
    runner.exit(1);
    expect(await outcome).toMatchObject({ kind: "result" });
  });

  it("and is being opened again when the session is closed leaves no stream", async () => {
    const { outcome } = await openCall();
    runner.answer = () => {
      link.close(new BrigError("closed", { code: "sandbox.gone", reason: "closed" }));
      return welcome({ received: 0 });
    };
    runner.cut();
    expect(await outcome).toMatchObject({ kind: "error", error: { reason: "closed" } });
    await until(() => runner.connections === 2);
    await until(() => runner.isConnected === false);
  });

  it("answers a ping that was on its way", async () => {
    await open();
    const ping = link.ping();
    runner.cut();
    await ping;
    expect(runner.connections).toBe(2);
  });
});

describe("a stream on which nothing comes", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("makes the engine be asked when somebody waits, and the call ends when the container is gone", async () => {
    const gone = new BrigError("removed", { code: "sandbox.gone", reason: "killed" });
    const { outcome } = await openCall({ diagnose: async () => gone });
    runner.dumb();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await outcome).toEqual({ kind: "error", error: gone });
  });

  it("does not matter as long as the runner answers", async () => {
    const diagnose = vi.fn(async () => "runs" as const);
    await openCall({ diagnose });
    for (let i = 0; i < 10; i++) {
      await vi.advanceTimersByTimeAsync(2000);
      await new Promise(setImmediate);
    }
    expect(diagnose).not.toHaveBeenCalled();
    expect(runner.pings).toHaveLength(5);
    for (const { channel, payload } of runner.pings)
      expect({ channel, text: String(payload) }).toEqual({ channel: 0, text: "silence" });
  });

  it("does not matter when nobody waits", async () => {
    const diagnose = vi.fn(async () => "runs" as const);
    await open({ diagnose });
    runner.dumb();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(diagnose).not.toHaveBeenCalled();
  });

  it("is opened again within ten seconds while the container runs, and the call has its end", async () => {
    const { outcome } = await openCall();
    runner.isSilent = true;
    for (let seconds = 0; runner.connections === 1; seconds++) {
      expect(seconds).toBeLessThan(10);
      await vi.advanceTimersByTimeAsync(1000);
      await new Promise(setImmediate);
    }
    await until(() => runner.hellos.length === 2);
    // The new one has as much time to speak as the old one had.
    runner.dumb();
    await vi.advanceTimersByTimeAsync(4000);
    await new Promise(setImmediate);
    expect(runner.connections).toBe(2);
    runner.exit(1, 4);
    expect(await outcome).toMatchObject({ kind: "result", result: { exitCode: 4 } });
    expect(runner.frames).toHaveLength(1);
  });

  it("is not given up soon after: the machine may be slow", async () => {
    const { outcome } = await openCall({ reconnectForMs: 10 });
    runner.answer = () => {
      runner.cut();
      return null;
    };
    runner.isSilent = true;
    await vi.advanceTimersByTimeAsync(6000);
    await until(() => runner.hellos.length === 4);
    runner.answer = () => welcome({ received: 1 });
    await until(() => runner.hellos.length === 5);
    runner.exit(1, 4);
    expect(await outcome).toMatchObject({ kind: "result", result: { exitCode: 4 } });
  });

  it("does not matter while the container is paused", async () => {
    const { outcome } = await openCall({ diagnose: async () => "paused" });
    runner.dumb();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(runner.connections).toBe(1);
    runner.exit(1, 4);
    expect(await outcome).toMatchObject({ kind: "result", result: { exitCode: 4 } });
  });

  it("does not matter while the engine says nothing either", async () => {
    const { outcome } = await openCall({ diagnose: () => Promise.reject(new Error("no answer")) });
    runner.dumb();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(runner.connections).toBe(1);
    runner.exit(1, 4);
    expect(await outcome).toMatchObject({ kind: "result", result: { exitCode: 4 } });
  });

  it.for([
    ["gone", new BrigError("removed", { code: "sandbox.gone", reason: "killed" })],
    ["there", "runs"],
  ] as const)(
    "until the engine has been asked is judged again: what came meanwhile counts, be the container %s",
    async ([, found]) => {
      let answer: (found: BrigError | "runs") => void = () => undefined;
      const asked = vi.fn(() => new Promise<BrigError | "runs">((resolve) => (answer = resolve)));
      const { outcome } = await openCall({ diagnose: asked });
      runner.dumb();
      await vi.advanceTimersByTimeAsync(6000);
      expect(asked).toHaveBeenCalledOnce();
      runner.send(FrameType.stdout, 1, Buffer.from("the last word"));
      await new Promise(setImmediate);
      answer(found);
      await new Promise(setImmediate);
      expect(runner.connections).toBe(1);
      runner.exit(1, 4);
      expect(await outcome).toMatchObject({
        kind: "result",
        result: { exitCode: 4, stdout: "the last word" },
      });
    },
  );
});

describe("late output", () => {
  it("is handed over with the number of its call", async () => {
    const late = vi.fn();
    const { outcome } = await openCall({ onLate: (channel, data) => late(channel, data.toString()) });
    runner.exit(1);
    runner.send(FrameType.late, 1, Buffer.from("still here"));
    await outcome;
    await link.ping();
    expect(late).toHaveBeenCalledExactlyOnceWith(1, "still here");
  });

  it("leaves input credit that crosses the end of a call without effect", async () => {
    const { outcome } = await openCall();
    runner.exit(1);
    runner.send(FrameType.creditFromRunner, 1, uint32(1000));
    await outcome;
    await link.ping();
  });
});
