/**
 * Calls a function of the caller's while a frame is being read. An error of it is the caller's own, and must not be
 * taken for a fault of the stream to the runner.
 */
export function callCallersCode(call: () => void): void {
  try {
    call();
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}
