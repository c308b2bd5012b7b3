import { dirname, join } from "node:path";
import type { RecordedPlace, TaskImages } from "../../../batch/index.js";
import { imageUser } from "../../../batch/index.js";
import { invalidUsage } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type {
  EgressSettings,
  Engine,
  ImageSummary,
  LoadedPolicy,
  Policy,
  Receipt,
  ResumedCommand,
  Sandbox,
  SandboxLimits,
  SandboxMode,
  SandboxPool,
  SandboxSettings,
  SentHeaders,
} from "../../../sandbox/index.js";
import {
  disposeFirst,
  forkLasting,
  lastingDirectoryOf,
  letGoOfLasting,
  missingImage,
  parseNetwork,
  removeSnapshot,
  resolveSettings,
  resumeLasting,
  runSetup,
  sealKeyOf,
  sendingHeaders,
  settingsOf,
  setupFailure,
  startFromSnapshot,
  startSandbox,
} from "../../../sandbox/index.js";
import { KEPT_LEASE_SECONDS, type KeptHome } from "../kept/kept-home.js";
import { type KeptRecord, newKeptDirectory, type Opening, removeKept } from "../kept/kept-records.js";
import { notedIn } from "../processes/process-table.js";
import type { RemoteSecrets } from "../wire/opening-schemas.js";
import type { RemoteSandboxOptions } from "../wire/schemas.js";
import { EmptyDirectory } from "../workspaces/empty-directory.js";
import { watchedEgress } from "./egress-counts.js";
import { closedNetwork, requireNetwork, shownNetwork } from "./replace-network.js";
import { ServedEgress } from "./served-egress.js";
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
  /** Where the next service finds the sandboxes of this one. Default: they end with it. */
  kept?: KeptHome | null | undefined;
}

/** What a sandbox is opened with: what any client may ask for, and what only other protocols of the service do. */
export interface SandboxRequest extends RemoteSandboxOptions {
  /** What requests of its programs get on their way out. They can be replaced later if there is a list, even one without any. */
  sentHeaders?: readonly SentHeaders[] | undefined;
  /** It ends at the end of its life, whether anybody uses it or not. */
  isNeverIdle?: boolean | undefined;
  /** It is paused when it expires. Default: it is removed then. */
  pausesAtExpiry?: boolean | undefined;
  /** What another protocol knows of it is secret: the next service goes on with it only where secrets are kept. */
  isSecret?: boolean | undefined;
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
  for (const one of [network, request.setup?.network ?? "none"])
    if (one !== "none" || request.secrets !== undefined) requireNetwork(one, places);
  const { engine, pool } = places;
  const isUsual =
    imageName === places.image &&
    mode === places.mode &&
    network === "none" &&
    request.user === undefined &&
    request.limits === undefined &&
    request.secrets === undefined &&
    request.setup === undefined &&
    !hasWorkspace(request);
  if (isUsual && pool !== null) {
    const { sandbox, image } = await takeWarm(pool, imageName, { engine, signal });
    const opening = openingOf(request, { places, workspace: null });
    return await newPlaceIn(sandbox, { opening, workingDirectory: startDirectory(request, image), signal });
  }
  const image = await imageOf(imageName, { places, signal });
  const workingDirectory = startDirectory(request, image);
  const workspace = hasWorkspace(request) ? await emptyDirectory(directory, places) : null;
  await using _held = workspace?.hold();
  const opening = openingOf(request, {
    places,
    workspace: workspace && { directory: workspace.path, path: workingDirectory },
  });
  const settings = await settingsFrom(opening, places, request);
  if (request.secrets !== undefined && !settings.inspection)
    throw invalidUsage("secrets need a list of allowed hosts", 'choose network: "allowlist:HOST,…"');
  const place = { engine, brigHome: places.environment.brigHome };
  const { policy } = settings.policy;
  opening.user = request.user === undefined ? null : await userOf(request.user, { policy, image, place });
  const planned = withUser(settings, opening);
  const { sentHeaders } = request;
  const complete =
    sentHeaders === undefined
      ? planned
      : await sendingHeaders(planned, { sent: sentHeaders, caFiles: places.caFiles ?? [] });
  const isSecret = sentHeaders !== undefined || request.secrets !== undefined || request.isSecret === true;
  const home = places.kept?.keeps === true ? places.kept : null;
  const sealKey = home?.keepsSecrets === true ? home.sealKey : undefined;
  // Without a key to seal them, secrets and headers of requests are not written to a file. The next service cannot go on with this sandbox then.
  const endsHere = isSecret && sealKey === undefined;
  const lasting = home === null || endsHere ? undefined : newKeptDirectory(home.directory);
  const start = { engine, signal, lasting, sealKey };
  try {
    const sandbox =
      request.snapshot === undefined
        ? await startSandbox(complete, start)
        : await startFromSnapshot(async () => complete, {
            id: request.snapshot,
            brigHome: places.environment.brigHome,
            start,
          });
    const isSetUp = request.setup !== undefined;
    return await newPlaceIn(sandbox, { opening, workingDirectory, workspace, isSetUp, signal });
  } catch (error) {
    if (lasting !== undefined) removeKept(lasting);
    throw error;
  }
}

/** Goes on with a sandbox that an earlier service has opened. Errors: those of `resumeLasting`. */
export async function resumeFree(
  directory: string,
  { opening, sandbox: { network, workingDirectory } }: KeptRecord,
  { places, signal }: { places: FreePlaces; signal: AbortSignal },
): Promise<{ opened: OpenedPlace; commands: ResumedCommand[] }> {
  const { workspace: given } = opening;
  const workspace = given === null ? null : await EmptyDirectory.lasting(given.directory);
  const parsed = parseNetwork(network);
  const hosts = parsed.kind === "parsed" && parsed.network.kind === "allowlist" ? parsed.network.hosts : [];
  const { sandbox, commands } = await resumeLasting(directory, {
    settings: withUser(await settingsFrom(opening, places), opening),
    options: { engine: places.engine, signal, lasting: directory, sealKey: places.kept?.sealKey },
    hosts,
  });
  const opened = placeIn(sandbox, { opening, workingDirectory, workspace });
  return { opened: { ...opened, network }, commands };
}

function openingOf(
  request: RemoteSandboxOptions,
  { places, workspace }: { places: FreePlaces; workspace: Opening["workspace"] },
): Opening {
  const { image = places.image, mode = places.mode, network = "none", limits } = request;
  return {
    ...{ image, mode, workspace, user: null },
    network: network === "none" ? closedNetwork(mode, places) : network,
    runtime: places.runtime ?? null,
    limits: { ...places.limits, ...limits },
    env: { ...places.env },
  };
}

async function settingsFrom(
  opening: Opening,
  { environment, kept, caFiles }: FreePlaces,
  { secrets, setup, env: own }: Pick<SandboxRequest, "secrets" | "setup" | "env"> = {},
): Promise<SandboxSettings> {
  const { image, mode, network, runtime, limits, env, workspace } = opening;
  const settings = await resolveSettings({
    ...{ image, mode, network, limits, environment, setup },
    // The set-up has the variables that commands will have.
    env: setup === undefined ? env : { ...env, ...own },
    egress: secrets && { secrets: heldSecrets(secrets), ca_files: [...(caFiles ?? [])] },
    runtime: runtime ?? undefined,
    workspace: workspace?.directory ?? null,
    workspaceKind: workspace === null ? "none" : "overlay",
    leaseSeconds: kept?.keeps === true ? KEPT_LEASE_SECONDS : undefined,
  });
  return { ...settings, workspacePath: workspace?.path };
}

function withUser(settings: SandboxSettings, { user }: Opening): SandboxSettings {
  if (user === null) return settings;
  const loaded: LoadedPolicy = settings.policy;
  return { ...settings, policy: { ...loaded, policy: { ...loaded.policy, ...user } } };
}

async function emptyDirectory(directory: string, { kept }: FreePlaces): Promise<EmptyDirectory> {
  if (kept?.keeps !== true) return await EmptyDirectory.make(directory);
  return await EmptyDirectory.lasting(join(kept.directory, "workspace"));
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
  opening: Opening;
  workingDirectory: string;
  /** What is below its workspace. Default: it has none. */
  workspace?: EmptyDirectory | null;
  /** Whether it is set up: a fork is as its parent was. Default: it is not. */
  isSetUp?: boolean;
}

async function newPlaceIn(
  sandbox: Sandbox,
  { signal, ...options }: PlaceOptions & { signal: AbortSignal },
): Promise<OpenedPlace> {
  const directory = lastingDirectoryOf(sandbox);
  const { workingDirectory, isSetUp = false } = options;
  const place = placeIn(sandbox, options);
  try {
    // Where nothing can be written, a directory that the image does not have cannot be made.
    if (settingsOf(sandbox).policy.policy.rootfs === "rw")
      await sandbox.files.mkdir(workingDirectory, { recursive: true, signal });
    if (isSetUp) await setUp(sandbox, workingDirectory, signal);
  } catch (error) {
    await place.close();
    if (directory !== null) removeKept(directory);
    throw error;
  }
  return place;
}

function placeIn(sandbox: Sandbox, options: PlaceOptions): OpenedPlace {
  const { opening, workingDirectory, workspace } = options;
  const { image, mode } = opening;
  const { network } = settingsOf(sandbox).policy.policy;
  const held = workspace?.hold();
  const directory = lastingDirectoryOf(sandbox);
  return {
    ...{ sandbox, image, mode, workingDirectory, egress: watchedEgress(sandbox) },
    egressLog: new ServedEgress(sandbox, { learns: network.kind === "allowlist" && network.learns === true }),
    network: shownNetwork(network),
    ...{ task: null, instruction: null, grade: null, noted: notedIn(sandbox) },
    ...(directory !== null && {
      kept: {
        ...{ directory, opening, sealKey: sealKeyOf(sandbox) },
        canBeResumed: () => lastingDirectoryOf(sandbox) !== null,
        letGo: async () => await letGoOfLasting(sandbox),
      },
    }),
    onEnding(listener) {
      // Only once the sandbox knows that it is being closed, so that the listener may ask for that too.
      disposeFirst(sandbox, { [Symbol.asyncDispose]: async () => queueMicrotask(listener) });
    },
    ...(held !== undefined && {
      async fork(signal: AbortSignal) {
        // This sandbox may be removed before its fork is there.
        await using _held = workspace?.hold();
        const lasting = directory === null ? undefined : newKeptDirectory(dirname(directory));
        const forked = await forkLasting(sandbox, { signal, lasting });
        return await newPlaceIn(forked, { ...options, isSetUp: false, signal });
      },
    }),
    async close() {
      const receipt = await closeAll(sandbox);
      await held?.[Symbol.asyncDispose]();
      return receipt;
    },
  };
}

/** Its restore points go with it: nobody could open them again. */
async function closeAll(sandbox: Sandbox): Promise<Receipt> {
  const receipt = await sandbox.close();
  const { snapshotId } = sandbox;
  if (snapshotId !== null) await removeSnapshot(settingsOf(sandbox).environment.brigHome, snapshotId);
  return receipt;
}

/** Error: `setup.failed`, with the end of what it has printed. */
async function setUp(sandbox: Sandbox, cwd: string, signal: AbortSignal): Promise<void> {
  const failure = setupFailure(await runSetup(sandbox, { cwd, signal }));
  if (failure !== null) throw failure;
}

/** What a client may say of a secret: its value, and never where one of the service's own is. */
function heldSecrets(secrets: RemoteSecrets): NonNullable<EgressSettings["secrets"]> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, { plainHttp, ...secret }]) => [
      name,
      { ...secret, plain_http: plainHttp },
    ]),
  );
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

async function userOf(
  name: string,
  { policy, image, place }: { policy: Policy; image: ImageSummary; place: RecordedPlace },
): Promise<Pick<Policy, "user" | "home">> {
  const { uid, gid, home } = await imageUser(place, { image, user: name });
  // Where nothing else can be written, the home directory stays where the policy has it.
  return { user: `${uid}:${gid}`, home: policy.rootfs === "rw" ? home : policy.home };
}
