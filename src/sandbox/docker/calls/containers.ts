import { constants } from "node:os";
import { text } from "node:stream/consumers";
import { BrigError } from "../../../errors.js";
import {
  array,
  boolean,
  nullable,
  nullish,
  number,
  object,
  read,
  record,
  type Shaped,
  string,
} from "../../../lib/json/json-shape.js";
import { type Client, nullIfMissing } from "../client.js";
import { asRefusal, RefusedRequest } from "../engine-failure.js";
import type { ContainerState, ContainerSummary, CreatedContainer, Engine } from "../engine-types.js";
import type { Transport } from "../transport.js";

export function containerCalls({ call, product }: Client) {
  return {
    async createContainer(body, { name } = {}) {
      const query = name === undefined ? {} : { name };
      const reply = await call(`create a container from ${body.Image}`, (api, limit) =>
        api.json({ method: "POST", path: "/containers/create", query, body }, limit),
      );
      return read(created, reply).Id;
    },

    async startContainer(id) {
      await call("start the container", (api, limit) =>
        api.json({ method: "POST", path: `${pathOf(id)}/start` }, limit),
      );
    },

    async waitContainer(id, { signal } = {}) {
      return await call(
        "wait for the container",
        async (api, limit) =>
          read(ended, await api.json({ method: "POST", path: `${pathOf(id)}/wait` }, limit)).StatusCode,
        { signal, limitMs: null },
      );
    },

    async killContainer(id, signal = "SIGKILL") {
      await call("kill the container", (api, limit) =>
        ignoreIfEnded(api.json({ method: "POST", path: `${pathOf(id)}/kill`, query: { signal } }, limit)),
      );
    },

    async pauseContainer(id) {
      await call("pause the container", (api, limit) =>
        api.json({ method: "POST", path: `${pathOf(id)}/pause` }, limit),
      );
    },

    async unpauseContainer(id) {
      await call("unpause the container", (api, limit) =>
        ignoreIfEnded(api.json({ method: "POST", path: `${pathOf(id)}/unpause` }, limit)),
      );
    },

    async removeContainer(id, { signal } = {}) {
      await call(
        "remove the container",
        async (api, limit) => {
          const query = { force: true, v: true };
          try {
            await nullIfMissing(api.json({ method: "DELETE", path: pathOf(id), query }, limit));
          } catch (error) {
            if (asRefusal(error)?.status !== 409) throw error;
            await removalEnd(api, id, limit);
          }
        },
        { signal },
      );
    },

    async waitRemoved(id, { signal } = {}) {
      await call("wait for the container's removal", (api, limit) => removalEnd(api, id, limit), {
        signal,
      });
    },

    async inspectContainer(id, { signal } = {}) {
      return await call(
        "inspect the container",
        async (api, limit) => {
          const reply = await nullIfMissing(api.json({ method: "GET", path: `${pathOf(id)}/json` }, limit));
          return reply === null ? null : parseState(reply);
        },
        { signal },
      );
    },

    async inspectCreated(id) {
      return await call("inspect the new container", async (api, limit) =>
        parseCreated(await api.json({ method: "GET", path: `${pathOf(id)}/json` }, limit)),
      );
    },

    async writtenBytes(id, { signal } = {}) {
      const query = { size: true };
      return await call(
        "ask how much the container has written",
        async (api, limit) => {
          const request = { method: "GET", path: `${pathOf(id)}/json`, query } as const;
          return read(sized, await api.json(request, limit)).SizeRw ?? null;
        },
        { signal },
      );
    },

    async listContainers(labels) {
      const query = { all: true, filters: { label: labels } };
      return await call("list containers", async (api, limit) =>
        read(summaries, await api.json({ method: "GET", path: "/containers/json", query }, limit)).map(
          asSummary,
        ),
      );
    },

    async attachContainer(id) {
      const query = { stream: true, stdin: true, stdout: true, stderr: true };
      return await call("attach to the container", async (api, limit) => ({
        stream: await api.upgrade({ method: "POST", path: `${pathOf(id)}/attach`, query }, limit),
      }));
    },

    async openExec(id, argv, { user } = {}) {
      const body = { Cmd: argv, AttachStdin: true, AttachStdout: true, AttachStderr: true, User: user };
      return await call("start a command in the container", (api, limit) =>
        goneIfStopped(async () => {
          const reply = await api.json({ method: "POST", path: `${pathOf(id)}/exec`, body }, limit);
          const exec = `/exec/${read(created, reply).Id}`;
          const start = { Detach: false, Tty: false };
          const stream = await api.upgrade({ method: "POST", path: `${exec}/start`, body: start }, limit);
          return {
            id: read(created, reply).Id,
            stream,
            inspect: () =>
              call("ask how the command ended", async (again, signal) => {
                const state = await again.json({ method: "GET", path: `${exec}/json` }, signal);
                const { Running, ExitCode } = read(execState, state);
                return { running: Running, exitCode: ExitCode ?? null };
              }),
          };
        }),
      );
    },
    async containerEvents(id, { signal } = {}) {
      const reply = await call(
        "ask what happened to the container",
        async (api, limit) => {
          const filters = JSON.stringify({ type: ["container"], container: [id] });
          const query = { since: "1", filters, ...(product === "podman" ? wholeLog : untilNow()) };
          return await text(await api.stream({ method: "GET", path: "/events", query }, limit));
        },
        { signal, limitMs: 10_000 },
      );
      const lines = reply.split("\n").filter((line) => line.trim() !== "");
      return lines.map((line) => {
        const { Action, Actor, timeNano } = read(event, JSON.parse(line));
        const exitCode = /^\d{1,3}$/.exec(Actor?.Attributes?.exitCode ?? "");
        return {
          action: Action,
          atMs: (timeNano ?? 0) / 1e6,
          exitCode: exitCode === null ? null : Number(exitCode[0]),
        };
      });
    },
  } satisfies Partial<Engine>;
}

export function pathOf(id: string): string {
  return `/containers/${encodeURIComponent(id)}`;
}

const sized = object({ SizeRw: nullish(number) });

const ended = object({ StatusCode: number });

/** Waits for the end of a removal that is already under way, perhaps since the container's program ended. */
async function removalEnd(api: Transport, id: string, limit: AbortSignal): Promise<void> {
  const query = { condition: "removed" };
  const reply = await nullIfMissing(api.json({ method: "POST", path: `${pathOf(id)}/wait`, query }, limit));
  const problem = read(removed, reply)?.Error?.Message ?? "";
  if (problem !== "") throw new RefusedRequest(500, problem);
}

const removed = nullable(object({ Error: nullish(object({ Message: nullish(string) })) }));

const created = object({ Id: string });

const execState = object({ Running: boolean, ExitCode: nullish(number) });

const inspected = object({
  Id: string,
  Image: string,
  State: object({
    Running: boolean,
    Paused: boolean,
    ExitCode: number,
    OOMKilled: boolean,
    Error: string,
    Pid: number,
  }),
});

function parseState(reply: unknown): ContainerState {
  const { Id, Image, State } = read(inspected, reply);
  return {
    id: Id,
    running: State.Running,
    paused: State.Paused,
    exitCode: State.ExitCode,
    oomKilled: State.OOMKilled,
    error: State.Error,
    pid: State.Pid,
    imageId: Image,
  };
}

const summary = object({
  Id: string,
  Names: nullish(array(string)),
  Image: string,
  State: string,
  Labels: nullish(record(string)),
  Created: number,
});
const summaries = array(summary);

function asSummary({ Id, Names, Image, State, Labels, Created }: Shaped<typeof summary>): ContainerSummary {
  return {
    id: Id,
    names: (Names ?? []).map((name) => name.replace(/^\//, "")),
    image: Image,
    state: State,
    labels: Labels ?? {},
    createdAt: new Date(Created * 1000),
  };
}

/** 404: no such container. 409: it is not running, or is being removed. */
async function ignoreIfEnded(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    const status = asRefusal(error)?.status;
    if (status !== 404 && status !== 409) throw error;
  }
}

async function goneIfStopped<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const refusal = asRefusal(error);
    if (refusal === null || ![404, 409].includes(refusal.status)) throw error;
    throw new BrigError(`the container is no longer running: ${refusal.words}`, {
      code: "sandbox.gone",
      reason: "killed",
      cause: error,
    });
  }
}

const strings = nullish(array(string));

/** The settings of a container that an image can influence. */
const createdReply = object({
  Image: string,
  Config: object({
    Entrypoint: strings,
    Cmd: strings,
    User: nullish(string),
    WorkingDir: nullish(string),
    Env: strings,
    Labels: nullish(record(string)),
    StopSignal: nullish(string),
    Healthcheck: nullish(object({ Test: strings })),
  }),
});

function parseCreated(reply: unknown): CreatedContainer {
  const { Image, Config } = read(createdReply, reply);
  return {
    imageId: Image,
    entrypoint: Config.Entrypoint ?? [],
    cmd: Config.Cmd ?? [],
    user: Config.User ?? "",
    workingDir: Config.WorkingDir ?? "",
    env: Config.Env ?? [],
    labels: Config.Labels ?? {},
    stopSignal: signalName(Config.StopSignal ?? ""),
    healthcheck: Config.Healthcheck?.Test ?? [],
  };
}

/** Podman answers with the number. */
function signalName(signal: string): string {
  return Object.entries(constants.signals).find(([, number]) => String(number) === signal)?.[0] ?? signal;
}

const event = object({
  Action: string,
  Actor: nullish(object({ Attributes: nullish(record(string)) })),
  timeNano: nullish(number),
});

/** Covers what the clocks of this machine and the engine's differ by. */
const AHEAD_MS = 250;

/** Asked for events until a certain time, Docker ends its answer then. Otherwise it would go on, and wait for new events. */
function untilNow() {
  return { until: ((Date.now() + AHEAD_MS) / 1000).toFixed(3) };
}

/** Podman ends its answer after the last event of its log. With a time to end at, it would stop then even in the middle of the log. */
const wholeLog = { stream: false };
