import { resolve } from "node:path";
import { BrigError } from "../errors.js";
import { currentDirectory } from "../lib/current-directory.js";
import { type Environment, readEnvironment } from "../lib/env.js";
import { connectEngine, connectThrough } from "./docker/connect.js";
import type { Engine, EngineConnection } from "./docker/engine-types.js";
import type { Resolve } from "./egress/dial.js";
import type { ImageProgress } from "./images/dockerfile/image-builds.js";
import { type OpenedSandbox, openSandbox, type StartOptions } from "./open-sandbox.js";
import type { ConnectedSandbox } from "./portable-sandbox.js";
import type { ConnectOptions, SandboxOptions } from "./sandbox-options.js";
import { resolveSettings } from "./settings/resolve-settings.js";
import type { SandboxSettings } from "./settings/sandbox-settings.js";

/** Settings of a sandbox besides its options. The package does not export them: the command line and tests choose them. */
export interface Surroundings {
  /** Default: that of this process. */
  environment?: Environment | undefined;
  /** A volume to mount at /.brig instead of this version's toolbox, with another build of the runner. */
  toolboxVolume?: string | undefined;
  /** Looks up the names of an allow-list. Default: as the host's own programs do it. */
  resolve?: Resolve | undefined;
  /** As in `StartOptions`. */
  lasting?: string | undefined;
}

type ConnectLasting = (
  nameOrId: string,
  options: ConnectOptions & { environment: Environment },
) => Promise<ConnectedSandbox>;

let connectLasting: ConnectLasting | undefined;

/** Says how lasting sandboxes are reached. The library's entry does, because what reaches them is built on sandboxes. */
export function provideConnect(connect: ConnectLasting): void {
  connectLasting = connect;
}

/** Error: `usage.invalid` in a program that has not been given the way to them. */
export async function connectSandbox(nameOrId: string, options: ConnectOptions): Promise<ConnectedSandbox> {
  if (connectLasting === undefined)
    throw new BrigError("Sandbox.connect is there only in the package's main entry", {
      code: "usage.invalid",
    });
  return await connectLasting(nameOrId, { ...options, environment: readEnvironment() });
}

/** Opens a sandbox. Only here does the library read the process's environment and current directory. */
export async function createSandbox(
  given: SandboxOptions,
  surroundings: Surroundings = {},
): Promise<OpenedSandbox> {
  given.signal?.throwIfAborted();
  const options = await withCheckedLimits(given);
  const { toolboxVolume, resolve, lasting, environment = readEnvironment() } = surroundings;
  const connecting = connected(options, environment);
  // A failure is reported where the engine is needed, which a snapshot has to be read for first.
  connecting.catch(() => undefined);
  const start = { ...options, engine: connecting, toolboxVolume, resolve, lasting };
  if (options.from !== undefined)
    return await openFrom(options.from, options, { environment, start, engine: connecting });
  if (options.at !== undefined)
    throw new BrigError("the option at is the number of a restore point, and needs the option from", {
      code: "usage.invalid",
      hint: "pass the id of the snapshot that has the point as from",
    });
  const hasWorkspace = options.workspaceKind !== "none";
  const workspace = hasWorkspace ? (options.workspace ?? currentDirectory(process)) : null;
  const settings = resolveSettings({ ...options, workspace, environment });
  return await openSandbox(withImage(settings, { ...options, engine: connecting }), start);
}

/** Builds the image of the option `dockerfile`. Error: `usage.invalid` where another image is named too. */
async function withImage(
  resolving: Promise<SandboxSettings>,
  {
    dockerfile,
    image,
    engine,
    signal,
    onProgress,
  }: Pick<SandboxOptions, "dockerfile" | "image" | "signal" | "onProgress"> & { engine: Promise<Engine> },
): Promise<SandboxSettings> {
  const settings = await resolving;
  if (dockerfile === undefined) return settings;
  if (image !== undefined)
    throw new BrigError("the options image and dockerfile both name an image", {
      code: "usage.invalid",
      hint: "pass one of them",
    });
  const { buildOfDockerfile, provideProjectImage } = await import("./images/project-image.js");
  const build = await buildOfDockerfile(resolve(currentDirectory(process), dockerfile));
  const { brigHome } = settings.environment;
  const tell = ({ line, stage }: ImageProgress) => onProgress?.(`image: ${line ?? stage}`);
  const built = await provideProjectImage(await engine, build, { brigHome, signal, onProgress: tell });
  return { ...settings, image: built };
}

/** The schema is loaded only where there are limits. Error: `usage.invalid`. */
async function withCheckedLimits(options: SandboxOptions): Promise<SandboxOptions> {
  if (options.limits === undefined) return options;
  const { checkedLimits } = await import("./settings/checked-limits.js");
  return { ...options, limits: checkedLimits(options.limits) };
}

async function openFrom(
  from: NonNullable<SandboxOptions["from"]>,
  options: SandboxOptions,
  { environment, start, engine }: { environment: Environment; start: StartOptions; engine: Promise<Engine> },
): Promise<OpenedSandbox> {
  const { openFromSnapshot } = await import("./changes/sandbox-changes.js");
  const id = typeof from === "string" ? from : from.id;
  const settings = async (workspace: string) => {
    if ((options.workspaceKind ?? "overlay") !== "overlay" || (options.workspace ?? workspace) !== workspace)
      throw new BrigError(`the snapshot ${id} is of the workspace ${workspace}, copy-on-write`, {
        code: "usage.invalid",
        hint: "leave out workspace and workspaceKind",
      });
    const resolving = resolveSettings({ ...options, workspace, workspaceKind: "overlay", environment });
    return await withImage(resolving, { ...options, engine });
  };
  return await openFromSnapshot(settings, { id, at: options.at, brigHome: environment.brigHome, start });
}

async function connected({ engine, docker }: SandboxOptions, env: Environment): Promise<Engine> {
  if (engine !== undefined && docker !== undefined)
    throw new BrigError("the options engine and docker both name an engine", {
      code: "usage.invalid",
      hint: "pass one of them",
    });
  if (docker !== undefined) return await connectThrough(docker);
  return await (engine === undefined ? connectEngine({ env }) : engineOf(engine));
}

/** Anything with an `endpoint` fits the public type; only what brig itself connected to can start containers. */
async function engineOf(connection: EngineConnection | Promise<EngineConnection>): Promise<Engine> {
  const engine = await connection;
  if ("createContainer" in engine) return engine as Engine;
  throw new BrigError("the option engine is not a connection of brig's", {
    code: "usage.invalid",
    hint: "pass the engine property of another sandbox, or leave it out and set DOCKER_HOST",
  });
}
