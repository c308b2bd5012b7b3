import type { z } from "zod";
import type { WorkspaceChange } from "../../../sandbox/index.js";
import type { MemoryShare } from "../http/memory-budget.js";
import type { Answer, Calls } from "../http/response.js";
import type { SandboxSet } from "../sandboxes/sandbox-set.js";
import type { InUse } from "../sandboxes/served-sandbox.js";
import type { RemoteDiffAnswer, readDiffSchema } from "../wire/workspace-schemas.js";
import type { SnapshotSet } from "./snapshot-set.js";

type WorkspaceCallName = "forkSandbox" | "diffSandbox" | "takeSnapshot" | "listSnapshots" | "deleteSnapshot";

/** How requests are answered that concern workspaces, and what is stored of them. */
export function workspaceCalls(
  sandboxes: SandboxSet,
  snapshots: SnapshotSet,
): Pick<Calls, WorkspaceCallName> {
  return {
    forkSandbox: async ({ client, id, body: { count }, signal }) =>
      json({ sandboxes: await sandboxes.fork(client, { id, count, signal }) }),
    diffSandbox: async ({ client, id, query, signal, memory }) =>
      json(
        await sandboxes
          .get(client, id)
          .useWorkspace(signal, async (inUse) => await readDiff(query, inUse, memory)),
      ),
    takeSnapshot: async ({ client, id, body, signal }) =>
      json(
        await sandboxes.get(client, id).useWorkspace(signal, async ({ sandbox, cwd, signal }) => {
          const stored = await sandbox.snapshot({ signal });
          const described = { id: stored.id, name: body.name ?? stored.id };
          await snapshots.add({ ...described, client, workingDirectory: cwd });
          return described;
        }),
      ),
    listSnapshots: async ({ client }) =>
      json({ snapshots: (await snapshots.of(client)).map(({ id, name }) => ({ id, name })) }),
    deleteSnapshot: async ({ client, id }) => {
      await snapshots.remove(client, id);
      return { kind: "nothing" };
    },
  };
}

/** The JSON around a change, and its two versions. */
const CHANGE_BYTES = 512;
/** A path as text and as base64, and a patch as it is and in the answer. */
const COPIES = 3;

/** Errors: those of `sandbox.diff`; a refusal with 429 if there is no memory for the answer. */
async function readDiff(
  { patches, maxFileBytes, maxPatchBytes }: z.output<typeof readDiffSchema>,
  { sandbox, signal }: InUse,
  memory: MemoryShare,
): Promise<RemoteDiffAnswer> {
  const changes: RemoteDiffAnswer["changes"] = [];
  const { count, tooLarge, notEntered } = await sandbox.diff({
    ...{ maxFileBytes, maxPatchBytes, signal },
    patches: patches !== "false",
    onChange(change) {
      memory.take(CHANGE_BYTES + COPIES * (change.pathBytes.length + (change.patch?.length ?? 0)));
      changes.push(wireChange(change));
    },
  });
  return { changes, count, tooLarge, notEntered };
}

function wireChange({ pathBytes, ...change }: WorkspaceChange): RemoteDiffAnswer["changes"][number] {
  return { ...change, pathBase64: Buffer.from(pathBytes).toString("base64") };
}

function json(value: unknown): Answer {
  return { kind: "json", value };
}
