import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { BrigError } from "../../errors.js";
import type { PreparedBranch } from "../branch/session-branch.js";
import { looksLikeGvisor, runtimeOf } from "../docker/diagnosis/gvisor.js";
import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import { LABELS } from "../labels.js";
import { planOverlay, requireOverlayPath } from "../overlay/plan-overlay.js";
import { treeVolumes } from "../overlay/tree-volumes.js";
import type { Policy } from "../policy/policy.js";
import { type PlannedRepository, planRepository } from "../repository/plan-repository.js";
import { ownerNotices } from "../settings/owner-notices.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { planPrivateMounts } from "../volumes/host-mount.js";
import { isAtOrBelow } from "./paths.js";
import type { PlannedMount, PlannedTmpfs, SandboxPlan } from "./plan.js";
import { type MemoryPlan, resolveLimits } from "./plan-memory.js";
import { type ProtectionOptions, planProtection, type Root } from "./protected-paths.js";
import { findTmpfsParents } from "./tmpfs-parents.js";
import { refuseUnknownRuntime } from "./unknown-runtime.js";
import { type CheckedDirectory, checkDirectory, type HostDirectories, submountsBelow } from "./workspace.js";

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
  const roots = await checkRoots(request);
  const directory = roots.find((root) => root.kind === "workspace")?.directory ?? null;
  const workspace = directory?.path ?? null;
  const copied = copiedDirectories(request, roots);
  const protection = await planProtection(roots, policy.workspace.protected, {
    ...request.host,
    ...copied,
    unprotected: request.unprotected?.map((path) => resolve(workspace ?? "/", path)),
    like: request.overlay?.origin?.plan,
  });
  await refuseWritableSubmounts(protection.mounts, request);
  const repository = await outerRepository(request, { roots, workspace });
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
  return {
    sessionId: request.sessionId,
    policyName: name,
    image: request.image,
    runtime: request.runtime ?? null,
    kernel: looksLikeGvisor(runtimeOf(request.engine, request.runtime ?? null)) ? "gvisor" : "shared",
    workspace,
    workingDirectory: request.workingDirectory ?? workspace ?? "/",
    home,
    rootfs: policy.rootfs,
    mounts: [...protection.mounts, ...repository.mounts, ...privateMounts],
    overlay,
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
      ...ownerNotices(roots, { ...request, user }),
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
    runnerArguments: [],
    containerEnvironment,
    imageEnvironment: {},
    callerEnvironment: { ...request.env },
    overridden: { environment: [], labels: [] },
    labels: { ...request.labels, [LABELS.placeholders]: JSON.stringify(protection.placeholders) },
  };
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

export type RootsRequest = Pick<
  SandboxRequest,
  "policy" | "workspace" | "overlay" | "addDirs" | "writableRoots" | "endpoint" | "host"
> & { engine: Pick<EngineInfo, "dockerRootDir"> };

/** Checks the directories that the sandbox will see. Errors: `workspace.invalid`, `usage.invalid`. */
export async function checkRoots(request: RootsRequest): Promise<Root[]> {
  const { policy, name } = request.policy;
  if (request.addDirs.length > 0 && !policy.overrides.writableRoots)
    throw new BrigError(`the policy ${name} takes no further writable directories`, {
      code: "usage.invalid",
      hint: "leave out --add-dir, or use --sandbox workspace-write",
    });
  const roots: Root[] = [];
  const add = async (kind: Root["kind"], access: Root["access"], path: string) => {
    const directory = await checkDirectory(path, {
      purpose: kind === "workspace" ? "workspace" : "writable directory",
      endpoint: request.endpoint,
      dockerRootDir: request.engine.dockerRootDir,
      host: request.host,
    });
    if (!roots.some((root) => root.directory.path === directory.path))
      roots.push({ kind, access, directory });
  };
  if (request.workspace !== null) await add("workspace", policy.workspace.access, request.workspace);
  const extra = policy.overrides.writableRoots ? [...request.addDirs, ...request.writableRoots] : [];
  for (const path of extra) await add("writable-root", "rw", path);
  const workspace = roots.find(({ kind }) => kind === "workspace");
  if (request.overlay && workspace) requireOverlayPath(workspace.directory.path);
  return roots;
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
