import type { IncomingMessage, ServerResponse } from "node:http";
import { closeOf } from "../../lib/http/web-server.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { MemoryBudget, MemoryShare } from "../serve/http/memory-budget.js";
import { Refusal } from "../serve/http/refusal.js";
import type { OtherProtocol, RequestChecks } from "../serve/http/serve-http.js";
import type { ServedSandbox } from "../serve/sandboxes/served-sandbox.js";
import { ControlPlane, type ControlPlaneOptions } from "./control-plane.js";
import { sendError } from "./e2b-answer.js";
import { type E2bSandbox, E2bSandboxes } from "./e2b-sandboxes.js";
import { answerEnvd } from "./envd/answer-envd.js";

export interface E2bServiceOptions extends ControlPlaneOptions {
  memory: MemoryBudget;
  /** Ends all requests at once. */
  signal: AbortSignal;
  onFault: (error: unknown) => void;
}

/** Where the sandboxes of E2B have their daemon. */
const ENVD_PORT = 49_983;
const API = "/e2b";

/** Sandboxes for clients of E2B: its API under `/e2b`, and its sandboxes at the address of the service, which headers tell apart. */
export class E2bService implements OtherProtocol {
  readonly #options: E2bServiceOptions;
  readonly #sandboxes: E2bSandboxes;
  readonly #control: ControlPlane;

  constructor(options: E2bServiceOptions) {
    this.#options = options;
    this.#sandboxes = new E2bSandboxes(options.sandboxes);
    this.#control = new ControlPlane(this.#sandboxes, options);
  }

  takes({ url = "", headers }: IncomingMessage): boolean {
    return headers["e2b-sandbox-id"] !== undefined || /^\/e2b(?:[/?]|$)/.test(url);
  }

  async answer(incoming: IncomingMessage, outgoing: ServerResponse, checks: RequestChecks): Promise<void> {
    const gone = new AbortController();
    void closeOf(outgoing).then((isSent) => isSent || gone.abort(new Error("the client has disconnected")));
    using either = new AnySignal([gone.signal, this.#options.signal]);
    using memory = this.#options.memory.share();
    try {
      checks.refuseOtherSites(incoming);
      const { url = "" } = incoming;
      if (incoming.headers["e2b-sandbox-id"] !== undefined)
        await this.#answerSandbox(incoming, outgoing, { checks, signal: either.signal, memory });
      else {
        const client = checks.clientOf(incoming, apiKeyOf(incoming));
        await this.#control.answer(
          { incoming, path: url.slice(API.length), client, signal: either.signal, memory },
          outgoing,
        );
      }
    } catch (error) {
      const status = sendError(error, incoming, outgoing);
      if (status === 500 && !gone.signal.aborted && !this.#options.signal.aborted)
        this.#options.onFault(error);
    }
  }

  async #answerSandbox(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    { checks, signal, memory }: { checks: RequestChecks; signal: AbortSignal; memory: MemoryShare },
  ): Promise<void> {
    const { served, home, user } = this.#authorised(incoming);
    checks.isOf(incoming, served.client);
    await answerEnvd(incoming, outgoing, { served, home, user, signal, memory });
  }

  #authorised({ headers }: IncomingMessage): E2bSandbox & { served: ServedSandbox } {
    const found = this.#sandboxes.withId(`${headers["e2b-sandbox-id"]}`);
    if (Number(headers["e2b-sandbox-port"]) !== ENVD_PORT || found === null)
      throw new Refusal("the sandbox was not found", { status: 502, code: "sandbox.gone" });
    if (!found.hasAccessToken(`${headers["x-access-token"] ?? ""}`))
      throw new Refusal("the access token of the sandbox is missing or wrong", {
        status: 401,
        code: "serve.refused",
        hint: "send what the API gave as envdAccessToken in the header X-Access-Token",
      });
    return found;
  }
}

/** Some clients only accept keys that begin as those of E2B do. */
function apiKeyOf({ headers }: IncomingMessage): string {
  return `${headers["x-api-key"] ?? ""}`.replace(/^e2b_/, "");
}
