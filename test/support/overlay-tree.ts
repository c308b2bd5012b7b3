import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { Engine, Mount } from "../../src/sandbox/docker/engine-types.js";
import {
  type ScanRequest,
  scanChanges,
  type TreeChange,
  type TreeScan,
} from "../../src/sandbox/tree/tree-changes.js";
import { call, testEngine } from "./engine.js";
import { type RunnerContainer, startRunnerContainer } from "./runner-container.js";
import { temporaryDirectory } from "./sandbox.js";
import { testLabels } from "./test-run.js";

const USER = "1000:1000";
/** The capabilities of a tree's keeper, with which it reads every file and sets any owner and mode. */
const KEEPER_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID"];

/**
 * A copy-on-write tree over a directory, with one container in which an agent would work, and one for the
 * keeper.
 */
export interface OverlayTree extends AsyncDisposable {
  /** The directory below, on the host. */
  readonly base: string;
  /** The container of the agent, which is user 1000 and sees the tree as /repo. */
  readonly agent: RunnerContainer;
  /** The container of the keeper, which is root with few capabilities and sees /merged, /upper and /base. */
  readonly keeper: RunnerContainer;
  scan(options?: Partial<ScanRequest>): Promise<{ changes: TreeChange[]; scan: TreeScan; lines: string[] }>;
}

interface OverlayOptions {
  /** A shell script that fills the directory below before the tree is made. */
  base?: string;
  /** Puts the directory below on another file system than what is written. */
  onOtherDevice?: boolean;
}

export async function openOverlayTree({
  base = "",
  onOtherDevice = false,
}: OverlayOptions = {}): Promise<OverlayTree> {
  const engine = await testEngine();
  await using stack = new Undo();
  const directory = stack.use(await temporaryDirectory(onOtherDevice ? "/dev/shm" : undefined));
  // With a socket as its input, and no shell above it, bash would read a file of the machine's that does not suit -u.
  await promisify(execFile)("bash", ["--norc", "-euc", base], { cwd: directory.path, maxBuffer: 1 << 26 });
  await promisify(execFile)("chown", ["-hR", USER, directory.path]);
  const [upper, work] = [stack.use(await makeVolume(engine, {})), stack.use(await makeVolume(engine, {}))];
  const layers = `lowerdir=${directory.path},upperdir=${upper.path},workdir=${work.path}`;
  const o = `${layers},xino=on,redirect_dir=on,metacopy=off,index=off`;
  const merged = stack.use(await makeVolume(engine, { type: "overlay", device: "overlay", o }));
  const keeper = stack.use(
    await startRunnerContainer(engine, {
      user: "0:0",
      capabilities: KEEPER_CAPABILITIES,
      mounts: [
        volumeMount(merged.name, "/merged"),
        { ...volumeMount(upper.name, "/upper"), ReadOnly: true },
        { ...bindMount(directory.path, "/base"), ReadOnly: true },
      ],
    }),
  );
  await keeper.shell("chown 1000:1000 /merged; chmod 755 /merged");
  const agent = stack.use(
    await startRunnerContainer(engine, { user: USER, mounts: [volumeMount(merged.name, "/repo")] }),
  );
  const undo = stack.move();
  return {
    base: directory.path,
    agent,
    keeper,
    async scan(options = {}) {
      const changes: TreeChange[] = [];
      const scan = await scanChanges(keeper.context, {
        base: "/base",
        merged: "/merged",
        upper: "/upper",
        leftOut: [],
        onChanges: (some) => void changes.push(...some),
        ...options,
      });
      return { changes, scan, lines: changes.map(lineOf) };
    },
    [Symbol.asyncDispose]: () => undo[Symbol.asyncDispose](),
  };
}

/** A container of a directory's owner, who may write to it. */
export interface Applier extends RunnerContainer {
  /** On the host; inside it is /base. */
  readonly base: string;
}

interface ApplierOptions {
  /** Further directories of the host, by their paths inside. */
  mounts?: Record<string, string>;
  tmpfs?: Record<string, string>;
  isConnected?: boolean | undefined;
}

export async function openApplier(
  engine: Engine,
  { base = "", mounts = {}, tmpfs = {}, isConnected }: ApplierOptions & { base?: string },
): Promise<Applier> {
  await using stack = new Undo();
  const directory = stack.use(await temporaryDirectory());
  await promisify(execFile)("bash", ["--norc", "-euc", base], { cwd: directory.path });
  await promisify(execFile)("chown", ["-hR", USER, directory.path]);
  const container = stack.use(
    await startApplier(engine, { base: directory.path, mounts, tmpfs, isConnected }),
  );
  const undo = stack.move();
  return {
    id: container.id,
    token: container.token,
    get context() {
      return container.context;
    },
    shell: container.shell,
    base: directory.path,
    [Symbol.asyncDispose]: () => undo[Symbol.asyncDispose](),
  };
}

/** As `openApplier`, for an existing directory, which is not removed at the end. */
export async function startApplier(
  engine: Engine,
  { base, mounts = {}, tmpfs = {}, isConnected = true }: ApplierOptions & { base: string },
): Promise<RunnerContainer> {
  return await startRunnerContainer(engine, {
    user: USER,
    mounts: Object.entries({ "/base": base, ...mounts }).map(([path, source]) => bindMount(source, path)),
    tmpfs,
    isConnected,
  });
}

function bindMount(source: string, path: string): Mount {
  return {
    Type: "bind",
    Source: source,
    Target: path,
    ReadOnly: false,
    BindOptions: { Propagation: "rprivate" },
  };
}

/** For example "modified src/a.ts (file)", and "modified x (file, was directory)". */
export function lineOf({ change, path, now, before }: TreeChange): string {
  const type = now?.type ?? before?.type;
  const was = now && before && now.type !== before.type ? `, was ${before.type}` : "";
  return `${change} ${path.toString("latin1")} (${type}${was})`;
}

interface MadeVolume extends AsyncDisposable {
  name: string;
  /** A path on the engine's machine. */
  path: string;
}

async function makeVolume(engine: Engine, options: Record<string, string>): Promise<MadeVolume> {
  const name = `brig-test-${randomBytes(8).toString("hex")}`;
  const body = { Name: name, Driver: "local", DriverOpts: options, Labels: testLabels() };
  const answer = await call(new URL(engine.endpoint).pathname, {
    method: "POST",
    path: "/volumes/create",
    type: "application/json",
    body: Readable.from([JSON.stringify(body)]),
  });
  const { Mountpoint } = JSON.parse(await text(answer)) as { Mountpoint: string };
  return { name, path: Mountpoint, [Symbol.asyncDispose]: () => engine.removeVolume(name) };
}

function volumeMount(volume: string, path: string): Mount {
  return { Type: "volume", Source: volume, Target: path, ReadOnly: false, VolumeOptions: { NoCopy: true } };
}

/** Collects functions that undo what was made. They run in reverse order, also if a later step fails. */
class Undo implements AsyncDisposable {
  #made: AsyncDisposable[] = [];

  use<Made extends AsyncDisposable>(made: Made): Made {
    this.#made.push(made);
    return made;
  }

  move(): Undo {
    const moved = new Undo();
    moved.#made = this.#made;
    this.#made = [];
    return moved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const made of this.#made.toReversed()) await made[Symbol.asyncDispose]();
  }
}
