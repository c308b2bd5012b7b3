import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { isBrigError } from "../../src/errors.js";
import { readEnvironment } from "../../src/lib/env.js";
import { readHostProcesses } from "../../src/lib/owner.js";
import { beforeAbort } from "../../src/lib/time/before-abort.js";
import { pause } from "../../src/lib/time/pause.js";
import { TimeLimit } from "../../src/lib/time/time-limit.js";
import { LABELS } from "../../src/sandbox/labels.js";
import {
  reclaimPlaceholders,
  recordedNow,
  removeRecord,
  writeRecord,
} from "../../src/sandbox/sandbox-records.js";
import { sweep } from "../../src/sandbox/sweep.js";
import { brig } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { always, type Fate, type FaultyEngine, faultyEngine, once } from "../support/faulty-engine.js";
import { type BreakableSandbox, openBreakable } from "../support/open-sandbox.js";
import { sandboxTest } from "../support/sandbox.js";

/** Everything that an engine can do with a request instead of answering it. */
const FAULTS: readonly Fate[] = [
  "cut",
  "answer-lost",
  "truncated",
  "conflict",
  "refused",
  "hangs",
  "answer-held",
  "slow",
];

/** How long the caller of a start waits until it gives up. */
const PATIENCE_MS = 4_000;
/** Far beyond every limit of brig's: what takes longer would wait for ever. */
const FOREVER_MS = 150_000;
/** Shorter than the start of a container may take on a busy machine would be no lease. */
const LEASE_SECONDS = 10;

/** A place on the host for one sandbox, with an engine between that fails as a test says. */
interface Bench {
  faulty: FaultyEngine;
  workspace: string;
  brigHome: string;
}

const REQUESTS = {
  create: [
    "GET /info",
    "GET /images/*/json",
    "GET /volumes/*",
    "POST /containers/create",
    "GET /containers/*/json",
    "POST /containers/*/attach",
    "POST /containers/*/start",
  ],
  exec: ["POST /containers/*/exec", "POST /exec/*/start", "GET /containers/*/json"],
  close: ["POST /containers/*/wait", "DELETE /containers/*"],
  gc: ["GET /containers/json", "DELETE /containers/*", "GET /containers/*/json"],
} as const;

type Action = keyof typeof REQUESTS;

const cases = Object.entries(REQUESTS).flatMap(([action, requests]) =>
  requests.flatMap((request) => FAULTS.map((fault) => ({ action: action as Action, request, fault }))),
);

describe.concurrent("an engine that fails at one request", () => {
  sandboxTest.for(cases)("$action: $request $fault", async ({ action, request, fault }, { directory }) => {
    await using faulty = await faultyEngine();
    const bench: Bench = { faulty, workspace: join(directory, "repo"), brigHome: join(directory, "home") };
    await mkdir(bench.workspace);
    const pattern = patternOf(request);
    let isMade = false;
    const decide = once(pattern, fault);
    await actions[action](bench, (one) => {
      isMade ||= pattern.test(one);
      return decide(one);
    });
    expect(isMade, `${action} does not make the request`).toBe(true);
    faulty.decide(() => "passes");
    await expectNothingLeft(bench);
  });

  sandboxTest("has no other request to fail at", async ({ directory }) => {
    await using faulty = await faultyEngine();
    const bench: Bench = { faulty, workspace: join(directory, "repo"), brigHome: join(directory, "home") };
    await mkdir(bench.workspace);
    for (const act of Object.values(actions)) await act(bench, () => "passes");
    const known = [...Object.values(REQUESTS).flat().map(patternOf), /^GET \/(?:version|_ping)$/];
    expect(faulty.requests.filter((one) => !known.some((pattern) => pattern.test(one)))).toEqual([]);
  });
});

const actions: Record<Action, (bench: Bench, fate: (request: string) => Fate) => Promise<void>> = {
  async create(bench, fate) {
    bench.faulty.decide(fate);
    const opened = await ended(opening(bench, { patience: true }));
    expectProtected(bench, await containersOn(bench));
    if ("error" in opened) return;
    expect((await opened.value.exec(["echo", "x"])).stdout).toBe("x\n");
    await opened.value.close();
  },

  async exec(bench, fate) {
    const sandbox = await opening(bench);
    bench.faulty.decide(fate);
    sandbox.link.breakStream();
    // One fault is no reason to lose a call: the stream is opened again.
    expect(await ended(sandbox.exec(["echo", "x"]))).toMatchObject({ value: { stdout: "x\n" } });
    bench.faulty.decide(() => "passes");
    await sandbox.close();
  },

  async close(bench, fate) {
    const sandbox = await opening(bench);
    await sandbox.exec(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 &"]);
    bench.faulty.withholdEnd();
    bench.faulty.decide(fate);
    const closed = await ended(sandbox.close());
    expectProtected(bench, await containersOn(bench));
    if ("value" in closed) expect(await containersOn(bench)).toEqual([]);
    else await sandbox.close();
  },

  async gc(bench, fate) {
    await leaveContainer(bench);
    bench.faulty.decide(fate);
    await ended(collect(bench));
    // Whatever could still be started finds the name taken.
    if ((await containersOn(bench)).length > 0) expect(existsSync(join(bench.workspace, ".git"))).toBe(true);
  },
};

/** A result or an error of brig's, but no wait without end and no other failure. */
async function ended<T>(work: Promise<T>): Promise<{ value: T } | { error: unknown }> {
  using limit = new TimeLimit(FOREVER_MS);
  try {
    return { value: await beforeAbort(work, limit.signal) };
  } catch (error) {
    expect(limit.isOver, "it waits for ever").toBe(false);
    const isOwn = isBrigError(error) || (error instanceof DOMException && error.name === "TimeoutError");
    expect(isOwn, String(error)).toBe(true);
    return { error };
  }
}

async function opening(
  { faulty, workspace, brigHome }: Bench,
  { patience = false } = {},
): Promise<BreakableSandbox> {
  return await openBreakable({
    engine: faulty.engine,
    workspace,
    ...(patience && { leaseSeconds: LEASE_SECONDS }),
    environment: { ...readEnvironment(), brigHome },
    onWarning: () => undefined,
    ...(patience && { signal: AbortSignal.timeout(PATIENCE_MS) }),
  });
}

/** A program that is killed while its container starts leaves that, its placeholders and its record. */
async function leaveContainer({ faulty, workspace, brigHome }: Bench): Promise<void> {
  faulty.decide(always(/\/start$/, "hangs"));
  const program = brig(["exec", "--", "true"], {
    cwd: workspace,
    env: { DOCKER_HOST: faulty.endpoint, BRIG_HOME: brigHome },
  });
  await until(async () => faulty.requests.some((request) => request.endsWith("/start")));
  program.kill("SIGKILL");
  await program;
}

/** Larger than the kernel gives any process. */
const ENDED_PID = 2 ** 22 + 1;

/**
 * As brig gc does for the sandboxes in this home, after this process: a record of what the engine may still make stays
 * as long as that runs.
 */
async function collect({ brigHome, faulty: { engine } }: Bench): Promise<void> {
  for (const record of recordedNow(brigHome, (pid) => pid === process.pid)) {
    removeRecord(brigHome, record);
    writeRecord(brigHome, { ...record, owner: { ...record.owner, pid: ENDED_PID } });
  }
  const here = await readHostProcesses(hostname());
  // What other tests have is not left.
  const processes = { ...here, isAlive: (pid: number) => pid !== process.pid && here.isAlive(pid) };
  await sweep(engine, { now: new Date(), processes, records: recordedNow(brigHome) });
  await reclaimPlaceholders(engine, { brigHome, processes });
}

interface Found {
  id: string;
  isRunning: boolean;
}

async function containersOn({ workspace }: Bench): Promise<Found[]> {
  const containers = await (await testEngine()).listContainers([LABELS.placeholders]);
  return containers
    .filter(({ labels }) => JSON.stringify(labels).includes(`${workspace}/`))
    .map(({ id, state }) => ({ id, isRunning: state === "running" }));
}

/** As long as something may run, the name of a hook's directory is taken. */
function expectProtected({ workspace }: Bench, containers: readonly Found[]): void {
  if (containers.some(({ isRunning }) => isRunning)) expect(existsSync(join(workspace, ".git"))).toBe(true);
}

/** No stream is left that would keep a program alive. After the lease nothing runs, and after brig gc nothing is left. */
async function expectNothingLeft(bench: Bench): Promise<void> {
  await until(async () => bench.faulty.openStreams === 0);
  await until(async () => (await containersOn(bench)).every(({ isRunning }) => !isRunning));
  await collect(bench);
  expect(await containersOn(bench)).toEqual([]);
  expect(existsSync(join(bench.workspace, ".git"))).toBe(false);
  expect(recordedNow(bench.brigHome)).toEqual([]);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  using limit = new TimeLimit(FOREVER_MS);
  while (!(await isSo())) await pause(200, limit.signal);
}

function patternOf(request: string): RegExp {
  return new RegExp(`^${request.replaceAll("*", "[^/]+").replace("images/[^/]+", "images/.+")}$`);
}
