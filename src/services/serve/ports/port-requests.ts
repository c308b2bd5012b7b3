import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { OtherCall, OtherProtocol } from "../http/other-protocol.js";
import { ending, notFound, type RefusedAnswer } from "../http/refusal.js";
import { requireChanges } from "../http/served-client.js";
import type { SandboxSet } from "../sandboxes/sandbox-set.js";
import type { PortCall, PortProxy } from "./port-proxy.js";

const PATH = /^(\/v1\/sandboxes\/([A-Za-z0-9_-]{1,64})\/ports\/([0-9]{1,5}))(?![^/?])(.*)$/s;

/** Neither the token of the service nor its cookies are for a program in a sandbox. */
const WITHHELD: ReadonlySet<string> = new Set(["authorization", "x-forwarded-prefix"]);

/**
 * What comes from a sandbox has the address of the service here. Should a browser ever show it, its scripts are those of no site, and can
 * do nothing with the service.
 */
const ANSWER_HEADERS = {
  "content-security-policy": "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads",
};

/** Requests of clients to the ports of their sandboxes. */
export class PortRequests implements OtherProtocol {
  readonly #proxy: PortProxy;
  readonly #sandboxes: SandboxSet;
  readonly #drain: AbortSignal;

  constructor(proxy: PortProxy, { sandboxes, drain }: { sandboxes: SandboxSet; drain: AbortSignal }) {
    this.#proxy = proxy;
    this.#sandboxes = sandboxes;
    this.#drain = drain;
  }

  takes({ url = "" }: IncomingMessage): boolean {
    return PATH.test(url);
  }

  async answer(incoming: IncomingMessage, outgoing: ServerResponse, call: OtherCall): Promise<void> {
    await this.#proxy.answer(incoming, outgoing, this.#portCall(incoming, call));
  }

  async upgrade(incoming: IncomingMessage, socket: Duplex, call: OtherCall): Promise<void> {
    await this.#proxy.upgrade(incoming, socket, this.#portCall(incoming, call));
  }

  bodyOf({ body }: RefusedAnswer): object {
    return body;
  }

  /** Errors: refusals with 401, 403, 404 and 503; `serve.unknown`. */
  #portCall(incoming: IncomingMessage, { signal, memory, ...checks }: OtherCall): PortCall {
    checks.refuseOtherSites(incoming);
    const client = checks.clientOf(incoming);
    requireChanges(client);
    if (this.#drain.aborted) throw ending();
    const [, prefix = "", id = "", digits, rest = ""] = PATH.exec(`${incoming.url}`) ?? [];
    const port = Number(digits);
    if (port < 1 || port > 65_535) throw notFound();
    const served = this.#sandboxes.get(client.name, id);
    return {
      target: {
        ...{ served, port, withheld: WITHHELD, answerHeaders: ANSWER_HEADERS },
        path: rest.startsWith("/") ? rest : `/${rest}`,
        headers: { "X-Forwarded-Prefix": prefix },
      },
      ...{ signal, memory },
    };
  }
}
