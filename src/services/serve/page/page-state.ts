import type { Navigation as PageNavigation } from "../../../lib/page/navigation.js";
import type { ReadOverview } from "../wire/overview-schemas.js";

/** Everything that the page's address says. The token is never in it. */
interface PageState {
  /** The id of the one sandbox that the page shows. Empty where it lists all of them. */
  sandbox: string;
  text: string;
  order: ReadOverview["order"];
  /** The first row of the table that is shown, of sandboxes or of commands. */
  from: number;
}

export const orderNames: Record<ReadOverview["order"], string> = {
  newest: "newest first",
  oldest: "oldest first",
  idle: "longest idle first",
  expiring: "next to expire first",
};

const firstState: PageState = { sandbox: "", text: "", order: "newest", from: 0 };

export function stateOf(fragment: string): PageState {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const from = Number(fields.get("from") ?? 0);
  const order = fields.get("order") ?? "";
  return {
    sandbox: fields.get("sandbox") ?? "",
    text: (fields.get("text") ?? "").slice(0, 200),
    order: Object.hasOwn(orderNames, order) ? (order as PageState["order"]) : firstState.order,
    from: Number.isSafeInteger(from) && from > 0 ? from : 0,
  };
}

/** Without what is as at first. */
export function fragmentOf(state: PageState): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(state))
    if (value !== firstState[name as keyof PageState]) fields.set(name, String(value));
  return `#${fields}`;
}

export type Navigation = PageNavigation<PageState>;
