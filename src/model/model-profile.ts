/** What is known of a model by its name. */
export interface ModelProfile {
  /** Takes the `reasoning` parameter and returns encrypted reasoning. */
  reasons: boolean;
  /** How much of a tool's output it is given. */
  truncation: { mode: "tokens" | "bytes"; limit: number };
  /** Takes pictures in their original size; null for models that nobody has heard of. */
  takesOriginalPictures: boolean | null;
  /** How many tokens it can read at once, as far as it is known by name; null for most models that anybody can run. */
  contextWindowTokens: number | null;
  /** Tools that it is offered in another form than the usual one, or not at all. */
  tools: { shell?: "local"; apply_patch?: "function"; view_image?: false };
}

const reasoningModel = /^(?:gpt-[5-9](?!-chat)|codex|o\d)/;

/**
 * Families whose outputs are cut to 10 000 tokens, as Codex has them: the Codex models, and from GPT-5.3 on all of OpenAI's. GPT-5, 5.1
 * and 5.2, the o series and every model nobody has heard of get 10 000 bytes, a quarter of that.
 */
const countsTokens = /^(?:codex-|exp-codex|gpt-5(?:\.\d+)?-codex|gpt-5\.(?:[3-9]|\d\d)|gpt-[6-9])/;

/** From GPT-5.4 on OpenAI's models take pictures as they are. */
const originalPictures = /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])/;
const ownFamily = /^(?:gpt-|codex-|o\d)/;

/** A model nobody has heard of gets the cautious values. */
export function profileOf(model: string): ModelProfile {
  const slug = model.slice(model.lastIndexOf("/") + 1);
  const takesOriginalPictures = ownFamily.test(slug) ? originalPictures.test(slug) : null;
  const known = { tools: toolsOf(slug), contextWindowTokens: contextWindowOf(slug), takesOriginalPictures };
  const mode = countsTokens.test(slug) && !slug.includes("-chat") ? "tokens" : "bytes";
  return { reasons: reasoningModel.test(slug), truncation: { mode, limit: 10_000 }, ...known };
}

/** The first that a name starts with. What an endpoint makes of a name may be less, e.g. where people run models themselves. */
const contextWindows: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/^gpt-5.*-chat/, 128_000],
  [/^gpt-[5-9]/, 272_000],
  [/^codex-mini/, 200_000],
  [/^gpt-4\.1/, 1_047_576],
  [/^(?:gpt-4o|gpt-4-turbo|chatgpt-4o)/, 128_000],
  [/^gpt-4(?:-0613)?$/, 8_192],
  [/^gpt-3\.5-turbo/, 16_385],
  [/^gpt-oss/, 131_072],
  [/^(?:o1-mini|o1-preview)/, 128_000],
  [/^o\d/, 200_000],
];

function contextWindowOf(slug: string): number | null {
  return contextWindows.find(([name]) => name.test(slug))?.[1] ?? null;
}

/** A script knows every tool. Endpoints that are not OpenAI's rarely know tools which take text. */
function toolsOf(slug: string): ModelProfile["tools"] {
  if (slug.startsWith("codex-mini")) return { shell: "local" };
  if (slug.startsWith("gpt-oss")) return { apply_patch: "function", view_image: false };
  return slug === "scripted" || /^(?:gpt-[5-9]|codex)/.test(slug) ? {} : { apply_patch: "function" };
}
