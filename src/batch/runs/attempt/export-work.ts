import { isBrigError } from "../../../errors.js";
import type { ContainerChange, StoppedSandboxFiles } from "../../../sandbox/index.js";
import type { TaskStep } from "../../tasks/task.js";
import type { ArtifactManifest } from "../artifacts/artifact-manifest.js";
import { artifactSources } from "../artifacts/artifact-paths.js";
import { exportArtifacts } from "../artifacts/export-artifacts.js";
import { changesBelow } from "../changes/changes-below.js";
import type { Verification } from "../grading/verification.js";
import type { EmptyDirectory } from "../place/empty-directories.js";

export type ExportedWork =
  | { kind: "exported"; changes: ContainerChange[]; manifest: ArtifactManifest }
  | { kind: "not-copied"; verification: Verification };

interface ExportPlace {
  step: TaskStep;
  cwd: string;
  imageId: string;
  empty: readonly EmptyDirectory[];
  folder: string;
  signal: AbortSignal | undefined;
}

/**
 * Asks what the agent has changed, and takes the artifacts to the host. An agent can make trees whose paths are longer than any
 * engine can read, or more files than can be looked at: that gives no reward, and not another try. Errors: the engine's other ones, and those of the host's files.
 */
export async function exportWork(stopped: StoppedSandboxFiles, place: ExportPlace): Promise<ExportedWork> {
  const { step, cwd, empty, folder, signal } = place;
  try {
    const changes = await changesOf(stopped, place);
    const { artifacts } = step;
    const manifest = await exportArtifacts(stopped, { artifacts, changes, empty, cwd, folder, signal });
    return { kind: "exported", changes, manifest };
  } catch (error) {
    const message = isBrigError(error, "engine.failed") ? tooMuch[error.errno ?? ""] : undefined;
    if (message === undefined) throw error;
    const none = { rewards: null, exitCode: null, tests: null, time: null };
    const said = { findings: [], notes: [], confirmation: null };
    const { mode } = step.verifier;
    return { kind: "not-copied", verification: { ...none, ...said, mode, verifier: "no-reward", message } };
  }
}

const tooMuch: Readonly<Record<string, string>> = {
  ENAMETOOLONG: "what the agent left has paths that are too long to be read",
  EFBIG: "the agent has changed too many files to look at",
};

/** Tests in the same container would see any change; others only see artifacts. */
async function changesOf(
  stopped: StoppedSandboxFiles,
  { step, cwd, imageId, empty, signal }: ExportPlace,
): Promise<ContainerChange[]> {
  const { engine, containerId } = stopped;
  if (step.verifier.mode === "shared")
    return await engine.containerChanges(containerId, signal && { signal });
  const directories = [cwd, ...artifactSources(step.artifacts, cwd)];
  return await changesBelow(stopped, { containerId, imageId, directories, empty, signal });
}
