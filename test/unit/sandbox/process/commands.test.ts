import { afterEach, describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { ExitFlag, FrameType, INITIAL_CREDIT } from "../../../../src/sandbox/channel/protocol.js";
import { exitPayload, uint32 } from "../channel/fake-runner.js";
import { failure } from "../played-sandbox.js";
import { bytesOf, notStarted, place } from "./played-commands.js";

afterEach(() => {
  vi.useRealTimers();
});

const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });

function exitWith(flags: number, code = 0): Buffer {
  const payload = exitPayload(code);
  payload[1] = flags;
  return payload;
}

describe("a command that is run to its end", () => {
  it("has its two streams, both in their order, and its status", async () => {
    const { runner, run } = await place();
    runner.onFrame = ({ type, channel }) => {
      if (type !== FrameType.spawn) return;
      runner.send(FrameType.stdout, channel, Buffer.from("a"));
      runner.send(FrameType.stderr, channel, Buffer.from("b"));
      runner.send(FrameType.stdout, channel, Buffer.from("c"));
      runner.exit(channel, 3);
    };
    const pieces: string[] = [];
    const result = await run({
      onStdout: (data) => void pieces.push(`out ${Buffer.from(data)}`),
      onStderr: (data) => void pieces.push(`err ${Buffer.from(data)}`),
    });
    expect(result).toMatchObject({
      exitCode: 3,
      signal: null,
      stdout: "ac",
      stderr: "b",
      output: "abc",
      truncated: false,
      omittedBytes: { stdout: 0, stderr: 0 },
      timedOut: false,
    });
    expect(pieces).toEqual(["out a", "err b", "out c"]);
  });

  it.for([
    ["stdout", FrameType.stdout],
    ["stderr", FrameType.stderr],
  ] as const)("of which only %s is used has the same as its whole output", async ([name, type]) => {
    const { runner, run } = await place();
    runner.onFrame = (sent) => {
      if (sent.type !== FrameType.spawn) return;
      runner.send(type, sent.channel, Buffer.from([0xff, 0x61]));
      runner.exit(sent.channel);
    };
    const bytes = Buffer.from([0xff, 0x61]);
    const empty = Buffer.alloc(0);
    expect(await run({ encoding: "buffer" })).toMatchObject({
      stdout: name === "stdout" ? bytes : empty,
      stderr: name === "stderr" ? bytes : empty,
      output: bytes,
    });
  });

  it("keeps the beginning and the end of too much output, says so, and stays within the limit exactly", async () => {
    const { runner, run } = await place();
    runner.onFrame = ({ type, channel }) => {
      if (type !== FrameType.spawn) return;
      runner.send(FrameType.stdout, channel, Buffer.from("abcdefghij"));
      runner.exit(channel);
    };
    expect(await run({ maxOutputBytes: 10 })).toMatchObject({ stdout: "abcdefghij", truncated: false });
    expect(await run({ maxOutputBytes: 4 })).toMatchObject({
      stdout: "ab\n[… 6 bytes left out …]\nij",
      truncated: true,
      omittedBytes: { stdout: 6, stderr: 0 },
    });
    for (const maxOutputBytes of [-1, 1.5, Number.NaN])
      expect(await failure(run({ maxOutputBytes }))).toMatchObject({ code: "exec.invalid" });
  });

  it.for([
    ["exec", 2, 127, "true: command not found"],
    ["exec", 20, 127, "true: command not found"],
    ["exec", 13, 126, "true: permission denied"],
    ["exec", 8, 126, "true: cannot be executed: ENOEXEC"],
    ["streams", 24, 126, "no stream for the command can be opened: EMFILE"],
  ] as const)(
    "and cannot be started, at %s with errno %i, is a result",
    async ([stage, errno, code, words]) => {
      const { runner, run } = await place();
      runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted(stage, errno));
      const result = await run();
      expect(result).toMatchObject({
        exitCode: code,
        stderr: `brig: ${words}\n`,
        output: `brig: ${words}\n`,
      });
    },
  );

  it("is refused for a working directory that is wrong, and for too long arguments", async () => {
    const { runner, run } = await place();
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted("cwd", 2));
    expect(await failure(run({ cwd: "/gone" }))).toMatchObject({
      code: "exec.bad-cwd",
      errno: "ENOENT",
      message: expect.stringContaining("/gone"),
    });
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted("exec", 7));
    expect(await failure(run())).toMatchObject({ code: "exec.invalid", errno: "E2BIG" });
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted("request", 22));
    expect(await failure(run())).toMatchObject({ code: "protocol.invalid" });
  });

  it("gets its input in pieces of what the runner grants, and then its end", async () => {
    const { runner, run, sent, spawned } = await place();
    const stdin = Buffer.from(Array.from({ length: INITIAL_CREDIT + 70_000 }, (_, i) => i % 253));
    const call = run({ stdin });
    await spawned();
    const sum = () => bytesOf(sent(FrameType.input, 1)).length;
    await expect.poll(sum).toBe(INITIAL_CREDIT);
    expect(sent(FrameType.input, 1).every(({ payload }) => payload.length === 65_536)).toBe(true);
    runner.send(FrameType.creditFromRunner, 1, uint32(1));
    await expect.poll(sum).toBe(INITIAL_CREDIT + 1);
    runner.send(FrameType.creditFromRunner, 1, uint32(100_000));
    await expect.poll(() => sent(FrameType.input, 1).at(-1)?.payload.length).toBe(0);
    expect(bytesOf(sent(FrameType.input, 1)).equals(stdin)).toBe(true);
    runner.exit(1);
    expect(await call).toMatchObject({ exitCode: 0 });
  });

  it("that ends before it has read its input does not wait for it", async () => {
    const { runner, run, sent, spawned } = await place();
    const call = run({ stdin: Buffer.alloc(INITIAL_CREDIT + 1) });
    await spawned();
    await expect.poll(() => bytesOf(sent(FrameType.input, 1)).length).toBe(INITIAL_CREDIT);
    runner.exit(1, 4);
    expect(await call).toMatchObject({ exitCode: 4 });
    expect(bytesOf(sent(FrameType.input, 1))).toHaveLength(INITIAL_CREDIT);
  });

  it("is granted more output by what was taken, in steps of 64 KiB, and not while its listener waits", async () => {
    const { runner, link, run, sent, spawned } = await place();
    let release!: () => void;
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    const call = run({ onStdout: () => waiting });
    await spawned();
    runner.send(FrameType.stdout, 1, Buffer.alloc(65_535));
    runner.send(FrameType.stdout, 1, Buffer.alloc(1));
    await link.ping();
    expect(sent(FrameType.credit)).toEqual([]);
    release();
    await expect
      .poll(() => sent(FrameType.credit, 1).map(({ payload }) => payload))
      .toEqual([uint32(65_536)]);
    runner.exit(1);
    expect((await call).stdout).toHaveLength(65_536);
  });

  it.for(["throws", "rejects"] as const)("whose listener %s is killed, and has that error", async (how) => {
    const { runner, run, sent, spawned } = await place();
    const error = new Error("the listener's");
    let calls = 0;
    const onStdout = () => {
      calls++;
      if (how === "throws") throw error;
      return Promise.reject(error);
    };
    const call = failure(run({ onStdout }));
    await spawned();
    runner.send(FrameType.stdout, 1, Buffer.from("one"));
    await expect.poll(() => sent(FrameType.kill, 1)).toHaveLength(1);
    runner.send(FrameType.stdout, 1, Buffer.from("two"));
    runner.exit(1);
    expect(await call).toBe(error);
    expect(calls).toBe(1);
  });

  it("is not started with a signal that is aborted, and is killed by one that is aborted later", async () => {
    const { runner, link, run, sent, spawned } = await place();
    const before = AbortSignal.abort(new Error("before"));
    expect(await failure(run({ signal: before }))).toBe(before.reason);
    await link.ping();
    expect(sent(FrameType.spawn)).toEqual([]);
    const controller = new AbortController();
    const call = failure(run({ signal: controller.signal }));
    await spawned();
    controller.abort(new Error("meanwhile"));
    await expect.poll(() => sent(FrameType.kill, 1).map(({ payload }) => payload)).toEqual([uint32(500)]);
    runner.exit(1);
    expect(await call).toBe(controller.signal.reason);
    // What comes after the end is nobody's.
    const other = new AbortController();
    const short = run({ signal: other.signal });
    await spawned(2);
    runner.exit(2);
    await short;
    other.abort();
    await link.ping();
    expect(sent(FrameType.kill, 2)).toEqual([]);
  });

  it("of which processes are left that do not end is stuck", async () => {
    const { runner, run, onStuck } = await place();
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, exitWith(ExitFlag.treeLeft));
    expect(await run()).toMatchObject({ exitCode: 0, treeEnded: false });
    expect(onStuck).toHaveBeenCalledOnce();
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, exitWith(ExitFlag.treeEnded));
    expect(await run()).toMatchObject({ treeEnded: true });
    expect(onStuck).toHaveBeenCalledOnce();
  });
});

describe("a command for which there is no process left", () => {
  it("is started again after leftovers are ended, with the same input, and says so", async () => {
    const { runner, run, sent } = await place();
    let attempts = 0;
    runner.onFrame = ({ type, channel }) => {
      if (type !== FrameType.spawn) return;
      if (++attempts < 4) runner.send(FrameType.exit, channel, notStarted("fork", 11));
      else runner.exit(channel, 5);
    };
    await run().catch(() => undefined);
    attempts = 0;
    const result = await run({ stdin: "input" });
    expect(result).toMatchObject({
      exitCode: 5,
      stderr: expect.stringMatching(/^brig: processes left running/),
    });
    expect(attempts).toBe(4);
    const last = sent(FrameType.spawn).at(-1)?.channel ?? 0;
    expect(bytesOf(sent(FrameType.input, last)).toString()).toBe("input");
    // Those of earlier commands only, and once.
    const kills = sent(FrameType.kill);
    expect(kills.map(({ channel }) => channel).filter((one) => one < last - 3).length).toBeGreaterThan(0);
    expect(kills.filter(({ channel }) => channel === 1)).toHaveLength(2);
  });

  it("is given up at last, and then is a result", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { runner, run } = await place();
    let attempts = 0;
    runner.onFrame = ({ type, channel }) => {
      if (type !== FrameType.spawn) return;
      attempts++;
      runner.send(FrameType.exit, channel, notStarted("fork", 11));
    };
    const call = run();
    let result: unknown;
    void call.then((one) => {
      result = one;
    });
    for (let i = 0; i < 100 && result === undefined; i++) {
      await new Promise(setImmediate);
      await vi.advanceTimersByTimeAsync(1600);
    }
    expect(attempts).toBe(9);
    expect(result).toMatchObject({
      exitCode: 126,
      stderr: "brig: no process can be started: EAGAIN (the sandbox's process or memory limit is reached)\n",
    });
  });

  it("is not started again once it was killed, or once the sandbox is gone", async () => {
    const { runner, link, run, sent, spawned } = await place();
    const controller = new AbortController();
    const call = failure(run({ signal: controller.signal }));
    await spawned();
    controller.abort(new Error("enough"));
    runner.send(FrameType.exit, 1, notStarted("fork", 11));
    expect(await call).toBe(controller.signal.reason);
    const other = failure(run());
    await spawned(2);
    runner.send(FrameType.exit, 2, notStarted("fork", 11));
    await expect.poll(() => sent(FrameType.kill, 1).length).toBeGreaterThan(0);
    link.close(gone);
    expect(await other).toBe(gone);
  });
});

describe("a command whose end does not come", () => {
  it.for([
    ["the runner answers", true],
    ["the runner does not answer either", false],
  ] as const)("is stuck some time after its time limit if %s", async ([, answers]) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { runner, link, run, onStuck } = await place();
    const call = failure(run({ timeoutMs: 1000 }));
    await new Promise(setImmediate);
    if (!answers) runner.dumb();
    for (let ms = 0; ms < 17_900; ms += 100) await vi.advanceTimersByTimeAsync(100);
    expect(onStuck).not.toHaveBeenCalled();
    for (let ms = 0; ms < 3000; ms += 100) {
      await vi.advanceTimersByTimeAsync(100);
      await new Promise(setImmediate);
    }
    expect(onStuck).toHaveBeenCalledTimes(answers ? 1 : 0);
    link.close(gone);
    expect(await call).toBe(gone);
  });
});
