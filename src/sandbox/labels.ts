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
  /** The placeholder directories created on the host, as a JSON array of paths. */
  placeholders: "brig.placeholders",
  /** The label of a container that is made only to read the files of its image, and is never started. */
  imageFiles: "brig.image-files",
} as const;

export interface SessionLabels {
  sessionId: string;
  version: string;
  owner: Owner;
  createdAt: Date;
  /** 0 when the container is kept. */
  leaseSeconds: number;
}

/** The labels of a session's container, for `brig gc` and for people. */
export function sessionLabels({
  sessionId,
  version,
  owner,
  createdAt,
  leaseSeconds,
}: SessionLabels): Record<string, string> {
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

/** Null unless all labels are well-formed. Malformed ones are never a reason to remove a container. */
export function readSessionLabels(labels: Readonly<Record<string, string>>): SessionLabels | null {
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
