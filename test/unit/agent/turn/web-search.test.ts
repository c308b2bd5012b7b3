import { describe, expect, it } from "vitest";
import { textMessage } from "../../../../src/agent/model/items.js";
import { parseItem } from "../../../../src/agent/model/parse-item.js";
import { webSearchIn } from "../../../../src/agent/turn/web-search-event.js";

const search = (action: unknown) => webSearchIn(parseItem({ type: "web_search_call", id: "ws_1", action }));

describe("a search on the web", () => {
  it.each([
    [{ type: "search", query: "a" }, "a"],
    [{ type: "search", query: "", queries: ["a"] }, "a"],
    [{ type: "search", queries: ["a", "b"] }, "a ..."],
    [{ type: "open_page", url: "https://x.example/" }, "https://x.example/"],
    [{ type: "find_in_page", url: "https://x.example/", pattern: "p" }, "'p' in https://x.example/"],
    [{ type: "search" }, ""],
  ])("%j is told as %j", (action, query) => {
    expect(search(action)).toEqual({ query, action });
  });

  it("is told without an action too, and nothing else is one", () => {
    expect(search(null)).toEqual({ query: "", action: { type: "other" } });
    expect(webSearchIn(textMessage("user", "x"))).toBeNull();
    expect(webSearchIn(parseItem({ type: "image_generation_call" }))).toBeNull();
  });
});
