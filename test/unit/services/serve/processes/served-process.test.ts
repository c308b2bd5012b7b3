import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import { OutputLog } from "../../../../../src/services/serve/processes/output-log.js";
import { ServedProcess } from "../../../../../src/services/serve/processes/served-process.js";
import { PlayedProcess } from "./played-process.js";

function served(options: ConstructorParameters<typeof PlayedProcess>[0] = {}) {
  const played = new PlayedProcess(options);
  const process = new ServedProcess(played, {
    ...{ id: "p", argv: ["cat"], hasTerminal: options.hasTerminal ?? false, output: new OutputLog() },
    ...{ purpose: null, inputBytes: 0 },
  });
  return { played, process };
}

async function outputOf({ output }: ServedProcess): Promise<string[]> {
  return (await output.read()).chunks.map(({ stream, data }) => `${stream}:${data}`);
}

describe("the record of a process", () => {
  it("says that it runs, and then how it ended", async () => {
    const { played, process } = served();
    expect(process.record).toEqual({
      ...{ id: "p", argv: ["cat"], state: "running", exitCode: null, signal: null, timedOut: false },
    });
    played.finish({ exitCode: 143, signal: "SIGTERM" });
    expect(await process.ended).toMatchObject({ exitCode: 143 });
    expect(process.record).toEqual({
      ...{ id: "p", argv: ["cat"], state: "ended", exitCode: 143, signal: "SIGTERM", timedOut: false },
    });
  });

  it("says that it was killed if its sandbox has ended, and its output says why", async () => {
    const { played, process } = served();
    played.print("begun\n");
    played.fail(new BrigError("the sandbox is gone", { code: "sandbox.gone" }));
    await expect(process.ended).rejects.toMatchObject({ code: "sandbox.gone" });
    expect(process.record).toMatchObject({ state: "ended", exitCode: 137, signal: "SIGKILL" });
    expect((await outputOf(process)).at(-1)).toBe("stderr:brig: the sandbox is gone\n");
    expect((await process.output.read()).ended).toBe(true);
  });

  it("says that it did not start if its directory was gone by then", async () => {
    const { played, process } = served({ hasTerminal: true });
    played.fail(new BrigError("no directory", { code: "exec.bad-cwd" }));
    await expect(process.ended).rejects.toMatchObject({ code: "exec.bad-cwd" });
    expect(process.record).toMatchObject({ state: "ended", exitCode: 126, signal: null });
    expect(await outputOf(process)).toEqual(["pty:brig: no directory\r\n"]);
  });
});

describe("the output of a process", () => {
  it("is kept as it comes, by stream, and is complete once the process has ended", async () => {
    const { played, process } = served();
    played.print("out");
    played.stderr?.write("err");
    await expect.poll(() => process.output.end).toBe(6);
    expect(await outputOf(process)).toEqual(["stdout:out", "stderr:err"]);
    played.print(" more");
    played.finish();
    await process.ended;
    expect(await outputOf(process)).toEqual(["stdout:out", "stderr:err", "stdout: more"]);
  });

  it("never makes the process wait if nobody reads it", async () => {
    const { played, process } = served({ hasTerminal: true });
    const piece = Buffer.alloc(1024 * 1024);
    for (let count = 0; count < 40; count++) {
      played.stdout.write(piece);
      await expect.poll(() => played.stdout.readableLength, { interval: 1 }).toBe(0);
    }
    expect(process.output.end).toBe(40 * piece.length);
  });
});

describe("input", () => {
  it("is given in the order of its callers, and its end after all of it", async () => {
    const { played, process } = served();
    await Promise.all([
      process.write(Buffer.from("one")),
      process.write(Buffer.from("two")),
      process.closeInput(),
    ]);
    await expect.poll(() => played.events).toEqual(["input one", "input two", "end of input"]);
  });

  it("waits until the process takes it", async () => {
    const { played, process } = served({ takesInput: false });
    let done = 0;
    const writing = [
      process.write(Buffer.alloc(100_000)).then(() => done++),
      process.write(Buffer.from("second")).then(() => done++),
    ];
    await expect.poll(() => played.events).toEqual(["input of 65536"]);
    expect(done).toBe(0);
    played.takeInput();
    await expect.poll(() => played.events).toEqual(["input of 65536", "input of 34464"]);
    expect(done).toBe(0);
    played.takeInput();
    await writing[0];
    played.takeInput();
    await writing[1];
    expect(played.events.at(-1)).toBe("input second");
  });

  it("that comes too late is refused", async () => {
    const refusal = { status: 409, code: "exec.invalid" };
    const ended = served();
    ended.played.finish();
    await ended.process.ended;
    await expect(ended.process.write(Buffer.from("x"))).rejects.toMatchObject(refusal);
    await ended.process.closeInput();
    const closed = served();
    await closed.process.closeInput();
    await closed.process.closeInput();
    await expect(closed.process.write(Buffer.from("x"))).rejects.toMatchObject(refusal);
    const without = served({ stdin: "closed" });
    await expect(without.process.write(Buffer.from("x"))).rejects.toMatchObject(refusal);
  });

  it("that still waits when the process ends is refused", async () => {
    const { played, process } = served({ takesInput: false });
    const writing = process.write(Buffer.alloc(200_000));
    const behind = process.write(Buffer.from("x"));
    const refused = Promise.all(
      [writing, behind].map(async (one) => await expect(one).rejects.toMatchObject({ status: 409 })),
    );
    await expect.poll(() => played.events).toEqual(["input of 65536"]);
    played.finish();
    await refused;
  });

  it("is given up with its caller, and later input comes after the piece that was on its way", async () => {
    const { played, process } = served({ takesInput: false });
    const gone = new AbortController();
    const writing = process.write(Buffer.alloc(500_000), { signal: gone.signal });
    await expect.poll(() => played.events).toEqual(["input of 65536"]);
    gone.abort(new Error("the caller goes"));
    await expect(writing).rejects.toThrow("the caller goes");
    const later = process.write(Buffer.from("later"));
    played.takeInput();
    await expect.poll(() => played.events).toEqual(["input of 65536", "input later"]);
    played.takeInput();
    await later;
  });
});

describe("what is done to a process", () => {
  it("is a signal, a size, or its end", async () => {
    const { played, process } = served({ hasTerminal: true });
    await process.signal("SIGINT");
    process.resize({ rows: 40, cols: 100 });
    await process.end();
    expect(played.events).toEqual(["SIGINT", "size 40x100", "end of the tree"]);
    expect(process.record).toMatchObject({ state: "ended", signal: "SIGTERM" });
  });

  it("is nothing any more once it has ended", async () => {
    const { played, process } = served({ hasTerminal: true });
    played.finish();
    await process.ended;
    await process.signal("SIGINT");
    process.resize({ rows: 40, cols: 100 });
    await process.end();
    expect(played.events).toEqual([]);
  });
});
