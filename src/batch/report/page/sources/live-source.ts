import type { AttemptDetail, AttemptRow, RunChanges, RunHeader } from "../../view/view-model.js";
import type { DetailAnswer, RunSource, SourceState } from "./run-source.js";

const POLL_MS = 2000;
const tokenKey = "brig-view-token";

interface LiveRun {
  header: RunHeader;
  rows: AttemptRow[];
  generation: number;
  seq: number;
  unreadableLines: number;
}

class Refused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`refused with ${status}`);
    this.status = status;
  }
}

/**
 * Takes the token from the address, where it would otherwise stay in the history and in links, and keeps it for this tab.
 */
export function takeToken(): string | null {
  const fields = new URLSearchParams(location.hash.slice(1));
  const given = fields.get("token");
  if (given === null) return sessionStorage.getItem(tokenKey);
  sessionStorage.setItem(tokenKey, given);
  fields.delete("token");
  history.replaceState(null, "", `#${fields}`);
  return given;
}

/** Asks the server that the page came from. */
export class LiveSource implements RunSource {
  readonly #token: string | null;
  readonly #runs: LiveRun[] = [];

  constructor(token: string | null) {
    this.#token = token;
  }

  watch(onState: (state: SourceState) => void): () => void {
    let isWatched = true;
    let timer = 0;
    const poll = async () => {
      const state = document.hidden && this.#runs.length > 0 ? null : await this.#poll();
      if (!isWatched) return;
      if (state !== null) onState(state);
      if (state?.kind !== "failed") timer = window.setTimeout(() => void poll(), POLL_MS);
    };
    void poll();
    return () => {
      isWatched = false;
      window.clearTimeout(timer);
    };
  }

  async detail(run: number, at: number): Promise<DetailAnswer> {
    try {
      const generation = this.#runs[run]?.generation ?? 0;
      const detail = await this.#ask<AttemptDetail>(
        `/api/runs/${run}/attempts/${at}?generation=${generation}`,
      );
      return { kind: "detail", detail };
    } catch {
      return { kind: "failed", reason: "The server did not send this attempt. Is brig view still running?" };
    }
  }

  /** Null if nothing has changed. */
  async #poll(): Promise<SourceState | null> {
    try {
      const { runs } = await this.#ask<{ runs: number }>("/api/runs");
      for (let run = 0; run < runs; run++) await this.#update(run);
      return this.#state({ isStale: false });
    } catch (error) {
      if (error instanceof Refused && error.status === 401)
        return { kind: "failed", reason: "Open the address that brig view printed: it contains a token." };
      if (this.#runs.length > 0) return this.#state({ isStale: true });
      return { kind: "failed", reason: "The server does not answer. Is brig view still running?" };
    }
  }

  async #update(run: number): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const known = this.#runs[run];
      const asked = `generation=${known?.generation ?? 0}&since=${known?.seq ?? 0}`;
      const changes = await this.#ask<RunChanges>(`/api/runs/${run}/changes?${asked}`);
      this.#apply(run, changes);
      hasMore = changes.hasMore;
    }
  }

  #apply(run: number, { header, generation, seq, rows, unreadableLines }: RunChanges): void {
    const known = this.#runs[run];
    const isSame = known?.generation === generation;
    if (isSame && rows.length === 0 && header === null) return;
    const all = isSame ? known.rows.slice() : [];
    for (const { at, row } of rows) all[at] = row;
    const kept = header ?? known?.header;
    if (kept !== undefined) this.#runs[run] = { header: kept, rows: all, generation, seq, unreadableLines };
  }

  #state({ isStale }: { isStale: boolean }): SourceState {
    return { kind: "ready", runs: [...this.#runs], isLive: true, isStale };
  }

  async #ask<T>(path: string): Promise<T> {
    const headers = { authorization: `Bearer ${this.#token ?? ""}` };
    const response = await fetch(path, { headers, cache: "no-store" });
    if (!response.ok) throw new Refused(response.status);
    return (await response.json()) as T;
  }
}
