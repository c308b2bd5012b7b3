import type { Owner } from "../lib/owner.js";

export const LABELS = {
  session: "brig.session",
  version: "brig.version",
  ownerPid: "brig.owner-pid",
  ownerStart: "brig.owner-start",
  boot: "brig.boot",
  host: "brig.host",
  created: "brig.created",
  lease: "brig.lease",
  /** Directories made on the host for absent protected names, as a JSON array. */
  placeholders: "brig.placeholders",
} as const;

export interface SessionMark {
  sessionId: string;
  version: string;
  owner: Owner;
  createdAt: Date;
  /** 0 when the container is kept. */
  leaseSeconds: number;
}

/** The labels every container and volume of a session carries, for the sweep and for people. */
export function sessionLabels({
  sessionId,
  version,
  owner,
  createdAt,
  leaseSeconds,
}: SessionMark): Record<string, string> {
  return {
    [LABELS.session]: sessionId,
    [LABELS.version]: version,
    [LABELS.ownerPid]: String(owner.pid),
    [LABELS.ownerStart]: owner.startedAt ?? "",
    [LABELS.boot]: owner.bootId ?? "",
    [LABELS.host]: owner.host,
    [LABELS.created]: createdAt.toISOString(),
    [LABELS.lease]: String(leaseSeconds),
  };
}

/** Reads them back; null when they are not all there and well-formed, which is never a reason to remove anything. */
export function readSessionLabels(labels: Readonly<Record<string, string>>): SessionMark | null {
  const text = (name: string) => labels[name] ?? "";
  const pid = number(text(LABELS.ownerPid));
  const leaseSeconds = number(text(LABELS.lease));
  const createdAt = new Date(text(LABELS.created));
  if (pid === null || leaseSeconds === null || Number.isNaN(createdAt.getTime())) return null;
  if (text(LABELS.session) === "" || text(LABELS.host) === "") return null;
  const owner = {
    pid,
    startedAt: text(LABELS.ownerStart) || null,
    bootId: text(LABELS.boot) || null,
    host: text(LABELS.host),
  };
  return { sessionId: text(LABELS.session), version: text(LABELS.version), owner, createdAt, leaseSeconds };
}

function number(text: string): number | null {
  return /^[0-9]{1,10}$/.test(text) ? Number(text) : null;
}
