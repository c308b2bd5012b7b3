import type { RecordedPlace, TaskImages } from "../../../batch/index.js";
import { imageUser } from "../../../batch/index.js";
import { invalidUsage } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type {
  Engine,
  ImageSummary,
  LoadedPolicy,
  Policy,
  Sandbox,
  SandboxLimits,
  SandboxMode,
  SandboxPool,
  SentHeaders,
} from "../../../sandbox/index.js";
import {
  disposeFirst,
  missingImage,
  resolveSettings,
  sendingHeaders,
  settingsOf,
  startFromSnapshot,
  startSandbox,
} from "../../../sandbox/index.js";
import type { RemoteSandboxOptions } from "../wire/schemas.js";
import { EmptyDirectory } from "../workspaces/empty-directory.js";
import { watchedEgress } from "./egress-counts.js";
import { closedNetwork, requireNetwork, shownNetwork } from "./replace-network.js";
import type { OpenedPlace } from "./served-sandbox.js";

/** What the sandboxes of the service have in common, and what a client gets that says nothing. */
export interface FreePlaces {
  engine: Engine;
  environment: Environment;
  runtime: string | undefined;
  image: string;
  mode: SandboxMode;
  /** In place of the mode's. */
  limits?: SandboxLimits | undefined;
  /** Variables of every command. Default: none. */
  env?: Readonly<Record<string, string>> | undefined;
  allowsNetwork: boolean;
  /** Files of certificate authorities that servers may have besides those that Node trusts. Default: none. */
  caFiles?: readonly string[] | undefined;
  /** Where images come from that the engine does not have; null if they are not fetched. */
  images: TaskImages | null;
  /** Sandboxes that are as a client gets them that says nothing; null for none. */
  pool: SandboxPool | null;
}

/** What a sandbox is opened with: what any client may ask for, and what only other protocols of the service do. */
export interface SandboxRequest extends RemoteSandboxOptions {
  /** What requests of its programs get on their way out. They can be replaced later if there is a list, even one without any. */
  sentHeaders?: readonly SentHeaders[] | undefined;
  /** It ends at the end of its life, whether anybody uses it or not. */
  isNeverIdle?: boolean | undefined;
}

interface OpenFree {
  places: FreePlaces;
  /** For the empty directories below workspaces. */
  directory: string;
  signal: AbortSignal;
}

/** Opens a sandbox that is no task's. Errors: those of `Sandbox.create`; `policy.invalid` for a network. */
export async function openFree(
  request: SandboxRequest,
  { places, directory, signal }: OpenFree,
): Promise<OpenedPlace> {
  const { image: imageName = places.image, mode = places.mode, network = "none" } = request;
  if (network !== "none") requireNetwork(network, places);
  const { engine, pool } = places;
  const isUsual =
    imageName === places.image &&
    mode === places.mode &&
    network === "none" &&
    request.user === undefined &&
    request.limits === undefined &&
    !hasWorkspace(request);
  if (isUsual && pool !== null) {
    const { sandbox, image } = await takeWarm(pool, imageName, { engine, signal });
    return await placeIn(sandbox, { request, image, imageName, mode, signal });
  }
  const image = await imageOf(imageName, { places, signal });
  const workspace = hasWorkspace(request) ? await EmptyDirectory.make(directory) : null;
  await using _held = workspace?.hold();
  const settings = await resolveSettings({
    mode,
    network: network === "none" ? closedNetwork(mode, places) : network,
    image: imageName,
    runtime: places.runtime,
    limits: { ...places.limits, ...request.limits },
    env: places.env,
    workspace: workspace?.path ?? null,
    workspaceKind: workspace === null ? "none" : "overlay",
    environment: places.environment,
  });
  const place = { engine, brigHome: places.environment.brigHome };
  const policy = await policyOf(settings.policy, { user: request.user, image, place });
  const workspacePath = workspace === null ? undefined : startDirectory(request, image);
  const planned = { ...settings, policy, workspacePath };
  const { sentHeaders } = request;
  const complete =
    sentHeaders === undefined
      ? planned
      : await sendingHeaders(planned, { sent: sentHeaders, caFiles: places.caFiles ?? [] });
  const start = { engine, signal };
  const sandbox =
    request.snapshot === undefined
      ? await startSandbox(complete, start)
      : await startFromSnapshot(async () => complete, {
          id: request.snapshot,
          brigHome: places.environment.brigHome,
          start,
        });
  return await placeIn(sandbox, { request, image, imageName, mode, workspace, signal });
}

/**
 * Takes a sandbox from the pool, and asks the engine about the image meanwhile. If the engine fails, the sandbox is closed: the
 * pool has given it away and does not take it back.
 */
async function takeWarm(
  pool: SandboxPool,
  imageName: string,
  { engine, signal }: { engine: Engine; signal: AbortSignal },
): Promise<{ sandbox: Sandbox; image: ImageSummary | null }> {
  const acquiring = pool.acquire({ signal });
  try {
    const [sandbox, image] = await Promise.all([acquiring, engine.inspectImage(imageName)]);
    return { sandbox, image };
  } catch (error) {
    const unused = await acquiring.catch(() => null);
    await unused?.[Symbol.asyncDispose]();
    throw error;
  }
}

interface PlaceOptions {
  request: RemoteSandboxOptions;
  image: ImageSummary | null;
  imageName: string;
  mode: SandboxMode;
  /** What is below its workspace. Default: it has none. */
  workspace?: EmptyDirectory | null;
  signal: AbortSignal;
}

async function placeIn(sandbox: Sandbox, options: PlaceOptions): Promise<OpenedPlace> {
  const { request, image, imageName, mode, workspace, signal } = options;
  try {
    // Where nothing can be written, a directory that the image does not have cannot be made.
    if (settingsOf(sandbox).policy.policy.rootfs === "rw")
      await sandbox.files.mkdir(startDirectory(request, image), { recursive: true, signal });
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
  const held = workspace?.hold();
  return {
    sandbox,
    egress: watchedEgress(sandbox),
    image: imageName,
    mode,
    network: shownNetwork(settingsOf(sandbox).policy.policy.network),
    task: null,
    instruction: null,
    workingDirectory: startDirectory(request, image),
    grade: null,
    onEnding(listener) {
      // Only once the sandbox knows that it is being closed, so that the listener may ask for that too.
      disposeFirst(sandbox, { [Symbol.asyncDispose]: async () => queueMicrotask(listener) });
    },
    ...(held !== undefined && {
      async fork(signal: AbortSignal) {
        // This sandbox may be removed before its fork is there.
        await using _held = workspace?.hold();
        return await placeIn(await sandbox.fork({ signal }), { ...options, signal });
      },
    }),
    async close() {
      await sandbox.close();
      await held?.[Symbol.asyncDispose]();
    },
  };
}

function startDirectory(request: RemoteSandboxOptions, image: ImageSummary | null): string {
  const { workingDirectory } = request;
  // A workspace at the image's own directory would hide what the image has there.
  if (hasWorkspace(request)) return withoutLastSlash(workingDirectory ?? "/workspace");
  return workingDirectory ?? (image?.workingDir || "/");
}

function withoutLastSlash(path: string): string {
  return path === "/" ? path : path.replace(/\/$/, "");
}

/** Error: `usage.invalid` for a snapshot without a workspace. */
export function hasWorkspace({ workspaceKind, snapshot }: RemoteSandboxOptions): boolean {
  if (snapshot === undefined) return workspaceKind === "overlay";
  if (workspaceKind !== "none") return true;
  throw invalidUsage("a snapshot is of a workspace, and workspaceKind is none", "leave workspaceKind out");
}

async function imageOf(
  name: string,
  { places, signal }: { places: FreePlaces; signal: AbortSignal },
): Promise<ImageSummary> {
  const { engine, images } = places;
  const found = await engine.inspectImage(name);
  if (found !== null) return found;
  using _ready = await images?.ready({ kind: "reference", reference: name }, { signal });
  const fetched = await engine.inspectImage(name);
  if (fetched === null) throw missingImage(name);
  return fetched;
}

async function policyOf(
  loaded: LoadedPolicy,
  { user, image, place }: { user: string | undefined; image: ImageSummary; place: RecordedPlace },
): Promise<LoadedPolicy> {
  if (user === undefined) return loaded;
  const { policy } = loaded;
  return { ...loaded, policy: { ...policy, ...(await userOf(user, { policy, image, place })) } };
}

async function userOf(
  name: string,
  { policy, image, place }: { policy: Policy; image: ImageSummary; place: RecordedPlace },
): Promise<Pick<Policy, "user" | "home">> {
  const { uid, gid, home } = await imageUser(place, { image, user: name });
  // Where nothing else can be written, the home directory stays where the policy has it.
  return { user: `${uid}:${gid}`, home: policy.rootfs === "rw" ? home : policy.home };
}
