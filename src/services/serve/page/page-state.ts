import { useEffect, useState } from "preact/hooks";
import type { ReadOverview } from "../wire/overview-schemas.js";

/** Everything that the page's address says. The token is never in it. */
interface PageState {
  /** The id of the sandbox that is shown; empty for all of them. */
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

function stateOf(fragment: string): PageState {
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
function fragmentOf(state: PageState): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(state))
    if (value !== firstState[name as keyof PageState]) fields.set(name, String(value));
  return `#${fields}`;
}

export interface Navigation {
  state: PageState;
  /** `replace`: without a new entry in the history, as while somebody types. */
  go(change: Partial<PageState>, options?: { replace?: boolean }): void;
  /** The address of a link. */
  link(change: Partial<PageState>): string;
}

export function useNavigation(): Navigation {
  const [state, setState] = useState(() => stateOf(location.hash));
  useEffect(() => {
    const read = () => setState(stateOf(location.hash));
    window.addEventListener("hashchange", read);
    return () => window.removeEventListener("hashchange", read);
  }, []);
  return {
    state,
    go(change, { replace = false } = {}) {
      const next = { ...state, ...change };
      if (replace) history.replaceState(null, "", fragmentOf(next));
      else history.pushState(null, "", fragmentOf(next));
      setState(next);
    },
    link: (change) => fragmentOf({ ...state, ...change }),
  };
}
