import { z } from "zod";
import { parseJson } from "../../lib/json/parse-json.js";
import type { ResponseItem } from "../model/items.js";

const answer = z.looseObject({ active_selected_tools: z.array(z.string()) });

/** Returns the tools of MCP servers that a resumed conversation has found, as its last search listed them. */
export function foundTools(items: readonly ResponseItem[]): Set<string> {
  const searches = new Set(
    items.flatMap((item) =>
      item.type === "function_call" && item.name === "search_tool_bm25" ? [item.call_id] : [],
    ),
  );
  const last = items.findLast((item) => item.type === "function_call_output" && searches.has(item.call_id));
  if (last?.type !== "function_call_output" || typeof last.output !== "string") return new Set();
  return new Set(answer.safeParse(parseJson(last.output)).data?.active_selected_tools ?? []);
}
