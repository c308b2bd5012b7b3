import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { addressOf, type Connections } from "./connections.js";
import { RateLimit } from "./rate-limit.js";
import { busy, Refusal } from "./refusal.js";
import { clientWithToken, type ServedClient } from "./served-client.js";

/** So many requests with wrong tokens a minute are answered as such to one address: tokens are too long to be guessed, but each is looked at. */
const WRONG_PER_MINUTE = 120;

/** Finds out who asks, and whether not too often. */
export class Callers {
  readonly #clients: () => readonly ServedClient[];
  readonly #connections: Connections;
  readonly #requests = new RateLimit();
  readonly #wrong = new RateLimit();

  constructor(clients: () => readonly ServedClient[], connections: Connections) {
    this.#clients = clients;
    this.#connections = connections;
  }

  /** The client whose token the request has. Errors: refusals with 401 and 429. */
  callerOf(incoming: IncomingMessage): ServedClient {
    return this.clientWith(/^Bearer (.+)$/i.exec(incoming.headers.authorization ?? "")?.[1], incoming);
  }

  /** The client with this token, which is undefined if the request has none. Errors: refusals with 401 and 429. */
  clientWith(token: string | undefined, { socket }: IncomingMessage): ServedClient {
    const client = token === undefined ? null : clientWithToken(token, this.#clients());
    if (client === null) {
      const waitSeconds = this.#wrong.take(addressOf(socket), WRONG_PER_MINUTE);
      if (waitSeconds > 0)
        throw tooOften("too many requests without a right token came from there", waitSeconds);
      throw wrongToken();
    }
    this.#count(client, socket);
    return client;
  }

  /** Counts a request of a client that has shown something else than its token. Errors: refusals with 401, if there is no such client any more, and 429. */
  requireNamed(name: string, { socket }: IncomingMessage): void {
    const client = this.#clients().find((one) => one.name === name);
    if (client === undefined) throw wrongToken();
    this.#count(client, socket);
  }

  #count(client: ServedClient, socket: Socket): void {
    this.#connections.proved(socket, client.name);
    const { requestsPerMinute } = client.quota;
    const waitSeconds =
      requestsPerMinute === undefined ? 0 : this.#requests.take(client.name, requestsPerMinute);
    if (waitSeconds > 0)
      throw tooOften(`this client may send ${requestsPerMinute} requests a minute`, waitSeconds);
  }
}

function tooOften(message: string, retrySeconds: number): Refusal {
  return busy(message, { status: 429, retrySeconds });
}

function wrongToken(): Refusal {
  return new Refusal("the token is missing or wrong", {
    status: 401,
    code: "serve.refused",
    hint: "send it as Authorization: Bearer TOKEN",
    headers: { "www-authenticate": 'Bearer realm="brig"' },
  });
}
