/** What is known of a model by its name. */
export interface ModelProfile {
  /** Takes the `reasoning` parameter and returns encrypted reasoning. */
  reasons: boolean;
  /** How much of a tool's output it is given. */
  truncation: { mode: "tokens" | "bytes"; limit: number };
}

const reasoningModel = /^(?:gpt-5|codex|o\d)/;

/** A model nobody has heard of gets the cautious values. */
export function profileOf(model: string): ModelProfile {
  const slug = model.slice(model.lastIndexOf("/") + 1);
  return reasoningModel.test(slug)
    ? { reasons: true, truncation: { mode: "tokens", limit: 10_000 } }
    : { reasons: false, truncation: { mode: "bytes", limit: 10_000 } };
}
