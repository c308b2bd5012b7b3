import type { ModelProvider } from "../provider.js";
import { exchange } from "./exchange.js";

/**
 * What brig uses of a client of the `openai` package, such as `OpenAI` or `AzureOpenAI`. It is described here, so that brig's types
 * need no package of which a program may have another version, or none.
 */
export interface OpenAIClient {
  /** The part of the address before `/responses` or `/chat/completions`. */
  readonly baseURL: string;
  /** Hidden in everything that an endpoint says. */
  readonly apiKey?: string | null | undefined;
  readonly responses: RequestSender;
  readonly chat: { readonly completions: RequestSender };
}

/** Sends the requests of one of the two APIs. brig reads the answer itself. */
export interface RequestSender {
  create(body: never, options: never): { asResponse(): Promise<Response> };
}

interface SendOptions {
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

/**
 * Sends the requests to a provider of the configuration over brig's own connections. The package would do it too, but takes 25 ms or
 * more to load and to send its first request, a seventh of the time from the start of a program to that request.
 */
export function providerClient(provider: ModelProvider): OpenAIClient {
  const sender = (path: string): RequestSender => ({
    create: (body: object, options: SendOptions) => ({
      asResponse: async () => await exchange(path, { provider, body: JSON.stringify(body), ...options }),
    }),
  });
  return {
    baseURL: provider.baseUrl,
    responses: sender("/responses"),
    chat: { completions: sender("/chat/completions") },
  };
}
