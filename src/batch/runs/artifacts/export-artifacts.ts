import { constants } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { Readable } from "node:stream";
import { errnoOf } from "../../../lib/errno.js";
import type { ContainerChange, ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";
import type { TaskArtifact } from "../../tasks/task.js";
import type { ReadableContainer } from "../place/image-files.js";
import type { EmptyDirectory } from "../place/upload-directory.js";
import {
  ARTIFACTS_FOLDER,
  type ArtifactEntry,
  type ArtifactManifest,
  MANIFEST_FILE,
} from "./artifact-manifest.js";
import { type DeclaredArtifact, declaredArtifacts, isReserved, splitName } from "./artifact-paths.js";

/** The most that may leave a container. Anything beyond is refused, and named in the findings. */
interface ExportLimits {
  fileBytes: number;
  totalBytes: number;
  entries: number;
}

const defaultExportLimits: ExportLimits = {
  fileBytes: 1024 ** 3,
  totalBytes: 4 * 1024 ** 3,
  entries: 100_000,
};

/** More findings than this say nothing more. */
const MAX_FINDINGS = 100;
const MAX_DELETED = 100_000;

export interface ExportRequest {
  artifacts: readonly TaskArtifact[];
  /** Changes in the container, at least those of all artifacts. */
  changes: readonly ContainerChange[];
  /** Directories with nothing in them, which the engine need not be asked for. */
  empty: readonly EmptyDirectory[];
  /** Directory in the container to which relative sources are relative. */
  cwd: string;
  /** Folder on the host. Gets `artifacts/` and `artifacts.json`, which must not exist yet. */
  folder: string;
  limits?: ExportLimits | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Copies the declared artifacts of a stopped container to the host, through the engine: no program of the container
 * takes part. Links, devices and whatever is too large or has no safe name stay behind. Errors: the engine's, and
 * those of the host's file system.
 */
export async function exportArtifacts(
  container: ReadableContainer,
  request: ExportRequest,
): Promise<ArtifactManifest> {
  const { folder, limits = defaultExportLimits } = request;
  const root = join(folder, ARTIFACTS_FOLDER);
  await mkdir(root, { mode: 0o700 });
  const found = new ExportedTree(root, limits);
  const declared = declaredArtifacts(request.artifacts, request.cwd);
  // The artifacts that the task asks for come first: the limits are for all together, and an agent may leave anything elsewhere.
  for (const artifact of declared.toSorted(
    (one, other) => Number(other.isExpected) - Number(one.isExpected),
  )) {
    const empty = request.empty.find(({ path }) => path === artifact.source);
    if (empty !== undefined && !isReserved(empty.path)) await found.add(entryOf(empty), artifact);
    else await exportOne(container, artifact, { found, signal: request.signal });
  }
  const manifest: ArtifactManifest = {
    schemaVersion: 1,
    entries: found.entries,
    deleted: deletedBelow(declared, request.changes),
    findings: found.findings,
    notes: found.notes,
  };
  await writeFile(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 1)}\n`, {
    flag: "wx",
    mode: 0o600,
  });
  return manifest;
}

async function exportOne(
  { engine, containerId }: ReadableContainer,
  artifact: DeclaredArtifact,
  { found, signal }: { found: ExportedTree; signal?: AbortSignal | undefined },
): Promise<void> {
  const { source } = artifact;
  if (isReserved(source)) return found.refuse(source, "may not be an artifact");
  const archive = await engine.readArchive(containerId, source, signal && { signal });
  if (archive === null) return artifact.isExpected ? found.lack(source) : undefined;
  for await (const entry of readTar(archive)) {
    signal?.throwIfAborted();
    if (!(await found.add(entry, artifact))) return;
  }
}

/** Entry for an empty directory, as the engine would send it. */
function entryOf({ path, mode, uid, gid, modifiedMs }: EmptyDirectory): ReceivedEntry {
  const modifiedAt = new Date(modifiedMs);
  const name = `${posix.basename(path)}/`;
  const content = Readable.from([]);
  return { path: name, kind: "directory", target: null, sizeBytes: 0, mode, uid, gid, modifiedAt, content };
}

/** The artifacts accepted so far, as files of the host. */
class ExportedTree {
  readonly entries: ArtifactEntry[] = [];
  readonly findings: string[] = [];
  readonly notes: string[] = [];
  readonly #root: string;
  readonly #limits: ExportLimits;
  #seen = 0;
  /** Bytes of all files that the engine sent, skipped ones too. */
  #sentBytes = 0;

  constructor(root: string, limits: ExportLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  /** An artifact that the task asks for, and that there is not. */
  lack(path: string): void {
    const before = this.findings.length;
    this.refuse(path, "does not exist");
    this.notes.push(...this.findings.slice(before));
  }

  refuse(path: string, reason: string): void {
    if (this.findings.length < MAX_FINDINGS) this.findings.push(`${JSON.stringify(path)} ${reason}`);
    else if (this.findings.length === MAX_FINDINGS)
      this.findings.push("more was refused than is listed here");
  }

  /** False once nothing more of this artifact may come. */
  async add(entry: ReceivedEntry, artifact: DeclaredArtifact): Promise<boolean> {
    const path = posix.join(artifact.source, "..", entry.path);
    const { entries, totalBytes } = this.#limits;
    // An artifact that does not fit leaves room for smaller ones.
    if (this.#seen + 1 > entries) return this.#stop(artifact, `${entries} files`);
    if (this.#sentBytes + entry.sizeBytes > totalBytes) return this.#stop(artifact, `${totalBytes} bytes`);
    this.#seen++;
    this.#sentBytes += entry.sizeBytes;
    const [, ...names] = splitName(entry.path) ?? [];
    const isRoot = names.length === 0;
    if (splitName(entry.path) === null) this.refuse(path, "has a name that is not taken to the host");
    else if (!isRoot && artifact.excludes(names.join("/"))) return true;
    else if (isReserved(path)) this.refuse(path, "may not be an artifact");
    else if (entry.kind !== "file" && entry.kind !== "directory")
      this.refuse(
        path,
        `is a ${entry.kind === "special" ? "device, FIFO or socket" : entry.kind.replace("-", " ")}, which is not followed`,
      );
    else if (entry.sizeBytes > this.#limits.fileBytes)
      this.refuse(path, `has ${entry.sizeBytes} bytes: at most ${this.#limits.fileBytes} are taken`);
    else await this.#keep(entry, { path, file: posix.join(artifact.destination, ...names) });
    return true;
  }

  #stop({ source }: DeclaredArtifact, most: string): false {
    this.refuse(source, `is not taken whole: all artifacts together may have ${most}`);
    return false;
  }

  async #keep(entry: ReceivedEntry, { path, file }: { path: string; file: string }): Promise<void> {
    const target = join(this.#root, file);
    try {
      if (entry.kind === "directory") await mkdir(target, { recursive: true, mode: 0o700 });
      else await writeNew(target, entry.content);
    } catch (error) {
      // Names that differ only in case are one name on some hosts, and some names are too long there.
      if (!["EEXIST", "ENOTDIR", "ENAMETOOLONG", "EILSEQ", "EINVAL"].includes(errnoOf(error) ?? ""))
        throw error;
      return this.refuse(path, "has a name that is not taken to the host");
    }
    if ((entry.mode & 0o6000) !== 0) this.refuse(path, "had setuid or setgid, which was taken from it");
    const { kind, sizeBytes, mode, uid, gid, modifiedAt } = entry;
    this.entries.push({
      ...{ path, kind: kind === "directory" ? kind : "file", file, sizeBytes, mode: mode & 0o777, uid, gid },
      modifiedMs: modifiedAt.getTime(),
    });
  }
}

/** The folder contains only what was made here, so there is nothing to follow; O_EXCL makes sure of it. */
async function writeNew(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  await mkdir(join(path, ".."), { recursive: true, mode: 0o700 });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  try {
    for await (const chunk of content) await file.appendFile(chunk);
  } finally {
    await file.close();
  }
}

function deletedBelow(declared: readonly DeclaredArtifact[], changes: readonly ContainerChange[]): string[] {
  const roots = declared.filter(({ source }) => !isReserved(source));
  return changes
    .filter(({ kind, path }) => kind === "deleted" && roots.some((artifact) => takes(artifact, path)))
    .map(({ path }) => path)
    .filter((path) => !isReserved(path))
    .slice(0, MAX_DELETED);
}

/** Whether a path is the artifact, or below it and not excluded. */
function takes({ source, excludes }: DeclaredArtifact, path: string): boolean {
  if (path === source) return true;
  return path.startsWith(`${source}/`) && !excludes(path.slice(source.length + 1));
}
