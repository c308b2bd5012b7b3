import { z } from "zod";
import { defineTool } from "../define-tool.js";
import { failure, type Tool, type ToolOutput } from "../tool.js";

export interface WebSearchNeeds {
  /** Whether pages are fetched live; otherwise they come from the provider's cache. */
  readonly searchesLive: boolean;
}

/** The model's provider runs this tool. brig only declares it. */
export function webSearchTool({ searchesLive }: WebSearchNeeds): Tool<ToolOutput, Record<string, never>> {
  return defineTool({
    name: "web_search",
    description: "Searches the web. The model's provider does it, outside the sandbox.",
    parameters: z.object({}),
    spec: { type: "web_search", external_web_access: searchesLive },
    supportsParallel: true,
    changesNoFiles: true,
    run: () =>
      Promise.resolve(
        failure("web_search is run by the model's provider; it cannot be called as a function"),
      ),
  });
}
