/** The stream ended early: by silence, by a broken connection, or at a part that cannot be read. */
export class BrokenStream extends Error {
  override readonly name = "BrokenStream";
}

/** No event came within the idle timeout. */
export class SilentStream extends BrokenStream {}

/**
 * A part of the stream cannot be read. The stream ends there, instead of going on without that part: it may have been half of a
 * call's arguments, and the call would then do something else.
 */
export class DamagedStream extends BrokenStream {}
