import { randomUUID } from "node:crypto";
import type { Owner } from "../../lib/owner.js";
import { readVersion } from "../../version.js";
import { isDefiniteFailure } from "../docker/engine-failure.js";
import type { Engine } from "../docker/engine-types.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import { sessionLabels } from "../labels.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/command.js";
import type { DirectoryReport } from "../proof/kernel-report.js";
import { notRecorded, removeEarlierRecords, removeRecord, writeRecord } from "../sandbox-records.js";
import type { Warn } from "../warnings.js";
import type { OverlayTree } from "./overlay-tree.js";
import { removeTreeVolumes } from "./tree-volumes.js";
import type { WorkspaceTree } from "./workspace-tree.js";

/** The parts that the tree takes over from the sandbox that opens it first. */
export interface TreeOpening {
  engine: Engine;
  plan: SandboxPlan;
  toolbox: Toolbox;
  imageId: string;
  warn: Warn;
  recordFor: { brigHome: string; owner: Owner };
}

/** The origin of a fork. */
export interface TreeOrigin {
  /** The plan of the sandbox that is forked. */
  readonly plan: SandboxPlan;
  /** Its tree, which is kept as long as the fork's keeper may have it mounted. */
  readonly tree: WorkspaceTree;
  readonly shared: SharedTree;
  /**
   * Begins to read its state. The returned function then gives the new tree that state. The new tree's keeper
   * has the other one at `/from`, and no command uses the new tree yet.
   */
  begin(): (keeper: CommandContext) => Promise<void>;
}

interface SharedTreeOptions {
  leaseSeconds: number;
  origin?: TreeOrigin | undefined;
  /** A tree that exists, and its top directory. */
  earlier?: { id: string; top: DirectoryReport } | undefined;
}

interface Open {
  tree: Promise<OverlayTree>;
  opening: TreeOpening;
  origin: TreeOrigin | undefined;
}

/**
 * The tree of a session with a copy-on-write workspace. All sandboxes with the same settings write to it. The
 * first of them creates it, and it is closed at the last `release`.
 */
export class SharedTree {
  readonly id: string;
  readonly #earlier: DirectoryReport | undefined;
  #origin: TreeOrigin | undefined;
  readonly #leaseSeconds: number;
  #holders = 0;
  #open: Open | null = null;
  #closing: Promise<void> = Promise.resolve();

  /** With a lease of 0 seconds, the volumes are kept when the tree is closed. With `earlier` it is the tree of a process that is gone. */
  constructor({ leaseSeconds, origin, earlier }: SharedTreeOptions) {
    this.id = earlier?.id ?? randomUUID();
    this.#earlier = earlier?.top;
    this.#leaseSeconds = leaseSeconds;
    this.#origin = origin;
  }

  /** The origin of its tree, if that is to be a fork and has not been made yet. */
  get origin(): TreeOrigin | undefined {
    return this.#origin;
  }

  /** Whether somebody holds it, and its tree has been created. */
  get isOpen(): boolean {
    return this.#holders > 0 && this.#open !== null;
  }

  /** Keeps the tree open, even while it has no sandbox. Each call needs one `release`. */
  hold(): void {
    this.#holders++;
  }

  /**
   * Undoes one `hold`. The last `release` ends the tree's containers, and removes its volumes unless they are
   * kept. Error: `engine.failed`; call it again then.
   */
  async release(): Promise<void> {
    this.#holders--;
    if (this.#holders > 0 || this.#open === null) return;
    this.#closing = closeTree(this.#open, { keep: this.#leaseSeconds === 0 });
    try {
      await this.#closing;
      this.#open = null;
    } catch (error) {
      this.#holders++;
      throw error;
    }
  }

  /** The tree, which may not be ready yet. Errors: the engine's. */
  async open(opening: TreeOpening): Promise<OverlayTree> {
    await this.#closing.catch(() => undefined);
    await this.#removeBroken();
    this.#open ??= this.#create(opening);
    const current = this.#open;
    try {
      const tree = await current.tree;
      tree.use(opening.plan);
      return tree;
    } catch (error) {
      // So that the next call tries again.
      if (this.#open === current) {
        this.#open = null;
        await current.origin?.shared.release().catch(opening.warn);
      }
      throw error;
    }
  }

  #create(opening: TreeOpening): Open {
    const [id, leaseSeconds, origin] = [this.id, this.#leaseSeconds, this.#origin];
    // A tree that is created later, after this one was closed, begins with nothing but the host's files.
    this.#origin = undefined;
    origin?.shared.hold();
    const earlier = this.#earlier;
    return { tree: createTree({ id, leaseSeconds, origin, earlier }, opening), opening, origin };
  }

  /** Removes a tree whose keeper could not be started, so that the next sandbox gets another one. */
  async #removeBroken(): Promise<void> {
    const current = this.#open;
    const tree = await current?.tree.catch(() => null);
    if (current === null || tree?.isBroken !== true || this.#open !== current) return;
    this.#open = null;
    this.#closing = closeTree(current, { keep: false });
    try {
      await this.#closing;
    } catch (error) {
      // The next one tries again to remove it. With its volumes it would get what is in them, too.
      this.#open = current;
      throw error;
    }
  }
}

interface NewTree {
  id: string;
  leaseSeconds: number;
  origin: TreeOrigin | undefined;
  earlier: DirectoryReport | undefined;
}

async function createTree(
  { id, leaseSeconds, origin, earlier }: NewTree,
  opening: TreeOpening,
): Promise<OverlayTree> {
  const { plan, recordFor, engine, warn } = opening;
  const { overlay } = plan;
  if (overlay === null) throw new TypeError("a tree needs a plan with an overlay");
  const { brigHome, owner } = recordFor;
  const labels = sessionLabels({
    sessionId: id,
    version: readVersion(),
    owner,
    createdAt: new Date(),
    leaseSeconds,
  });
  try {
    writeRecord(brigHome, {
      sessionId: id,
      owner,
      endpoint: engine.endpoint,
      containerId: null,
      placeholders: [],
    });
    if (earlier !== undefined) removeEarlierRecords(brigHome, { owner, sessionId: id });
  } catch (cause) {
    warn(notRecorded(brigHome, cause));
  }
  const begun = origin && { tree: origin.tree, fill: origin.begin() };
  const { OverlayTree } = await import("./overlay-tree.js");
  try {
    return await OverlayTree.create({
      ...opening,
      plan: { ...plan, overlay },
      labels,
      origin: begun,
      earlier,
    });
  } catch (error) {
    if (earlier !== undefined) throw error;
    const areRemoved = await removeVolumes(id, opening);
    // An engine that did not answer may create a volume only now.
    if (areRemoved && isDefiniteFailure(error)) forget(id, opening);
    throw error;
  }
}

/** Only warns of a failure, not to hide the error before it. */
async function removeVolumes(id: string, { engine, warn }: TreeOpening): Promise<boolean> {
  try {
    await removeTreeVolumes(engine, id);
    return true;
  } catch (error) {
    warn(error);
    return false;
  }
}

async function closeTree(
  { tree: creating, opening, origin }: Open,
  { keep }: { keep: boolean },
): Promise<void> {
  const tree = await creating.catch(() => null);
  if (tree === null) return;
  await tree.close({ keep });
  if (!keep && !tree.mayHaveLeft) forget(tree.id, opening);
  await origin?.shared.release();
}

function forget(sessionId: string, { recordFor, warn }: TreeOpening): void {
  const { brigHome, owner } = recordFor;
  try {
    removeRecord(brigHome, { owner, sessionId });
  } catch (error) {
    warn(error);
  }
}
