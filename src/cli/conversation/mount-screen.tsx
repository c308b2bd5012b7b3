import { render } from "ink";
import type { OutputStream } from "../context.js";
import type { ScreenStore } from "./screen/screen-store.js";
import { Screen } from "./screen.js";

export interface MountOptions {
  stdout: OutputStream;
  usesColour: boolean;
  prepareTerminal: () => () => void;
}

/** Starts drawing the screen. Import this file only when needed: it loads Ink and React, which are large. */
export function mountScreen(
  store: ScreenStore,
  { stdout, ...props }: MountOptions,
): { broken: Promise<never>; unmount(): void } {
  const screen = render(<Screen store={store} {...props} />, {
    // Ink only writes to the stream, reads its size and listens for `resize`.
    stdout: stdout as NodeJS.WriteStream,
    exitOnCtrlC: false,
    patchConsole: false,
  });
  const broken = new Promise<never>((_, reject) => {
    screen.waitUntilExit().catch(reject);
  });
  // Without this, a failure that comes before anybody awaits the promise would end the process.
  broken.catch(() => undefined);
  return { broken, unmount: screen.unmount };
}
