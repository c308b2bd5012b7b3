import { useEffect, useRef } from "preact/hooks";

/** Moves the focus to the heading when something else is shown, so that a screen reader begins there. */
export function useFocusOnChange(place: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const earlier = useRef(place);
  useEffect(() => {
    if (earlier.current !== place) heading.current?.focus();
    earlier.current = place;
  }, [place]);
  return heading;
}
