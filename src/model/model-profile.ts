/** What is known of a model by its name. */
export interface ModelProfile {
  /** Takes the `reasoning` parameter and returns encrypted reasoning. */
  reasons: boolean;
  /** How much of a tool's output it is given. */
  truncation: { mode: "tokens" | "bytes"; limit: number };
  /** Tools that it is offered in another form than the usual one, or not at all. */
  tools: { shell?: "local"; apply_patch?: "function"; view_image?: false };
}

const reasoningModel = /^(?:gpt-5|codex|o\d)/;

/** A model nobody has heard of gets the cautious values. */
export function profileOf(model: string): ModelProfile {
  const slug = model.slice(model.lastIndexOf("/") + 1);
  const tools = toolsOf(slug);
  return reasoningModel.test(slug)
    ? { reasons: true, truncation: { mode: "tokens", limit: 10_000 }, tools }
    : { reasons: false, truncation: { mode: "bytes", limit: 10_000 }, tools };
}

/** A script knows every tool. Endpoints that are not OpenAI's rarely know tools which take text. */
function toolsOf(slug: string): ModelProfile["tools"] {
  if (slug.startsWith("codex-mini")) return { shell: "local" };
  if (slug.startsWith("gpt-oss")) return { apply_patch: "function", view_image: false };
  return slug === "scripted" || /^(?:gpt-[5-9]|codex)/.test(slug) ? {} : { apply_patch: "function" };
}
