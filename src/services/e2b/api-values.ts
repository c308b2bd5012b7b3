import type { Sandbox } from "../../sandbox/index.js";
import { planOf } from "../../sandbox/index.js";
import type { Usage } from "../serve/sandboxes/usage.js";
import type { SnapshotRecord } from "../serve/workspaces/snapshot-set.js";
import type { E2bSandbox } from "./e2b-sandboxes.js";
import { ENVD_VERSION } from "./envd/answer-envd.js";

const MIB = 1024 * 1024;
const NANO = 1_000_000_000;
/** What a workspace may have that is forked or stored. */
const DISK_MB = 10 * 1024;

/** What a client gets of a sandbox that it uses from now on. */
export function startedValue({ served, templateId, accessToken, trafficToken }: E2bSandbox): object {
  return {
    sandboxID: served.id,
    templateID: templateId,
    clientID: "brig",
    envdVersion: ENVD_VERSION,
    envdAccessToken: accessToken,
    ...(trafficToken !== null && { trafficAccessToken: trafficToken }),
    domain: null,
  };
}

export function stateOf({ isPaused }: Pick<E2bSandbox["served"], "isPaused">): "running" | "paused" {
  return isPaused ? "paused" : "running";
}

export function listedValue({ served, templateId }: E2bSandbox): object {
  const { createdAt, expiresAt, labels } = served.record;
  const { nanoCpus, memoryBytes } = planOf(served.sandbox).limits;
  return {
    sandboxID: served.id,
    templateID: templateId,
    clientID: "brig",
    envdVersion: ENVD_VERSION,
    startedAt: createdAt,
    endAt: expiresAt,
    state: stateOf(served),
    cpuCount: cpuCount(nanoCpus),
    memoryMB: Math.round(memoryBytes / MIB),
    diskSizeMB: DISK_MB,
    metadata: labels,
    volumeMounts: [],
  };
}

export function detailValue(sandbox: E2bSandbox): object {
  const { allowInternetAccess, ...network } = sandbox.network;
  return {
    ...listedValue(sandbox),
    envdAccessToken: sandbox.accessToken,
    domain: null,
    allowInternetAccess,
    network,
    lifecycle: {
      onTimeout: sandbox.served.pausesAtExpiry ? "pause" : "kill",
      autoResume: sandbox.resumesItself,
    },
  };
}

/** Of the moment. The disk is the engine's, of which a sandbox has no share that could be told. */
export function metricValue(sandbox: Sandbox, { cpuPercent, memoryBytes, memoryLimitBytes }: Usage): object {
  const now = new Date();
  return {
    timestamp: now.toISOString(),
    timestampUnix: Math.floor(now.getTime() / 1000),
    cpuCount: cpuCount(planOf(sandbox).limits.nanoCpus),
    cpuUsedPct: cpuPercent ?? 0,
    memUsed: memoryBytes ?? 0,
    memTotal: memoryLimitBytes,
    memCache: 0,
    diskUsed: 0,
    diskTotal: 0,
  };
}

export function snapshotValue({ id, name }: SnapshotRecord): object {
  return { snapshotID: id, names: name === id ? [] : [name] };
}

function cpuCount(nanoCpus: number): number {
  return Math.max(1, Math.round(nanoCpus / NANO));
}
