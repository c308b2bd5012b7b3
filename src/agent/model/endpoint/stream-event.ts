import { parseJson } from "../../../lib/json/parse-json.js";

export type StreamEvent = Readonly<Record<string, unknown>>;

/**
 * The JSON object that an event consists of. Null for the pings that some gateways insert: words, numbers and
 * times of day. Error: `DamagedStream`.
 */
export function parseEvent(data: string): StreamEvent | null {
  const value = parseJson(data);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  if (Array.isArray(value) || (value === undefined && wasJson(data)))
    throw new DamagedStream("the endpoint sent an event that cannot be read");
  return null;
}

/** Whether the text, which is not JSON, must once have been a part of an event. */
export function wasJson(text: string): boolean {
  return /["{}]/.test(text);
}

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
