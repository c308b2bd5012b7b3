import { hash, timingSafeEqual } from "node:crypto";
import type { SandboxMode } from "../../../sandbox/index.js";
import type { Route } from "../wire/routes.js";
import { Refusal } from "./refusal.js";

/** Who may use the service. Each client sees only what it has made itself, unless its rights say otherwise. */
export interface ServedClient {
  name: string;
  /** SHA-256 of its token. */
  tokenHash: Buffer;
  rights: ClientRights;
  quota: ClientQuota;
}

/** What a client may have of the service, besides the limits of all clients. What is not said is not limited. */
export interface ClientQuota {
  /** Sandboxes and episodes at the same time. */
  maxSandboxes?: number | undefined;
  /** Processors of all its sandboxes together, as their limits allow them. */
  cpus?: number | undefined;
  /** Memory of all its sandboxes together, the same way. */
  memoryMb?: number | undefined;
  /** Minutes of a day (UTC) for which its sandboxes are there, all together. */
  minutesPerDay?: number | undefined;
  requestsPerMinute?: number | undefined;
  /** The images that the client may ask for: patterns in which `*` stands for any characters. */
  images?: readonly string[] | undefined;
  modes?: readonly SandboxMode[] | undefined;
  /** Settings of a network; it may have these, and those that allow less. */
  networks?: readonly string[] | undefined;
}

export interface ClientRights {
  /** Whether it sees what all clients have. */
  seesAll: boolean;
  /** Whether it may begin, change and end anything. Otherwise it only looks. */
  mayChange: boolean;
}

/** A client that uses its own sandboxes and sees no others. */
export const usualRights: ClientRights = { seesAll: false, mayChange: true };

/** A client with its token alone. */
export function clientOfToken(name: string, token: string): ServedClient {
  return { name, tokenHash: hashOfToken(token), rights: usualRights, quota: {} };
}

export function hashOfToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** The client that the token is of. Takes as long for a wrong one as for a right one. */
export function clientWithToken(token: string, clients: readonly ServedClient[]): ServedClient | null {
  const given = hashOfToken(token);
  // All are compared, so that the time says nothing about which one it was.
  const [client = null] = clients.filter(({ tokenHash }) => timingSafeEqual(tokenHash, given));
  return client;
}

/** Error: a refusal with 403 for a client that may only look. */
export function refuseChanges(client: ServedClient, { method, answer }: Route): void {
  if (method !== "GET" || answer.status === 101) requireChanges(client);
}

/** Error: a refusal with 403 for a client that may only look. For requests that the table of routes does not have, as to ports. */
export function requireChanges({ rights }: ServedClient): void {
  if (rights.mayChange) return;
  throw new Refusal("this token may only look, and changes nothing", {
    status: 403,
    code: "serve.refused",
    hint: "use another client's token, or let the operator of the service allow this one more",
  });
}
