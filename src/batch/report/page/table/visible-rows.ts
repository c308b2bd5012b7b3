import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** In pixels; the style sheet has the same number. */
export const ROW_HEIGHT = 34;
/** Rows above and below those in sight. */
const SPARE_ROWS = 12;
/** More rows than this are not printed. */
const PRINTED_ROWS = 2000;

export interface RowRange {
  from: number;
  to: number;
}

/** Which of `count` rows are in the document: those in sight, and more of them on paper. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, count: number): RowRange {
  const [sight, setSight] = useState<RowRange>({ from: 0, to: 60 });
  const [isPrinting, setPrinting] = useState(false);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = () => {
      const from = Math.max(0, Math.floor(element.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
      const to = Math.ceil((element.scrollTop + element.clientHeight) / ROW_HEIGHT) + SPARE_ROWS;
      setSight((earlier) => (earlier.from === from && earlier.to === to ? earlier : { from, to }));
    };
    const resized = new ResizeObserver(look);
    resized.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [scroller]);
  useEffect(() => {
    const begin = () => setPrinting(true);
    const end = () => setPrinting(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  if (isPrinting) return { from: 0, to: Math.min(count, PRINTED_ROWS) };
  const to = Math.min(count, sight.to);
  return { from: Math.min(sight.from, Math.max(0, to - 1)), to };
}
