import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import type { RemoteSandbox } from "../../src/services/serve/client/client-types.js";
import type { SandboxRow } from "../../src/services/serve/wire/overview-schemas.js";
import { containersOf, program } from "../support/cli.js";
import { figuresSeed, printFigures, times } from "../support/figures.js";
import { type Answered, HostileClient } from "../support/hostile-client.js";
import { randomNumbers } from "../support/random.js";
import { temporaryDirectory } from "../support/sandbox.js";

/** How long the users work. The check has no more than a part of a minute; an hour is BRIG_TEST_USERS_SEC=3600. */
const WORK_SECONDS = Number(process.env.BRIG_TEST_USERS_SEC ?? 20);
const WARM_UP_SECONDS = Math.min(30, Math.max(6, WORK_SECONDS / 20));
const HOSTILE_AT_A_TIME = 3;
const MIB = 1024 * 1024;
const MOST_GROWN_BYTES = 16 * MIB;
const MOST_GROWN_DESCRIPTORS = 8;

const names = ["short", "long", "hostile", "watching"] as const;
const tokens = Object.fromEntries(names.map((name) => [name, randomBytes(24).toString("hex")])) as Record<
  (typeof names)[number],
  string
>;

/** `brig serve` as a program of its own, which can be asked what it holds. */
class ServiceProcess implements AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly #program: ReturnType<typeof startProgram>;
  readonly #inspector: WebSocket;
  #askedCount = 0;

  private constructor(url: string, child: ReturnType<typeof startProgram>, inspector: WebSocket) {
    this.url = url;
    this.pid = child.pid ?? 0;
    this.#program = child;
    this.#inspector = inspector;
  }

  static async start(tokensFile: string, home: string): Promise<ServiceProcess> {
    const child = startProgram(tokensFile, home);
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await child;
    });
    const [url, debugged] = await Promise.all([
      lineOf(child.stdout, /^url = "(.*)"$/),
      lineOf(child.stderr, /^Debugger listening on (ws:.*)$/),
    ]);
    const inspector = new WebSocket(debugged);
    await once(inspector, "open");
    return new ServiceProcess(url, child, inspector);
  }

  /** The bytes of objects and buffers that it holds, once all garbage is collected. */
  async heldBytes(): Promise<number> {
    for (let count = 0; count < 3; count++) await this.#ask("HeapProfiler.collectGarbage", {});
    const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
    const { result } = (await this.#ask("Runtime.evaluate", { expression })) as { result: { value: number } };
    return result.value;
  }

  async descriptors(): Promise<number> {
    return (await readdir(`/proc/${this.pid}/fd`)).length;
  }

  async residentBytes(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Ends it as ctrl-C does, and gives its exit status. */
  async end(): Promise<number | undefined> {
    this.#inspector.terminate();
    this.#program.kill("SIGTERM");
    return (await this.#program).exitCode;
  }

  async #ask(method: string, params: object): Promise<unknown> {
    const id = ++this.#askedCount;
    const answered = new Promise<unknown>((resolve) => {
      const listen = (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id?: number; result?: unknown };
        if (message.id !== id) return;
        this.#inspector.off("message", listen);
        resolve(message.result);
      };
      this.#inspector.on("message", listen);
    });
    this.#inspector.send(JSON.stringify({ id, method, params }));
    return await answered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#inspector.terminate();
    this.#program.kill("SIGKILL");
    await this.#program;
  }
}

function startProgram(tokensFile: string, home: string) {
  const limits = ["--max-sandboxes", "12", "--max-waiting", "16", "--warm", "1", "--memory", "256m"];
  const args = ["--listen", "127.0.0.1:0", "--tokens", tokensFile, "--idle", "120s", ...limits];
  return execa(process.execPath, ["--inspect=127.0.0.1:0", program, "serve", ...args, "--cpus", "0.5"], {
    env: { BRIG_HOME: home },
    reject: false,
    buffer: false,
    stdin: "ignore",
  });
}

async function lineOf(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<string> {
  for await (const line of createInterface({ input: stream })) {
    const found = pattern.exec(line)?.[1];
    if (found === undefined) continue;
    stream.resume();
    return found;
  }
  throw new Error(`the service ended without a line like ${pattern}`);
}

/** What the users have done so far. */
interface Report {
  /** What went wrong for a user that does nothing wrong. */
  wrong: string[];
  /** How long the commands of such users took. */
  commandsMs: number[];
  createsMs: number[];
  counts: Map<string, number>;
  /** How often each attack was answered how. */
  answers: Map<string, number>;
  unallowed: string[];
}

function newReport(): Report {
  return {
    ...{ wrong: [], commandsMs: [], createsMs: [], unallowed: [] },
    ...{ counts: new Map(), answers: new Map() },
  };
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  times.push(performance.now() - startedAt);
  return result;
}

interface UserPlace {
  client: BrigClient;
  random: () => number;
  report: Report;
  isOver: () => boolean;
}

/** Does the work again and again until the time is over, and notes what goes wrong. */
async function repeat({ isOver, report }: UserPlace, name: string, work: () => Promise<void>): Promise<void> {
  while (!isOver()) {
    try {
      await work();
      count(report.counts, name);
    } catch (error) {
      report.wrong.push(
        `${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      if (report.wrong.length > 20) return;
    }
  }
}

function require(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what);
}

/** A sandbox, a few commands and files, and its end, as most programs use one. */
async function shortUser(place: UserPlace): Promise<void> {
  const { client, random, report } = place;
  await repeat(place, "short sandboxes", async () => {
    const idempotencyKey = random() < 0.5 ? randomBytes(8).toString("hex") : undefined;
    const options = { waitMs: 60_000, labels: { of: "short" } };
    const sandbox = await timed(report.createsMs, () => client.createSandbox(options, { idempotencyKey }));
    try {
      const bytes = randomBytes(Math.floor(300_000 * random() ** 2));
      const hash = createHash("sha256").update(bytes).digest("hex");
      await sandbox.files.write("/tmp/in", bytes);
      const exitCode = Math.floor(256 * random());
      const summed = await timed(report.commandsMs, () =>
        sandbox.exec(["sh", "-c", `sha256sum < /tmp/in; exit ${exitCode}`]),
      );
      require(summed.stdout.startsWith(hash) &&
        summed.exitCode === exitCode, "the sum or the status is wrong");
      const echoed = await timed(report.commandsMs, () =>
        sandbox.exec(["cat"], { stdin: bytes, encoding: "buffer" }),
      );
      require(echoed.stdout.equals(bytes), "not the bytes that went in");
      const pieces: Uint8Array[] = [];
      await sandbox.stream(["cat", "/tmp/in"], { onStdout: (piece) => void pieces.push(piece) });
      require(Buffer.concat(pieces).equals(bytes), "not the bytes of the file");
      require((await sandbox.files.read("/tmp/in")).equals(bytes), "the file was read otherwise");
    } finally {
      await sandbox.delete();
    }
  });
}

/** One sandbox with processes that run on, whose client comes and goes. */
async function longUser(place: UserPlace): Promise<void> {
  const { client, random, isOver, report } = place;
  const sandbox = await client.createSandbox({ waitMs: 60_000, labels: { of: "long" } });
  try {
    const script = 'i=0; while :; do echo "line $i"; i=$((i + 1)); sleep 0.02; done';
    const counting = await sandbox.spawn(["sh", "-c", script]);
    counting.detach();
    const echoing = await sandbox.spawn(["cat"]);
    echoing.detach();
    let [counted, line, echoed] = [0, 0, 0];
    let part = "";
    await repeat(place, "attached again", async () => {
      const process = await sandbox.process(counting.id, { after: counted });
      const timer = setTimeout(() => process.detach(), 50 + 1000 * random());
      try {
        for await (const piece of process.stdout) part += String(piece);
      } finally {
        clearTimeout(timer);
      }
      process.exit.catch(() => undefined);
      counted = process.readBytes;
      require(process.lostBytes === 0, `${process.lostBytes} bytes were lost`);
      const lines = part.split("\n");
      part = lines.pop() ?? "";
      for (const one of lines) require(one === `line ${line++}`, `${one} came for line ${line - 1}`);

      const bytes = randomBytes(1 + Math.floor(50_000 * random()));
      const echo = await sandbox.process(echoing.id, { after: echoed });
      echo.exit.catch(() => undefined);
      echo.stdin?.write(bytes);
      const back: Buffer[] = [];
      for await (const piece of echo.stdout) {
        back.push(Buffer.from(piece as Uint8Array));
        if (Buffer.concat(back).length >= bytes.length) break;
      }
      echo.detach();
      echoed += bytes.length;
      require(Buffer.concat(back).equals(bytes), "the process gave other bytes back");

      const ending = await sandbox.spawn(["sh", "-c", "sleep 0.1; exit 5"]);
      require((await ending.exit).exitCode === 5, "another status");
    });
    require(isOver() && line > 0, "the lines did not come");
    report.counts.set("lines of the process that ran all the time", line);
  } catch (error) {
    report.wrong.push(`long: ${String(error)}`);
  } finally {
    await sandbox.delete();
  }
}

async function hostileUser(hostile: HostileClient, place: Omit<UserPlace, "client">): Promise<void> {
  const { random, report, isOver } = place;
  while (!isOver()) {
    const attacks = Object.entries(hostile.attacks);
    const [name, { allowed, run }] = attacks[Math.floor(random() * attacks.length)] ?? attacks[0]!;
    for (const answer of await run()) {
      count(report.answers, `${name}: ${answer}`);
      if (!(allowed as Answered[]).includes(answer)) report.unallowed.push(`${name}: ${answer}`);
    }
  }
}

/** All users together for a while; then everything that they have is removed. */
async function work(url: string, seconds: number): Promise<Report> {
  const random = randomNumbers(figuresSeed);
  const report = newReport();
  const until = performance.now() + seconds * 1000;
  const isOver = () => performance.now() > until;
  const clients = Object.fromEntries(
    names.map((name) => [name, new BrigClient({ url, token: tokens[name] })]),
  ) as Record<(typeof names)[number], BrigClient>;
  const over = new AbortController();
  let foreign: string[] = [];
  const hostile = new HostileClient({
    ...{ port: Number(new URL(url).port), token: tokens.hostile, random },
    foreignIds: () => foreign,
    signal: over.signal,
  });
  const watch = async () => {
    // Whoever looks at the page at / does this.
    while (!isOver()) {
      const rows = await overview(url);
      foreign = rows.filter(({ client }) => client !== "hostile").map(({ id }) => id);
      await sleep(500);
    }
  };
  const place = { random, report, isOver };
  await Promise.all([
    watch(),
    ...[1, 2].map(() => shortUser({ ...place, client: clients.short })),
    longUser({ ...place, client: clients.long }),
    ...Array.from({ length: HOSTILE_AT_A_TIME }, () => hostileUser(hostile, place)),
  ]);
  over.abort();
  hostile.close();
  for (const name of names)
    for (const { id } of await clients[name].listSandboxes())
      await clients[name].getSandbox(id).then((sandbox: RemoteSandbox) => sandbox.close());
  for (const client of Object.values(clients)) client.close();
  return report;
}

async function overview(url: string): Promise<SandboxRow[]> {
  const headers = { authorization: `Bearer ${tokens.watching}` };
  const response = await fetch(`${url}/v1/overview?count=100`, { headers });
  if (response.status !== 200) throw new Error(`the overview was refused with ${response.status}`);
  return ((await response.json()) as { sandboxes: SandboxRow[] }).sandboxes;
}

it(`three users of one service for ${WORK_SECONDS} seconds, one of them hostile (seed ${figuresSeed})`, {
  timeout: (WORK_SECONDS + WARM_UP_SECONDS + 180) * 1000,
}, async () => {
  await using directory = await temporaryDirectory();
  const tokensFile = join(directory.path, "tokens.json");
  const quota = { maxSandboxes: 4, cpus: 4, memoryMb: 2048 };
  const clients = {
    short: { token: tokens.short, ...quota },
    long: { token: tokens.long, ...quota },
    hostile: { token: tokens.hostile, ...quota, requestsPerMinute: 3000 },
    watching: { token: tokens.watching, seesAll: true, mayChange: false },
  };
  await writeFile(tokensFile, JSON.stringify({ clients }), { mode: 0o600 });
  await using service = await ServiceProcess.start(tokensFile, join(directory.path, "home"));

  // What the first of each call leaves behind, such as compiled code, is no growth.
  const warm = await work(service.url, WARM_UP_SECONDS);
  expect(warm.wrong).toEqual([]);
  await expect.poll(() => overview(service.url)).toEqual([]);
  const before = { held: await service.heldBytes(), descriptors: await service.descriptors() };

  const report = await work(service.url, WORK_SECONDS);
  expect(report.wrong).toEqual([]);
  expect(report.unallowed).toEqual([]);
  for (const done of ["short sandboxes", "attached again"])
    expect(report.counts.get(done), done).toBeGreaterThan(0);
  // Not all of it was refused before it did anything.
  expect([...report.answers.keys()]).toEqual(expect.arrayContaining(["a flood of creates: 201"]));
  await expect.poll(() => overview(service.url)).toEqual([]);
  await expect
    .poll(async () => (await service.descriptors()) - before.descriptors)
    .toBeLessThanOrEqual(MOST_GROWN_DESCRIPTORS);
  await expect
    .poll(async () => (await service.heldBytes()) - before.held, { interval: 2000 })
    .toBeLessThan(MOST_GROWN_BYTES);
  const held = await service.heldBytes();
  printFigures(`Three users for ${WORK_SECONDS} s, one of them hostile (seed ${figuresSeed})`, [
    ...[...report.counts].map(([name, of]) => `${name}: ${of}`),
    times("a command", report.commandsMs),
    times("a sandbox", report.createsMs),
    `answers to the hostile one: ${[...report.answers].map(([name, of]) => `${name} × ${of}`).join(", ")}`,
    `held by the service: ${(before.held / MIB).toFixed(1)} MiB before, ${(held / MIB).toFixed(1)} MiB after`,
    `its descriptors: ${before.descriptors} before, ${await service.descriptors()} after`,
    `its memory: ${((await service.residentBytes()) / MIB).toFixed(0)} MiB`,
  ]);
  expect(await service.end()).toBe(143);
  expect(await containersOf(service.pid)).toEqual([]);
});
