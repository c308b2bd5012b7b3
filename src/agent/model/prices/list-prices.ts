/** US dollars for a million tokens. */
export interface ModelPrice {
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  /** What changes for a request with more input tokens than this. */
  longRequest?: { aboveInputTokens: number; inputFactor: number; outputFactor: number } | undefined;
}

type ListPrice = Partial<ModelPrice> & Pick<ModelPrice, "input" | "cachedInput" | "output">;

/** From this many input tokens on, some of OpenAI's models charge more for the whole request. */
const longRequest = { aboveInputTokens: 272_000, inputFactor: 2, outputFactor: 1.5 };

/**
 * What OpenAI asks for: standard processing, US dollars per million tokens, as of November 2026. Sources:
 * https://developers.openai.com/api/docs/pricing and the pages of the models beside it; for models from before July
 * 2026 also https://models.dev. Models with a temporary price, or of which not every price could be found, are left out.
 */
const openai: Readonly<Record<string, ListPrice>> = {
  "gpt-4o": { input: 2.5, cachedInput: 1.25, output: 10 },
  "gpt-4o-mini": { input: 0.15, cachedInput: 0.075, output: 0.6 },
  "gpt-4.1": { input: 2, cachedInput: 0.5, output: 8 },
  "gpt-4.1-mini": { input: 0.4, cachedInput: 0.1, output: 1.6 },
  "gpt-4.1-nano": { input: 0.1, cachedInput: 0.025, output: 0.4 },
  o3: { input: 2, cachedInput: 0.5, output: 8 },
  "o3-mini": { input: 1.1, cachedInput: 0.55, output: 4.4 },
  "o4-mini": { input: 1.1, cachedInput: 0.275, output: 4.4 },
  "codex-mini-latest": { input: 1.5, cachedInput: 0.375, output: 6 },
  "gpt-5": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5-mini": { input: 0.25, cachedInput: 0.025, output: 2 },
  "gpt-5-nano": { input: 0.05, cachedInput: 0.005, output: 0.4 },
  "gpt-5-codex": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5.1": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5.1-codex": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5.1-codex-max": { input: 1.25, cachedInput: 0.125, output: 10 },
  "gpt-5.1-codex-mini": { input: 0.25, cachedInput: 0.025, output: 2 },
  "gpt-5.2": { input: 1.75, cachedInput: 0.175, output: 14 },
  "gpt-5.2-codex": { input: 1.75, cachedInput: 0.175, output: 14 },
  "gpt-5.3-codex": { input: 1.75, cachedInput: 0.175, output: 14 },
  "gpt-5.4": { input: 2.5, cachedInput: 0.25, output: 15, longRequest },
  "gpt-5.4-mini": { input: 0.75, cachedInput: 0.075, output: 4.5 },
  "gpt-5.4-nano": { input: 0.2, cachedInput: 0.02, output: 1.25 },
  "gpt-5.5": { input: 5, cachedInput: 0.5, output: 30, longRequest },
  "gpt-6-sol": { input: 2, cachedInput: 0.2, cacheWrite: 2.5, output: 10, longRequest },
  "gpt-6.1-sol": { input: 2, cachedInput: 0.1, cacheWrite: 2.5, output: 10, longRequest },
  "gpt-6.1-terra": { input: 1, cachedInput: 0.05, cacheWrite: 1.25, output: 5, longRequest },
  "gpt-6.2-sol": { input: 2, cachedInput: 0.1, cacheWrite: 2.5, output: 10, longRequest },
};

/** OpenAI's models with a known price, the oldest first. */
export const openaiModels: readonly string[] = Object.keys(openai);

/**
 * What Anthropic asks for, in the same units and as of the same month; cache writes are those for five minutes. Source:
 * https://platform.claude.com/docs/en/about-claude/pricing and the pages of the models.
 */
const anthropic: Readonly<Record<string, ListPrice>> = {
  "claude-haiku-4-5": { input: 1, cachedInput: 0.1, cacheWrite: 1.25, output: 5 },
  "claude-opus-4-8": { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25 },
  "claude-sonnet-5": { input: 2, cachedInput: 0.2, cacheWrite: 2.5, output: 10 },
  "claude-sonnet-5-5": { input: 2, cachedInput: 0.1, cacheWrite: 2.5, output: 10 },
  "claude-opus-5": { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25 },
  "claude-opus-5-5": { input: 4, cachedInput: 0.2, cacheWrite: 5, output: 20 },
  "claude-fable-5-1": { input: 10, cachedInput: 0.25, cacheWrite: 12.5, output: 50 },
};

/** What the makers of models ask for, by the models' names. */
export const listPrices: ReadonlyMap<string, ListPrice> = new Map(
  Object.entries({ ...openai, ...anthropic }),
);
