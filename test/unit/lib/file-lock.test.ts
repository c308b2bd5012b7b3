import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  acquireLock,
  createLock,
  type FileLock,
  holderOf,
  isLockFileOf,
  type LockOptions,
  readCurrentProcess,
} from "../../../src/lib/file-lock.js";
import { compiledFixture } from "../../support/compiled-fixture.js";
import { temporaryDirectory } from "../../support/sandbox.js";

const counter = compiledFixture("count-under-lock.ts");
let directory: string;
let file: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  directory = made.path;
  file = join(directory, "count");
  writeFileSync(file, "0");
});

/** Another process that works under the lock: see the fixture. */
class Worker {
  readonly process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;

  constructor() {
    this.process = spawn(process.execPath, [counter.path, file], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface({ input: this.process.stdout });
    this.#answers = this.#lines[Symbol.asyncIterator]();
    onTestFinished(() => this.kill());
  }

  static async start(count: number): Promise<Worker[]> {
    const workers = Array.from({ length: count }, () => new Worker());
    await Promise.all(workers.map((worker) => worker.answer()));
    return workers;
  }

  /** Null when it has ended. */
  async answer(): Promise<string | null> {
    const { value, done } = await this.#answers.next();
    return done === true ? null : value;
  }

  async do(work: string): Promise<string | null> {
    this.process.stdin.write(`${work}\n`);
    return await this.answer();
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }
}

function claims(): string[] {
  return readdirSync(directory).filter((name) => isLockFileOf(name, file));
}

const count = () => Number(readFileSync(file, "utf8"));

async function held(options: LockOptions = { waitMs: 10_000 }): Promise<FileLock> {
  const outcome = await acquireLock(file, options);
  if (outcome.kind === "busy") throw new Error(`process ${outcome.holder.owner.pid} holds it`);
  return outcome.lock;
}

/** A claim in the name of a process like this one, but for some of what is known of it. */
async function claimAs(change: object): Promise<string> {
  const { owner } = await readCurrentProcess();
  const name = ".count.000000000000.lock";
  writeFileSync(join(directory, name), JSON.stringify({ ...owner, ...change }));
  return join(directory, name);
}

function makeOld(path: string, seconds: number): void {
  const then = new Date(Date.now() - seconds * 1000);
  utimesSync(path, then, then);
}

describe("the lock of a file among processes", { timeout: 120_000 }, () => {
  it("is held by one at a time of many that come when its holder has been killed, over and over", async () => {
    const [dead, ...takers] = await Worker.start(7);
    expect(await dead?.do("hold")).toBe("hold");
    const [claim = ""] = claims();
    copyFileSync(join(directory, claim), join(directory, "dead"));
    await dead?.kill();
    for (let round = 1; round <= 10; round += 1) {
      copyFileSync(join(directory, "dead"), join(directory, claim));
      await Promise.all(takers.map((taker) => taker.do("count 1")));
      expect(count()).toBe(round * takers.length);
    }
    expect(claims()).toEqual([]);
  });

  it("loses no count, though some are killed while they hold it", async () => {
    const workers = await Worker.start(5);
    const work = workers.map(async (worker, at) => {
      expect(await worker.do("count 10")).toBe("count 10");
      if (at < 3) expect(await worker.do("die")).toBeNull();
      else expect(await worker.do("count 5")).toBe("count 5");
    });
    await Promise.all(work);
    expect(count()).toBe(60);
    (await held()).release();
    expect(readdirSync(directory)).toEqual(["count"]);
  });

  it("is refused at once while another process holds it, which is named, and free once that was killed", async () => {
    const [worker] = await Worker.start(1);
    await worker?.do("hold");
    const refusal = await acquireLock(file);
    const owner = expect.objectContaining({ pid: worker?.process.pid });
    const claim = expect.stringMatching(/\/\.count\.[0-9a-f]{12}\.lock$/);
    expect(refusal).toEqual({ kind: "busy", holder: { owner, lockFile: claim } });
    expect(claims()).toHaveLength(1);
    await worker?.kill();
    (await held({})).release();
  });
});

describe("the lock of a file", () => {
  it("is held by one at a time in one process too, and leaves nothing", async () => {
    let holders = 0;
    let most = 0;
    const work = async () => {
      using _lock = await held();
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, 1));
      holders -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(1);
    expect(readdirSync(directory)).toEqual(["count"]);
  });

  it("goes to exactly one of many that do not wait", async () => {
    // In directories of their own, because one that comes late may wait for the holder, which all can do at once.
    const oneOfMany = async (round: number) => {
      const own = join(directory, `round-${round}`);
      mkdirSync(own);
      const attempts = Array.from({ length: 8 }, () => acquireLock(join(own, "count")));
      return (await Promise.all(attempts)).filter(({ kind }) => kind === "held").length;
    };
    const held = await Promise.all(Array.from({ length: 20 }, (_, round) => oneOfMany(round)));
    expect(held).toEqual(Array(20).fill(1));
  });

  it("of a process whose id has been given out again is free", async () => {
    await claimAs({ startedAt: "1" });
    (await held({})).release();
    expect(claims()).toEqual([]);
  });

  it("of another boot is free", async () => {
    await claimAs({ bootId: "another" });
    (await held({})).release();
  });

  it.each([
    ["of another machine", { host: "elsewhere" }],
    ["of a process whose start is not known", { startedAt: null }],
  ])(
    "%s is held until it is older than anybody works, where the caller knows how long that is",
    async (_, change) => {
      makeOld(await claimAs(change), 180);
      expect(await acquireLock(file)).toMatchObject({ kind: "busy" });
      expect(await acquireLock(file, { presumedDeadAfterMs: 240_000 })).toMatchObject({ kind: "busy" });
      (await held({ presumedDeadAfterMs: 120_000 })).release();
    },
  );

  it("of a living process is never free, however old", async () => {
    using _lock = await held();
    makeOld(join(directory, claims()[0] ?? ""), 180);
    expect(await acquireLock(file, { presumedDeadAfterMs: 1 })).toMatchObject({
      kind: "busy",
      holder: { owner: { pid: process.pid } },
    });
  });

  it("that a power failure left empty is free", async () => {
    writeFileSync(join(directory, ".count.000000000000.lock"), "");
    (await held({})).release();
  });

  it("whose claim a killed process did not finish is free, and the claim removed once it is old", async () => {
    const unfinished = join(directory, ".count.000000000000.lock.new");
    writeFileSync(unfinished, "");
    (await held({})).release();
    expect(readdirSync(directory)).toContain(basename(unfinished));
    makeOld(unfinished, 61);
    (await held({})).release();
    expect(readdirSync(directory)).toEqual(["count"]);
  });

  it("is waited for so long and no longer, and who waits is told once", async () => {
    const lock = await held();
    let waits = 0;
    const onWait = () => {
      waits += 1;
    };
    expect(await acquireLock(file, { waitMs: 120, onWait })).toMatchObject({ kind: "busy" });
    expect(waits).toBe(1);
    const next = held({ waitMs: 10_000 });
    lock.release();
    (await next).release();
  });

  it("is not waited for after an abort", async () => {
    using _lock = await held();
    const controller = new AbortController();
    const wait = acquireLock(file, { signal: controller.signal, waitMs: 10_000 });
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(wait).rejects.toBe(reason);
    expect(claims()).toHaveLength(1);
  });

  it("is placed at once for a file that nobody knows of, and tells its holder", async () => {
    const { owner, processes } = await readCurrentProcess();
    const lock = createLock(file, { owner, processes });
    expect(await holderOf(file, processes)).toEqual(owner);
    lock.release();
    lock.release();
    expect(await holderOf(file, processes)).toBeNull();
  });

  it("is not that of a file whose name only starts alike", async () => {
    using _other = createLock(`${file}.json`, await readCurrentProcess());
    (await held({})).release();
  });
});
