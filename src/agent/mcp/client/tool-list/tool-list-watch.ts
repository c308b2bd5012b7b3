import { pause } from "../../../../lib/time/pause.js";
import { TimeLimit } from "../../../../lib/time/time-limit.js";
import type { Connection } from "../connection/connection.js";

/** Notifications that arrive within this time lead to one request for the list. */
const SETTLE_MS = 100;
/** The shortest time between two requests for the list, for servers that report changes all the time. */
const REST_MS = 2000;
const LIST_LIMIT_MS = 30_000;
const MAX_SUBSCRIPTIONS = 5;

/** Asks for the list of tools again when the server says that it has changed. */
export class ToolListWatch {
  readonly #connection: Connection;
  readonly #list: (signal: AbortSignal) => Promise<void>;
  #isListing = false;
  #isStale = false;

  constructor(connection: Connection, list: (signal: AbortSignal) => Promise<void>) {
    this.#connection = connection;
    this.#list = list;
    void this.#subscribe();
  }

  changed(): void {
    this.#isStale = true;
    if (!this.#isListing) void this.#listUntilFresh();
  }

  async #listUntilFresh(): Promise<void> {
    const { ended } = this.#connection;
    this.#isListing = true;
    try {
      while (this.#isStale) {
        await pause(SETTLE_MS, ended);
        this.#isStale = false;
        using limit = new TimeLimit(LIST_LIMIT_MS, ended);
        // If this fails, the tools stay as they were listed before.
        await this.#list(limit.signal).catch(() => undefined);
        await pause(REST_MS, ended);
      }
    } catch {
      // The connection has ended.
    } finally {
      this.#isListing = false;
    }
  }

  /** Servers of 2026-07-28 report changes only to clients that have subscribed to them. */
  async #subscribe(): Promise<void> {
    const { client, ended } = this.#connection;
    if (client.getProtocolEra() !== "modern") return;
    if (client.getServerCapabilities()?.tools?.listChanged !== true) return;
    try {
      for (let count = 0; count < MAX_SUBSCRIPTIONS; count++) {
        const subscription = await client.listen({ toolsListChanged: true });
        if ((await subscription.closed) !== "remote") return;
        await pause(REST_MS, ended);
        this.changed();
      }
    } catch {
      // Without a subscription, the tools stay as they were listed.
    }
  }
}
