import type { WebServerLimits } from "../../../../src/lib/http/web-server.js";
import { MemoryBudget } from "../../../../src/services/serve/http/memory-budget.js";
import type { Calls } from "../../../../src/services/serve/http/response.js";
import { serveHttp } from "../../../../src/services/serve/http/serve-http.js";
import {
  type ClientRights,
  clientOfToken,
  usualRights,
} from "../../../../src/services/serve/http/served-client.js";

export interface ServedCalls extends AsyncDisposable {
  url: string;
  memory: MemoryBudget;
}

/** A service whose calls the test answers, for one client with the token `token`. */
export async function serveCalls(
  calls: Calls,
  {
    memory = new MemoryBudget(1024 ** 3),
    limits = {},
    rights = usualRights,
  }: { memory?: MemoryBudget; limits?: Partial<WebServerLimits>; rights?: ClientRights } = {},
): Promise<ServedCalls> {
  const end = new AbortController();
  let listening: (url: string) => void = () => undefined;
  const url = new Promise<string>((resolve) => {
    listening = resolve;
  });
  const ended = serveHttp({
    clients: () => [{ ...clientOfToken("one", "token"), rights }],
    calls,
    memory,
    limits,
    drain: end.signal,
    signal: new AbortController().signal,
    onListening: (address) => listening(address),
    onFault: (error) => {
      throw error;
    },
  });
  return {
    url: await url,
    memory,
    async [Symbol.asyncDispose]() {
      end.abort();
      await ended;
    },
  };
}
