import {
  nullable,
  nullish,
  number,
  object,
  oneOf,
  read,
  type Shape,
  ShapeError,
  string,
  stringLike,
} from "../../lib/json/json-shape.js";
import { type Owner, ownerShape } from "../../lib/owner.js";
import { decodeUtf8 } from "../../lib/utf8.js";
import type { HostBase } from "../changes/workspace-change.js";
import { FILE_TYPES } from "../portable-sandbox.js";
import type { BaseState, FileState, PresentState, TreeChange } from "../tree/tree-changes.js";

/** One path that differs between the host's workspace and the sandbox's. */
export interface ManifestEntry {
  change: TreeChange;
  /** The name of the content in the snapshot; null for what is not a regular file. */
  sha256: string | null;
  base: HostBase;
  /**
   * The name of the content that the host's file had, or of its target if it was a symbolic link. Null or absent
   * if it is not in the snapshot.
   */
  baseSha256?: string | null | undefined;
}

/** The first line of a manifest. */
export interface ManifestHead {
  version: 1;
  id: string;
  /** The workspace's directory on the host. */
  workspace: string;
  /** The time at which the snapshot was made, as an ISO 8601 time in UTC. */
  createdAt: string;
  /** The process that adds restore points to it. Absent if no process does. */
  owner?: Owner | null | undefined;
}

/** Reads bytes that `bytesJson` has written. */
export const pathBytes: Shape<Buffer> = (value, path) =>
  typeof value === "string"
    ? Buffer.from(value)
    : Buffer.from(object({ base64: string })(value, path).base64, "base64");
const integer: Shape<bigint> = (value, path) => BigInt(stringLike(/^-?[0-9]{1,20}$/)(value, path));

const fileState = {
  type: oneOf(...FILE_TYPES),
  mode: number,
  sizeBytes: number,
  modifiedNs: integer,
  changedNs: integer,
  ino: integer,
};
const presentState: Shape<PresentState> = object({
  ...fileState,
  uid: number,
  gid: number,
  links: number,
  rdev: integer,
  linkTarget: nullable(pathBytes),
});
const baseState: Shape<BaseState> = object({ ...fileState, dev: integer });

/** A version of brig that does not know contents with holes refuses their names. */
const sha256 = stringLike(/^(sparse-)?[0-9a-f]{64}$/);

export const manifestBase: Shape<HostBase> = object({
  state: (value: unknown, path: string) => (value === "unknown" ? value : nullable(baseState)(value, path)),
  unchangedNs: integer,
});

const lineShape = object({
  path: pathBytes,
  change: oneOf("added", "modified", "deleted", "same"),
  now: nullable(presentState),
  before: nullable(baseState),
  sha256: nullable(sha256),
  base: manifestBase,
  baseSha256: nullish(sha256),
} satisfies Record<string, Shape<unknown>>);

const version: Shape<1> = (value, path) => {
  if (value === 1) return 1;
  throw new ShapeError(path, "1, which is all that this version of brig can read");
};
const headShape: Shape<ManifestHead> = object({
  version,
  id: string,
  workspace: stringLike(/^\//),
  createdAt: string,
  owner: nullish(ownerShape),
});

/** Encodes the first line, without its line break. */
export function headLine(head: ManifestHead): string {
  return JSON.stringify(head);
}

/** Encodes the line of a path, without its line break. */
export function entryLine({
  change: { path, change, now, before },
  sha256,
  base,
  baseSha256,
}: ManifestEntry): string {
  return JSON.stringify({
    path: bytesJson(path),
    change,
    now: now === null ? null : presentJson(now),
    before: before === null ? null : baseJson(before),
    sha256,
    base: manifestBaseJson(base),
    ...(baseSha256 && { baseSha256 }),
  });
}

export function manifestBaseJson({ state, unchangedNs }: HostBase): object {
  return {
    state: state === null || state === "unknown" ? state : baseJson(state),
    unchangedNs: String(unchangedNs),
  };
}

function presentJson({ uid, gid, links, rdev, linkTarget, ...state }: PresentState): object {
  const target = linkTarget === null ? null : bytesJson(linkTarget);
  return { ...fileJson(state), uid, gid, links, rdev: String(rdev), linkTarget: target };
}

function baseJson({ dev, ...state }: BaseState): object {
  return { ...fileJson(state), dev: String(dev) };
}

function fileJson({ type, mode, sizeBytes, modifiedNs, changedNs, ino }: FileState): object {
  const [modified, changed] = [String(modifiedNs), String(changedNs)];
  return { type, mode, sizeBytes, modifiedNs: modified, changedNs: changed, ino: String(ino) };
}

/** Bytes that are UTF-8 are written as text, so that people can read a manifest. */
export function bytesJson(bytes: Buffer): string | { base64: string } {
  const decoded = decodeUtf8(bytes);
  return decoded.kind === "text" ? decoded.text : { base64: bytes.toString("base64") };
}

/** Error: `ShapeError`. */
export function readHead(value: unknown): ManifestHead {
  return read(headShape, value);
}

/** Error: `ShapeError`. */
export function readEntry(value: unknown): ManifestEntry {
  const { path, change, now, before, ...stored } = read(lineShape, value);
  return { change: treeChange({ path, change, now, before }), ...stored };
}

function treeChange({
  path,
  change,
  now,
  before,
}: {
  path: Buffer;
  change: TreeChange["change"];
  now: PresentState | null;
  before: BaseState | null;
}): TreeChange {
  if (change === "added" && now && !before) return { path, change, now, before };
  if (change === "deleted" && !now && before) return { path, change, now, before };
  if ((change === "modified" || change === "same") && now && before) return { path, change, now, before };
  throw new ShapeError("change", "one that fits the states before and after it");
}
