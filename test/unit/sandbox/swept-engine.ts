import { BrigError } from "../../../src/errors.js";
import type { HostProcesses } from "../../../src/lib/owner.js";
import type { ContainerSummary, VolumeSummary } from "../../../src/sandbox/docker/engine-types.js";
import { LABELS, sessionLabels } from "../../../src/sandbox/labels.js";
import { type SweepOptions, sweep } from "../../../src/sandbox/sweep.js";

export const now = new Date("2026-11-20T12:00:00Z");
const processes: HostProcesses = {
  host: "vm-1",
  bootId: "boot-1",
  isAlive: (pid) => pid === 100,
  startOf: async (pid) => (pid === 100 ? "5000" : null),
};

export interface Given {
  pid?: number;
  startedAt?: string;
  bootId?: string;
  host?: string;
  leaseSeconds?: number;
  ageSeconds?: number;
  state?: string;
  labels?: Record<string, string>;
}

/** A running container of a living owner, unless `given` says otherwise. */
export function container(id: string, given: Given = {}): ContainerSummary {
  const {
    pid = 100,
    startedAt = "5000",
    bootId = "boot-1",
    host = "vm-1",
    leaseSeconds = 60,
    ageSeconds = 3600,
  } = given;
  const createdAt = new Date(now.getTime() - ageSeconds * 1000);
  const owner = { pid, startedAt, bootId, host };
  const labels = {
    ...sessionLabels({ sessionId: `s-${id}`, version: "0.1.0", owner, createdAt, leaseSeconds }),
    ...given.labels,
  };
  return { id, names: [], image: "i", state: given.state ?? "running", labels, createdAt };
}

export function volume(name: string, hash: string, label = "brig.toolbox"): VolumeSummary {
  return { name, labels: { [label]: hash }, mountpoint: "", createdAt: now };
}

export class FakeEngine {
  readonly removed: string[] = [];
  lists = 0;

  readonly #containers: ContainerSummary[];
  readonly #volumes: VolumeSummary[];
  readonly #refused: string[];

  constructor(containers: ContainerSummary[], volumes: VolumeSummary[] = [], refused: string[] = []) {
    this.#containers = containers;
    this.#volumes = volumes;
    this.#refused = refused;
  }

  async listContainers(labels: string[]): Promise<ContainerSummary[]> {
    this.lists++;
    return this.#containers.filter((one) => labels.every((label) => label in one.labels));
  }

  async removeContainer(id: string): Promise<void> {
    this.#refuse(id);
    this.removed.push(id);
  }

  async listVolumes(labels: string[]): Promise<VolumeSummary[]> {
    this.lists++;
    return this.#volumes.filter((one) => labels.every((label) => label in one.labels));
  }

  async removeVolume(name: string): Promise<void> {
    this.#refuse(name);
    this.removed.push(name);
  }

  #refuse(name: string): void {
    if (this.#refused.includes(name)) throw new BrigError(`${name} is in use`, { code: "engine.failed" });
  }
}

export async function swept(engine: FakeEngine, options: Partial<SweepOptions> = {}) {
  const containers = await engine.listContainers([LABELS.session]);
  engine.lists--;
  const records = containers.map(({ id, labels }) => ({
    sessionId: labels[LABELS.session] ?? "",
    containerId: id,
  }));
  return await sweep(engine, { now, processes, records, ...options });
}
