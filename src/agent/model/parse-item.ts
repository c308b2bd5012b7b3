import { anyItem, knownItem } from "./item-schemas.js";
import { type ResponseItem, withoutId } from "./items.js";

const knownTypes: ReadonlySet<string> = new Set(knownItem.options.map((option) => option.shape.type.value));

/** Reads an item that came from an endpoint or a session file. Throws a ZodError for an incomplete one. */
export function parseItem(value: unknown, { withId = true }: { withId?: boolean } = {}): ResponseItem {
  const item = anyItem.parse(value);
  const named = item.type === "local_shell_call" ? { ...item, call_id: item.call_id ?? item.id } : item;
  if (knownTypes.has(item.type)) {
    const known = knownItem.parse(named);
    return withId ? known : withoutId(known);
  }
  const { status: _status, ...kept } = item;
  return { type: "opaque", item: withId ? kept : withoutId(kept) };
}
