/** Changes all texts in a value of plain objects and lists, keys included. What does not change is returned as it is. */
export function mapTexts<Value>(value: Value, change: (text: string) => string): Value {
  return mapped(value, change) as Value;
}

function mapped(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const list = value.map((one) => mapped(one, change));
    return list.some((one, at) => one !== value[at]) ? list : value;
  }
  if (!isPlain(value)) return value;
  const entries = Object.entries(value);
  const changed = entries.map(([key, one]) => [change(key), mapped(one, change)] as const);
  const isSame = changed.every(([key, one], at) => key === entries[at]?.[0] && one === entries[at]?.[1]);
  return isSame ? value : Object.fromEntries(changed);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
