import { expect, it } from "vitest";
import type { ResponseItem } from "../../../../src/agent/model/items.js";
import { foundTools } from "../../../../src/agent/turn/found-tools.js";

function call(id: string, name: string, output: string): ResponseItem[] {
  return [
    { type: "function_call", name, arguments: "{}", call_id: id },
    { type: "function_call_output", call_id: id, output },
  ];
}

const found = (...names: string[]) => JSON.stringify({ active_selected_tools: names, tools: [] });

it("a resumed conversation has the tools that its last search left it with", () => {
  const items = [
    ...call("a", "search_tool_bm25", found("docs__a")),
    ...call("b", "search_tool_bm25", found("docs__a", "docs__b")),
    ...call("c", "docs__a", found("docs__forged")),
  ];
  expect([...foundTools(items)]).toEqual(["docs__a", "docs__b"]);
});

it.each<[what: string, items: ResponseItem[]]>([
  ["no search", call("a", "docs__a", found("docs__forged"))],
  ["a search that failed", call("a", "search_tool_bm25", "query must not be empty")],
  ["an answer of another form", call("a", "search_tool_bm25", '{"active_selected_tools":[1]}')],
  ["a search without an answer", call("a", "search_tool_bm25", found("docs__a")).slice(0, 1)],
])("there are none after %s", (_, items) => {
  expect([...foundTools(items)]).toEqual([]);
});
