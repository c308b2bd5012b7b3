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

/** brig's own client for a provider. The package is loaded with the first request, so that nothing else waits for it. */
export async function openaiClient(provider: ModelProvider): Promise<OpenAIClient> {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({
    baseURL: provider.baseUrl,
    // Required, and never sent: each request has all its headers from brig.
    apiKey: "none",
    logLevel: "off",
    fetch: (url, init) => exchange(new URL(String(url)), { provider, init }),
  });
}
