import { dirname } from "node:path";
import { decidePermissions, needWithoutSandbox, type SandboxContext } from "./permissions.js";
import { rootOf, type SandboxSet, type ServedSandbox } from "./sandbox-set.js";
import { invalidRequest } from "./wire/messages.js";

/** The parts of a `SandboxSet` that are needed here. */
export type Sandboxes = Pick<SandboxSet, "get" | "toLook" | "isPlaceholder">;

const MAX_WORKSPACES = 64;

/**
 * The directories that a session works in. They are those that the client names as such: in `environmentConfig/read`, and as workspace
 * roots of a permission profile. A path of a file or a command, which a model may have chosen, is never one. Until the client has named
 * any, the directory of the first file that it asks for stands in: Codex begins by looking for `.git` in its working directory.
 */
export class Workspaces {
  readonly #sandboxes: Sandboxes;
  readonly #named = new Set<string>();
  #presumed: string | undefined;

  constructor(sandboxes: Sandboxes) {
    this.#sandboxes = sandboxes;
  }

  /** Adds a directory that the client works in. */
  name(directory: string): void {
    if (!this.#named.has(directory) && this.#named.size >= MAX_WORKSPACES)
      throw invalidRequest(`a session has at most ${MAX_WORKSPACES} workspaces`);
    this.#named.add(directory);
  }

  /** The sandbox that enforces a permission profile; without one, that of the workspace which contains the path. */
  async sandboxFor(context: SandboxContext | null | undefined, path: string): Promise<ServedSandbox> {
    if (context === null || context === undefined)
      return await this.#sandboxes.get(needWithoutSandbox(this.#workspaceOf(path)));
    // The profile's `cwd` is no root: it may be the directory that a model chose for its command.
    const [root, ...otherRoots] = context.workspaceRoots ?? [];
    if (root !== undefined) this.name(root);
    const workspace = root ?? this.#workspaceOf(path);
    const decision = decidePermissions(context, { workspace, otherRoots });
    if (decision.kind === "need") return await this.#sandboxes.get(decision.need);
    throw invalidRequest(`brig cannot enforce this permission profile: ${decision.reason}`);
  }

  /** A sandbox to read a file in that the client reads for itself. A path outside of every workspace is looked for in the image. */
  async toLook(path: string): Promise<ServedSandbox> {
    const directory = dirname(path);
    this.#presumed ??= directory === "/" ? undefined : directory;
    const [latest = this.#presumed ?? directory] = [...this.#named].toReversed();
    return await this.#sandboxes.toLook(rootOf(path, [...this.#named]) ?? latest);
  }

  /**
   * The sandbox to read a file in. Without a profile, the client reads for itself and not for a model: see
   * `toLook`.
   */
  async toRead(context: SandboxContext | null | undefined, path: string): Promise<ServedSandbox> {
    return context ? await this.sandboxFor(context, path) : await this.toLook(path);
  }

  isPlaceholder(path: string): boolean {
    return this.#sandboxes.isPlaceholder(path);
  }

  #workspaceOf(path: string): string {
    const known =
      this.#named.size > 0 ? [...this.#named] : [this.#presumed].filter((one) => one !== undefined);
    const root = rootOf(path, known) ?? (known.length === 1 ? known[0] : undefined);
    if (root !== undefined) return root;
    throw invalidRequest(
      `${JSON.stringify(path)} lies outside of the workspace: start Codex with -C in a directory that contains it`,
    );
  }
}
