import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { LoadedPolicy, Sandbox, SandboxSettings, StartOptions } from "../../../sandbox/index.js";
import {
  cacheVolumeName,
  ensureCacheVolume,
  loadPolicy,
  startSandbox,
  warner,
} from "../../../sandbox/index.js";
import type { ServerPlace, ServerProcess } from "../client/server-process.js";
import type { ServerCommand } from "../client/server-settings.js";
import { startIn } from "./sandboxed-server.js";

export interface OwnContainerOptions extends Pick<StartOptions, "onWarning"> {
  /** Connects to the engine. Called for each start. */
  engine(): Promise<StartOptions["engine"]>;
  /** Returns the settings of the session's sandbox, which the server's container shares in part. */
  settings(): Promise<SandboxSettings>;
  /** Receives a report of what the server left in the workspace that may later run by itself on the host. */
  onReceipt?: ((receipt: unknown) => void) | undefined;
}

const CACHE_PATH = "/brig-cache";

/** Where `npx` and `uvx` keep what they download, so that the next start needs no download. */
const cacheVariables = {
  npm_config_cache: `${CACHE_PATH}/npm`,
  UV_CACHE_DIR: `${CACHE_PATH}/uv`,
  UV_PYTHON_INSTALL_DIR: `${CACHE_PATH}/python`,
};

/**
 * Starts a server in a container of its own, which is removed when the server ends. The server sees the
 * workspace as the session's commands do, but not their processes, and its network is the one that `place`
 * names.
 */
export async function startInOwnContainer(
  name: string,
  command: ServerCommand,
  {
    place,
    signal,
    ...options
  }: OwnContainerOptions & { place: ServerPlace & { kind: "own" }; signal: AbortSignal },
): Promise<ServerProcess> {
  const sandbox = await open(name, { ...options, place, signal });
  const close = closer(sandbox, options);
  try {
    signal.throwIfAborted();
    const server = await startIn(sandbox, withCache(command), { directory: sandbox.workingDirectory });
    const gone = server.exited.then(close);
    return {
      ...server,
      async kill() {
        // Closing the sandbox also ends a server that ignores every signal.
        await Promise.all([close(), gone]);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  name: string,
  {
    place,
    signal,
    onWarning,
    ...from
  }: OwnContainerOptions & { place: ServerPlace & { kind: "own" }; signal: AbortSignal },
): Promise<Sandbox> {
  const [engine, settings] = await beforeAbort(Promise.all([from.engine(), from.settings()]), signal);
  const image = place.image ?? settings.image;
  const volume = cacheVolumeName([settings.workspace ?? "", name]);
  if ((await engine.inspectImage(image)) !== null)
    await ensureCacheVolume(engine, volume, {
      image,
      label: `MCP server ${name}`,
      brigHome: settings.environment.brigHome,
    });
  const policy = await policyFor(settings.policy, place);
  const volumes = [{ volume, path: CACHE_PATH }];
  const own = { ...settings, policy, image, env: {}, volumes, keep: false };
  return await startSandbox(own, { engine, signal, onWarning });
}

/**
 * Returns the session's policy with the server's own network. If the session has full access, the server
 * still runs under the policy `workspace-write`, with the session's access to the workspace.
 */
async function policyFor(
  session: LoadedPolicy,
  { network }: { network: "none" | "full" },
): Promise<LoadedPolicy> {
  const { policy, ...loaded } =
    session.name === "danger-full-access" ? await loadPolicy("workspace-write") : session;
  const workspace = session.policy.workspace;
  return { ...loaded, policy: { ...policy, workspace, network: { kind: network } } };
}

function withCache(command: ServerCommand): ServerCommand {
  return { ...command, env: { ...cacheVariables, ...command.env } };
}

/** Returns a function that closes the sandbox once. If that fails, it warns instead of rejecting. */
function closer(sandbox: Sandbox, { onReceipt, ...options }: OwnContainerOptions): () => Promise<void> {
  const warn = warner(options);
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= sandbox.close().then(onReceipt, warn);
    return closing;
  };
}
