import { useEffect, useState } from "preact/hooks";
import { fragmentOf, type PageState, stateOf } from "./page-state.js";

export interface Navigation {
  state: PageState;
  /** `replace`: without a new entry in the history, as while somebody types. */
  go(change: Partial<PageState>, options?: { replace?: boolean }): void;
  /** The address of a link. */
  link(change: Partial<PageState>): string;
}

/** The page's state is in its address, so that it can be linked and the browser's own back works. */
export function usePageState(): Navigation {
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
