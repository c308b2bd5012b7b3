import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { BrigError, invalidUsage, isBrigError } from "../../errors.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { setSentHeaders } from "../../sandbox/index.js";
import type { MemoryShare } from "../serve/http/memory-budget.js";
import { sendJson } from "../serve/http/other-protocol.js";
import { ending, Refusal, refusedAnswer } from "../serve/http/refusal.js";
import { usageOf } from "../serve/sandboxes/usage.js";
import type { ProtocolParts } from "../serve/service-calls.js";
import { createSandboxSchema } from "../serve/wire/schemas.js";
import { takePieces } from "../serve/wire/take-pieces.js";
import type { SnapshotRecord } from "../serve/workspaces/snapshot-set.js";
import {
  connectSchema,
  createSchema,
  forkSchema,
  listSchema,
  listSnapshotsSchema,
  networkUpdateSchema,
  pauseSchema,
  refreshSchema,
  snapshotSchema,
  timeoutSchema,
} from "./api-schemas.js";
import { detailValue, listedValue, metricValue, snapshotValue, startedValue, stateOf } from "./api-values.js";
import { type E2bSandbox, type E2bSandboxes, HOME } from "./e2b-sandboxes.js";
import { askedNetwork, planNetwork } from "./network-rules.js";
import { type Page, pageOf } from "./pages.js";
import { unsupported } from "./unsupported.js";

export interface ApiCall {
  incoming: IncomingMessage;
  /** Without the beginning that all have, with its query. */
  path: string;
  client: string;
  signal: AbortSignal;
  memory: MemoryShare;
}

/** A call of one of the methods, with the part of the path that stands for an id. */
interface Call extends Omit<ApiCall, "path"> {
  id: string;
  query: URLSearchParams;
}

/** A value is sent as JSON; without one there is no body. */
interface ApiAnswer {
  status: number;
  value?: unknown;
  headers?: Record<string, string>;
}

const MAX_BODY_BYTES = 1024 * 1024;
/** The text of a body, and what is made of it. */
const BODY_COPIES = 3;
/** Of a client that says nothing. */
const USUAL_TIMEOUT_SECONDS = 300;

/** E2B's API: which methods there are, and what brig does for them with its own sandboxes. */
export class ControlPlane {
  readonly #sandboxes: E2bSandboxes;
  readonly #parts: ProtocolParts;

  constructor(sandboxes: E2bSandboxes, parts: ProtocolParts) {
    this.#sandboxes = sandboxes;
    this.#parts = parts;
  }

  /** Errors: refusals, and those of brig's sandboxes. */
  async answer({ path, ...call }: ApiCall, outgoing: ServerResponse): Promise<void> {
    const [plain = "", query = ""] = path.split("?", 2);
    const [name, id] = methodOf(`${call.incoming.method}`, plain);
    const method = this.#methods[name];
    if (method === undefined) throw absent(name, plain);
    sendJson(outgoing, await method({ ...call, id, query: new URLSearchParams(query) }));
  }

  readonly #methods: Readonly<Record<string, (call: Call) => Promise<ApiAnswer>>> = {
    "POST /sandboxes": async (call) => ({ status: 201, value: startedValue(await this.#create(call)) }),
    "GET /sandboxes": async (call) => this.#list(call),
    "GET /sandboxes/ID": async (call) => ({ status: 200, value: detailValue(this.#get(call)) }),
    "DELETE /sandboxes/ID": async (call) => await this.#kill(call),
    "POST /sandboxes/ID/timeout": async (call) => {
      const { served } = this.#get(call);
      const { timeout } = await readBody(call, timeoutSchema);
      if (served.isPaused) throw isState("paused, and has no timeout until somebody connects to it");
      served.extend(1000 * timeout);
      return { status: 204 };
    },
    "POST /sandboxes/ID/refreshes": async (call) => {
      const { duration } = await readBody(call, refreshSchema);
      prolong(this.#get(call), duration);
      return { status: 204 };
    },
    "POST /sandboxes/ID/connect": async (call) => {
      const { timeout, memory } = await readBody(call, connectSchema);
      const sandbox = this.#get(call);
      const isResumed = await this.#resume(sandbox, { timeout, memory });
      if (!isResumed) prolong(sandbox, timeout);
      return { status: isResumed ? 201 : 200, value: startedValue(sandbox) };
    },
    "POST /sandboxes/ID/resume": async (call) => {
      const sandbox = this.#get(call);
      if (!(await this.#resume(sandbox, await readBody(call, connectSchema)))) throw isState("running");
      return { status: 201, value: startedValue(sandbox) };
    },
    "POST /sandboxes/ID/pause": async (call) => {
      const { served } = this.#get(call);
      const { memory } = await readBody(call, pauseSchema);
      if (memory === false) throw unsupported(WITHOUT_MEMORY);
      if (!(await served.pause())) throw isState("paused already");
      return { status: 204 };
    },
    "POST /sandboxes/ID/fork": async (call) => ({ status: 201, value: await this.#fork(call) }),
    "POST /sandboxes/ID/snapshots": async (call) => ({
      status: 201,
      value: snapshotValue(await this.#takeSnapshot(call)),
    }),
    "GET /snapshots": async (call) => await this.#listSnapshots(call),
    "DELETE /templates/ID": async ({ client, id }) => {
      const found = await this.#snapshot(client, id);
      if (found === null && id === "tags") throw absent("/templates", id);
      if (found === null) throw notThere(`there is no snapshot ${JSON.stringify(id)}`);
      await this.#parts.snapshots.remove(client, found.id);
      return { status: 204 };
    },
    "GET /aliases/ID": async ({ client, id }) => {
      const { image } = await this.#template(client, id);
      if ((await this.#parts.places.engine.inspectImage(image)) === null) throw noTemplate(id);
      return { status: 200, value: { templateID: id, public: false } };
    },
    "GET /sandboxes/ID/metrics": async (call) => {
      const { served } = this.#get(call);
      if (served.isPaused) return { status: 200, value: [] };
      const value = await served.use(call.signal, async ({ sandbox, signal }) =>
        metricValue(sandbox, await usageOf(sandbox, signal)),
      );
      return { status: 200, value: [value] };
    },
    "PUT /sandboxes/ID/network": async (call) => await this.#setNetwork(call),
  };

  async #create(call: Call): Promise<E2bSandbox> {
    const { client, signal } = call;
    const { drain, places, sandboxes, snapshots } = this.#parts;
    if (drain.aborted) throw ending();
    const body = await readBody(call, createSchema);
    refuseAbsent(body);
    const { templateID, timeout, metadata, envVars, autoPause, autoResume } = body;
    const network = askedNetwork(body.network ?? {}, body.allow_internet_access);
    const planned = planNetwork(network, places);
    const request = parsed(createSandboxSchema, {
      ...(await this.#template(client, templateID)),
      ...(planned.network !== "none" && { network: planned.network }),
      // In the mode read-only nothing could be written to the home directory.
      ...(places.mode === "read-only" && { mode: "workspace-write" }),
      workspaceKind: "overlay",
      workingDirectory: HOME,
      env: { HOME, ...envVars },
      maxLifeMs: Math.min(lifeOf(timeout), this.#parts.maxLifeMs),
    });
    const { id } = await sandboxes
      .create(
        client,
        {
          ...(await snapshots.resolve(client, request)),
          labels: metadata ?? {},
          isNeverIdle: true,
          pausesAtExpiry: autoPause === true && !this.#parts.endsAutoPaused,
          isSecret: true,
          // There is a list in any case, so that rules may come later.
          ...(places.allowsNetwork && { sentHeaders: planned.sentHeaders }),
        },
        { signal },
      )
      .catch((error: unknown) => {
        throw isBrigError(error, "image.missing") ? noTemplate(templateID, error) : error;
      });
    try {
      return this.#sandboxes.add(sandboxes.get(client, id), {
        ...{ templateId: templateID, network },
        resumesItself: autoResume?.enabled === true,
      });
    } catch (error) {
      await sandboxes.remove(client, id);
      throw error;
    }
  }

  /** What a template stands for: `base`, a name of the configuration, a snapshot of the client, or an image of the engine. */
  async #template(client: string, name: string): Promise<{ image: string; snapshot?: string }> {
    const { places, templates } = this.#parts;
    if (Object.hasOwn(templates, name)) return { image: `${templates[name]}` };
    if (name === "base") return { image: places.image };
    const snapshot = await this.#snapshot(client, name);
    if (snapshot === null) return { image: name };
    return { snapshot: snapshot.id, image: snapshot.image ?? places.image };
  }

  #list(call: Call): ApiAnswer {
    const { metadata, state, startedAfter, template, order, limit, nextToken } = parsed(
      listSchema,
      Object.fromEntries(call.query),
    );
    const wanted = metadataOf(metadata);
    const states = state?.split(",") ?? ["running", "paused"];
    const found = this.#sandboxes.of(call.client).filter(({ served, templateId }) => {
      const { createdAt, labels } = served.record;
      return (
        states.includes(stateOf(served)) &&
        wanted.every(([name, value]) => labels[name] === value) &&
        (startedAfter === undefined || Date.parse(createdAt) >= Date.parse(startedAfter)) &&
        (template === undefined || template === templateId)
      );
    });
    const keyOf = ({ served }: E2bSandbox) => `${served.record.createdAt} ${served.id}`;
    const page = pageOf(found, { keyOf, isDescending: order === "desc", limit, nextToken });
    const running = found.filter(({ served }) => !served.isPaused).length;
    return pageAnswer(page, listedValue, { "x-total-running": `${running}` });
  }

  async #kill({ client, id }: Call): Promise<ApiAnswer> {
    if (this.#sandboxes.find(client, id) === null) throw noSandbox(id);
    await this.#parts.sandboxes.remove(client, id);
    return { status: 204 };
  }

  /** Each fork is there or has failed by itself. */
  async #fork(call: Call): Promise<object[]> {
    const { client, id, signal } = call;
    const { drain, sandboxes } = this.#parts;
    const { count, timeout } = await readBody(call, forkSchema);
    const parent = this.#get(call);
    if (drain.aborted) throw ending();
    const forks = Array.from({ length: count ?? 1 }, async () => {
      const [record] = await sandboxes.fork(client, { id, count: 1, signal });
      const served = sandboxes.get(client, `${record?.id}`);
      const { templateId, network, resumesItself } = parent;
      const fork = this.#sandboxes.add(served, { templateId, network, resumesItself });
      served.extend(lifeOf(timeout));
      await this.#enforce(fork);
      return fork;
    });
    const results = await Promise.allSettled(forks);
    return results.map((result) => {
      if (result.status === "fulfilled") return { sandbox: startedValue(result.value) };
      const { status, body } = refusedAnswer(result.reason);
      return { error: { code: status, message: body.error.message } };
    });
  }

  async #takeSnapshot(call: Call): Promise<SnapshotRecord> {
    const { client, signal } = call;
    const { name } = await readBody(call, snapshotSchema);
    const { served } = this.#get(call);
    // As every sandbox of E2B it has a workspace.
    return await served.use(signal, async ({ sandbox, cwd, signal }) => {
      const { id } = await sandbox.snapshot({ signal });
      const record = {
        ...{ id, client, name: name ?? id, workingDirectory: cwd },
        ...{ image: served.record.image, sandbox: served.id, takenAt: new Date().toISOString() },
      };
      await this.#parts.snapshots.add(record);
      return record;
    });
  }

  async #listSnapshots({ client, query }: Call): Promise<ApiAnswer> {
    const { sandboxID, name, limit, nextToken } = parsed(listSnapshotsSchema, Object.fromEntries(query));
    const all = (await this.#parts.snapshots.of(client)).filter(
      (one) =>
        (sandboxID === undefined || one.sandbox === sandboxID) && (name === undefined || one.name === name),
    );
    const keyOf = ({ takenAt = "", id }: SnapshotRecord) => `${takenAt} ${id}`;
    return pageAnswer(pageOf(all, { keyOf, limit, nextToken }), snapshotValue);
  }

  /** By its id, or the newest of a name. */
  async #snapshot(client: string, idOrName: string): Promise<SnapshotRecord | null> {
    const all = await this.#parts.snapshots.of(client);
    const named = all.filter(({ name }) => name === idOrName);
    const [newest = null] = named.toSorted((one, other) =>
      (one.takenAt ?? "") > (other.takenAt ?? "") ? -1 : 1,
    );
    return all.find(({ id }) => id === idOrName) ?? newest;
  }

  async #setNetwork(call: Call): Promise<ApiAnswer> {
    const { allow_internet_access: allowInternetAccess, ...update } = await readBody(
      call,
      networkUpdateSchema,
    );
    const sandbox = this.#get(call);
    const before = sandbox.network;
    const { allowPublicTraffic, maskRequestHost } = before;
    sandbox.network = {
      ...askedNetwork(update, allowInternetAccess),
      ...(allowPublicTraffic !== undefined && { allowPublicTraffic }),
      ...(maskRequestHost !== undefined && { maskRequestHost }),
    };
    try {
      await this.#enforce(sandbox);
    } catch (error) {
      sandbox.network = before;
      throw error;
    }
    this.#sandboxes.note(sandbox);
    return { status: 204 };
  }

  /** Puts into force what was asked for of the network. Nothing is changed if it cannot be. */
  async #enforce({ served, network: asked }: E2bSandbox): Promise<void> {
    const { places } = this.#parts;
    const { network, sentHeaders } = planNetwork(asked, places);
    if (!places.allowsNetwork) return;
    // First, since its client may not be allowed this one.
    served.setNetwork(network);
    await setSentHeaders(served.sandbox, sentHeaders);
  }

  /** False if it was not paused. */
  async #resume(
    { served }: E2bSandbox,
    { timeout, memory }: z.output<typeof connectSchema>,
  ): Promise<boolean> {
    if (memory === false && served.isPaused) throw unsupported(WITHOUT_MEMORY);
    return await served.unpause(lifeOf(timeout));
  }

  #get({ client, id }: Call): E2bSandbox {
    const found = this.#sandboxes.find(client, id);
    if (found !== null) return found;
    throw noSandbox(id);
  }
}

/** The method as the table has it, and the id in its path. Paths may begin with a version. */
function methodOf(verb: string, path: string): [name: string, id: string] {
  const [, room = "", encoded = "", rest = ""] =
    /^(?:\/v[23])?(?:\/templates(?=\/aliases\/))?\/([a-z]+)(?:\/([^/]+))?((?:\/[a-z]+)*)$/.exec(path) ?? [];
  const id = decoded(encoded);
  return [`${verb} /${room}${id === "" ? "" : `/ID${rest}`}`, id];
}

const absentFeatures: readonly (readonly [RegExp, string])[] = [
  [/^\S+ \/sandboxes\/ID\/logs/, "logs of a sandbox; the commands of a client give their output to it"],
  [/\/volumes/, "volumes"],
  [/\/secrets/, "secrets that are stored in the service; rules of a network put headers into requests"],
  [/\/templates/, "template builds: build an image with Docker, and name it as the template"],
  [/\/teams/, "teams"],
];

function absent(name: string, path: string): Refusal {
  const [, feature] = absentFeatures.find(([pattern]) => pattern.test(name)) ?? [];
  return feature === undefined
    ? notThere(`there is nothing at ${JSON.stringify(path)}`)
    : unsupported(feature);
}

/** Error: a refusal that names what a client wants and cannot have. */
function refuseAbsent({ autoPauseMemory, mcp, iam, volumeMounts }: z.output<typeof createSchema>): void {
  if (autoPauseMemory === false) throw unsupported(WITHOUT_MEMORY);
  if (mcp != null) throw unsupported("the MCP gateway (mcp)");
  if (iam != null) throw unsupported("workload identities (iam)");
  if (volumeMounts != null && volumeMounts.length > 0) throw unsupported("volumes (volumeMounts)");
}

/** Of a client that a pause is to keep no memory for. */
const WITHOUT_MEMORY =
  "a pause without memory (keepMemory: false): a paused container keeps its processes, and a snapshot only the files of the home directory";

/** Error form of E2B for what only a sandbox of another state takes. */
function isState(state: string): Refusal {
  return new Refusal(`the sandbox is ${state}`, { status: 409, code: "usage.invalid" });
}

export function lifeOf(timeout: number | null | undefined): number {
  return Math.max(1000 * (timeout ?? USUAL_TIMEOUT_SECONDS), 100);
}

/** It expires then at the earliest. */
function prolong({ served }: E2bSandbox, timeout: number | null | undefined): void {
  const lifeMs = lifeOf(timeout);
  if (Date.parse(served.record.expiresAt) < Date.now() + lifeMs) served.extend(lifeMs);
}

/** What is not encoded properly stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Clients encode names and values before they encode the whole. */
function metadataOf(text: string | undefined): [string, string][] {
  return [...new URLSearchParams(text ?? "")].map(([name, value]) => [decoded(name), decoded(value)]);
}

function pageAnswer<Item>(
  { items, next }: Page<Item>,
  shown: (item: Item) => object,
  headers: Record<string, string> = {},
): ApiAnswer {
  return {
    status: 200,
    value: items.map(shown),
    headers: { ...headers, ...(next !== null && { "x-next-token": next }) },
  };
}

/** Errors: refusals with 400, 413 and 429; the connection's. */
async function readBody<Schema extends z.ZodType>(
  { incoming, memory }: Pick<Call, "incoming" | "memory">,
  schema: Schema,
): Promise<z.output<Schema>> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  await takePieces(incoming, (piece) => {
    bytes += piece.length;
    if (bytes > MAX_BODY_BYTES)
      throw new Refusal(`a body may have at most ${MAX_BODY_BYTES} bytes`, {
        status: 413,
        code: "file.too-large",
      });
    memory.take(BODY_COPIES * piece.length);
    pieces.push(piece);
  });
  const value = bytes === 0 ? {} : parseJson(Buffer.concat(pieces).toString());
  if (value === undefined || value === null || isTooDeep(value))
    throw invalidUsage("the body is not JSON", "send an object");
  return parsed(schema, value);
}

/** Error: `usage.invalid` that names everything that is wrong. */
function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new BrigError(`the request is not valid:\n${z.prettifyError(read.error)}`, { code: "usage.invalid" });
}

function notThere(message: string): Refusal {
  return new Refusal(message, { status: 404, code: "serve.unknown" });
}

function noSandbox(id: string): Refusal {
  return notThere(`there is no sandbox ${JSON.stringify(id)}`);
}

function noTemplate(name: string, cause?: unknown): Refusal {
  return new Refusal(`the template ${JSON.stringify(name)} was not found`, {
    status: 404,
    code: "image.missing",
    hint: "a template is base, a name in [templates] of config.toml, a snapshot, or an image that the engine has",
    cause,
  });
}
