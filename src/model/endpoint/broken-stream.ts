/** The stream ended early: by silence, by a broken connection, or at a part that cannot be read. */
export class BrokenStream extends Error {
  override readonly name = "BrokenStream";
}

/** No event came within the idle timeout. */
export class SilentStream extends BrokenStream {}

/**
 * Something of the stream is not as it was sent. It must not be skipped: the rest could be a call without one
 * of its arguments.
 */
export class DamagedStream extends BrokenStream {}
