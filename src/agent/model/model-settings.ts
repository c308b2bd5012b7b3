/** The efforts that models with reasoning know, the least first. An endpoint may know others. */
export const REASONING_EFFORTS = ["minimal", "low", "medium", "high", "xhigh"] as const;

/** Settings for a model's answers. An unset one is left to the endpoint's default. */
export interface ModelSettings {
  /** Whether the model can be asked to reason. Default: as its profile says. */
  reasons?: boolean | undefined;
  reasoningEffort?: string | undefined;
  /** Only used with the Responses API. */
  reasoningSummary?: string | undefined;
  verbosity?: string | undefined;
  serviceTier?: string | undefined;
}

/** Endpoints call the tier `fast` "priority". */
export function serviceTierField({ serviceTier: tier }: ModelSettings): { service_tier?: string } {
  return tier === undefined ? {} : { service_tier: tier === "fast" ? "priority" : tier };
}
