import { once } from "node:events";
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { hasToken } from "../../service/bearer-token.js";
import { isLoopbackHost, isLoopbackUrl, listenOnLoopback } from "../../service/loopback.js";
import { liveLimits } from "./attempt-detail.js";
import { type PageAsset, pageEnd, pagePolicy, pageStart } from "./page-html.js";
import type { RunFolder } from "./run-folder.js";
import type { RunChanges } from "./view-model.js";

export interface ViewService {
  folders: readonly RunFolder[];
  asset: PageAsset;
  /** 0: any free port. */
  port: number;
  token: string;
  /** Aborting ends the service. */
  signal: AbortSignal;
  /** Called once, with the address of the page; it contains the token. */
  onListening: (url: string) => void;
}

/** Rows in one answer. The page asks again for the rest. */
const MAX_ROWS_AT_ONCE = 5000;
const MAX_CONNECTIONS = 64;

type Answer =
  | { kind: "json"; value: unknown }
  | { kind: "page" }
  | { kind: "refused"; status: number; reason: string };

/** Serves the page on loopback until the signal aborts, which is how everybody ends it: it then resolves. */
export async function serveView({ port, signal, onListening, ...service }: ViewService): Promise<void> {
  const site = new ViewSite(service);
  const server = createServer((request, response) => void site.serve(request, response));
  server.maxConnections = MAX_CONNECTIONS;
  try {
    onListening(`http://${await listenOnLoopback(server, port)}/#token=${service.token}`);
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

class ViewSite {
  readonly #folders: readonly RunFolder[];
  readonly #asset: PageAsset;
  readonly #token: string;
  /** A folder is read by one request at a time. */
  #refreshed: Promise<void> = Promise.resolve();

  constructor({ folders, asset, token }: Pick<ViewService, "folders" | "asset" | "token">) {
    this.#folders = folders;
    this.#asset = asset;
    this.#token = token;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    request.resume();
    try {
      this.#send(response, await this.#answer(request));
    } catch {
      this.#send(response, { kind: "refused", status: 500, reason: "the run cannot be read" });
    }
  }

  async #answer({ method, url = "", headers }: IncomingMessage): Promise<Answer> {
    // A hostile site can let its name resolve to 127.0.0.1 (DNS rebinding). The Host header then has the site's name.
    if (!isLoopbackHost(headers.host)) return refused(403, "the Host header names another machine");
    if (!comesFromHere(headers.origin, headers.host)) return refused(403, "other pages are not served");
    if (method !== "GET") return refused(405, "only GET is served");
    const [pathname = "", query = ""] = url.split("?", 2);
    if (pathname === "/") return { kind: "page" };
    // The page itself holds nothing of the run, and everything else needs the token.
    if (!hasToken(headers, this.#token)) return refused(401, "the token is missing or wrong");
    if (pathname === "/api/runs") return { kind: "json", value: { runs: this.#folders.length } };
    const path = /^\/api\/runs\/([01])\/(changes|attempts\/([0-9]{1,7}))$/.exec(pathname);
    const folder = this.#folders[Number(path?.[1] ?? Number.NaN)];
    if (folder === undefined) return refused(404, "there is nothing at this address");
    if (path?.[2] === "changes")
      return { kind: "json", value: await this.#changes(folder, new URLSearchParams(query)) };
    if (new URLSearchParams(query).get("generation") !== String(folder.index.generation))
      return refused(409, "the results were written anew");
    const detail = folder.detail(Number(path?.[3]), liveLimits);
    return detail === null ? refused(404, "there is no such attempt") : { kind: "json", value: detail };
  }

  async #changes(folder: RunFolder, asked: URLSearchParams): Promise<RunChanges> {
    const before = this.#refreshed;
    const refreshed = before.then(() => folder.index.refresh());
    this.#refreshed = refreshed.catch(() => undefined);
    await refreshed;
    const { generation, unreadableLines } = folder.index;
    const since = asked.get("generation") === String(generation) ? Number(asked.get("since")) : 0;
    const from = Number.isSafeInteger(since) && since >= 0 ? since : 0;
    const { rows, seq } = folder.index.changes(from, MAX_ROWS_AT_ONCE);
    const hasMore = seq < folder.index.seq;
    const header = from === 0 ? folder.header() : null;
    return { header, generation, seq, rows, hasMore, unreadableLines };
  }

  #send(response: ServerResponse, answer: Answer): void {
    if (response.headersSent) return;
    if (answer.kind === "page") {
      const policy = `${pagePolicy(this.#asset, { connects: true })}; frame-ancestors 'none'`;
      const page = pageStart(this.#asset, { connects: true }) + pageEnd(this.#asset);
      const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
      response.writeHead(200, { ...commonHeaders, ...headers }).end(page);
      return;
    }
    const [status, value] =
      answer.kind === "json" ? [200, answer.value] : [answer.status, { error: answer.reason }];
    response
      .writeHead(status, { ...commonHeaders, "content-type": "application/json" })
      .end(JSON.stringify(value));
  }
}

const commonHeaders: OutgoingHttpHeaders = {
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Whether a request has no origin, as those of a page to its own server, or that of the server itself. */
function comesFromHere(origin: string | undefined, host: string | undefined): boolean {
  return origin === undefined || (isLoopbackUrl(origin) && new URL(origin).host === host);
}

function refused(status: number, reason: string): Answer {
  return { kind: "refused", status, reason };
}
