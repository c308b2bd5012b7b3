import { useEffect, useState } from "preact/hooks";

const POLL_MS = 2000;
const tokenKey = "token";

/** The token that was typed in, for as long as the tab is open. */
export const storedToken = {
  read: (): string | null => sessionStorage.getItem(tokenKey),
  keep: (token: string): void => sessionStorage.setItem(tokenKey, token),
  forget: (): void => sessionStorage.removeItem(tokenKey),
};

/** An answer that is none. */
export class Refused extends Error {
  /** 0 if there was no answer at all. */
  readonly status: number;

  constructor(message: string, { status = 0, cause }: { status?: number; cause?: unknown } = {}) {
    super(message, { cause });
    this.status = status;
  }
}

/** Asks the service that the page came from. Error: `Refused`. */
export class ServiceCalls {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  async read<T>(path: string, signal?: AbortSignal): Promise<T> {
    const response = await this.#send("GET", path, { signal });
    try {
      return (await response.json()) as T;
    } catch (cause) {
      throw new Refused("the service did not send its whole answer", { cause });
    }
  }

  async removeSandbox(id: string): Promise<void> {
    await this.#send("DELETE", `/v1/sandboxes/${encodeURIComponent(id)}`);
  }

  async endProcess(id: string, process: string): Promise<void> {
    await this.#send(
      "DELETE",
      `/v1/sandboxes/${encodeURIComponent(id)}/processes/${encodeURIComponent(process)}`,
    );
  }

  async extend(id: string, lifeMs: number): Promise<void> {
    await this.#send("POST", `/v1/sandboxes/${encodeURIComponent(id)}/extend`, {
      body: JSON.stringify({ lifeMs }),
    });
  }

  async #send(
    method: string,
    path: string,
    { signal, body }: { signal?: AbortSignal | undefined; body?: string } = {},
  ): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}` };
    let response: Response;
    try {
      response = await fetch(path, {
        ...{ method, headers, cache: "no-store", credentials: "omit", redirect: "error" },
        ...(signal !== undefined && { signal }),
        ...(body !== undefined && { body }),
      });
    } catch (cause) {
      throw new Refused("the service does not answer", { cause });
    }
    if (response.ok) return response;
    throw new Refused(await messageOf(response), { status: response.status });
  }
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: { message?: unknown } };
    return String(error?.message ?? response.status).slice(0, 500);
  } catch {
    return `it answered with ${response.status}`;
  }
}

/** What is known of an address of the service that is asked again and again. */
export interface Polled<T> {
  /** The latest answer; null before the first. */
  latest: T | null;
  /** Why there is no newer one; null if there is. */
  problem: Refused | null;
  /** Asks at once. */
  refresh(): void;
}

/** Asks every two seconds, as long as the page can be seen. An address that changes keeps the latest answer until there is another one. */
export function usePolled<T>(service: ServiceCalls, path: string): Polled<T> {
  const [{ latest, problem }, setState] = useState<Pick<Polled<T>, "latest" | "problem">>({
    latest: null,
    problem: null,
  });
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn asks again
  useEffect(() => {
    const over = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const answer = document.hidden ? null : await service.read<T>(path, over.signal);
        if (!over.signal.aborted && answer !== null) setState({ latest: answer, problem: null });
      } catch (error) {
        if (!over.signal.aborted)
          setState((earlier) => ({ latest: earlier.latest, problem: error as Refused }));
      }
      if (!over.signal.aborted) timer = window.setTimeout(() => void ask(), POLL_MS);
    };
    void ask();
    return () => {
      over.abort();
      window.clearTimeout(timer);
    };
  }, [service, path, turn]);
  return { latest, problem, refresh: () => setTurn((earlier) => earlier + 1) };
}
