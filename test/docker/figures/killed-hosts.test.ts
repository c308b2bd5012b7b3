import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { readSessionLabels } from "../../../src/sandbox/labels.js";
import { promised } from "../../guarantees.js";
import { brig, program } from "../../support/cli.js";
import { testEngine } from "../../support/engine.js";
import { type Fate, type FaultyEngine, faultyEngine } from "../../support/faulty-engine.js";
import { failures, figuresSeed, isFull, printFigures, times } from "../../support/figures.js";
import { randomNumbers } from "../../support/random.js";
import { sandboxTest } from "../../support/sandbox.js";

const hostCount = isFull ? 100 : 24;
const AT_A_TIME = 4;
/** Longer than the start of a container takes on a busy machine. */
const LEASE_SECONDS = 10;
const holder = fileURLToPath(new URL("../../fixtures/killed-host.mjs", import.meta.url));

const KINDS = ["bind", "overlay", "none"] as const;

interface Host {
  program: "brig exec" | "library";
  workspaceKind: (typeof KINDS)[number];
  moment: Moment;
}

/**
 * When it is killed: after a part of the time that a host of its kind takes to be ready, some time after that, or as it makes a request to
 * the engine, which the engine then hears of ("passes") or not ("cut"): the one at a part of those that a host of its kind makes, or the
 * first of a name.
 */
type Moment =
  | { kind: "starting"; part: number }
  | { kind: "ready"; afterMs: number }
  | { kind: "request"; part: number; fate: Fate }
  | { kind: "named"; request: RegExp; fate: Fate };

/** What a host of one kind does until it is ready, when nobody kills it. */
interface Usual {
  requests: number;
  readyMs: number;
}

interface Killed {
  pid: number;
  /** How far it was: the last request it made. */
  lastRequest: string;
  wasReady: boolean;
  afterMs: number;
}

interface Place {
  /** The way to the engine. One for each worker, since brig gc looks only at what was made by the way that it goes itself. */
  faulty: FaultyEngine;
  workspace: string;
  brigHome: string;
  temporary: string;
}

describe(`${hostCount} hosts that are killed at a random moment (seed ${figuresSeed})`, () => {
  sandboxTest(
    promised("kept.lease", "leave nothing after a lease and brig gc"),
    async ({ directory }) => {
      const [brigHome, temporary] = [join(directory, "home"), join(directory, "tmp")];
      for (const path of [brigHome, temporary]) await mkdir(path);
      const newPlace = async (name: string, faulty: FaultyEngine): Promise<Place> => {
        const workspace = join(directory, name);
        await mkdir(workspace);
        return { faulty, workspace, brigHome, temporary };
      };
      await using ways = await severalWays();
      const usual = await usualHosts((name) => newPlace(name, ways.all[0] as FaultyEngine));
      const queue = hosts(hostCount, randomNumbers(figuresSeed)).entries();
      const killed: Killed[] = [];
      const workspaces: string[] = [];
      await Promise.all(
        ways.all.map(async (faulty) => {
          for (const [index, host] of queue) {
            const place = await newPlace(`repo-${index}`, faulty);
            workspaces.push(place.workspace);
            killed.push(await kill(host, place, usual(host)));
          }
          faulty.decide(() => "passes");
        }),
      );

      const pids = killed.map(({ pid }) => pid);
      const before = await ownedBy(pids);
      await expect.poll(async () => (await ownedBy(pids)).leased, { interval: 500 }).toEqual([]);
      for (const { endpoint } of ways.all) {
        const env = { BRIG_HOME: brigHome, DOCKER_HOST: endpoint };
        const collected = await brig(["gc"], { cwd: directory, env });
        expect(collected.exitCode, collected.stderr).toBe(0);
      }
      const { containers, volumes } = await ownedBy(pids);
      const found = await Promise.all([brigHome, temporary, ...workspaces].map(entriesBelow));
      // The directories of brig's own home stay, and the one where it keeps locks.
      const locks = join(temporary, `brig-${userInfo().uid}`);
      const stays = (path: string) => path.startsWith(brigHome) || path === locks;
      const files = found.flat().filter(({ path, isDirectory }) => !(isDirectory && stays(path)));
      const left = [...containers, ...volumes, ...files.map(({ path }) => path)];

      printFigures(`Hosts killed with SIGKILL (seed ${figuresSeed})`, [
        failures("containers, volumes and files left after a lease and brig gc", left.length, hostCount),
        `containers and volumes before: ${before.containers.length} and ${before.volumes.length}`,
        `killed when ready: ${killed.filter(({ wasReady }) => wasReady).length}`,
        times(
          "age",
          killed.map(({ afterMs }) => afterMs),
        ),
        ...tally(killed.map(({ lastRequest }) => `last request ${lastRequest}`)),
      ]);
      expect(left).toEqual([]);
      expect(killed).toHaveLength(hostCount);
      // Otherwise they were killed when there was nothing to leave.
      expect(before.containers.length).toBeGreaterThan(hostCount / 4);
    },
    40 * 60_000,
  );
});

function hosts(count: number, random: () => number): Host[] {
  const fate = (): Fate => (random() < 0.7 ? "passes" : "cut");
  const moment = (): Moment => {
    const chosen = random();
    if (chosen < 0.25) return { kind: "starting", part: random() };
    if (chosen < 0.45) return { kind: "ready", afterMs: random() * 500 };
    if (chosen < 0.65) return { kind: "request", part: random(), fate: fate() };
    if (chosen < 0.8) return { kind: "named", request: /^POST \/containers\/create$/, fate: "passes" };
    return { kind: "named", request: /^POST \/containers\/[^/]+\/start$/, fate: fate() };
  };
  return Array.from({ length: count }, (_, index) => ({
    program: index % 2 === 0 ? "brig exec" : "library",
    workspaceKind: KINDS[Math.floor(index / 2) % KINDS.length] ?? "bind",
    moment: moment(),
  }));
}

async function severalWays(): Promise<AsyncDisposable & { all: readonly FaultyEngine[] }> {
  const all = await Promise.all(Array.from({ length: AT_A_TIME }, faultyEngine));
  return {
    all,
    async [Symbol.asyncDispose]() {
      for (const one of all) await one[Symbol.asyncDispose]();
    },
  };
}

async function usualHosts(newPlace: (name: string) => Promise<Place>): Promise<(host: Host) => Usual> {
  const found = new Map<string, Usual>();
  for (const program of ["brig exec", "library"] as const)
    for (const workspaceKind of KINDS) {
      const host: Host = { program, workspaceKind, moment: { kind: "ready", afterMs: 0 } };
      const place = await newPlace(`usual-${found.size}`);
      const requestsBefore = place.faulty.requests.length;
      const startedAt = performance.now();
      const child = start(host, place);
      const ended = once(child, "exit");
      await ready(child);
      const readyMs = performance.now() - startedAt;
      const requests = place.faulty.requests.length - requestsBefore;
      child.kill("SIGTERM");
      await ended;
      found.set(`${program} ${workspaceKind}`, { requests, readyMs });
    }
  return ({ program, workspaceKind }) => found.get(`${program} ${workspaceKind}`) as Usual;
}

function start({ program: kind, workspaceKind }: Host, place: Place): ChildProcess {
  const { faulty, workspace, brigHome, temporary } = place;
  const forever = "setsid sleep 3001 >/dev/null 2>&1 & echo ready; sleep 3002";
  const args =
    kind === "library"
      ? [holder, workspace, workspaceKind, String(LEASE_SECONDS)]
      : [program, "exec", "--workspace", workspaceKind, "--", "sh", "-c", forever];
  const env = { ...process.env, BRIG_HOME: brigHome, DOCKER_HOST: faulty.endpoint, TMPDIR: temporary };
  return spawn(process.execPath, args, { cwd: workspace, env, stdio: ["ignore", "pipe", "pipe"] });
}

async function ready(child: ChildProcess): Promise<void> {
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    errors += chunk;
  });
  const ended = once(child, "exit").then(() => {
    throw new Error(`the host ended before it was ready: ${errors}`);
  });
  await Promise.race([once(child.stdout!, "data"), ended]);
  ended.catch(() => undefined);
}

async function kill(host: Host, place: Place, usual: Usual): Promise<Killed> {
  const { moment } = host;
  const { faulty } = place;
  const startedAt = performance.now();
  const child = start(host, place);
  const end = () => void child.kill("SIGKILL");
  const ended = once(child, "exit");
  const timers: NodeJS.Timeout[] = [];
  if (moment.kind === "starting") timers.push(setTimeout(end, moment.part * usual.readyMs));
  let wasReady = false;
  child.stdout?.once("data", () => {
    wasReady = true;
    // Whoever makes fewer requests than usual is killed now.
    timers.push(setTimeout(end, moment.kind === "ready" ? moment.afterMs : 0));
  });
  child.stderr?.resume();
  let seen = 0;
  faulty.decide((request) => {
    const fate = fateAt(moment, { request, part: seen++ / usual.requests });
    if (fate !== null) end();
    return fate ?? "passes";
  });
  const [code, signal] = await ended;
  for (const timer of timers) clearTimeout(timer);
  if (signal !== "SIGKILL") throw new Error(`a host ended before it was killed, with ${code}`);
  return {
    pid: child.pid as number,
    lastRequest: (faulty.requests.at(-1) ?? "none").replace(/[0-9a-f]{64}/, "ID"),
    wasReady,
    afterMs: performance.now() - startedAt,
  };
}

/** What becomes of a request at which the host is killed; null of one at which it is not. */
function fateAt(moment: Moment, { request, part }: { request: string; part: number }): Fate | null {
  if (moment.kind === "named") return moment.request.test(request) ? moment.fate : null;
  if (moment.kind === "request") return part >= moment.part ? moment.fate : null;
  return null;
}

/** What in the engine has the mark of one of these processes; `leased` is what runs though its lease should have ended by itself. */
async function ownedBy(pids: readonly number[]) {
  const engine = await testEngine();
  const isTheirs = ({ labels }: { labels: Record<string, string> }) =>
    pids.includes(readSessionLabels(labels)?.owner.pid ?? -1);
  const found = (await engine.listContainers(["brig.session"])).filter(isTheirs);
  return {
    containers: found.map(({ id }) => `container ${id}`),
    leased: found
      .filter(
        ({ state, labels }) =>
          state === "running" && readSessionLabels(labels)?.leaseSeconds === LEASE_SECONDS,
      )
      .map(({ id }) => id),
    volumes: (await engine.listVolumes(["brig.session"]))
      .filter(isTheirs)
      .map(({ name }) => `volume ${name}`),
  };
}

async function entriesBelow(directory: string): Promise<{ path: string; isDirectory: boolean }[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isDirectory: entry.isDirectory(),
  }));
}

function tally(words: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].toSorted((one, other) => other[1] - one[1]).map(([word, count]) => `${word}: ${count}`);
}
