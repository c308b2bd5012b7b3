import { createHash, randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { expect, it } from "vitest";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import type { RemoteSandbox } from "../../src/services/serve/client/client-types.js";
import type { SandboxRow } from "../../src/services/serve/wire/overview-schemas.js";
import { containersOf, program } from "../support/cli.js";
import { figuresSeed, printFigures, times } from "../support/figures.js";
import { HostileClient } from "../support/hostile-client.js";
import { Inspector, inspectorLine } from "../support/inspector.js";
import { randomNumbers } from "../support/random.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { openSocket } from "../support/web-socket-client.js";

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
  readonly #inspector: Inspector;

  private constructor(url: string, child: ReturnType<typeof startProgram>, inspector: Inspector) {
    this.url = url;
    this.pid = child.pid ?? 0;
    this.#program = child;
    this.#inspector = inspector;
  }

  static async start(tokensFile: string, home: string): Promise<ServiceProcess> {
    const child = startProgram(tokensFile, home);
    const [url, debugged] = await Promise.all([
      lineOf(child.stdout, /^url = "(.*)"$/),
      lineOf(child.stderr, inspectorLine),
    ]);
    return new ServiceProcess(url, child, await Inspector.connect(debugged));
  }

  async heldBytes(): Promise<number> {
    return await this.#inspector.heldBytes();
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
    this.#inspector.close();
    this.#program.kill("SIGTERM");
    return (await this.#program).exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
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
  /** Those of them that were wrong. */
  unallowed: Map<string, number>;
}

function newReport(): Report {
  return {
    ...{ wrong: [], commandsMs: [], createsMs: [] },
    ...{ counts: new Map(), answers: new Map(), unallowed: new Map() },
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

/** Does the work at least once, and again and again until the time is over, and notes what goes wrong. */
async function repeat({ isOver, report }: UserPlace, name: string, work: () => Promise<void>): Promise<void> {
  do {
    try {
      await work();
      count(report.counts, name);
    } catch (error) {
      report.wrong.push(
        `${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      if (report.wrong.length > 20) return;
    }
  } while (!isOver());
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

interface ReadPlace {
  url: string;
  sandbox: RemoteSandbox;
  id: string;
  /** How many bytes were read before. */
  after: number;
}

/** What a process prints meanwhile, over a WebSocket that is cut at some moment. */
async function readSocket({ url, sandbox, id, after }: ReadPlace, ms: number): Promise<Buffer> {
  const headers = { authorization: `Bearer ${tokens.long}` };
  const path = `${url}/v1/sandboxes/${sandbox.id}/processes/${id}/attach?after=${after}`;
  const { socket, text, frames } = await openSocket(path, { headers });
  await sleep(ms);
  socket.terminate();
  require(frames.length === 0, `the socket said ${JSON.stringify(frames)}`);
  return Buffer.from(text());
}

/** The same, over requests one after the other. */
async function readPolled({ sandbox, id, after }: ReadPlace, ms: number): Promise<Buffer> {
  const process = await sandbox.process(id, { after });
  const pieces: Buffer[] = [];
  process.stdout.on("data", (piece: Buffer) => pieces.push(piece)).on("error", () => undefined);
  await sleep(ms);
  process.detach();
  await process.exit.catch(() => undefined);
  require(process.lostBytes === 0, `${process.lostBytes} bytes were lost`);
  return Buffer.concat(pieces);
}

/** One sandbox with processes that run on, whose client comes and goes. */
async function longUser(place: UserPlace & { url: string }): Promise<void> {
  const { client, random, isOver, report, url } = place;
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
      const wayOfReading = random() < 0.5 ? readSocket : readPolled;
      const piece = await wayOfReading(
        { url, sandbox, id: counting.id, after: counted },
        50 + 1000 * random(),
      );
      counted += piece.length;
      part += piece.toString();
      const lines = part.split("\n");
      part = lines.pop() ?? "";
      for (const one of lines) require(one === `line ${line++}`, `${one} came for line ${line - 1}`);

      const bytes = randomBytes(1 + Math.floor(50_000 * random()));
      const echo = await sandbox.process(echoing.id, { after: echoed });
      echo.stdin?.write(bytes);
      const back: Buffer[] = [];
      for await (const piece of echo.stdout) {
        back.push(Buffer.from(piece as Uint8Array));
        if (Buffer.concat(back).length >= bytes.length) break;
      }
      echo.detach();
      await echo.exit.catch(() => undefined);
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

/** Every attack in turn. Several at once begin at different ones, each after it has sandboxes to work with. */
async function hostileUser(
  hostile: HostileClient,
  { report, isOver }: Omit<UserPlace, "client" | "random">,
  first: number,
): Promise<void> {
  const attacks = Object.entries(hostile.attacks);
  // So many turns of all of them together are every attack once.
  const leastTurns = 1 + Math.ceil(attacks.length / HOSTILE_AT_A_TIME);
  for (let at = 0; at < leastTurns || !isOver(); at++) {
    const turn = at === 0 ? 0 : (first + at) % attacks.length;
    const [name, { allowed, run }] = attacks[turn] ?? attacks[0]!;
    for (const answer of await run()) {
      count(report.answers, `${name}: ${answer}`);
      if (![...allowed, 429, "cut"].includes(answer)) count(report.unallowed, `${name}: ${answer}`);
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
  setMaxListeners(0, over.signal);
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
    longUser({ ...place, client: clients.long, url }),
    ...Array.from({ length: HOSTILE_AT_A_TIME }, (_, at) => hostileUser(hostile, place, at * 3)),
  ]);
  over.abort();
  hostile.close();
  for (const name of names)
    for (const { id } of await clients[name].listSandboxes()) await removeSandbox(url, { id, name });
  for (const client of Object.values(clients)) client.close();
  return report;
}

/** It may be removed already, because nobody used it. */
async function removeSandbox(
  url: string,
  { id, name }: { id: string; name: (typeof names)[number] },
): Promise<void> {
  const headers = { authorization: `Bearer ${tokens[name]}` };
  const { status } = await fetch(`${url}/v1/sandboxes/${id}`, { method: "DELETE", headers });
  require(status === 204 || status === 404, `a removal was answered with ${status}`);
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
  expect([...report.unallowed]).toEqual([]);
  for (const done of ["short sandboxes", "attached again"])
    expect(report.counts.get(done), done).toBeGreaterThan(0);
  // Not all of it was refused before it did anything.
  expect([...report.answers.keys()]).toContain("a flood of creates: 201");
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
