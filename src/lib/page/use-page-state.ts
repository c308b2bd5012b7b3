import { useEffect, useState } from "preact/hooks";
import type { Navigation, PageAddress } from "./navigation.js";

/** The page's state is in its address, so that it can be linked and the browser's own back works. */
export function usePageState<State>({ stateOf, fragmentOf }: PageAddress<State>): Navigation<State> {
  const [state, setState] = useState(() => stateOf(location.hash));
  useEffect(() => {
    const read = () => setState(stateOf(location.hash));
    window.addEventListener("hashchange", read);
    return () => window.removeEventListener("hashchange", read);
  }, [stateOf]);
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
