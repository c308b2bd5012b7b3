import * as z from "zod";
import { BrigError } from "../../errors.js";
import { type Client, nullIfMissing, uploading } from "../client.js";
import { asRefusal, RefusedRequest } from "../engine-failure.js";
import type { ContainerState, ContainerSummary, Engine } from "../engine-types.js";
import type { Transport } from "../transport.js";
import { createdContainer } from "./created-container.js";

type ContainerCalls = Pick<
  Engine,
  | "createContainer"
  | "startContainer"
  | "waitContainer"
  | "killContainer"
  | "unpauseContainer"
  | "removeContainer"
  | "waitRemoved"
  | "inspectContainer"
  | "inspectCreated"
  | "listContainers"
  | "putArchive"
  | "attachContainer"
  | "openExec"
>;

export function containerCalls({ call }: Client): ContainerCalls {
  return {
    async createContainer(body, { name, signal } = {}) {
      const query = name === undefined ? {} : { name };
      const reply = await call(
        `create a container from ${body.Image}`,
        (api, limit) => api.json({ method: "POST", path: "/containers/create", query, body }, limit),
        { signal },
      );
      return created.parse(reply).Id;
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
          ended.parse(await api.json({ method: "POST", path: `${pathOf(id)}/wait` }, limit)).StatusCode,
        { signal, limitMs: null },
      );
    },

    async killContainer(id, signal = "SIGKILL") {
      await call("kill the container", (api, limit) =>
        ignoreIfEnded(api.json({ method: "POST", path: `${pathOf(id)}/kill`, query: { signal } }, limit)),
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
        createdContainer.parse(await api.json({ method: "GET", path: `${pathOf(id)}/json` }, limit)),
      );
    },

    async listContainers(labels) {
      const query = { all: true, filters: { label: labels } };
      return await call("list containers", async (api, limit) =>
        summaries.parse(await api.json({ method: "GET", path: "/containers/json", query }, limit)),
      );
    },

    async putArchive(id, path, tar) {
      await call("copy files into the container", (api, limit) =>
        uploading(tar, () =>
          api.json({ method: "PUT", path: `${pathOf(id)}/archive`, query: { path }, upload: tar }, limit),
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
          const exec = `/exec/${created.parse(reply).Id}`;
          const start = { Detach: false, Tty: false };
          const stream = await api.upgrade({ method: "POST", path: `${exec}/start`, body: start }, limit);
          return {
            id: created.parse(reply).Id,
            stream,
            inspect: () =>
              call("ask how the command ended", async (again, signal) =>
                execState.parse(await again.json({ method: "GET", path: `${exec}/json` }, signal)),
              ),
          };
        }),
      );
    },
  };
}

function pathOf(id: string): string {
  return `/containers/${encodeURIComponent(id)}`;
}

const ended = z.object({ StatusCode: z.number() });

/** Waits for the end of a removal that is already under way, perhaps since the container's program ended. */
async function removalEnd(api: Transport, id: string, limit: AbortSignal): Promise<void> {
  const query = { condition: "removed" };
  const reply = await nullIfMissing(api.json({ method: "POST", path: `${pathOf(id)}/wait`, query }, limit));
  const problem = removed.parse(reply)?.Error?.Message ?? "";
  if (problem !== "") throw new RefusedRequest(500, problem);
}

const removed = z.object({ Error: z.object({ Message: z.string().nullish() }).nullish() }).nullable();

const created = z.object({ Id: z.string() });

const execState = z
  .object({ Running: z.boolean(), ExitCode: z.number().nullish() })
  .transform(({ Running, ExitCode }) => ({ running: Running, exitCode: ExitCode ?? null }));

const inspected = z.object({
  Id: z.string(),
  Image: z.string(),
  State: z.object({
    Running: z.boolean(),
    Paused: z.boolean(),
    ExitCode: z.number(),
    OOMKilled: z.boolean(),
    Error: z.string(),
    Pid: z.number(),
  }),
});

function parseState(reply: unknown): ContainerState {
  const { Id, Image, State } = inspected.parse(reply);
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

const summaries = z.array(
  z
    .object({
      Id: z.string(),
      Names: z.array(z.string()).nullish(),
      Image: z.string(),
      State: z.string(),
      Labels: z.record(z.string(), z.string()).nullish(),
      Created: z.number(),
    })
    .transform(
      (reply): ContainerSummary => ({
        id: reply.Id,
        names: (reply.Names ?? []).map((name) => name.replace(/^\//, "")),
        image: reply.Image,
        state: reply.State,
        labels: reply.Labels ?? {},
        createdAt: new Date(reply.Created * 1000),
      }),
    ),
);

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
