import { render } from "ink";
import type { OutputStream } from "../context.js";
import type { ScreenStore } from "./screen/screen-store.js";
import { Screen } from "./screen.js";

export interface MountOptions {
  stdout: OutputStream;
  usesColour: boolean;
  prepareTerminal: () => () => void;
}

/** Draws the screen from now on. What draws is large: load this file only where it is needed. */
export function mountScreen(
  store: ScreenStore,
  { stdout, ...props }: MountOptions,
): { broken: Promise<never>; unmount(): void } {
  const screen = render(<Screen store={store} {...props} />, {
    // It writes to it, reads its size and listens for changes of it.
    stdout: stdout as NodeJS.WriteStream,
    exitOnCtrlC: false,
    patchConsole: false,
  });
  const broken = new Promise<never>((_, reject) => {
    screen.waitUntilExit().catch(reject);
  });
  // Whoever waits for it gets the failure.
  broken.catch(() => undefined);
  return { broken, unmount: screen.unmount };
}
