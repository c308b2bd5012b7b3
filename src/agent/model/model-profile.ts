/** What brig knows about a model from its name. */
export interface ModelProfile {
  /** Takes the `reasoning` parameter and returns encrypted reasoning. */
  reasons: boolean;
  /** Where tool outputs are cut for it. */
  truncation: { mode: "tokens" | "bytes"; limit: number };
  /** Takes pictures in their original size; null for unknown models. */
  takesOriginalPictures: boolean | null;
  /** Knows the tools for agents in Codex's namespace. */
  usesNamespaces: boolean;
  /** How many tokens it can read at once; null for unknown models. */
  contextWindowTokens: number | null;
  /** Tools that are offered to it in another form than the usual one, or not at all (false). */
  tools: { shell?: "local"; apply_patch?: "function"; view_image?: false };
}

const reasoningModel = /^(?:gpt-[5-9](?!-chat)|codex|o\d)/;

/**
 * Models whose tool outputs are cut to 10 000 tokens, as in Codex: the Codex models, and all of OpenAI's from
 * GPT-5.3 on. Others, such as GPT-5, 5.1, 5.2 and the o series, get 10 000 bytes, a quarter of that.
 */
const cutsByTokens = /^(?:codex-|exp-codex|gpt-5(?:\.\d+)?-codex|gpt-5\.(?:[3-9]|\d\d)|gpt-[6-9])/;

const originalPictures = /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])/;
const usesNamespaces = /^(?:gpt-[5-9](?!.*-chat)|codex)/;
const openaiFamily = /^(?:gpt-|codex-|o\d)/;

/** An unknown model gets the cautious values. */
export function profileOf(model: string): ModelProfile {
  const slug = model.slice(model.lastIndexOf("/") + 1);
  const takesOriginalPictures = openaiFamily.test(slug) ? originalPictures.test(slug) : null;
  const known = { tools: toolsOf(slug), contextWindowTokens: contextWindowOf(slug), takesOriginalPictures };
  const mode = cutsByTokens.test(slug) && !slug.includes("-chat") ? "tokens" : "bytes";
  return {
    reasons: reasoningModel.test(slug),
    truncation: { mode, limit: 10_000 },
    usesNamespaces: usesNamespaces.test(slug),
    ...known,
  };
}

/** The first match counts. A model's real window may be smaller, e.g. if people run it themselves. */
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

/** Scripts can call every tool. Endpoints other than OpenAI's rarely support freeform tools. */
function toolsOf(slug: string): ModelProfile["tools"] {
  if (slug.startsWith("codex-mini")) return { shell: "local" };
  if (slug.startsWith("gpt-oss")) return { apply_patch: "function", view_image: false };
  return slug === "scripted" || /^(?:gpt-[5-9]|codex)/.test(slug) ? {} : { apply_patch: "function" };
}
