import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { failure } from "../played-sandbox.js";
import { notStarted, place } from "./played-commands.js";

const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });

describe("a process whose streams the caller uses", () => {
  it("has its output in two streams, takes input, and ends", async () => {
    const { runner, start, sent, spawned } = await place();
    const process = start();
    await spawned();
    process.stdin?.write("question");
    process.stdin?.end();
    await expect
      .poll(() => sent(FrameType.input, 1).map(({ payload }) => String(payload)))
      .toEqual(["question", ""]);
    runner.send(FrameType.stdout, 1, Buffer.from("out"));
    runner.send(FrameType.stderr, 1, Buffer.from("err"));
    expect(String((await once(process.stdout, "data"))[0])).toBe("out");
    if (process.stderr === null) throw new Error("no stderr");
    expect(String((await once(process.stderr, "data"))[0])).toBe("err");
    const ends = [once(process.stdout, "end"), once(process.stderr, "end")];
    runner.exit(1, 7);
    expect(await process.exit).toMatchObject({ exitCode: 7, startFailure: null });
    await Promise.all(ends);
    expect(process.stdin?.destroyed).toBe(true);
  });

  it.for([
    [{ stdin: "closed" }, { stdin: null }],
    [{ mergeOutput: true }, { stderr: null }],
    [{ pty: { rows: 2, cols: 3 } }, { stderr: null }],
  ] as const)("with %j has no other streams", async ([options, expected]) => {
    const { runner, start, spawned } = await place();
    const process = start(options);
    expect(process).toMatchObject(expected);
    await spawned();
    runner.exit(1);
    process.stdout.resume();
    await process.exit;
  });

  it("says at the end of its last stream why it could not be started", async () => {
    for (const mergeOutput of [false, true]) {
      const { runner, start } = await place();
      runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted("exec", 2));
      const process = start({ mergeOutput });
      const last = process.stderr ?? process.stdout;
      const text = last.toArray();
      process.stdout.resume();
      expect(await process.exit).toMatchObject({ exitCode: 127, startFailure: { errno: "ENOENT" } });
      expect(String((await text)[0])).toBe("brig: true: command not found\n");
    }
  });

  it("on a terminal, has notes whose lines begin at the left", async () => {
    const textFor = vi.fn(() => "\n[one line]\n");
    const egress = {
      nameCall: () => undefined,
      textFor,
      causesFor: () => [],
      requireNoCanarySent: async () => undefined,
    };
    for (const [pty, expected] of [
      [{ rows: 2, cols: 3 }, "\r\n[one line]\r\nbrig: true: command not found\r\n"],
      [undefined, "\n[one line]\nbrig: true: command not found\n"],
    ] as const) {
      const { runner, start } = await place({ egress });
      runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, notStarted("exec", 2));
      const process = start({ pty });
      process.stdout.on("error", () => undefined);
      const [out] = await Promise.all([
        (process.stderr ?? process.stdout).toArray(),
        process.exit,
        process.stdout.resume(),
      ]);
      expect(String(Buffer.concat(out))).toBe(expected);
      expect(textFor).toHaveBeenLastCalledWith(expect.objectContaining({ isOnTerminal: pty !== undefined }));
    }
  });

  it("is paused while nobody reads, and granted more when somebody does", async () => {
    const { runner, link, start, sent, spawned } = await place();
    const process = start();
    await spawned();
    for (let i = 0; i < 4; i++) runner.send(FrameType.stdout, 1, Buffer.alloc(65_536));
    await link.ping();
    // The last piece fills the buffer.
    expect(sent(FrameType.credit)).toHaveLength(3);
    process.stdout.resume();
    await expect.poll(() => sent(FrameType.credit).length).toBe(4);
    runner.exit(1);
    await process.exit;
  });

  it("gets signals by name, and is killed without one", async () => {
    const { runner, start, sent, spawned } = await place();
    const process = start();
    await spawned();
    await process.kill("SIGUSR1");
    await expect.poll(() => sent(FrameType.signal, 1).map(({ payload }) => payload)).toEqual([Buffer.of(10)]);
    expect(await failure(process.kill("SIGNONE" as "SIGINT"))).toMatchObject({ code: "exec.invalid" });
    const killed = process.kill();
    await expect.poll(() => sent(FrameType.kill, 1)).toHaveLength(1);
    runner.exit(1);
    await killed;
    process.stdout.resume();
    process.stderr?.resume();
    await process.exit;
    // Although nobody has ended it.
    expect(process.stdin?.destroyed).toBe(true);
  });

  it("can be resized with a terminal only, and to sizes that there are", async () => {
    const { runner, start, sent, spawned } = await place();
    const plain = start();
    expect(() => plain.resize({ rows: 1, cols: 1 })).toThrow(
      expect.objectContaining({ code: "exec.invalid" }),
    );
    const process = start({ pty: { rows: 1, cols: 1 } });
    await spawned(2);
    process.resize({ rows: 65_535, cols: 0 });
    await expect
      .poll(() => sent(FrameType.resize, 2).map(({ payload }) => payload))
      .toEqual([Buffer.from([0xff, 0xff, 0, 0])]);
    for (const rows of [-1, 65_536, 1.5])
      expect(() => process.resize({ rows, cols: 1 })).toThrow(
        expect.objectContaining({ code: "exec.invalid" }),
      );
    for (const channel of [1, 2]) runner.exit(channel);
    for (const one of [plain, process]) {
      one.stdout.resume();
      one.stderr?.resume();
      await one.exit;
    }
  });

  it("whose sandbox is gone has that error on its streams and as its end", async () => {
    const { link, start, spawned } = await place();
    const process = start();
    await spawned();
    link.close(gone);
    expect(await failure(process.exit)).toBe(gone);
    expect(process.stdout.errored).toBe(gone);
    expect(process.stderr?.errored).toBe(gone);
    await process.kill();
  });
});
