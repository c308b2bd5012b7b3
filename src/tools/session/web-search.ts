import { z } from "zod";
import { defineTool } from "../define-tool.js";
import type { Tool, ToolOutput } from "../tool.js";

export interface WebSearchNeeds {
  /** Whether pages are fetched, instead of read from the provider's own store. */
  readonly searchesLive: boolean;
}

/** A search that the model's provider makes: only its declaration is ours. */
export function webSearchTool({ searchesLive }: WebSearchNeeds): Tool<ToolOutput, Record<string, never>> {
  return defineTool({
    name: "web_search",
    description: "Searches the web. The model's provider does it, outside the sandbox.",
    parameters: z.object({}),
    spec: { type: "web_search", external_web_access: searchesLive },
    supportsParallel: true,
    run: () =>
      Promise.resolve({
        content: "web_search is run by the model's provider; it cannot be called as a function",
        success: false,
      }),
  });
}
