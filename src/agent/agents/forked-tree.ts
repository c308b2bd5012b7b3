import { BrigError } from "../../errors.js";
import type { AgentChanges, AgentFileChange, AppliedChanges, ChangeConflict } from "../../tools/index.js";
import type { AgentSandbox, ForkedSandbox } from "../agent-sandbox.js";

/** Forks the sandbox. Error: `tool.failed` if it cannot be forked. */
export async function forkOf(
  sandbox: AgentSandbox,
  { signal }: { signal?: AbortSignal | undefined },
): Promise<ForkedSandbox> {
  if (sandbox.fork !== undefined) return await sandbox.fork({ signal });
  throw new BrigError(
    'isolation "fork" needs a sandbox that can be forked, with --workspace overlay, and this one cannot: start the agent without isolation',
    { code: "tool.failed" },
  );
}

/** The agents that work on forks of one workspace, and which of their changes were applied to it. */
export class ForkedTrees {
  readonly #forks = new Map<string, { nickname: string; sandbox: ForkedSandbox; forkedAt: number }>();
  /** The agent whose change was applied last, by path. */
  readonly #applied = new Map<string, { id: string; nickname: string; appliedAt: number }>();
  /** Numbers forks and applied changes in the order in which they are made. */
  #moment = 0;

  /** Call this as soon as the fork is made: it contains the changes that were applied before. */
  add(id: string, fork: { nickname: string; sandbox: ForkedSandbox }): void {
    this.#forks.set(id, { ...fork, forkedAt: this.#moment++ });
  }

  remove(id: string): void {
    this.#forks.delete(id);
  }

  async changes(id: string, options: PathChoice): Promise<AgentChanges> {
    const { files, text } = await this.#forkOf(id).sandbox.changesSinceFork(options);
    const owners = await this.#owners(id, options);
    return { files: files.map((file) => withOwners(file, owners)), text };
  }

  /**
   * If another agent's change of the same file was applied after the fork was made, that is a conflict, even
   * if both have made the same change.
   */
  async apply(
    id: string,
    { parent, ...options }: PathChoice & { parent: AgentSandbox },
  ): Promise<AppliedChanges> {
    const { sandbox, nickname, forkedAt } = this.#forkOf(id);
    const { files } = await sandbox.changesSinceFork(options);
    const collisions = files.flatMap(({ path }): ChangeConflict[] => {
      const earlier = this.#applied.get(path);
      if (earlier === undefined || earlier.id === id || earlier.appliedAt < forkedAt) return [];
      const reason = `changed by ${nickname} and by ${earlier.nickname}, whose change was applied before`;
      return [{ path, reason }];
    });
    if (collisions.length > 0) return { kind: "conflicts", conflicts: collisions };
    const owners = await this.#owners(id, options);
    const outcome = await sandbox.applyTo(parent, options);
    if (outcome.kind === "conflicts") return outcome;
    const appliedAt = this.#moment++;
    for (const { path } of outcome.files) this.#applied.set(path, { id, nickname, appliedAt });
    return { kind: "applied", files: outcome.files.map((file) => withOwners(file, owners)) };
  }

  #forkOf(id: string) {
    const fork = this.#forks.get(id);
    if (fork !== undefined) return fork;
    throw new BrigError(`agent with id ${id} does not work on a fork of the workspace`, {
      code: "tool.failed",
    });
  }

  /** Nicknames of the other agents that have changed a path, by path. */
  async #owners(id: string, options: PathChoice): Promise<ReadonlyMap<string, readonly string[]>> {
    const owners = new Map<string, string[]>();
    const others = [...this.#forks].filter(([other]) => other !== id);
    const diffs = others.map(async ([, { nickname, sandbox }]) => {
      // If the fork of another agent is gone meanwhile, its changes are just not named.
      const { files } = await sandbox.changesSinceFork(options).catch(() => ({ files: [] }));
      return { nickname, files };
    });
    for (const { nickname, files } of await Promise.all(diffs))
      for (const { path } of files) owners.set(path, [...(owners.get(path) ?? []), nickname]);
    return owners;
  }
}

interface PathChoice {
  paths?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
}

function withOwners(
  { path, kind }: Pick<AgentFileChange, "path" | "kind">,
  owners: ReadonlyMap<string, readonly string[]>,
): AgentFileChange {
  return { path, kind, alsoChangedBy: owners.get(path) ?? [] };
}
