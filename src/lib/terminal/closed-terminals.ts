import { closeSync, fstatSync, statSync } from "node:fs";

/**
 * Node 20 restores the settings of the terminals that it was started with when it ends, and aborts if one of them is gone: a closed window
 * or a lost connection would look like a crash. It leaves closed descriptors alone. To be called as the process exits.
 */
export function closeGoneTerminals(): void {
  for (const descriptor of [0, 1, 2]) if (isGoneTerminal(descriptor)) closeSync(descriptor);
}

/** Once the terminal is gone, the kernel knows its device for none. */
function isGoneTerminal(descriptor: number): boolean {
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isCharacterDevice() || stats.rdev === statSync("/dev/null").rdev) return false;
    // Loaded on demand, which takes milliseconds where no terminal is open.
    return !process.getBuiltinModule("node:tty").isatty(descriptor);
  } catch {
    // It is not open.
    return false;
  }
}
