import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../src/sandbox/labels.js";
import { call, testEngine } from "./engine.js";
import { containersOfEndedRuns, RunContainers } from "./run-containers.js";
import { beginTestRun, isEndedRun, testLabel, testLabels } from "./test-run.js";

/** How long what is being removed may still be seen after the last test. */
const patienceMs = 20_000;

/**
 * Removes what test runs that were killed left behind; after the run, fails when this one left something. What anybody else has made,
 * a person's own sandboxes before all, is neither removed nor counted.
 */
export async function setup(): Promise<() => Promise<void>> {
  beginTestRun();
  const engine = await testEngine();
  await sweepEndedRuns(engine);
  const made = await RunContainers.watch(engine);
  return async () => {
    const deadline = Date.now() + patienceMs;
    let leaks = await findLeaks(engine, made);
    while (leaks.length > 0 && Date.now() < deadline) {
      await sleep(250);
      leaks = await findLeaks(engine, made);
    }
    made.end();
    if (leaks.length === 0) return;
    // vitest prints an error of a teardown, but does not count it.
    process.exitCode = 1;
    throw new Error(`the tests left behind:\n${leaks.join("\n")}`);
  };
}

async function sweepEndedRuns(engine: Engine): Promise<void> {
  for (const id of containersOfEndedRuns()) await swept(id, engine.removeContainer(id));
  for (const { id, labels } of await engine.listContainers([testLabel])) {
    if (isEndedRun(labels[testLabel])) await swept(id, engine.removeContainer(id));
  }
  for (const { name, labels } of await engine.listVolumes([testLabel])) {
    if (isEndedRun(labels[testLabel])) await swept(name, engine.removeVolume(name));
  }
}

/** If the engine cannot remove something that is left, this is printed, and the tests run all the same. */
async function swept(name: string, removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: unknown) => console.warn(`left by an earlier test run: ${name}: ${error}`));
}

async function findLeaks(engine: Engine, made: RunContainers): Promise<string[]> {
  const own = `${testLabel}=${testLabels()[testLabel]}`;
  const [sessions, containers, volumes, networks] = await Promise.all([
    engine.listContainers([LABELS.session]),
    engine.listContainers([own]),
    engine.listVolumes([own]),
    listNetworks(engine, own),
  ]);
  const labelled = new Set(containers.map(({ id }) => id));
  const ofProcesses = sessions.filter(({ id, labels }) => !labelled.has(id) && made.has(id, labels));
  return [
    ...[...containers, ...ofProcesses].map(
      ({ id, names, image, labels }) => `container ${names[0] ?? id} of ${image} ${JSON.stringify(labels)}`,
    ),
    ...volumes.map(({ name, labels }) => `volume ${name} ${JSON.stringify(labels)}`),
    ...networks.map(({ Name, Labels }) => `network ${Name} ${JSON.stringify(Labels)}`),
  ];
}

interface Network {
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
