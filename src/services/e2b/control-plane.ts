import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { parseJson } from "../../lib/json/parse-json.js";
import type { MemoryShare } from "../serve/http/memory-budget.js";
import { ending, Refusal } from "../serve/http/refusal.js";
import type { SandboxSet } from "../serve/sandboxes/sandbox-set.js";
import { takePieces } from "../serve/wire/take-pieces.js";
import { sendJson } from "./e2b-answer.js";
import type { E2bSandboxes, FoundSandbox } from "./e2b-sandboxes.js";
import { ENVD_VERSION } from "./envd/answer-envd.js";

export interface ApiCall {
  incoming: IncomingMessage;
  /** With its query. */
  path: string;
  client: string;
  signal: AbortSignal;
  memory: MemoryShare;
}

const HOME = "/home/user";
const USER = "user";
const MAX_BODY_BYTES = 1024 * 1024;
const USUAL_TIMEOUT_SECONDS = 300;

const createSchema = z.object({
  templateID: z.string().min(1).max(512),
  timeout: z.int().min(0).optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
  envVars: z.record(z.string(), z.string()).nullish(),
});

export interface ControlPlaneOptions {
  sandboxes: SandboxSet;
  /** That of the template `base`. */
  image: string;
  /** Once it is aborted, nothing new begins. */
  drain: AbortSignal;
}

/** E2B's API for sandboxes. */
export class ControlPlane {
  readonly #sandboxes: E2bSandboxes;
  readonly #options: ControlPlaneOptions;

  constructor(sandboxes: E2bSandboxes, options: ControlPlaneOptions) {
    this.#sandboxes = sandboxes;
    this.#options = options;
  }

  async answer(call: ApiCall, outgoing: ServerResponse): Promise<void> {
    const [path = ""] = call.path.split("?", 1);
    const [, id = ""] = /^(?:\/v2)?\/sandboxes\/([A-Za-z0-9_-]{1,64})$/.exec(path) ?? [];
    const { method } = call.incoming;
    if (/^(?:\/v2)?\/sandboxes$/.test(path) && method === "POST") {
      const created = await this.#create(call);
      return sendJson(outgoing, { status: 201, value: startedValue(created) });
    }
    if (/^(?:\/v2)?\/sandboxes$/.test(path) && method === "GET")
      return sendJson(outgoing, { value: this.#sandboxes.of(call.client).map(infoValue) });
    if (id !== "" && method === "GET") return sendJson(outgoing, { value: infoValue(this.#get(call, id)) });
    if (id !== "" && method === "DELETE") {
      this.#get(call, id);
      await this.#options.sandboxes.remove(call.client, id);
      return sendJson(outgoing, { status: 204 });
    }
    throw new Refusal(`${method} ${path} is not supported`, { status: 404, code: "serve.unknown" });
  }

  async #create({ incoming, client, signal, memory }: ApiCall): Promise<FoundSandbox> {
    const { drain, image, sandboxes } = this.#options;
    if (drain.aborted) throw ending();
    const body = createSchema.safeParse(parseJson((await readBody(incoming, memory)).toString()));
    if (!body.success) throw new Refusal(z.prettifyError(body.error), { status: 400, code: "usage.invalid" });
    const { templateID, timeout = USUAL_TIMEOUT_SECONDS, metadata, envVars } = body.data;
    const { id } = await sandboxes.create(
      client,
      {
        image: templateID === "base" ? image : templateID,
        workspaceKind: "overlay",
        workingDirectory: HOME,
        env: { HOME, ...envVars },
        labels: metadata ?? {},
        maxLifeMs: timeout * 1000,
      },
      signal,
    );
    return this.#sandboxes.add(sandboxes.get(client, id), { templateId: templateID, home: HOME, user: USER });
  }

  #get({ client }: ApiCall, id: string): FoundSandbox {
    const found = this.#sandboxes.withId(id);
    if (found !== null && found.served.client === client) return found;
    throw new Refusal(`there is no sandbox ${id}`, { status: 404, code: "serve.unknown" });
  }
}

async function readBody(incoming: IncomingMessage, memory: MemoryShare): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  await takePieces(incoming, (piece) => {
    bytes += piece.length;
    if (bytes > MAX_BODY_BYTES)
      throw new Refusal("the body is too large", { status: 413, code: "file.too-large" });
    memory.take(2 * piece.length);
    pieces.push(piece);
  });
  return Buffer.concat(pieces);
}

function startedValue({ served, templateId, accessToken }: FoundSandbox) {
  return {
    sandboxID: served.id,
    templateID: templateId,
    clientID: "brig",
    envdVersion: ENVD_VERSION,
    envdAccessToken: accessToken,
  };
}

function infoValue({ served, templateId }: FoundSandbox) {
  const { createdAt, expiresAt, labels } = served.record;
  return {
    sandboxID: served.id,
    templateID: templateId,
    clientID: "brig",
    envdVersion: ENVD_VERSION,
    startedAt: createdAt,
    endAt: expiresAt,
    state: "running",
    cpuCount: 1,
    memoryMB: 512,
    diskSizeMB: 1024,
    metadata: labels,
  };
}
