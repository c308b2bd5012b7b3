import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { BrigError } from "../../errors.js";
import type { PreparedBranch } from "../branch/session-branch.js";
import { looksLikeGvisor, runtimeOf } from "../docker/diagnosis/gvisor.js";
import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import { LABELS } from "../labels.js";
import { planOverlay } from "../overlay/plan-overlay.js";
import { treeVolumes } from "../overlay/tree-volumes.js";
import type { Policy, SandboxLimits } from "../policy/policy.js";
import { type PlannedRepository, planRepository } from "../repository/plan-repository.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { planPrivateMounts } from "../volumes/host-mount.js";
import { directoriesBetween, isAtOrBelow, isBelow } from "./paths.js";
import type { PlannedLimits, PlannedMount, PlannedTmpfs, SandboxPlan } from "./plan.js";
import { ownerNotices, type ProtectionOptions, planProtection, type Root } from "./protected-paths.js";
import { checkRoots } from "./roots.js";
import { refuseUnknownRuntime } from "./unknown-runtime.js";
import {
  type CheckedDirectory,
  type HostDirectories,
  requireWorkspacePath,
  submountsBelow,
} from "./workspace.js";

export interface SandboxRequest extends Omit<SandboxSettings, "environment" | "overlay" | "branch"> {
  /** The tree of a copy-on-write workspace; undefined for any other workspace. */
  overlay?: { readonly id: string; readonly origin?: { readonly plan: SandboxPlan } | undefined } | undefined;
  /**
   * Given if commands may write to a copy of the repository. With `hasOwnTree`, `overlay` is the copy of
   * `.git` alone.
   */
  branch?: { readonly hasOwnTree: boolean } | undefined;
  /** Default: commands need nothing to commit, because they cannot. */
  preparedBranch?: PreparedBranch | undefined;
  hostUser: { uid: number; gid: number };
  sessionId: string;
  labels: Readonly<Record<string, string>>;
  engine: EngineInfo;
  /** E.g. `unix:///var/run/docker.sock`. */
  endpoint: string;
  host: HostDirectories;
  /** Whether another process may go on with it. Default: false. */
  lasts?: boolean;
}

/** A set-up whose network is a list needs one that is empty afterwards, if the sandbox's own is none. */
function planEgress({ policy: { policy }, setup }: SandboxRequest): SandboxPlan["egress"] {
  if (policy.network.kind === "allowlist") return { hosts: policy.network.hosts };
  return setup?.network.kind === "allowlist" ? { hosts: [] } : null;
}

const FALLBACK_HOME = "/brig-home";
/** The PATH that Docker gives to an image without one. */
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Checks the host's directories for a sandbox, and resolves the policy for this engine and caller. Changes
 * nothing. Errors: `workspace.invalid`, `policy.not-enforced` for what this engine cannot enforce,
 * `usage.invalid`.
 */
export async function planSandbox(request: SandboxRequest): Promise<SandboxPlan> {
  const { policy, name } = request.policy;
  refuseUnknownRuntime(request.runtime, { runtimes: request.engine.runtimes.map(({ name }) => name) });
  const hostRoots = await checkRoots(request);
  const directory = hostRoots.find((root) => root.kind === "workspace")?.directory ?? null;
  const roots = rootsInside(hostRoots, request);
  const workspace = roots.find((root) => root.kind === "workspace")?.directory.path ?? null;
  const copied = copiedDirectories(request, roots);
  const isElsewhere = request.workspacePath !== undefined;
  const protection = await planProtection(roots, isElsewhere ? [] : policy.workspace.protected, {
    ...request.host,
    // What the host has at the path at which commands see the workspace is none of theirs.
    ...(isElsewhere && { configDirectories: [] }),
    ...copied,
    unprotected: request.unprotected?.map((path) => resolve(workspace ?? "/", path)),
    like: request.overlay?.origin?.plan,
  });
  await refuseWritableSubmounts(protection.mounts, request);
  const repository = await outerRepository(request, { roots, workspace: isElsewhere ? null : workspace });
  const home = resolveHome(policy.home, roots);
  const memory = resolveLimits(policy, request);
  const user = resolveUser(policy.user, request);
  const containerEnvironment = {
    ...{ HOME: home, LANG: "C.UTF-8", PATH: DEFAULT_PATH },
    // The workspace is a mount of its own, at which git would stop to look for a repository.
    ...(repository.top !== null && { GIT_DISCOVERY_ACROSS_FILESYSTEM: "1" }),
    ...request.preparedBranch?.environment,
  };
  const paths = roots.map(({ directory }) => directory.path);
  const privateMounts = planPrivateMounts({ ...request, home }, paths);
  const tmpfs = resolveTmpfs(request, { home, roots, memory }).filter(
    ({ path }) => !privateMounts.some((mount) => mount.path === path),
  );
  const overlay = await planOverlay(request, { ...protection, directory: overlaid(copied, directory) });
  const overlayInside = overlay && { ...overlay, path: request.workspacePath ?? overlay.path };
  return {
    sessionId: request.sessionId,
    policyName: name,
    image: request.image,
    runtime: request.runtime ?? null,
    gpus: request.gpus,
    kernel: looksLikeGvisor(runtimeOf(request.engine, request.runtime ?? null)) ? "gvisor" : "shared",
    workspace,
    workingDirectory: request.workingDirectory ?? workspace ?? "/",
    home,
    rootfs: policy.rootfs,
    mounts: [...protection.mounts, ...repository.mounts, ...privateMounts],
    overlay: overlayInside,
    volumes: request.volumes ?? [],
    tmpfs,
    parents: [
      ...new Set([
        ...findTmpfsParents([...paths, ...repository.mounts.map(({ path }) => path)], tmpfs),
        ...ownedByUser(repository.top, user),
      ]),
    ],
    placeholders: protection.placeholders,
    emptyFiles: protection.emptyFiles,
    absentNames: protection.absentNames,
    covered: [],
    knownDirectories: protection.knownDirectories,
    notices: [
      ...ownerNotices(hostRoots, { ...request, user }),
      ...repository.notices,
      ...(request.preparedBranch?.notices ?? []),
    ],
    user,
    network: policy.network.kind === "full" ? "bridge" : "none",
    egress: planEgress(request),
    capabilities: policy.capabilities,
    noNewPrivileges: policy.noNewPrivileges,
    seccomp: policy.seccomp,
    limits: memory.limits,
    leaseSeconds: request.keep ? 0 : request.leaseSeconds,
    outlivesProcesses: request.outlivesProcesses ?? false,
    ...(request.lasts === true && request.engine.keepsContainers === true && { staysAtEnd: true }),
    runnerArguments: [],
    containerEnvironment,
    imageEnvironment: {},
    callerEnvironment: { ...request.env },
    overridden: { environment: [], labels: [] },
    labels: { ...request.labels, [LABELS.placeholders]: JSON.stringify(protection.placeholders) },
  };
}

/** The roots at the paths at which commands see them. Error: `usage.invalid` for a place where no workspace can be. */
function rootsInside(
  roots: readonly Root[],
  { workspacePath, overlay }: Pick<SandboxRequest, "workspacePath" | "overlay">,
): readonly Root[] {
  if (workspacePath === undefined) return roots;
  if (overlay === undefined)
    throw new TypeError("only a copy-on-write workspace can be at another path than the host's");
  requireWorkspacePath(workspacePath);
  return roots.map((root) =>
    root.kind === "workspace" ? { ...root, directory: { ...root.directory, path: workspacePath } } : root,
  );
}

/** Files and directories of the host that git needs besides the roots. */
async function outerRepository(
  request: SandboxRequest,
  { roots, workspace }: { roots: readonly Root[]; workspace: string | null },
): Promise<PlannedRepository> {
  if (workspace === null) return { mounts: [], top: null, notices: [] };
  return await planRepository({
    workspace,
    visible: roots.map(({ directory }) => directory.path),
    check: { endpoint: request.endpoint, dockerRootDir: request.engine.dockerRootDir, host: request.host },
    closesSubmounts: hasRecursiveReadOnly(request.engine),
    hostUid: request.hostUser.uid,
  });
}

/** The runtime makes directories above a mount for root, and git works in no directory of somebody else. */
function ownedByUser(directory: string | null, { uid }: SandboxPlan["user"]): string[] {
  return directory === null || uid === 0 ? [] : [directory];
}

type CopiedDirectories = Pick<ProtectionOptions, "overlayVolume" | "repository">;

/**
 * The directories of the host that the sandbox sees as copies: the workspace, its repository, both or none.
 */
function copiedDirectories({ overlay, branch }: SandboxRequest, roots: readonly Root[]): CopiedDirectories {
  const volume = overlay && treeVolumes(overlay.id).merged;
  const workspace = roots.find(({ kind }) => kind === "workspace");
  if (branch === undefined || workspace === undefined) return { overlayVolume: volume };
  if (workspace.access === "ro") return { overlayVolume: branch.hasOwnTree ? undefined : volume };
  const path = `${workspace.directory.path}/.git`;
  return branch.hasOwnTree
    ? { repository: { path, volume } }
    : { overlayVolume: volume, repository: { path, volume: undefined } };
}

/** The host's directory that is the lower layer of the overlay; null without an overlay. */
function overlaid(copied: CopiedDirectories, workspace: CheckedDirectory | null): CheckedDirectory | null {
  if (copied.overlayVolume !== undefined) return workspace;
  if (copied.repository?.volume === undefined) return null;
  const { path } = copied.repository;
  const { dev, ino } = lstatSync(path, { bigint: true });
  return { path, identity: { dev: String(dev), ino: String(ino) } };
}

function resolveUser(
  user: Policy["user"],
  { hostUser, engine }: SandboxRequest,
): { uid: number; gid: number } {
  // In a rootless engine's user namespace the engine's user is root, and no other id owns that user's files.
  if (user === "host") return isRootless(engine) ? { uid: 0, gid: 0 } : hostUser;
  if (user === "root") return { uid: 0, gid: 0 };
  const [uid, gid] = user.split(":").map(Number);
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

/** HOME must not be a part of the workspace, so it moves when the policy's home lies in a root. */
function resolveHome(home: string, roots: readonly Root[]): string {
  return roots.some(({ directory }) => isAtOrBelow(home, directory.path)) ? FALLBACK_HOME : home;
}

/** Leaves out a tmpfs at or below a root, which would hide the host's files. */
function resolveTmpfs(
  request: SandboxRequest,
  { home, roots, memory }: { home: string; roots: readonly Root[]; memory: MemoryPlan },
): PlannedTmpfs[] {
  const { policy } = request.policy;
  const user = resolveUser(policy.user, request);
  return policy.tmpfs
    .map((tmpfs) => (tmpfs.path === policy.home ? { ...tmpfs, path: home } : tmpfs))
    .filter(({ path }) => !roots.some(({ directory }) => isAtOrBelow(path, directory.path)))
    .map(({ path, sizeMb, maxInodes, exec, mode }) => ({
      path,
      sizeBytes: memory.inMemory(sizeMb),
      maxInodes: memory.inodes(maxInodes),
      exec,
      mode,
      ...user,
    }));
}

/** Before Docker 25, a read-only bind mount leaves the mounts below it writable. */
async function refuseWritableSubmounts(
  mounts: readonly PlannedMount[],
  request: SandboxRequest,
): Promise<void> {
  if (hasRecursiveReadOnly(request.engine)) return;
  for (const { path } of mounts.filter(({ access, source }) => access === "ro" && source === undefined)) {
    const [submount] = await submountsBelow(path, request.host);
    if (submount === undefined) continue;
    throw new BrigError(
      `${JSON.stringify(submount.path)} is a mount of its own below ${JSON.stringify(path)}, ` +
        `and ${request.engine.product} ${request.engine.version} would leave it writable`,
      {
        code: "workspace.invalid",
        hint: "unmount it, choose a directory without mounts below it, or use Docker 25 or newer on Linux 5.12 or newer",
      },
    );
  }
}

function hasRecursiveReadOnly({ product, version, kernel }: EngineInfo): boolean {
  return product === "docker" && atLeast(version, [25, 0]) && atLeast(kernel, [5, 12]);
}

function atLeast(version: string, [major, minor]: [number, number]): boolean {
  const match = /^([0-9]+)\.([0-9]+)/.exec(version);
  if (match === null) return false;
  return Number(match[1]) > major || (Number(match[1]) === major && Number(match[2]) >= minor);
}

/**
 * Finds directories to mount read-only between a tmpfs and a root that is mounted below it. These directories
 * exist only in the tmpfs, so commands could otherwise rename them and put a forged tree in their place. One
 * mount at the outermost suffices: a mount point cannot be renamed, and what the engine creates inside a
 * read-only mount cannot be changed.
 */
export function findTmpfsParents(roots: readonly string[], tmpfs: readonly { path: string }[]): string[] {
  const parents = roots.flatMap((root) => {
    const innermost = tmpfs
      .map(({ path }) => path)
      .filter((path) => isBelow(root, path))
      .toSorted((a, b) => b.length - a.length)[0];
    return innermost === undefined ? [] : directoriesBetween(innermost, root).slice(0, 1);
  });
  return [...new Set(parents)].filter((parent) => !roots.some((root) => isAtOrBelow(parent, root)));
}

const MIB = 1024 * 1024;
/** The largest page size on amd64 and arm64. Sizes are multiples of it, so that no kernel rounds them. */
export const PAGE_BYTES = 65_536;
/** The unit of `kernel.shmall`, except on arm64 kernels with larger pages. */
const USUAL_PAGE_BYTES = 4096;
/** The approximate kernel memory that an empty file in a tmpfs takes. */
const INODE_BYTES = 1024;
/** The share of the memory limit that empty files may take. */
const INODE_SHARE = 1 / 8;
/** The least number of inodes that a policy may ask for. */
export const LEAST_INODES = 16;
/** /dev/shm may contain one file per this many bytes of its size. */
const SHM_BYTES_PER_INODE = 16 * 1024;
/** Linux has 4096 for the whole machine, 1024 of which containers do not get. */
const TERMINALS = 64;

interface LimitsRequest {
  engine: EngineInfo;
  /** Limits in place of the policy's. */
  limits?: SandboxLimits | undefined;
}

/**
 * Reduces the limits to what the machine has. Memory-backed file systems shrink with the memory limit: even
 * full, they must leave half of it to processes, or no command could run. With more memory than the policy
 * has, they stay as it says.
 */
export function resolveLimits(
  { limits, tmpfs }: Policy,
  { engine, limits: chosen = {} }: LimitsRequest,
): MemoryPlan {
  const { memoryMb = limits.memoryMb, cpus = limits.cpus, pids = limits.pids } = chosen;
  const memoryBytes = inPages(atMost(memoryMb * MIB, engine.memoryBytes));
  const scale = Math.min(memoryBytes / MIB / limits.memoryMb, 1);
  // The value 0 means "unlimited" for the size of a tmpfs, and for its number of files.
  const inMemory = (sizeMb: number) => Math.max(PAGE_BYTES, inPages(sizeMb * MIB * scale));
  const shmBytes = inMemory(limits.shmMb);
  const shmInodes = Math.max(64, Math.floor(shmBytes / SHM_BYTES_PER_INODE));
  const inodes = tmpfs.reduce((sum, { maxInodes }) => sum + maxInodes, shmInodes);
  const share = Math.min(1, (memoryBytes * INODE_SHARE) / INODE_BYTES / inodes);
  const inodesOf = (wanted: number) => Math.max(LEAST_INODES, Math.floor(wanted * share));
  return {
    limits: {
      memoryBytes,
      nanoCpus: Math.round(atMost(cpus, engine.cpus) * 1e9),
      pids,
      openFiles: limits.openFiles,
      shmBytes,
      shmInodes: inodesOf(shmInodes),
      ipc: isRootless(engine) ? {} : ipcLimits(shmBytes),
      coreBytes: limits.coreMb * MIB,
      terminals: TERMINALS,
    },
    inMemory,
    inodes: inodesOf,
  };
}

interface MemoryPlan {
  limits: PlannedLimits;
  /** Converts a tmpfs size from the policy's MiB to bytes, scaled to the memory limit. */
  inMemory(sizeMb: number): number;
  /** Scales a tmpfs's file limit to the memory limit. */
  inodes(maxInodes: number): number;
}

/**
 * IPC objects outlive commands, so they are kept small: shared memory is freed with the last process that
 * uses it, queues and semaphores take some 30 MiB at most.
 */
function ipcLimits(shmBytes: number): Record<string, string> {
  return {
    "kernel.shmmax": String(shmBytes),
    "kernel.shmall": String(shmBytes / USUAL_PAGE_BYTES),
    "kernel.shmmni": "512",
    "kernel.shm_rmid_forced": "1",
    "kernel.sem": "250 32000 100 128",
    "kernel.msgmax": "8192",
    "kernel.msgmnb": "16384",
    "kernel.msgmni": "24",
    "fs.mqueue.queues_max": "16",
    "fs.mqueue.msg_max": "10",
    "fs.mqueue.msgsize_max": "8192",
  };
}

function inPages(bytes: number): number {
  return Math.floor(bytes / PAGE_BYTES) * PAGE_BYTES;
}

/** An engine that does not know the machine's size reports 0, which as a limit would mean "unlimited". */
function atMost(wanted: number, available: number): number {
  return available > 0 ? Math.min(wanted, available) : wanted;
}
