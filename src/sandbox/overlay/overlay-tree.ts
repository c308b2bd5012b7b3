import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { BrigError, isBrigError } from "../../errors.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { SandboxContainer } from "../container.js";
import type { Engine } from "../docker/engine-types.js";
import { sandboxFiles } from "../files/files.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import { isBelow } from "../plan/paths.js";
import type { Identity, OverlayLayers, PlannedMount, SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/command.js";
import type { DirectoryReport, KernelReport } from "../proof/kernel-report.js";
import type { Warn } from "../warnings.js";
import { createTreeVolumes, removeTreeVolumes, treeVolumes } from "./tree-volumes.js";
import {
  BASE_PATH,
  FROM_PATH,
  MERGED_PATH,
  type TreeContainer,
  UPPER_PATH,
  type WorkspaceTree,
} from "./workspace-tree.js";

interface TreeOptions extends TreeStart {
  plan: OverlaidPlan;
  /** The top directory of the tree as another process has proved it, which is gone. Default: it is a new tree. */
  earlier?: DirectoryReport | undefined;
  /** The labels of the volumes and containers. */
  labels: Readonly<Record<string, string>>;
  /** Only for a fork: the tree that it is made of, and the function that fills it. Nobody else uses the new one meanwhile. */
  origin?:
    | { tree: Pick<WorkspaceTree, "id" | "identity">; fill(keeper: CommandContext): Promise<void> }
    | undefined;
}

/**
 * The volumes of a copy-on-write workspace, and the containers that brig itself works on them with. Several
 * sandboxes may have it mounted at the same time.
 */
export class OverlayTree implements WorkspaceTree {
  readonly id: string;
  readonly workspace: string;
  /** Whether its first keeper could not be started, or could not make the fork. */
  isBroken = false;
  /** Whether the engine may have a container that nobody here knows of, so that the record of the tree has to stay. */
  mayHaveLeft = false;
  readonly #options: TreeOptions;
  readonly #leftOut = new Set<string>();
  readonly #protectedMounts = new Map<string, PlannedMount>();
  readonly #appliers = new Set<TreeContainer>();
  /** Appliers that are being started. None of these rejects. */
  readonly #starting = new Set<Promise<unknown>>();
  readonly #filled: Promise<void>;
  #keeper: Promise<OpenedTreeContainer>;
  #top: DirectoryReport | undefined;
  #isClosed = false;

  private constructor(options: TreeOptions) {
    const { overlay } = options.plan;
    this.#options = options;
    this.id = overlay.id;
    this.workspace = overlay.lower;
    const isFirst = options.earlier === undefined;
    this.#keeper = this.#openKeeper({ isFirst }).then((keeper) => this.#proveTree(keeper));
    this.#filled = this.#keeper.then(async ({ context }) => await options.origin?.fill(context));
    // The failure is reported to whoever calls `ready`.
    this.#filled.catch(() => {
      this.isBroken = true;
    });
  }

  /**
   * Creates the volumes. The keeper is still being started then: `ready` says when the tree can be used.
   * Errors: the engine's, after which the caller removes the volumes.
   */
  static async create(options: TreeOptions): Promise<OverlayTree> {
    const { engine, plan, labels, earlier } = options;
    if (earlier === undefined) await createTreeVolumes(engine, plan.overlay, labels);
    return new OverlayTree(options);
  }

  /** Resolves when the tree has the workspace's owner and mode, its layers were checked, and a fork is made. */
  async ready(): Promise<void> {
    await this.#filled;
  }

  /** Its top directory, by which another process knows it again. */
  get top(): DirectoryReport {
    return this.#proved();
  }

  get startedAt(): bigint {
    return this.#proved().changedNs;
  }

  get identity(): Identity {
    const { dev, ino } = this.#proved();
    return { dev, ino };
  }

  get leftOut(): readonly string[] {
    return [...this.#leftOut];
  }

  /** Notes which paths of the tree are not to be changed, most of them because something else is mounted there. */
  use({ mounts, absentNames, emptyFiles }: Pick<SandboxPlan, "mounts" | "absentNames" | "emptyFiles">): void {
    const below = `${this.workspace}/`;
    const paths = [...mounts.map(({ path }) => path), ...absentNames, ...emptyFiles];
    for (const path of paths) if (path.startsWith(below)) this.#leftOut.add(path.slice(below.length));
    for (const mount of mounts) if (mount.kind === "protected") this.#protectedMounts.set(mount.path, mount);
  }

  /** Checks that a sandbox sees this tree, not another one with the same layers. Error: `policy.not-enforced`. */
  requireSame(plan: SandboxPlan, report: KernelReport): void {
    const inside = report.directories.get(plan.overlay?.path ?? "");
    const { dev, ino } = this.#proved();
    if (inside?.dev === dev && inside.ino === ino) return;
    throw notAsPlanned("the sandbox and the keeper of its workspace do not see the same tree");
  }

  async keeper(): Promise<CommandContext> {
    const opening = this.#keeper;
    const keeper = await opening;
    try {
      await keeper.link.ping();
      return keeper.context;
    } catch (error) {
      if (this.#isClosed || !isBrigError(error, "sandbox.gone")) throw error;
    }
    // Another caller may have found this too, and may already be starting another keeper.
    if (this.#keeper === opening) {
      this.#keeper = this.#replaceKeeper(keeper);
      this.#keeper.catch(() => {
        this.#keeper = opening;
      });
    }
    return (await this.#keeper).context;
  }

  async openApplier(options: { signal?: AbortSignal | undefined } = {}): Promise<TreeContainer> {
    if (this.#isClosed)
      throw new BrigError("the tree of the workspace was closed", { code: "sandbox.gone", reason: "closed" });
    const opening = this.#startApplier(options);
    const started = opening.catch(() => undefined);
    this.#starting.add(started);
    try {
      return await opening;
    } finally {
      this.#starting.delete(started);
    }
  }

  async #startApplier({ signal }: { signal?: AbortSignal | undefined }): Promise<TreeContainer> {
    const { plan, labels } = this.#options;
    const protectedMounts = [...this.#protectedMounts.values()].filter(({ identity }) => identity !== null);
    const user = this.#applyingUser();
    const applier = await openTreeContainer(
      applierPlan(plan, { protectedMounts, labels, user }),
      { ...this.#options, name: this.#containerName("applier"), onLeft: this.#onLeft },
      { signal },
    );
    this.#appliers.add(applier);
    return {
      context: applier.context,
      close: async () => {
        await applier.close();
        this.#appliers.delete(applier);
      },
    };
  }

  /** Ends the containers, and removes the volumes unless they are kept. Error: `engine.failed`. */
  async close({ keep }: { keep: boolean }): Promise<void> {
    this.#isClosed = true;
    const keeper = await this.#keeper.catch(() => null);
    // One that is still being started would keep the volumes, and nobody would end it.
    await Promise.all(this.#starting);
    await Promise.all([keeper?.close(), ...[...this.#appliers].map((applier) => applier.close())]);
    this.#appliers.clear();
    if (!keep) await removeTreeVolumes(this.#options.engine, this.id);
  }

  async #openKeeper({ isFirst }: { isFirst: boolean }): Promise<OpenedTreeContainer> {
    const { plan, labels, origin } = this.#options;
    const name = this.#containerName("keeper");
    const from = isFirst ? origin?.tree.id : undefined;
    const start = { ...this.#options, name, onLeft: this.#onLeft };
    return await openTreeContainer(keeperPlan(plan, { isFirst, labels, from }), start);
  }

  readonly #onLeft = () => {
    this.mayHaveLeft = true;
  };

  async #replaceKeeper(ended: OpenedTreeContainer): Promise<OpenedTreeContainer> {
    await ended.close();
    return await this.#openKeeper({ isFirst: false });
  }

  /**
   * No name is used twice, because an engine may take a while to free the name of a container that has ended.
   */
  #containerName(kind: "keeper" | "applier"): string {
    return `brig-${this.id}-${kind}-${randomUUID().slice(0, 8)}`;
  }

  async #proveTree(keeper: OpenedTreeContainer): Promise<OpenedTreeContainer> {
    try {
      const { directories } = keeper.report;
      const { earlier } = this.#options;
      if (earlier !== undefined) {
        const { dev, ino } = directories.get(MERGED_PATH) ?? {};
        if (dev !== earlier.dev || ino !== earlier.ino)
          throw notAsPlanned("the workspace's tree is not the one that was there before");
        this.#top = earlier;
        return keeper;
      }
      const [top, base] = [directories.get(MERGED_PATH), directories.get(BASE_PATH)];
      const isSame = top?.uid === base?.uid && top?.gid === base?.gid && top?.mode === base?.mode;
      if (top === undefined || !isSame)
        throw notAsPlanned("the workspace's tree did not get the workspace's owner and mode");
      this.#requireOrigin(directories.get(FROM_PATH));
      if (this.#options.plan.overlay.witnesses.length === 0) await this.#requireSameNames(keeper.context);
      this.#top = top;
      return keeper;
    } catch (error) {
      await keeper.close().catch(this.#options.warn);
      throw error;
    }
  }

  #requireOrigin(found: DirectoryReport | undefined): void {
    const { origin } = this.#options;
    const isSame = found?.dev === origin?.tree.identity.dev && found?.ino === origin?.tree.identity.ino;
    if (!isSame) throw notAsPlanned("the keeper of a fork does not see the tree that was forked");
  }

  /**
   * For a workspace without witnesses, most likely an empty one: checks that the tree has the same names at
   * its top.
   */
  async #requireSameNames(context: CommandContext): Promise<void> {
    const files = sandboxFiles(context);
    const namesIn = async (path: string) =>
      (await files.list(path)).map(({ nameBytes }) => Buffer.from(nameBytes).toString("latin1"));
    const [merged, base] = await Promise.all([namesIn(MERGED_PATH), namesIn(BASE_PATH)]);
    const mountPoints = this.leftOut.map((path) => Buffer.from(path.split("/")[0] ?? "").toString("latin1"));
    const known = new Set([...base, ...mountPoints]);
    if (merged.every((name) => known.has(name)) && base.every((name) => merged.includes(name))) return;
    throw notAsPlanned("the workspace's tree does not have the names of the workspace");
  }

  #proved(): DirectoryReport {
    if (this.#top === undefined) throw new TypeError("the tree is not ready");
    return this.#top;
  }

  /**
   * Changes are applied as the user who runs brig, with that user's permissions; for root, as the workspace's
   * owner.
   */
  #applyingUser(): SandboxPlan["user"] {
    const { uid, gid } = this.#proved();
    const caller = process.getuid?.() ?? uid;
    return caller === 0 ? { uid, gid } : { uid: caller, gid: process.getgid?.() ?? gid };
  }
}

function notAsPlanned(message: string): BrigError {
  return new BrigError(message, {
    code: "policy.not-enforced",
    hint: "nothing was run; use --workspace bind with this engine",
  });
}

/** Everything that is needed to start the containers of a tree, besides their plans. */
interface TreeStart {
  engine: Engine;
  toolbox: Toolbox;
  imageId: string;
  warn: Warn;
  /** Called if the engine may still have a container after its start has failed. */
  onLeft?: (() => void) | undefined;
}

interface OpenedTreeContainer extends TreeContainer {
  readonly link: RunnerLink;
  readonly report: KernelReport;
}

/**
 * Starts a container in which only brig works, and checks that the kernel enforces its plan. A failure leaves
 * nothing behind.
 */
async function openTreeContainer(
  plan: SandboxPlan,
  { name, ...start }: TreeStart & { name: string },
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<OpenedTreeContainer> {
  const container = new SandboxContainer(start.engine, {
    ...start,
    plan,
    keep: false,
    recordFor: null,
    name,
  });
  try {
    const loadRest = () => import("../connect-and-prove.js");
    await container.start({ signal, whileStarting: loadRest });
    const { connectAndProve } = await loadRest();
    const { link, report } = await connectAndProve(container, { signal });
    const context = { link, cwd: "/", env: {}, onStuck: () => link.close(ended()) };
    return {
      link,
      report,
      context,
      async close() {
        await container.discard({ isEnding: link.end(ended()) });
      },
    };
  } catch (error) {
    await container.giveUp();
    if (container.mayExist) start.onLeft?.();
    throw error;
  }
}

function ended(): BrigError {
  return new BrigError("the container that works on the workspace's tree was closed", {
    code: "sandbox.gone",
    reason: "closed",
  });
}

/**
 * The lease of a tree's containers where the session's own sandbox is kept without one. They need not outlive
 * brig, because others can be started at any time.
 */
const LEASE_SECONDS = 60;

export type OverlaidPlan = SandboxPlan & { overlay: OverlayLayers };

/**
 * The plan for the keeper of a session's tree. With `isFirst`, the keeper also gives the tree the workspace's
 * owner and mode. With `from`, it can also read the tree of that id.
 */
export function keeperPlan(
  plan: OverlaidPlan,
  {
    isFirst,
    labels,
    from,
  }: { isFirst: boolean; labels: Readonly<Record<string, string>>; from?: string | undefined },
): SandboxPlan {
  const { overlay } = plan;
  const volumes = treeVolumes(overlay.id);
  const witnesses = isFirst
    ? overlay.witnesses.map(({ path, ino }) => ({ path: `${MERGED_PATH}/${basename(path)}`, ino }))
    : [];
  return {
    ...treeContainerPlan(plan, labels),
    policyName: `of the keeper of ${JSON.stringify(overlay.lower)}`,
    overlay: { ...overlay, path: MERGED_PATH, witnesses },
    mounts: [
      baseMount(overlay, "ro"),
      {
        kind: "writable-root",
        path: MERGED_PATH,
        access: "rw",
        identity: null,
        source: { kind: "volume", volume: volumes.merged },
      },
      readOnlyVolume(UPPER_PATH, volumes.upper),
      ...(from === undefined ? [] : [readOnlyVolume(FROM_PATH, treeVolumes(from).merged)]),
    ],
    user: { uid: 0, gid: 0 },
    capabilities: "tree",
    // brig's stricter filter would refuse to make setgid directories, which a workspace may have.
    seccomp: "full-access",
    runnerArguments: isFirst ? ["--copy-rights", `${BASE_PATH}:${MERGED_PATH}`] : [],
  };
}

/**
 * The plan for an applier, which writes to the host's workspace. Paths that were protected in the session's
 * sandboxes are read-only here too.
 */
export function applierPlan(
  plan: OverlaidPlan,
  {
    protectedMounts,
    labels,
    user,
  }: {
    protectedMounts: readonly PlannedMount[];
    labels: Readonly<Record<string, string>>;
    user: SandboxPlan["user"];
  },
): SandboxPlan {
  const { lower } = plan.overlay;
  const within = protectedMounts.filter(({ path }) => isBelow(path, lower));
  return {
    ...treeContainerPlan(plan, labels),
    policyName: `of the writer to ${JSON.stringify(lower)}`,
    mounts: [
      baseMount(plan.overlay, "rw"),
      ...within.map(
        ({ path, identity }): PlannedMount => ({
          kind: "protected",
          path: `${BASE_PATH}${path.slice(lower.length)}`,
          access: "ro",
          identity,
          source: { kind: "host", path },
        }),
      ),
    ],
    user,
    capabilities: "none",
    // The keeper has the same: a setgid directory of the workspace must get its mode back if a commit fails.
    seccomp: "full-access",
  };
}

/** The common part of these plans. It has the image and the limits of the session's plan. */
function treeContainerPlan(plan: OverlaidPlan, labels: Readonly<Record<string, string>>): SandboxPlan {
  return {
    ...plan,
    sessionId: plan.overlay.id,
    workspace: null,
    workingDirectory: "/",
    overlay: null,
    volumes: [],
    parents: [],
    placeholders: [],
    emptyFiles: [],
    absentNames: [],
    covered: [],
    knownDirectories: [],
    notices: [],
    network: "none",
    egress: null,
    noNewPrivileges: true,
    leaseSeconds: plan.leaseSeconds === 0 ? LEASE_SECONDS : plan.leaseSeconds,
    runnerArguments: [],
    imageEnvironment: {},
    callerEnvironment: {},
    labels: { ...labels },
  };
}

function readOnlyVolume(path: string, volume: string): PlannedMount {
  return { kind: "protected", path, access: "ro", identity: null, source: { kind: "volume", volume } };
}

/**
 * If the host's directory is replaced before the engine mounts it, the check of `identity` after the start
 * notices that.
 */
function baseMount({ lower, identity }: OverlayLayers, access: "ro" | "rw"): PlannedMount {
  return {
    kind: access === "rw" ? "writable-root" : "protected",
    path: BASE_PATH,
    access,
    identity,
    source: { kind: "host", path: lower },
  };
}
