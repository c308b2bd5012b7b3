import { hostname } from "node:os";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../src/docker/types.js";
import { readHostProcesses } from "../../src/lib/owner.js";
import { LABELS, readSessionLabels } from "../../src/sandbox/labels.js";
import { sweep } from "../../src/sandbox/sweep.js";
import { call, testEngine } from "./engine.js";
import { beginTestRun, isEndedRun, isOurs, testLabel, testLabels } from "./test-run.js";

/** How long what is being removed may still be seen after the last test. */
const patienceMs = 20_000;

/** Removes what runs that were killed left behind; after the run, fails when this one left something. */
export async function setup(): Promise<() => Promise<void>> {
  beginTestRun();
  const engine = await testEngine();
  await sweepEndedRuns(engine);
  const before = new Set((await everything(engine)).map(({ id }) => id));
  return async () => {
    const deadline = Date.now() + patienceMs;
    let leaks = await findLeaks(engine, before);
    while (leaks.length > 0 && Date.now() < deadline) {
      await sleep(250);
      leaks = await findLeaks(engine, before);
    }
    if (leaks.length === 0) return;
    // vitest prints an error of a teardown, but does not count it.
    process.exitCode = 1;
    throw new Error(`the tests left behind:\n${leaks.join("\n")}`);
  };
}

async function sweepEndedRuns(engine: Engine): Promise<void> {
  await sweep(engine, { now: new Date(), processes: await readHostProcesses(hostname()), includeKept: true });
  for (const { id, labels } of await engine.listContainers([testLabel])) {
    if (isEndedRun(labels[testLabel])) await engine.removeContainer(id);
  }
  for (const { name, labels } of await engine.listVolumes([testLabel])) {
    if (isEndedRun(labels[testLabel])) await engine.removeVolume(name);
  }
}

interface Found {
  id: string;
  labels: Record<string, string>;
  description: string;
}

/** Every container, volume and network of a session or a test. Toolbox volumes are neither: they are meant to stay. */
async function everything(engine: Engine): Promise<Found[]> {
  const lists = await Promise.all([LABELS.session, testLabel].map((label) => labelled(engine, label)));
  return lists.flat();
}

async function labelled(engine: Engine, label: string): Promise<Found[]> {
  const [containers, volumes, networks] = await Promise.all([
    engine.listContainers([label]),
    engine.listVolumes([label]),
    listNetworks(engine, label),
  ]);
  return [
    ...containers.map(({ id, names, image, labels }) => ({
      id,
      labels,
      description: `container ${names[0] ?? id} of ${image}`,
    })),
    ...volumes.map(({ name, labels }) => ({ id: name, labels, description: `volume ${name}` })),
    ...networks.map(({ Id, Name, Labels }) => ({ id: Id, labels: Labels, description: `network ${Name}` })),
  ];
}

interface Network {
  Id: string;
  Name: string;
  Labels: Record<string, string>;
}

async function listNetworks(engine: Engine, label: string): Promise<Network[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  const socket = new URL(engine.endpoint).pathname;
  return (await json(
    await call(socket, { method: "GET", path: `/networks?filters=${filters}` }),
  )) as Network[];
}

async function findLeaks(engine: Engine, before: Set<string>): Promise<string[]> {
  const found = (await everything(engine)).filter(({ id, labels }) => !before.has(id) && isOfThisRun(labels));
  return found.map(({ description, labels }) => `${description} ${JSON.stringify(labels)}`);
}

/** On a shared machine others may run brig at the same time. What belongs to nobody alive is taken for ours. */
function isOfThisRun(labels: Record<string, string>): boolean {
  const run = labels[testLabel];
  if (run !== undefined) return run === testLabels()[testLabel];
  const owner = readSessionLabels(labels)?.owner.pid;
  return owner === undefined || isOurs(owner) || !isRunning(owner);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
