import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it as plain } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { encodeFrame } from "../../../../src/sandbox/channel/frames.js";
import {
  type JournalNote,
  LinkJournal,
  recoverJournal,
} from "../../../../src/sandbox/channel/link-journal.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { RunnerLink } from "../../../../src/sandbox/channel/runner-link.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { RunningProcess } from "../../../../src/sandbox/process/process.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { SmallDisk, whyNoSmallDisk } from "../../../support/small-disk.js";
import { FakeRunner } from "./fake-runner.js";

const it = plain.extend<{ directory: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures it needs.
  directory: async ({}, use) => {
    await using directory = await temporaryDirectory();
    await use(join(directory.path, "journal"));
  },
});

const over = new BrigError("the test is over", { code: "sandbox.gone", reason: "closed" });
const fails = (error: unknown) => {
  throw error;
};

function options(runner: FakeRunner, journal: LinkJournal) {
  return {
    token: Buffer.alloc(32),
    dial: runner.dial,
    diagnose: async () => "runs" as const,
    reconnectForMs: 5000,
    onLate: () => undefined,
    journal,
  };
}

function contextOf(link: RunnerLink): CommandContext {
  return { link, cwd: "/", env: {}, onStuck: () => undefined };
}

/** Another link that goes on with the only command of the one that was left. */
async function goOn(runner: FakeRunner, directory: string) {
  const recovered = recoverJournal(directory);
  if (recovered === null) throw new Error("the journal does not say how to go on");
  let command: RunningProcess | undefined;
  const link = await RunnerLink.resume(
    options(runner, new LinkJournal(directory, { onFailure: fails, recovered })),
    {
      recovered,
      adopt(adopting) {
        const begun = { channel: 1, history: recovered.historyOf(1) };
        command = new RunningProcess(contextOf(adopting), ["cat"], {}, begun);
      },
    },
  );
  return { link, command: command as RunningProcess };
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("latin1");
}

describe("a journal", () => {
  it("lets another link go on with a command, wherever the first one stopped", async ({ directory }) => {
    const runner = new FakeRunner();
    runner.isAcknowledging = false;
    const first = await RunnerLink.open(options(runner, new LinkJournal(directory, { onFailure: fails })));
    const before = new RunningProcess(contextOf(first), ["cat"], {});
    before.stdin?.write("one ");
    runner.send(FrameType.stdout, 1, Buffer.from("a"));
    await expect.poll(() => runner.frames.length).toBe(2);
    // The first one has not seen this any more.
    runner.isSilent = true;
    runner.send(FrameType.stdout, 1, Buffer.from("b"));
    before.stdin?.write("two ");
    await expect.poll(() => readFileSync(join(directory, "1.frames")).includes("two ")).toBe(true);
    const { link, command } = await goOn(runner, directory);
    command.stdin?.end("three");
    runner.send(FrameType.stdout, 1, Buffer.from("c"));
    runner.exit(1, 5);
    expect(await text(command.stdout)).toBe("abc");
    expect(await command.exit).toMatchObject({ exitCode: 5 });
    const input = () => runner.frames.filter(({ type }) => type === FrameType.input);
    await expect
      .poll(() => Buffer.concat(input().map(({ payload }) => payload)).toString())
      .toBe("one two three");
    expect(runner.frames.filter(({ type }) => type === FrameType.spawn)).toHaveLength(1);
    link.close(over);
    first.close(over);
  });

  it("counts the credit that is left, so that a long output goes on", async ({ directory }) => {
    const runner = new FakeRunner();
    let link = await RunnerLink.open(options(runner, new LinkJournal(directory, { onFailure: fails })));
    let command = new RunningProcess(contextOf(link), ["cat"], {});
    const piece = Buffer.alloc(60 * 1024, "x");
    let credit = 256 * 1024;
    let sent = 0;
    runner.onFrame = ({ type, payload }) => {
      if (type === FrameType.credit) credit += payload.readUInt32LE(0);
    };
    for (let turn = 0; turn < 6; turn++) {
      for (let i = 0; i < 10; i++) {
        command.stdout.resume();
        await expect.poll(() => credit >= piece.length).toBe(true);
        credit -= piece.length;
        sent += piece.length;
        runner.send(FrameType.stdout, 1, piece);
      }
      ({ link, command } = await goOn(runner, directory));
    }
    runner.exit(1);
    expect((await text(command.stdout)).length).toBe(sent);
    link.close(over);
  });

  it("has whatever nobody goes on with ended", async ({ directory }) => {
    const runner = new FakeRunner();
    const first = await RunnerLink.open(options(runner, new LinkJournal(directory, { onFailure: fails })));
    for (let i = 0; i < 2; i++) new RunningProcess(contextOf(first), ["cat"], {});
    await expect.poll(() => runner.frames.length).toBe(2);
    const { link } = await goOn(runner, directory);
    await expect.poll(() => runner.frames.at(-1)).toMatchObject({ type: FrameType.kill, channel: 2 });
    runner.send(FrameType.stdout, 2, Buffer.from("for nobody"));
    runner.exit(2);
    await link.ping();
    link.close(over);
    first.close(over);
  });

  it("that was cut off in a record goes on without it", async ({ directory }) => {
    const runner = new FakeRunner();
    const first = await RunnerLink.open(options(runner, new LinkJournal(directory, { onFailure: fails })));
    new RunningProcess(contextOf(first), ["cat"], {});
    await expect.poll(() => runner.frames.length).toBe(1);
    const file = join(directory, "1.frames");
    const whole = statSync(file).size;
    appendFileSync(file, Buffer.from([3, 200, 0, 0, 0, 1, 2, 3]));
    const { link } = await goOn(runner, directory);
    expect(statSync(file).size).toBe(whole);
    link.close(over);
    first.close(over);
  });

  it("is readable only for its user, and takes no name that is there already", async ({ directory }) => {
    const runner = new FakeRunner();
    mkdirSync(directory);
    writeFileSync(join(directory, "1.frames"), "another's");
    const failures: unknown[] = [];
    const journal = new LinkJournal(directory, { onFailure: (error) => failures.push(error) });
    const link = await RunnerLink.open(options(runner, journal));
    expect(failures).toMatchObject([{ code: "EEXIST" }]);
    expect(readFileSync(join(directory, "1.frames"), "utf8")).toBe("another's");
    // The sandbox itself goes on.
    await link.ping();
    link.close(over);
    const elsewhere = await RunnerLink.open(
      options(runner, new LinkJournal(`${directory}-2`, { onFailure: fails })),
    );
    expect(statSync(join(`${directory}-2`, "1.frames")).mode & 0o777).toBe(0o600);
    elsewhere.close(over);
  });

  it("forgets the oldest, says how much, and keeps what is needed to go on", ({ directory }) => {
    const journal = new LinkJournal(directory, { onFailure: fails });
    let received = 0n;
    const kept = [encodeFrame(FrameType.input, 1, Buffer.from("unacknowledged"))];
    journal.takeState = () => ({ bootId: 9n, received, acknowledged: 4n, kept, lastChannel: 3 });
    journal.begin();
    journal.sent(encodeFrame(FrameType.spawn, 1, Buffer.alloc(20)));
    journal.note("command one", { channel: 1 });
    const payload = Buffer.alloc(64 * 1024, "y");
    const frames = 1500;
    for (let i = 0; i < frames; i++) {
      journal.received({ type: FrameType.stdout, channel: 1, payload });
      received++;
    }
    journal.close();
    const bytes = readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    expect(bytes).toBeLessThanOrEqual(72 * 1024 * 1024);
    const recovered = recoverJournal(directory);
    expect(recovered?.state).toMatchObject({ bootId: 9n, received: BigInt(frames), acknowledged: 4n, kept });
    expect(recovered?.notes).toEqual(new Map([["command one", { channel: 1 }]]));
    const history = recovered?.historyOf(1);
    expect(history?.totals?.outputBytes).toBe(frames * payload.length);
    const known = history?.frames.reduce((sum, frame) => sum + frame.payload.length, 0) ?? 0;
    expect(known + (history?.lost.stdout ?? 0)).toBe(frames * payload.length);
    expect(history?.lost.stdout).toBeGreaterThan(0);
    expect(history?.lost.stderr).toBe(0);
  });

  it("knows all of a command's output, or how much is lost, wherever it was killed while the oldest goes", ({
    directory,
  }) => {
    const journal = new LinkJournal(directory, { onFailure: fails });
    journal.takeState = () => ({ bootId: 9n, received: 0n, acknowledged: 0n, kept: [], lastChannel: 1 });
    journal.begin();
    journal.sent(encodeFrame(FrameType.spawn, 1, Buffer.alloc(20)));
    journal.note("command one", { channel: 1 });
    const oldest = join(directory, "1.frames");
    const held = `${directory}-1.frames`;
    linkSync(oldest, held);
    const payload = Buffer.alloc(64 * 1024, "y");
    let bytes = 0;
    const receive = () => {
      journal.received({ type: FrameType.stdout, channel: 1, payload });
      bytes += payload.length;
    };
    while (existsSync(oldest)) receive();
    const [newest = 0] = readdirSync(directory)
      .map((name) => Number.parseInt(name, 10))
      .sort((a, b) => b - a);
    const expectAll = (expected: number) => {
      const recovered = recoverJournal(directory);
      const history = recovered?.historyOf(1);
      const sum = () =>
        (history?.lost.stdout ?? 0) +
        (history?.frames.reduce((count, frame) => count + frame.payload.length, 0) ?? 0);
      expect(sum()).toBe(expected);
      // A journal that goes on from it has its own losses.
      if (recovered === null) throw new Error("nothing was recovered");
      const next = new LinkJournal(directory, { onFailure: fails, recovered });
      next.takeState = journal.takeState;
      return { next, sum };
    };
    // The file says what is lost, and the oldest is still there.
    linkSync(held, oldest);
    expectAll(bytes);
    expect(existsSync(oldest)).toBe(false);
    // The file does not say it yet. What was printed last went into it.
    linkSync(held, oldest);
    truncateSync(join(directory, `${newest}.frames`), 0);
    const { next, sum } = expectAll(bytes - payload.length);
    next.begin();
    expect(existsSync(oldest)).toBe(false);
    expect(sum()).toBe(bytes - payload.length);
    next.close();
    journal.close();
    expectAll(bytes - payload.length);
  });

  it("leaves none of its files where it fails while the oldest go", ({ directory }) => {
    const failures: unknown[] = [];
    const journal = new LinkJournal(directory, { onFailure: (error) => failures.push(error) });
    const full = new Error("no space left");
    journal.takeState = () => {
      if (readdirSync(directory).length > 8) throw full;
      return { bootId: 9n, received: 0n, acknowledged: 0n, kept: [], lastChannel: 1 };
    };
    journal.begin();
    journal.sent(encodeFrame(FrameType.spawn, 1, Buffer.alloc(20)));
    const payload = Buffer.alloc(64 * 1024);
    while (failures.length === 0) journal.received({ type: FrameType.stdout, channel: 1, payload });
    expect(failures).toEqual([full]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("does not keep what the runner has", async ({ directory }) => {
    const runner = new FakeRunner();
    let link = await RunnerLink.open(options(runner, new LinkJournal(directory, { onFailure: fails })));
    let command = new RunningProcess(contextOf(link), ["cat"], {});
    let given = 0;
    const sizes: number[] = [];
    for (let turn = 1; turn <= 6; turn++) {
      const piece = Buffer.alloc(32 * 1024, "x");
      command.stdin?.write(piece);
      given += piece.length;
      const received = () =>
        runner.frames
          .filter(({ type }) => type === FrameType.input)
          .reduce((sum, { payload }) => sum + payload.length, 0);
      await expect.poll(received).toBe(given);
      await link.ping();
      ({ link, command } = await goOn(runner, directory));
      sizes.push(statSync(join(directory, `${turn + 1}.frames`)).size);
    }
    expect(Math.max(...sizes)).toBeLessThan(3 * 32 * 1024);
    link.close(over);
  });

  it.skipIf(whyNoSmallDisk !== null)(
    "goes when its disk is full, since one with a gap would be wrong",
    async () => {
      await using disk = SmallDisk.mount(1);
      const directory = join(disk.path, "journal");
      const failures: unknown[] = [];
      const journal = new LinkJournal(directory, { onFailure: (error) => failures.push(error) });
      journal.takeState = () => ({ bootId: 9n, received: 0n, acknowledged: 0n, kept: [], lastChannel: 1 });
      journal.begin();
      const payload = Buffer.alloc(64 * 1024);
      for (let i = 0; i < 40; i++) journal.received({ type: FrameType.stdout, channel: 1, payload });
      expect(failures).toMatchObject([{ code: "ENOSPC" }]);
      expect(readdirSync(directory)).toEqual([]);
      expect(recoverJournal(directory)).toBeNull();
    },
  );

  it("does not grow with commands that nobody asks for, nor begins a file for each frame after a long note", ({
    directory,
  }) => {
    const journal = new LinkJournal(directory, { onFailure: fails });
    journal.takeState = () => ({ bootId: 9n, received: 0n, acknowledged: 0n, kept: [], lastChannel: 1 });
    journal.begin();
    const long: JournalNote & { argv: string } = { channel: 1, argv: "x".repeat(10 * 1024 * 1024) };
    journal.note("command long", long);
    const payload = Buffer.alloc(64 * 1024);
    for (let channel = 2; channel < 1500; channel++) {
      journal.sent(encodeFrame(FrameType.spawn, channel, Buffer.alloc(20)));
      journal.received({ type: FrameType.stdout, channel, payload });
      journal.received({ type: FrameType.exit, channel, payload: Buffer.alloc(44) });
    }
    journal.close();
    expect(readdirSync(directory).length).toBeLessThan(10);
    const recovered = recoverJournal(directory);
    expect(recovered?.notes.get("command long")).toEqual(long);
    expect([...(recovered?.files.lost.keys() ?? [])]).toEqual([]);
  });

  it("that was never begun says nothing", ({ directory }) => {
    mkdirSync(directory);
    expect(recoverJournal(directory)).toBeNull();
  });
});
