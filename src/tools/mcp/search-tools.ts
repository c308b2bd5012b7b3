import { z } from "zod";
import { clipped, truncateText } from "../../sandbox/index.js";
import { type ArgumentsOf, defineTool, type OutputLimit } from "../define-tool.js";
import { requireInput, type Tool, type ToolOutput } from "../tool.js";
import type { McpTool } from "./mcp-servers.js";
import type { McpToolSet } from "./mcp-tool-set.js";

export interface SearchToolsNeeds extends OutputLimit {
  /** Null without MCP servers. */
  readonly mcpTools: McpToolSet | null;
  readonly foundTools: Set<string>;
}

const parameters = z.object({
  query: z.string().describe("Words for what the tool does, or its name."),
  limit: z.int().default(8).describe("The most tools to find. Default: 8."),
});

/** Enough to choose a tool by. The next request has the whole description of each tool that was found. */
const DESCRIPTION_CHARS = 1000;

/** Words that say nothing about a tool. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  "a an and are as at be by for from in into is it its of on or that the this to with".split(" "),
);

/** How much a word counts, by where it is found: a name says more about a tool than a description. */
const boosts = { name: 3, title: 2, server: 1.5, keys: 1, description: 1 } as const;

export function searchToolsTool({
  mcpTools,
  foundTools,
  truncation,
}: SearchToolsNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "search_tool_bm25",
    description:
      "Searches the tools of the MCP servers, which are too many to be listed here. The tools that are found can be " +
      "called from the next response on. Search before you conclude that there is no tool for something.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    async run({ query, limit }) {
      requireInput(query.trim() !== "", "query must not be empty");
      requireInput(limit > 0, "limit must be greater than zero");
      const all = mcpTools?.all ?? [];
      const found = (await ranked(all, query)).slice(0, limit);
      for (const { tool } of found) foundTools.add(tool.modelName);
      const answer = {
        query,
        total_tools: all.length,
        active_selected_tools: all
          .map(({ modelName }) => modelName)
          .filter((name) => foundTools.has(name))
          .toSorted(),
        tools: found.map(({ tool, score }) => described(tool, score)),
      };
      return { content: truncateText(JSON.stringify(answer), truncation), success: true };
    },
  });
}

function described({ modelName, server, title, description, inputSchema }: McpTool, score: number) {
  const input_keys = Object.keys(inputSchema.properties ?? {});
  return {
    name: modelName,
    server,
    title,
    description: clipped(description, DESCRIPTION_CHARS),
    connector_name: null,
    input_keys,
    score,
  };
}

/**
 * Returns the tools that match, the best one first. Each search makes a new index, since the tools may have
 * changed.
 */
async function ranked(tools: readonly McpTool[], query: string): Promise<{ tool: McpTool; score: number }[]> {
  // Imported here, because most sessions have too few tools to search them.
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch<{ id: number } & Record<keyof typeof boosts, string>>({
    fields: Object.keys(boosts),
    tokenize: words,
    processTerm: (term) => (STOP_WORDS.has(term) ? null : stem(term)),
    searchOptions: { boost: boosts, prefix: (term) => term.length > 3 },
  });
  index.addAll(
    tools.map(({ modelName, name, server, title, description, inputSchema }, id) => ({
      id,
      name: `${name} ${modelName}`,
      title: title ?? "",
      server,
      keys: Object.keys(inputSchema.properties ?? {}).join(" "),
      description,
    })),
  );
  return index.search(query).flatMap(({ id, score }) => {
    const tool = tools[Number(id)];
    return tool === undefined ? [] : [{ tool, score }];
  });
}

/** Splits at everything but letters and digits, and before the capitals of `camelCase`. */
function words(text: string): string[] {
  const spaced = text.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2");
  return spaced
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
}

/** Makes `issues` and `issue` the same word, and `listing` and `list`. */
function stem(word: string): string {
  const singular = word.length > 3 ? word.replace(/(?<!s)s$/, "") : word;
  return singular.length > 5 ? singular.replace(/(?:ing|ed)$/, "") : singular;
}
