import { invalidUsage } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import type { ExecResult } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import { type AttemptPlace, EpisodeSet, type EpisodeSetOptions, openTask, taskNamed } from "./episodes.js";
import { fileCalls } from "./files/file-calls.js";
import type { MemoryBudget } from "./http/memory-budget.js";
import type { OtherProtocol } from "./http/other-protocol.js";
import type { Answer, Calls } from "./http/response.js";
import type { ClientQuota } from "./http/served-client.js";
import { takeOverKept } from "./kept/kept-sandboxes.js";
import { Metrics } from "./metrics.js";
import { overviewCalls } from "./overview/overview-calls.js";
import { PortProxy } from "./ports/port-proxy.js";
import { PortRequests } from "./ports/port-requests.js";
import type { OutputBudget } from "./processes/output-budget.js";
import { processCalls } from "./processes/process-calls.js";
import { accountCalls } from "./sandboxes/account-calls.js";
import { Capacity, type CapacityLimits } from "./sandboxes/capacity.js";
import { IdempotentCreates, type KnownKey } from "./sandboxes/idempotent-creates.js";
import type { MachineRoom } from "./sandboxes/machine-room.js";
import type { MinutesFile } from "./sandboxes/minutes-file.js";
import { Needs } from "./sandboxes/needs.js";
import { type FreePlaces, hasWorkspace, openFree, type SandboxRequest } from "./sandboxes/open-free.js";
import { type AskedFor, refuseForbidden } from "./sandboxes/quota.js";
import { execBuffered, execStreamed } from "./sandboxes/sandbox-calls.js";
import { type SandboxQuotas, SandboxSet } from "./sandboxes/sandbox-set.js";
import type { InUse, OpenedPlace } from "./sandboxes/served-sandbox.js";
import { settingCalls } from "./sandboxes/setting-calls.js";
import { openApiDescription } from "./wire/openapi.js";
import { METRICS_TYPE } from "./wire/routes.js";
import type { RemoteSandboxOptions } from "./wire/schemas.js";
import { pointCalls } from "./workspaces/point-calls.js";
import { SnapshotSet } from "./workspaces/snapshot-set.js";
import { workspaceCalls } from "./workspaces/workspace-calls.js";

export interface ServiceOptions {
  places: FreePlaces;
  attempts: AttemptPlace;
  openAgent: EpisodeSetOptions["openAgent"];
  limits: CapacityLimits & { idleMs: number; maxLifeMs: number };
  /** Opens what is served besides the routes. Default: nothing. */
  openProtocols?: OpenProtocols | undefined;
  /** Images by the names that clients may use in their place. Default: none. */
  templates?: Readonly<Record<string, string>> | undefined;
  /** What clients may have besides. Default: nothing else is limited. */
  quotaOf?: ((client: string) => ClientQuota) | undefined;
  /** Where the minutes of clients are kept for the next service. Default: nowhere. */
  minutes?: MinutesFile | undefined;
  /** What the engine's machine has. Default: it is not looked at. */
  room?: MachineRoom | undefined;
  /** Where what is kept of sandboxes and of their outputs counts. Default: nowhere. */
  memory?: MemoryBudget | undefined;
  outputs?: OutputBudget | undefined;
  /** How many lines of the audit log are missing. Default: there is none. */
  auditLost?: (() => number) | undefined;
  /** Whether a sandbox that is to be paused when its time is over is ended then. Default: it is paused. */
  endsAutoPaused?: boolean | undefined;
  /** For what goes wrong while nobody waits for it. */
  onWarning: (error: unknown) => void;
}

/** What other protocols than that of the service have in common with it. */
export interface ProtocolParts {
  places: Pick<FreePlaces, "engine" | "image" | "mode" | "allowsNetwork">;
  templates: Readonly<Record<string, string>>;
  endsAutoPaused: boolean;
  sandboxes: SandboxSet;
  snapshots: SnapshotSet;
  ports: PortProxy;
  /** The longest life of a sandbox. */
  maxLifeMs: number;
  /** Once it is aborted, nothing new begins. */
  drain: AbortSignal;
}

export type OpenProtocols = (parts: ProtocolParts) => OtherProtocol[];

/** Everything that the clients have, and how their requests are answered. */
export interface Service {
  calls: Calls;
  others: readonly OtherProtocol[];
  /** Whose sandbox it is; null for an unknown one. */
  ownerOf(id: string): string | null;
  /** Goes on with the sandboxes of an earlier service. Resolves to how many there are; those of which the engine does not say anything come later. */
  takeOver(signal: AbortSignal): Promise<number>;
  /** Resolves when all episodes have ended. */
  settled(): Promise<void>;
  /** Ends and removes everything but the sandboxes with which the next service goes on. Resolves to how many these are. */
  close(): Promise<number>;
}

export function openService(options: ServiceOptions, drain: AbortSignal): Service {
  const {
    places,
    attempts,
    openAgent,
    openProtocols,
    limits,
    quotaOf,
    minutes,
    room,
    memory,
    outputs,
    auditLost = () => 0,
    onWarning,
  } = options;
  const onUsedUp = (client: string) => {
    episodes.endAllOf(client);
    void sandboxes.removeAllOf(client);
  };
  const capacity = new Capacity(limits, { drain, quotaOf, minutes, room, onUsedUp });
  const quotas = openQuotas(options);
  const open = async (request: SandboxRequest, signal: AbortSignal) =>
    await openPlace(request, { places, attempts, signal });
  const sandboxes = new SandboxSet({
    capacity,
    quotas: quotas.sandboxes,
    memory,
    outputs,
    open,
    ...limits,
    onWarning,
  });
  const episodes = new EpisodeSet({
    ...{ place: attempts, capacity, quotas: quotas.episodes, image: places.image, openAgent, onWarning },
  });
  const metrics = new Metrics();
  const keyed = new IdempotentCreates((client, id) => sandboxes.find(client, id));
  const snapshots = new SnapshotSet(places.environment.brigHome);
  const ports = new PortProxy();
  const { templates = {}, endsAutoPaused = false } = options;
  const parts = {
    places,
    templates,
    endsAutoPaused,
    sandboxes,
    snapshots,
    ports,
    maxLifeMs: limits.maxLifeMs,
    drain,
  };
  const calls: Calls = metrics.counted({
    health: async () =>
      json({
        status: drain.aborted ? "draining" : "ok",
        version: readVersion(),
        sandboxes: capacity.takenCount,
        maxSandboxes: limits.maxPlaces,
      }),
    openapi: async () => json(openApiDescription(readVersion())),
    listTasks: async () =>
      json({
        tasks: attempts.tasks.map(({ name, steps }) => ({ name, instruction: steps[0]?.instruction ?? "" })),
      }),
    metrics: async () => ({
      kind: "text",
      type: METRICS_TYPE,
      text: metrics.text({
        ...{ ...sandboxes.counts, waiting: capacity.waitingCount, auditLost: auditLost() },
        warm: places.pool?.readyCount ?? 0,
      }),
    }),
    createSandbox: async ({ client, headers, body, signal }) => {
      refuseOwnOptions(body);
      const create = async (until: AbortSignal, key?: KnownKey) =>
        await sandboxes.create(client, await snapshots.resolve(client, body), { signal: until, key });
      const key = headers["idempotency-key"];
      return json(
        key === undefined ? await create(signal) : await keyed.run({ client, key, body, signal }, create),
      );
    },
    ...sandboxCalls(sandboxes, metrics),
    ...settingCalls(sandboxes, places),
    ...workspaceCalls(sandboxes, snapshots),
    ...overviewCalls({ sandboxes, capacity, drain }),
    ...pointCalls(sandboxes),
    ...accountCalls(sandboxes),
    createEpisode: async ({ client, body, signal }) => json(await episodes.create(client, body, signal)),
    listEpisodes: async ({ client }) => json({ episodes: episodes.of(client) }),
    getEpisode: async ({ client, id, query, signal }) => {
      const episode = episodes.get(client, id);
      await episode.wait(query.waitMs ?? 0, signal);
      return json(episode.record);
    },
    gradeEpisode: async ({ client, id, signal }) => {
      const episode = episodes.get(client, id);
      await beforeAbort(episode.grade(), signal);
      return json(episode.record);
    },
    getTrajectory: async ({ client, id, memory }) => ({
      kind: "bytes",
      bytes: await episodes.get(client, id).trajectory(memory),
    }),
    deleteEpisode: async ({ client, id }) => done(episodes.remove(client, id)),
  });
  const over = new AbortController();
  return {
    calls,
    others: [new PortRequests(ports, { sandboxes, drain }), ...(openProtocols?.(parts) ?? [])],
    ownerOf: (id) => sandboxes.ownerOf(id),
    async takeOver(signal) {
      signal.addEventListener("abort", () => over.abort(signal.reason), { once: true });
      return await takeOverKept({
        ...{ places, capacity, sandboxes, keyed, signal: over.signal, onWarning },
        needOf: async (request) => await quotas.sandboxes.need(request),
      });
    },
    settled: async () => await episodes.settled(),
    async close() {
      over.abort();
      const keeps = places.kept?.keeps === true;
      const [goOn] = await Promise.all([sandboxes.close({ keeps }), episodes.close()]);
      await minutes?.close();
      return goOn;
    },
  };
}

/** What clients may ask for, and what it takes. */
function openQuotas({ places, attempts, quotaOf = () => ({}) }: ServiceOptions): {
  sandboxes: SandboxQuotas;
  episodes: EpisodeSetOptions["quotas"];
} {
  const needs = new Needs(places);
  const refuse = (client: string, asked: AskedFor) => refuseForbidden(asked, quotaOf(client));
  return {
    sandboxes: {
      refuse,
      asked({ task, image = places.image, imageOfTask, mode = places.mode, network, setup }) {
        // Tasks and their images are the operator's.
        if (task !== undefined) return {};
        return {
          image: imageOfTask === undefined ? image : undefined,
          mode,
          network,
          setupNetwork: setup?.network,
        };
      },
      async need(request) {
        if (request.task === undefined) return await needs.ofSandbox(request);
        return await needs.ofTask(taskNamed(request.task, attempts.tasks));
      },
    },
    episodes: { refuse, need: async (task) => await needs.ofTask(task) },
  };
}

type SandboxCallName =
  | "listSandboxes"
  | "getSandbox"
  | "deleteSandbox"
  | "exec"
  | "execStream"
  | "gradeSandbox"
  | keyof ReturnType<typeof fileCalls>
  | keyof ReturnType<typeof processCalls>;

/** How requests are answered that concern sandboxes which are open. Their commands are counted in `metrics`. */
export function sandboxCalls(
  sandboxes: SandboxSet,
  metrics: Metrics = new Metrics(),
): Pick<Calls, SandboxCallName> {
  return {
    listSandboxes: async ({ client, query }) =>
      json({ sandboxes: sandboxes.of(client, { labels: query.label }) }),
    getSandbox: async ({ client, id }) => json(sandboxes.get(client, id).record),
    deleteSandbox: async ({ client, id }) => done(sandboxes.remove(client, id)),
    exec: async (call) => {
      const sandbox = sandboxes.get(call.client, call.id);
      const run = (inUse: InUse) =>
        sandbox.commands.noted(call.body.argv, execBuffered(call.body, inUse, call.memory));
      return json(await sandbox.use(call.signal, (inUse) => metrics.timed(run(inUse))));
    },
    execStream: async (call) => {
      const sandbox = sandboxes.get(call.client, call.id);
      const run = async (command: (inUse: InUse) => Promise<ExecResult>) =>
        await sandbox.use(call.signal, (inUse) =>
          metrics.timed(sandbox.commands.noted(call.body.argv, command(inUse))),
        );
      return execStreamed(call.body, (command) => metrics.watched(run(command), call.signal), call.memory);
    },
    ...processCalls((client, id) => sandboxes.get(client, id)),
    ...fileCalls((client, id) => sandboxes.get(client, id)),
    gradeSandbox: async ({ client, id, signal }) =>
      json(await beforeAbort(sandboxes.get(client, id).grade(), signal)),
  };
}

interface OpenOptions {
  places: FreePlaces;
  attempts: AttemptPlace;
  signal: AbortSignal;
}

async function openPlace(
  request: SandboxRequest,
  { places, attempts, signal }: OpenOptions,
): Promise<OpenedPlace> {
  const { task, imageOfTask } = request;
  if (task !== undefined) return await openTask(task, { place: attempts, signal });
  if (imageOfTask !== undefined) return await openWithTaskImage(request, { places, attempts, signal });
  return await openFree(request, { places, directory: attempts.directory, signal });
}

/** Error: `usage.invalid` for the sandbox of a task that is to be another one. */
function refuseOwnOptions({
  task,
  image,
  imageOfTask,
  mode,
  network,
  ...others
}: RemoteSandboxOptions): void {
  const { user, limits, workspaceKind, snapshot, secrets, setup } = others;
  const own = Object.entries({
    ...{ image, imageOfTask, mode, network, user, limits, workspaceKind, snapshot, secrets, setup },
  }).find(([, value]) => value !== undefined);
  if (task !== undefined && own !== undefined)
    throw invalidUsage(`the sandbox of a task has its own ${own[0]}`, `leave ${own[0]} out`);
}

/** Errors: `serve.unknown`; `image.build-failed`; those of `openFree`. */
async function openWithTaskImage(
  request: RemoteSandboxOptions,
  { places, attempts, signal }: OpenOptions,
): Promise<OpenedPlace> {
  if (request.image !== undefined)
    throw invalidUsage("image and imageOfTask both name an image", "leave one of them out");
  const task = taskNamed(`${request.imageOfTask}`, attempts.tasks);
  // Held until the sandbox is open, so that no other run removes it meanwhile.
  using image = await attempts.images.ready(task.environment.image, { task: task.name, signal });
  const usual = hasWorkspace(request) ? undefined : (task.environment.workdir ?? undefined);
  const workingDirectory = request.workingDirectory ?? usual;
  return await openFree(
    { ...request, image: image.id, workingDirectory },
    { places, directory: attempts.directory, signal },
  );
}

function json(value: unknown): Answer {
  return { kind: "json", value };
}

async function done(doing: Promise<unknown>): Promise<Answer> {
  await doing;
  return { kind: "nothing" };
}
