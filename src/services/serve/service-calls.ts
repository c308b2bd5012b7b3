import { invalidUsage } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { readVersion } from "../../version.js";
import { type AttemptPlace, EpisodeSet, type EpisodeSetOptions, openTask, taskNamed } from "./episodes.js";
import type { Answer, Call, Calls } from "./http/response.js";
import { Capacity, type CapacityLimits } from "./sandboxes/capacity.js";
import { type FreePlaces, openFree } from "./sandboxes/open-free.js";
import {
  execBuffered,
  execStreamed,
  listEntries,
  readFile,
  removeFile,
  writeFile,
} from "./sandboxes/sandbox-calls.js";
import { SandboxSet } from "./sandboxes/sandbox-set.js";
import type { InUse, OpenedPlace } from "./sandboxes/served-sandbox.js";
import { openApiDescription } from "./wire/openapi.js";
import type { RouteName } from "./wire/routes.js";
import type { RemoteSandboxOptions } from "./wire/schemas.js";

export interface ServiceOptions {
  places: FreePlaces;
  attempts: AttemptPlace;
  openAgent: EpisodeSetOptions["openAgent"];
  limits: CapacityLimits & { idleMs: number; maxLifeMs: number };
  /** For what goes wrong while nobody waits for it. */
  onWarning: (error: unknown) => void;
}

/** Everything that the clients have, and how their requests are answered. */
export interface Service {
  calls: Calls;
  /** Resolves when all episodes have ended. */
  settled(): Promise<void>;
  /** Ends and removes everything. */
  close(): Promise<void>;
}

export function openService(options: ServiceOptions, drain: AbortSignal): Service {
  const { places, attempts, openAgent, limits, onWarning } = options;
  const capacity = new Capacity(limits, drain);
  const open = async (request: RemoteSandboxOptions, signal: AbortSignal) =>
    await openPlace(request, { places, attempts, signal });
  const sandboxes = new SandboxSet({ capacity, open, ...limits, onWarning });
  const episodes = new EpisodeSet({ place: attempts, capacity, image: places.image, openAgent, onWarning });
  const use = async <T>({ client, id, signal }: Call<RouteName>, run: (inUse: InUse) => Promise<T>) =>
    await sandboxes.get(client, id).use(signal, run);
  const calls: Calls = {
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
    createSandbox: async ({ client, body, signal }) => json(await sandboxes.create(client, body, signal)),
    listSandboxes: async ({ client }) => json({ sandboxes: sandboxes.of(client) }),
    getSandbox: async ({ client, id }) => json(sandboxes.get(client, id).record),
    deleteSandbox: async ({ client, id }) => done(sandboxes.remove(client, id)),
    exec: async (call) => json(await use(call, (inUse) => execBuffered(call.body, inUse, call.memory))),
    execStream: async (call) => {
      const sandbox = sandboxes.get(call.client, call.id);
      return execStreamed(call.body, (run) => sandbox.use(call.signal, run), call.memory);
    },
    readFile: async (call) => ({
      kind: "bytes",
      bytes: await use(call, (inUse) => readFile(call.query, inUse, call.memory)),
    }),
    writeFile: async (call) =>
      done(use(call, (inUse) => writeFile({ ...call.query, data: call.body }, inUse))),
    removeFile: async (call) => done(use(call, (inUse) => removeFile(call.query, inUse))),
    listEntries: async (call) =>
      json(await use(call, (inUse) => listEntries(call.query.path, inUse, call.memory))),
    gradeSandbox: async ({ client, id, signal }) =>
      json(await beforeAbort(sandboxes.get(client, id).grade(), signal)),
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
  };
  return {
    calls,
    settled: async () => await episodes.settled(),
    close: async () => void (await Promise.all([sandboxes.close(), episodes.close()])),
  };
}

interface OpenOptions {
  places: FreePlaces;
  attempts: AttemptPlace;
  signal: AbortSignal;
}

async function openPlace(
  request: RemoteSandboxOptions,
  { places, attempts, signal }: OpenOptions,
): Promise<OpenedPlace> {
  const { task, image, imageOfTask, mode, network, user, limits } = request;
  if (task === undefined && imageOfTask === undefined) return await openFree(request, { places, signal });
  if (task === undefined) return await openWithTaskImage(request, { places, attempts, signal });
  const own = Object.entries({ image, imageOfTask, mode, network, user, limits }).find(
    ([, value]) => value !== undefined,
  );
  if (own === undefined) return await openTask(task, { place: attempts, signal });
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
  const workingDirectory = request.workingDirectory ?? task.environment.workdir ?? undefined;
  return await openFree({ ...request, image: image.id, workingDirectory }, { places, signal });
}

function json(value: unknown): Answer {
  return { kind: "json", value };
}

async function done(doing: Promise<unknown>): Promise<Answer> {
  await doing;
  return { kind: "nothing" };
}
