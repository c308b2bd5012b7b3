import type { RecordedPlace, TaskImages } from "../../../batch/index.js";
import { imageUser } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
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
} from "../../../sandbox/index.js";
import {
  disposeFirst,
  missingImage,
  resolveSettings,
  settingsOf,
  startSandbox,
} from "../../../sandbox/index.js";
import type { RemoteSandboxOptions } from "../wire/schemas.js";
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
  /** Where images come from that the engine does not have; null if they are not fetched. */
  images: TaskImages | null;
  /** Sandboxes that are as a client gets them that says nothing; null for none. */
  pool: SandboxPool | null;
}

/** Opens a sandbox that is no task's. Errors: those of `Sandbox.create`; `policy.invalid` for a network. */
export async function openFree(
  request: RemoteSandboxOptions,
  { places, signal }: { places: FreePlaces; signal: AbortSignal },
): Promise<OpenedPlace> {
  const { image: imageName = places.image, mode = places.mode, network = "none" } = request;
  if (network === "full" && !places.allowsNetwork)
    throw new BrigError("this service gives sandboxes no network", {
      code: "policy.invalid",
      hint: "its operator can allow it with brig serve --allow-network",
    });
  const { engine, pool } = places;
  const isUsual =
    imageName === places.image &&
    mode === places.mode &&
    network === "none" &&
    request.user === undefined &&
    request.limits === undefined;
  if (isUsual && pool !== null) {
    const { sandbox, image } = await takeWarm(pool, imageName, { engine, signal });
    return await placeIn(sandbox, { request, image, imageName, mode, signal });
  }
  const image = await imageOf(imageName, { places, signal });
  const settings = await resolveSettings({
    mode,
    network,
    image: imageName,
    runtime: places.runtime,
    limits: { ...places.limits, ...request.limits },
    env: places.env,
    workspace: null,
    workspaceKind: "none",
    environment: places.environment,
  });
  const place = { engine, brigHome: places.environment.brigHome };
  const policy = await policyOf(settings.policy, { user: request.user, image, place });
  const sandbox = await startSandbox({ ...settings, policy }, { engine, signal });
  return await placeIn(sandbox, { request, image, imageName, mode, signal });
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
  signal: AbortSignal;
}

async function placeIn(
  sandbox: Sandbox,
  { request, image, imageName, mode, signal }: PlaceOptions,
): Promise<OpenedPlace> {
  try {
    // Where nothing can be written, a directory that the image does not have cannot be made.
    if (settingsOf(sandbox).policy.policy.rootfs === "rw")
      await sandbox.files.mkdir(startDirectory(request, image), { recursive: true, signal });
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
  return {
    sandbox,
    image: imageName,
    mode,
    task: null,
    instruction: null,
    workingDirectory: startDirectory(request, image),
    grade: null,
    onEnding(listener) {
      // Only once the sandbox knows that it is being closed, so that the listener may ask for that too.
      disposeFirst(sandbox, { [Symbol.asyncDispose]: async () => queueMicrotask(listener) });
    },
    close: async () => void (await sandbox.close()),
  };
}

function startDirectory({ workingDirectory }: RemoteSandboxOptions, image: ImageSummary | null): string {
  return workingDirectory ?? (image?.workingDir || "/");
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
