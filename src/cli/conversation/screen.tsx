import { Box, Static, Text, useCursor } from "ink";
import { type ReactNode, useLayoutEffect, useSyncExternalStore } from "react";
import { ansiLine } from "./screen/ansi-line.js";
import { blocksLines } from "./screen/block-lines.js";
import { FOLD_HINT, liveRegion } from "./screen/live-lines.js";
import type { ScreenStore } from "./screen/screen-store.js";
import type { StyledLine } from "./screen/styled-line.js";

export interface ScreenProps {
  store: ScreenStore;
  usesColour: boolean;
  /** Switches modes of the terminal on, and returns a function that switches them off. */
  prepareTerminal: () => () => void;
}

/** Finished blocks scroll up and never change; the live part is drawn again below them. */
export function Screen({ store, usesColour, prepareTerminal }: ScreenProps): ReactNode {
  useLayoutEffect(prepareTerminal, [prepareTerminal]);
  const state = useSyncExternalStore(store.watch, store.read);
  const { setCursorPosition } = useCursor();
  const { view, painted, size } = state;
  const { lines, cursor } = liveRegion(state);
  setCursorPosition(cursor ?? undefined);
  const room = { columns: size.columns - 1, foldHint: FOLD_HINT };
  return (
    <>
      <Static key={painted.generation} items={view.finished.slice(painted.from)}>
        {(block, index) => {
          const earlier = view.finished[painted.from + index - 1];
          return (
            <Rows key={index} lines={blocksLines([block], { ...room, earlier })} usesColour={usesColour} />
          );
        }}
      </Static>
      <Rows lines={lines} usesColour={usesColour} />
    </>
  );
}

function Rows({ lines, usesColour }: { lines: readonly StyledLine[]; usesColour: boolean }): ReactNode {
  return (
    <Box flexDirection="column">
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its position on the screen
        <Text key={index} wrap="truncate-end">
          {ansiLine(line, { usesColour }) || " "}
        </Text>
      ))}
    </Box>
  );
}
