import { z } from "zod";
import type { ResponseItem } from "../model/items.js";

const searchCall = z.object({
  type: z.literal("web_search_call"),
  action: z
    .looseObject({
      type: z.string(),
      query: z.string().nullish(),
      queries: z.array(z.string()).nullish(),
      url: z.string().nullish(),
      pattern: z.string().nullish(),
    })
    .nullish(),
});

/** A web search by the model's provider. */
export interface WebSearch {
  /** The search terms or the page, as text. */
  query: string;
  /** Unchanged from the endpoint. */
  action: Readonly<Record<string, unknown>>;
}

/** Returns null for any other item. */
export function webSearchIn(item: ResponseItem): WebSearch | null {
  if (item.type !== "opaque") return null;
  const { data } = searchCall.safeParse(item.item);
  if (data === undefined) return null;
  const action = data.action ?? { type: "other" };
  return { query: queryOf(action), action };
}

function queryOf({
  type,
  query,
  queries,
  url,
  pattern,
}: z.output<typeof searchCall>["action"] & object): string {
  if (type === "open_page") return url ?? "";
  if (type === "find_in_page") return `'${pattern ?? ""}' in ${url ?? ""}`;
  const [first, ...more] = queries ?? [];
  return query || (first === undefined ? "" : more.length === 0 ? first : `${first} ...`);
}
