import type { FileWatch, WatchedChange } from "../portable-sandbox.js";

/**
 * Makes a watch of a stream of changes, whose first item is null and says that the watch has begun. `end` ends the stream, may be
 * called twice, and does not reject. Errors: those of the stream, and that of `notBegun` if it begins with anything else.
 */
export async function openWatch(
  changes: AsyncGenerator<WatchedChange | null, void, undefined>,
  { end, notBegun }: { end(): Promise<void>; notBegun(): Error },
): Promise<FileWatch> {
  let isClosed = false;
  const close = async () => {
    isClosed = true;
    await end();
  };
  try {
    const first = await changes.next();
    if (first.done === true || first.value !== null) throw notBegun();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for await (const change of changes) if (change !== null) yield change;
      } catch (error) {
        if (!isClosed) throw error;
      } finally {
        await close();
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
