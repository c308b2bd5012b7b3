import type { PortableWorkspace, WorkspaceDiff } from "../../../sandbox/index.js";
import { pointListSchema, takenPointSchema, undoneSchema } from "../wire/point-schemas.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";
import {
  diffSchema,
  forkListSchema,
  type RemoteSnapshotRecord,
  snapshotSchema,
} from "../wire/workspace-schemas.js";
import type { RemoteCallOptions, RemoteDiffOptions, RemoteSandbox, RemoteSnapshot } from "./client-types.js";
import type { HttpCalls } from "./http-calls.js";

/** What a sandbox of the service that these calls go to can do with its workspace. `forkOf` makes a fork of its record. */
export function remoteWorkspace(
  calls: HttpCalls,
  id: string,
  forkOf: (record: RemoteSandboxRecord) => RemoteSandbox,
): Pick<RemoteSandbox, "fork" | "snapshot" | "diff" | keyof PortableWorkspace> {
  const fork = async ({ count, signal }: RemoteCallOptions & { count?: number } = {}) => {
    const { sandboxes } = await calls.json("forkSandbox", forkListSchema, { id, body: { count }, signal });
    const forks = sandboxes.map(forkOf);
    return count === undefined ? forks[0] : forks;
  };
  return {
    // Whether a count was given decides which of the two it is.
    fork: fork as RemoteSandbox["fork"],
    snapshot: async ({ name, signal } = {}) =>
      remoteSnapshot(calls, await calls.json("takeSnapshot", snapshotSchema, { id, body: { name }, signal })),
    diff: async (options = {}) => await diffOf(calls, id, options),
    restorePoint: async ({ signal } = {}) =>
      (await calls.json("takeRestorePoint", takenPointSchema, { id, signal })).point,
    restorePoints: async ({ signal } = {}) =>
      (await calls.json("listRestorePoints", pointListSchema, { id, signal })).points,
    restore: async (point, { signal } = {}) =>
      (await calls.json("restore", takenPointSchema, { id, body: { point }, signal })).point,
    undo: async ({ signal } = {}) => (await calls.json("undo", undoneSchema, { id, signal })).undone,
  };
}

export function remoteSnapshot(calls: HttpCalls, { id, name }: RemoteSnapshotRecord): RemoteSnapshot {
  return {
    ...{ id, name },
    remove: async ({ signal } = {}) => void (await calls.bytes("deleteSnapshot", { id, signal })),
  };
}

async function diffOf(
  calls: HttpCalls,
  id: string,
  { signal, ...query }: RemoteDiffOptions,
): Promise<WorkspaceDiff> {
  const { changes, ...counts } = await calls.json("diffSandbox", diffSchema, { id, query, signal });
  const withBytes = changes.map(({ pathBase64, ...change }) => ({
    ...change,
    pathBytes: Buffer.from(pathBase64, "base64"),
  }));
  return { changes: withBytes, ...counts };
}
