import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { OtherCall, OtherProtocol } from "../serve/http/other-protocol.js";
import { notFound, Refusal, type RefusedAnswer } from "../serve/http/refusal.js";
import { requireChanges, type ServedClient } from "../serve/http/served-client.js";
import type { PortCall } from "../serve/ports/port-proxy.js";
import type { ProtocolParts } from "../serve/service-calls.js";
import { ControlPlane, lifeOf } from "./control-plane.js";
import { type E2bSandbox, E2bSandboxes, HOME, USER } from "./e2b-sandboxes.js";
import { Envd } from "./envd/answer-envd.js";
import { addressOf, ENVD_PORT, isSigned, type SandboxAddress, sandboxFor } from "./sandbox-access.js";

const API = "/e2b";

/** What is for the service, and not for a program in the sandbox. */
const WITHHELD: ReadonlySet<string> = new Set([
  ...["e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token", "x-access-token", "x-api-key"],
]);

/**
 * Sandboxes for clients of E2B: its API under `/e2b`, and its sandboxes at the address of the service itself, where headers, a name of the host or a
 * signature say which one is meant.
 */
export class E2bService implements OtherProtocol {
  readonly #parts: ProtocolParts;
  readonly #sandboxes: E2bSandboxes;
  readonly #control: ControlPlane;
  readonly #envd = new Envd();

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
    this.#sandboxes = new E2bSandboxes(parts.sandboxes);
    this.#control = new ControlPlane(this.#sandboxes, parts);
  }

  takes(incoming: IncomingMessage): boolean {
    return isApi(incoming) || addressOf(incoming) !== null || isSigned(incoming);
  }

  async answer(incoming: IncomingMessage, outgoing: ServerResponse, call: OtherCall): Promise<void> {
    const address = addressOf(incoming);
    if (address === null && isApi(incoming)) return await this.#answerApi(incoming, outgoing, call);
    this.#refuseOtherSites(incoming, address, call);
    const { served, network } = await usable(sandboxFor(incoming, address, this.#sandboxes));
    call.isOf(served.client);
    const { signal, memory } = call;
    if (address === null || address.port === ENVD_PORT) {
      using _used = served.hold();
      await this.#envd.answer(incoming, outgoing, { served, home: HOME, user: USER, signal, memory });
    } else
      await this.#parts.ports.answer(
        incoming,
        outgoing,
        portCall(incoming, { ...address, served, network }, call),
      );
  }

  async upgrade(incoming: IncomingMessage, socket: Duplex, call: OtherCall): Promise<void> {
    const address = addressOf(incoming);
    this.#refuseOtherSites(incoming, address, call);
    if (address === null || address.port === ENVD_PORT) throw notFound();
    const { served, network } = await usable(sandboxFor(incoming, address, this.#sandboxes));
    call.isOf(served.client);
    await this.#parts.ports.upgrade(
      incoming,
      socket,
      portCall(incoming, { ...address, served, network }, call),
    );
  }

  /** The form of errors of E2B's API. */
  bodyOf({ status, body: { error } }: RefusedAnswer): object {
    const { message, hint } = error;
    return { code: status, message: hint === undefined ? message : `${message}; ${hint}` };
  }

  async #answerApi(incoming: IncomingMessage, outgoing: ServerResponse, call: OtherCall): Promise<void> {
    call.refuseOtherSites(incoming);
    // Some clients only accept keys that begin as those of E2B do.
    const key = `${incoming.headers["x-api-key"] ?? ""}`.replace(/^e2b_/, "");
    const authorization = key === "" ? incoming.headers.authorization : `Bearer ${key}`;
    const client = clientWithKey(() => call.clientOf(withHeaders(incoming, { authorization })));
    if (incoming.method !== "GET") requireChanges(client);
    const { signal, memory } = call;
    const path = `${incoming.url}`.slice(API.length);
    await this.#control.answer({ incoming, path, client: client.name, signal, memory }, outgoing);
  }

  /**
   * The name of a port's host is that of no machine. A page that does not know it, since the id of the sandbox is random, cannot make a request for it
   * (DNS rebinding); pages of the port itself may make any.
   */
  #refuseOtherSites(incoming: IncomingMessage, address: SandboxAddress | null, call: OtherCall): void {
    const { origin, host } = incoming.headers;
    const isOwn = origin === `http://${host}` || origin === `https://${host}`;
    const ofPort = { host: "localhost", ...(isOwn && { origin: undefined }) };
    call.refuseOtherSites(address?.isByHost === true ? withHeaders(incoming, ofPort) : incoming);
  }
}

/** Resumes it if it is one that does so by itself. Error: a refusal with 502 for one that stays paused, as for one that is gone. */
async function usable(sandbox: E2bSandbox): Promise<E2bSandbox> {
  if (!sandbox.served.isPaused) return sandbox;
  if (!sandbox.resumesItself)
    throw new Refusal(`the sandbox ${JSON.stringify(sandbox.served.id)} is paused`, {
      status: 502,
      code: "sandbox.gone",
      hint: "connect to it, which resumes it",
    });
  await sandbox.served.unpause(lifeOf(undefined));
  return sandbox;
}

/** Error: a refusal with 401 in the words of E2B. */
function clientWithKey(find: () => ServedClient): ServedClient {
  try {
    return find();
  } catch (cause) {
    if (!(cause instanceof Refusal) || cause.status !== 401) throw cause;
    throw new Refusal("the API key is missing or wrong", {
      status: cause.status,
      code: cause.code,
      cause,
      hint: "set E2B_API_KEY to a token of the service",
    });
  }
}

/** The same request, as it is to be checked. */
function withHeaders(incoming: IncomingMessage, headers: IncomingHttpHeaders): IncomingMessage {
  const value = { ...incoming.headers, ...headers };
  return Object.create(incoming, { headers: { value } }) as IncomingMessage;
}

function isApi({ url = "" }: IncomingMessage): boolean {
  return /^\/e2b(?:[/?]|$)/.test(url);
}

function portCall(
  { url = "/" }: IncomingMessage,
  {
    served,
    port,
    network,
  }: Pick<SandboxAddress, "port"> & Parameters<typeof maskedHost>[0] & Pick<PortCall["target"], "served">,
  { signal, memory }: OtherCall,
): PortCall {
  if (!(port >= 1 && port <= 65_535)) throw notFound();
  const headers = maskedHost({ network }, port);
  return {
    target: { served, port, path: url.startsWith("/") ? url : "/", withheld: WITHHELD, headers },
    ...{ signal, memory },
  };
}

/** The name that a program in the sandbox is to take for its own, if the client has said one. */
function maskedHost(
  { network }: { network: { maskRequestHost?: string | undefined } },
  port: number,
): Record<string, string> {
  const { maskRequestHost } = network;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how clients write it.
  return maskRequestHost === undefined ? {} : { Host: maskRequestHost.replaceAll("${PORT}", `${port}`) };
}
