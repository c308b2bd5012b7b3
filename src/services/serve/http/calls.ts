import type { BodyOf, QueryOf, RouteName } from "../wire/routes.js";
import type { MemoryShare } from "./memory-budget.js";

/** One request, checked. */
export interface Call<Name extends RouteName> {
  /** The client's name. */
  client: string;
  /** The part of the path in place of `{id}`; empty for a path without one. */
  id: string;
  query: QueryOf<Name>;
  body: BodyOf<Name>;
  /** Aborted when the client disconnects before it has the whole answer, and when the service is ended at once. */
  signal: AbortSignal;
  /** What the call keeps for the client counts here, until the whole answer is sent. */
  memory: MemoryShare;
}

/** What is sent: JSON, bytes, or one JSON value per line as they are given to `send`. */
export type Answer =
  | { kind: "json"; value: unknown }
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "lines"; run: (send: (line: object) => Promise<void>) => Promise<void> }
  | { kind: "nothing" };

/** How each request is answered. */
export type Calls = { readonly [Name in RouteName]: (call: Call<Name>) => Promise<Answer> };
