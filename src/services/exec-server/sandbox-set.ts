import { BrigError, invalidUsage } from "../../errors.js";
import type {
  LoadedPolicy,
  Receipt,
  Sandbox,
  SandboxSettings,
  StartOptions,
  UnresolvedSettings,
} from "../../sandbox/index.js";
import { isAtOrBelow, onEndOf, planOf, resolveSettings, startSandbox } from "../../sandbox/index.js";
import { needToLook, type SandboxNeed } from "./permissions.js";

/** An open sandbox, and what the methods of the protocol need to know of it. */
export interface ServedSandbox {
  sandbox: Sandbox;
  need: SandboxNeed;
  /** The environment that commands have before the client adds anything. */
  environment: Readonly<Record<string, string>>;
  /** Empty directories that brig made on the host only so that nothing else gets their names. */
  placeholders: ReadonlySet<string>;
}

/** Options shared by all sandboxes of a server. */
export interface CommonOptions
  extends Pick<UnresolvedSettings, "image" | "runtime" | "limits" | "env" | "environment">,
    Pick<StartOptions, "engine" | "onWarning" | "toolboxVolume"> {
  /** Called when a sandbox ends, with the receipt for what it left on the host. */
  onReceipt?: ((receipt: Receipt) => void) | undefined;
}

interface Kept {
  need: SandboxNeed;
  opening: Promise<ServedSandbox>;
  served: ServedSandbox | undefined;
}

const MAX_SANDBOXES = 16;

/** One sandbox for each need, opened when it is first asked for. Whoever makes the set closes it. */
export class SandboxSet {
  readonly #options: CommonOptions;
  readonly #closing = new AbortController();
  readonly #toldNotices = new Set<string>();
  readonly #kept = new Map<string, Kept>();
  /** Sandboxes that have ended by themselves, until they are gone. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(options: CommonOptions) {
    this.#options = options;
  }

  /** Errors: those of `Sandbox.create`; `usage.invalid` for more sandboxes than one server opens. */
  async get(need: SandboxNeed): Promise<ServedSandbox> {
    this.#closing.signal.throwIfAborted();
    const key = JSON.stringify(need);
    const known = this.#kept.get(key);
    if (known !== undefined) return await known.opening;
    if (this.#kept.size >= MAX_SANDBOXES)
      throw invalidUsage(
        `${MAX_SANDBOXES} sandboxes with other permissions are open already`,
        "start Codex again",
      );
    const kept: Kept = { need, opening: this.#open(need, key), served: undefined };
    this.#kept.set(key, kept);
    kept.opening.then(
      (served) => {
        kept.served = served;
      },
      // The next one who asks tries again.
      () => this.#kept.delete(key),
    );
    return await kept.opening;
  }

  /** A sandbox that sees the workspace, to read files in: one that there is, if possible. */
  async toLook(workspace: string): Promise<ServedSandbox> {
    const open = [...this.#kept.values()].find(({ need }) => need.workspace === workspace);
    return open === undefined ? await this.get(needToLook(workspace)) : await open.opening;
  }

  /** Whether brig made a directory at this path only so that nothing else gets its name. */
  isPlaceholder(path: string): boolean {
    return [...this.#kept.values()].some(({ served }) => served?.placeholders.has(path));
  }

  /** Ends every process. Waits for sandboxes that are being opened, since they must not stay behind. */
  async close(): Promise<void> {
    this.#closing.abort(new BrigError("the exec-server is closing", { code: "aborted" }));
    const all = [...this.#kept.values()];
    const closed = await Promise.allSettled(
      all.map(async ({ opening }) => {
        const served = await opening.catch(() => null);
        if (served !== null) await this.#close(served.sandbox);
      }),
    );
    await Promise.all(this.#leaving);
    for (const result of closed) if (result.status === "rejected") throw result.reason;
  }

  async #close(sandbox: Sandbox): Promise<void> {
    const receipt = await sandbox.close();
    this.#options.onReceipt?.(receipt);
  }

  async #settings(need: SandboxNeed): Promise<SandboxSettings> {
    const { workspace, writableRoots, base: mode } = need;
    const settings = await resolveSettings({ ...this.#options, workspace, writableRoots, mode });
    return { ...settings, toldNotices: this.#toldNotices, policy: policyFor(need, settings.policy) };
  }

  async #open(need: SandboxNeed, key: string): Promise<ServedSandbox> {
    // Sandboxes that are closing take directories away that the next one would mount.
    await Promise.all(this.#leaving);
    const sandbox = await startSandbox(this.#settings(need), {
      ...this.#options,
      signal: this.#closing.signal,
    });
    // A sandbox that has ended by itself is of no use to the next one who asks.
    onEndOf(sandbox, () => {
      this.#kept.delete(key);
      const leaving = this.#close(sandbox)
        .catch(() => sandbox[Symbol.asyncDispose]())
        .finally(() => this.#leaving.delete(leaving));
      this.#leaving.add(leaving);
    });
    const { environment, placeholders } = planOf(sandbox);
    return { sandbox, need, environment, placeholders: new Set(placeholders) };
  }
}

/** The policy of the nearest mode, with the need's own mounts and network. */
function policyFor(need: SandboxNeed, { policy, ...loaded }: LoadedPolicy): LoadedPolicy {
  return {
    ...loaded,
    policy: {
      ...policy,
      network: { kind: need.network },
      workspace: { ...policy.workspace, protected: need.protectedNames },
      // The proof of a sandbox writes a file in /tmp, so every sandbox has a writable /tmp.
      tmpfs: policy.tmpfs.filter(({ path }) => need.hasWritableHome || path === "/tmp"),
      overrides: { network: false, writableRoots: true },
    },
  };
}

/** The directory among several that contains the path: the innermost. */
export function rootOf(path: string, roots: readonly string[]): string | undefined {
  return roots.filter((root) => isAtOrBelow(path, root)).toSorted((a, b) => b.length - a.length)[0];
}
