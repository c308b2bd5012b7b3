import { randomBytes } from "node:crypto";
import type { AgentSandbox } from "../../../agent/index.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type {
  ApplyOptions,
  ApplyResult,
  DiffOptions,
  EgressAttempt,
  RestorePoint,
  RestorePointOptions,
  UndoneCall,
  WorkspaceChange,
  WorkspaceDiff,
} from "../../../sandbox/index.js";
import { FILE_TYPES, SecretMask } from "../../../sandbox/index.js";
import type { EgressFeed } from "../owner/egress-feed.js";
import { FRAME, FrameReader } from "../wire/frames.js";
import { HOLE_HEADER, placeShape, type SandboxPlaceAnswer } from "../wire/messages.js";
import { asBrigError, notUnderstood } from "../wire/sent-error.js";
import { ConnectedProcess, connectedCommand } from "./connected-process.js";
import { type Asked, linesOf, type OwnerClient, sandboxPath, unreachable } from "./owner-client.js";

/** What can be done with a copy-on-write workspace, as with that of a `Sandbox` of this process. */
export interface LastingWorkspace {
  diff(options?: DiffOptions): Promise<WorkspaceDiff>;
  apply(options?: ApplyOptions): Promise<ApplyResult>;
  undo(options?: RestorePointOptions): Promise<UndoneCall | null>;
}

/** A lasting sandbox as an agent uses one. Closing it lets go of it. */
export type LastingSandbox = AgentSandbox & LastingWorkspace;

/** What a model is told of a lasting sandbox. Errors: those of the owner. */
export async function lastingPlace(
  owner: OwnerClient,
  name: string,
  signal: AbortSignal,
): Promise<SandboxPlaceAnswer> {
  const path = `${sandboxPath(name)}/place`;
  const place = readOrNull(placeShape, await owner.json({ method: "GET", path, signal }));
  if (place === null) throw notUnderstood();
  return place;
}

interface LastingSandboxOptions {
  name: string;
  place: SandboxPlaceAnswer;
  /** For commands, besides their own. */
  env: Readonly<Record<string, string>>;
  /** Called when nobody listens any more. Resolves when the next owner does. */
  onOwnerGone: () => Promise<unknown>;
}

/** A lasting sandbox whose owner does what is asked here. */
export function lastingSandbox(
  owner: OwnerClient,
  { name, place, env, onOwnerGone }: LastingSandboxOptions,
): LastingSandbox {
  const { id, image, proof, snapshotId, secrets } = place;
  const mask = secrets.length === 0 ? null : new SecretMask(secrets.map((value) => ({ value })));
  const ready = async () => {
    if (!(await owner.isThere())) await onOwnerGone();
  };
  const commands = { socketPath: owner.socket.path, path: `${sandboxPath(name)}/exec`, reopen: onOwnerGone };
  const egress =
    place.network === "none" || place.network === "full"
      ? null
      : new OwnEgress(owner, { name, from: place.egressCount });
  return {
    ...{ id, image, proof, snapshotId },
    maskSecrets: mask && ((text) => mask.text(text)),
    files: lastingFiles(owner, { name, ready }),
    async spawn(argv, options = {}) {
      await ready();
      const callId =
        options.callId === undefined ? undefined : (egress?.wireName(options.callId) ?? options.callId);
      const command = connectedCommand(argv, { ...options, callId, env: { ...env, ...options.env } });
      const started = new ConnectedProcess(commands, command, options);
      const { stdin, stdout, stderr } = started;
      const exit = egress === null ? started.exit : started.exit.finally(() => egress.read());
      exit.catch(() => undefined);
      const kill = async (signal?: NodeJS.Signals) =>
        signal === undefined ? await started.end() : await started.kill(signal);
      return { stdin, stdout, stderr, exit, kill };
    },
    ...lastingWorkspace(owner, name),
    ...(egress !== null && { watchEgress: (listener, options) => egress.watch(listener, options) }),
    close: async () => void (await egress?.read()),
  };
}

/** What the programs of one session try to reach in a sandbox in which others may work as well. */
class OwnEgress {
  readonly #owner: OwnerClient;
  readonly #path: string;
  /** Begins the names of the session's calls, which other sessions may have, too. */
  readonly #prefix = `${randomBytes(6).toString("hex")}:`;
  #listeners: ((attempt: EgressAttempt) => void)[] = [];
  #onCanarySent: ((error: Promise<Error>) => void)[] = [];
  #next: number;
  #reading: Promise<void> = Promise.resolve();

  constructor(owner: OwnerClient, { name, from }: { name: string; from: number }) {
    this.#owner = owner;
    this.#next = from;
    this.#path = `${sandboxPath(name)}/egress`;
  }

  wireName(callId: string): string {
    return this.#prefix + callId;
  }

  watch(...[listener, { onCanarySent } = {}]: Parameters<NonNullable<AgentSandbox["watchEgress"]>>): void {
    this.#listeners.push(listener);
    if (onCanarySent !== undefined) this.#onCanarySent.push(onCanarySent);
  }

  /** Passes on what there is by now. Never rejects: an owner that is gone has nothing to say, and the session learns of that elsewhere. */
  async read(): Promise<void> {
    this.#reading = this.#reading.then(() => this.#read()).catch(() => undefined);
    await this.#reading;
  }

  async #read(): Promise<void> {
    const query = new URLSearchParams({ after: `${this.#next}`, calls: this.#prefix });
    const path = `${this.#path}?${query}`;
    const { attempts, next, canary } = (await this.#owner.json({
      ...{ method: "GET", path, signal: never },
    })) as ReturnType<EgressFeed["after"]>;
    this.#next = next;
    for (const { owner, ...attempt } of attempts) {
      const own = owner && { ...owner, callId: owner.callId?.slice(this.#prefix.length) ?? null };
      for (const listener of this.#listeners) listener({ ...attempt, owner: own });
    }
    if (canary === null) return;
    for (const tell of this.#onCanarySent.splice(0)) tell(Promise.resolve(asBrigError(canary)));
  }
}

/** Without a signal of the caller, nothing ends a call. */
const never = new AbortController().signal;

/** What can be done with the workspace of a lasting sandbox. Error of all: `workspace.invalid` if it is not copy-on-write. */
export function lastingWorkspace(
  owner: OwnerClient,
  name: string,
): LastingWorkspace & Pick<AgentSandbox, "restorePoint" | "undo"> {
  const post = async (
    verb: string,
    { signal = never, onCopied }: RestorePointOptions,
    query?: URLSearchParams,
  ) => await owner.copying({ method: "POST", path: `${sandboxPath(name)}/${verb}`, query, signal }, onCopied);
  return {
    diff: async (options = {}) => await readDiff(owner, `${sandboxPath(name)}/diff`, options),
    apply: async (options = {}) => {
      const query = pathsQuery(options.paths);
      if (options.dryRun === true) query.set("dry", "true");
      return (await post("apply", options, query)) as ApplyResult;
    },
    restorePoint: async (options = {}) =>
      ((await post("point", options)) as { point: RestorePoint | null }).point,
    undo: async (options = {}) => ((await post("undo", options)) as { undone: UndoneCall | null }).undone,
  };
}

function pathsQuery(paths: readonly string[] = []): URLSearchParams {
  return new URLSearchParams(paths.map((path): [string, string] => ["path", path]));
}

async function readDiff(
  owner: OwnerClient,
  path: string,
  { paths, patches, maxFileBytes, maxPatchBytes, onChange, signal = never }: DiffOptions,
): Promise<WorkspaceDiff> {
  const query = pathsQuery(paths);
  if (patches === false) query.set("nopatches", "true");
  if (maxFileBytes !== undefined) query.set("maxfile", `${maxFileBytes}`);
  if (maxPatchBytes !== undefined) query.set("maxpatch", `${maxPatchBytes}`);
  const changes: WorkspaceChange[] = [];
  let counts: Omit<WorkspaceDiff, "changes"> | undefined;
  await owner.ask({ method: "GET", path: `${path}?${query}`, signal }, async (response) => {
    for await (const line of linesOf(response)) {
      const { type, pathBase64, ...rest } = (parseJson(line) ?? {}) as Record<string, unknown>;
      if (type === "error") throw asBrigError(rest);
      if (type === "diff") counts = rest as unknown as Omit<WorkspaceDiff, "changes">;
      if (type !== "change") continue;
      const change = {
        ...rest,
        pathBytes: Buffer.from(`${pathBase64}`, "base64"),
      } as Partial<WorkspaceChange> as WorkspaceChange;
      if (onChange === undefined) changes.push(change);
      else await onChange(change);
    }
  });
  if (counts === undefined) throw unreachable();
  return { changes, ...counts };
}

interface PathCallOptions {
  refuseSymlinks?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

function lastingFiles(
  owner: OwnerClient,
  { name, ready }: { name: string; ready: () => Promise<void> },
): AgentSandbox["files"] {
  const asked = async (
    call: readonly [method: Asked["method"], verb: string],
    query: Record<string, string | number | true | undefined>,
    { refuseSymlinks, signal = never }: PathCallOptions,
  ): Promise<Asked> => {
    await ready();
    const given = Object.entries({ ...query, nolinks: refuseSymlinks === true || undefined });
    const search = new URLSearchParams(
      given.flatMap(([key, value]): [string, string][] => (value === undefined ? [] : [[key, `${value}`]])),
    );
    return { method: call[0], path: `${sandboxPath(name)}/${call[1]}?${search}`, signal };
  };
  const readPart = async (
    query: Record<string, string | number | true | undefined>,
    options: PathCallOptions,
  ) =>
    await owner.ask(await asked(["GET", "file"], query, options), async (response) => {
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece as Buffer);
      return { holeBytes: Number(response.headers[HOLE_HEADER] ?? 0), data: Buffer.concat(pieces) };
    });
  return {
    async read(path: string, options: PathCallOptions & ReadPart) {
      const { offsetBytes: offset, lengthBytes: length, maxBytes: max } = options;
      return (await readPart({ path, offset, length, max }, options)).data;
    },
    readPastHole: async (path, { offsetBytes: offset, lengthBytes: length, ...options }) =>
      await readPart({ path, offset, length, pasthole: true }, options),
    async stat(path, options: PathCallOptions & { followSymlinks?: boolean }) {
      const follow = options.followSymlinks === false ? undefined : true;
      const { dev, ino, ...stat } = (await owner.json(
        await asked(["GET", "stat"], { path, follow }, options),
      )) as SentStat;
      return { ...stat, dev: BigInt(dev), ino: BigInt(ino) };
    },
    async list(path, { onEntries, signal }) {
      const bytes = Buffer.from(path).toString("base64url");
      await owner.ask(await asked(["GET", "list"], { path: bytes }, { signal }), async (response) => {
        const reader = new FrameReader();
        let isComplete = false;
        for await (const piece of response) {
          const frames = reader.push(piece as Buffer);
          if (frames === null) throw notUnderstood();
          isComplete = frames.at(-1)?.type === FRAME.ended;
          const entries = isComplete ? frames.slice(0, -1) : frames;
          if (entries.length > 0)
            onEntries(
              entries.map(({ type, payload }) => ({
                nameBytes: Buffer.from(payload),
                type: FILE_TYPES[type] ?? "unknown",
              })),
            );
        }
        if (!isComplete) throw unreachable();
      });
    },
    async writeEach(files, options) {
      let written = 0;
      for (const { path, data, mode } of files) {
        try {
          await owner.json({
            ...(await asked(["PUT", "file"], { path, mode }, options)),
            body: Buffer.from(data),
          });
        } catch (failure) {
          return { written, failure };
        }
        written++;
      }
      return { written, failure: null };
    },
    mkdir: async (path, options) =>
      void (await owner.json(await asked(["POST", "directory"], { path }, options))),
    remove: async (path, options) =>
      void (await owner.json(await asked(["DELETE", "file"], { path }, options))),
  };
}

interface ReadPart {
  offsetBytes?: number;
  lengthBytes?: number;
  maxBytes?: number;
}

/** As JSON has it. */
interface SentStat {
  type: string;
  sizeBytes: number;
  mode: number;
  dev: string;
  ino: string;
  linkTarget: string | null;
}
