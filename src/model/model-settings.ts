/** What a configuration says about a model's answers. Unset means the endpoint's own default. */
export interface ModelSettings {
  /** Whether the model can be asked to reason. Default: what is known of it. */
  reasons?: boolean | undefined;
  reasoningEffort?: string | undefined;
  /** On the Responses API only. */
  reasoningSummary?: string | undefined;
  verbosity?: string | undefined;
  serviceTier?: string | undefined;
}

/** The wire's own word for a tier. */
export function serviceTierField({ serviceTier: tier }: ModelSettings): { service_tier?: string } {
  return tier === undefined ? {} : { service_tier: tier === "fast" ? "priority" : tier };
}
