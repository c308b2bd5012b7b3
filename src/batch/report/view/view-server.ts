import { once } from "node:events";
import type { Context, Hono } from "hono";
import { hasToken } from "../../../lib/http/bearer-token.js";
import { isLoopbackHost, isLoopbackUrl, listenOnLoopback } from "../../../lib/http/loopback.js";
import { type PageAsset, pageHeaders, servedPage } from "../../../lib/http/page-html.js";
import { openApp, openWebServer, type Served } from "../../../lib/http/web-server.js";
import { liveLimits } from "./attempt-detail.js";
import type { RunFolder } from "./run-folder.js";
import type { RunChanges } from "./view-model.js";
import { viewPage } from "./view-page.js";

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

/** Serves the page on loopback until the signal aborts, which is how everybody ends it: it then resolves. */
export async function serveView({ port, signal, onListening, ...service }: ViewService): Promise<void> {
  const server = openWebServer(new ViewSite(service).app(), { maxConnections: MAX_CONNECTIONS });
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

  app(): Hono<Served> {
    const app = openApp();
    app.use(async (c, next) => {
      for (const [name, value] of Object.entries(pageHeaders)) c.header(name, value);
      const { headers } = c.env.incoming;
      // A hostile site can let its name resolve to 127.0.0.1 (DNS rebinding). The Host header then has the site's name.
      if (!isLoopbackHost(headers.host)) return refused(c, 403, "the Host header names another machine");
      if (!comesFromHere(headers.origin, headers.host)) return refused(c, 403, "other pages are not served");
      return c.req.method === "GET" ? await next() : refused(c, 405, "only GET is served");
    });
    app.get("/", (c) => {
      const { html, headers } = servedPage(this.#asset, viewPage);
      return c.body(html, 200, headers);
    });
    // The page itself holds nothing of the run, and everything else needs the token.
    app.use(async (c, next) =>
      hasToken(c.env.incoming.headers, this.#token)
        ? await next()
        : refused(c, 401, "the token is missing or wrong"),
    );
    app.get("/api/runs", (c) => c.json({ runs: this.#folders.length }));
    app.get("/api/runs/:run{[01]}/changes", async (c) => {
      const folder = this.#folders[Number(c.req.param("run"))];
      return folder === undefined ? notFound(c) : c.json(await this.#changes(folder, c.req.query()));
    });
    app.get("/api/runs/:run{[01]}/attempts/:attempt{[0-9]{1,7}}", (c) => {
      const folder = this.#folders[Number(c.req.param("run"))];
      if (folder === undefined) return notFound(c);
      if (c.req.query("generation") !== String(folder.index.generation))
        return refused(c, 409, "the results were written anew");
      const detail = folder.detail(Number(c.req.param("attempt")), liveLimits);
      return detail === null ? refused(c, 404, "there is no such attempt") : c.json(detail);
    });
    app.notFound(notFound);
    app.onError((_, c) => refused(c, 500, "the run cannot be read"));
    return app;
  }

  async #changes(folder: RunFolder, asked: Record<string, string>): Promise<RunChanges> {
    const before = this.#refreshed;
    const refreshed = before.then(() => folder.index.refresh());
    this.#refreshed = refreshed.catch(() => undefined);
    await refreshed;
    const { generation, unreadableLines } = folder.index;
    const since = asked.generation === String(generation) ? Number(asked.since ?? 0) : 0;
    const from = Number.isSafeInteger(since) && since >= 0 ? since : 0;
    const { rows, seq } = folder.index.changes(from, MAX_ROWS_AT_ONCE);
    const hasMore = seq < folder.index.seq;
    const header = from === 0 ? folder.header() : null;
    return { header, generation, seq, rows, hasMore, unreadableLines };
  }
}

/** Whether a request has no origin, as those of a page to its own server, or that of the server itself. */
function comesFromHere(origin: string | undefined, host: string | undefined): boolean {
  return origin === undefined || (isLoopbackUrl(origin) && new URL(origin).host === host);
}

function notFound(c: Context): Response {
  return refused(c, 404, "there is nothing at this address");
}

function refused(c: Context, status: 401 | 403 | 404 | 405 | 409 | 500, reason: string): Response {
  return c.json({ error: reason }, status);
}
