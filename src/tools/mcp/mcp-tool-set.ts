import type { Tool } from "../tool.js";
import type { McpServers, McpTool } from "./mcp-servers.js";
import { type McpToolNeeds, mcpTool } from "./mcp-tool.js";

/**
 * From this number on, tools are found by a search, because each request would be too long with all of them.
 */
const SEARCHED_TOOL_COUNT = 100;

export interface McpToolSetNeeds extends McpToolNeeds {
  readonly mcp: McpServers;
  /**
   * The names, for the model, of the tools that it has found by a search or has called. `McpToolSet` adds to
   * them.
   */
  readonly foundTools: Set<string>;
  /** Whether tools are found by a search. Null: if there are 100 of them or more. */
  readonly searchesTools: boolean | null;
}

/** The tools of the session's MCP servers. A server may add and remove tools at any time. */
export class McpToolSet {
  readonly #needs: McpToolSetNeeds;
  /** One tool for each `McpTool`. A server that changes its list has new ones. */
  readonly #made = new WeakMap<McpTool, Tool>();

  constructor(needs: McpToolSetNeeds) {
    this.#needs = needs;
  }

  /** Every tool that is enabled. */
  get all(): readonly McpTool[] {
    return this.#needs.mcp.tools();
  }

  everyTool(): readonly Tool[] {
    return this.all.map((tool) => this.#toolOf(tool));
  }

  /** Whether the model is offered a search, and only those tools that it has found. */
  get isSearched(): boolean {
    return this.#needs.searchesTools ?? this.all.length >= SEARCHED_TOOL_COUNT;
  }

  /** The tools that the next request offers. */
  offered(): readonly Tool[] {
    const { foundTools } = this.#needs;
    const { isSearched } = this;
    const offered = this.all.filter(({ modelName }) => !isSearched || foundTools.has(modelName));
    return offered.map((tool) => this.#toolOf(tool));
  }

  /**
   * Finds a tool by its name for the model, also one that no search has found: the model may know it from an
   * earlier part of a resumed conversation. Once called, it counts as found.
   */
  find(name: string): Tool | undefined {
    const tool = this.all.find(({ modelName }) => modelName === name);
    return tool && this.#toolOf(tool);
  }

  #toolOf(described: McpTool): Tool {
    const known = this.#made.get(described);
    if (known !== undefined) return known;
    const { mcp, foundTools } = this.#needs;
    const tool = mcpTool(mcp, described, this.#needs);
    const noting: Tool = {
      ...tool,
      execute(args, call) {
        foundTools.add(described.modelName);
        return tool.execute(args, call);
      },
    };
    this.#made.set(described, noting);
    return noting;
  }
}
