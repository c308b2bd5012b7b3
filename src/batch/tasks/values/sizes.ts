const bytesOf: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

/** The megabytes of a size such as `2G`, `512m` or `1.5GiB`; a bare number is bytes. Null for no such size. */
export function sizeInMb(text: string): number | null {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?(?:([kmgt])(?:i?b)?|b)?$/i.exec(text.trim());
  if (match === null) return null;
  const [, number = "", unit = ""] = match;
  return Math.floor((Number(number) * (bytesOf[unit.toLowerCase()] ?? 1)) / 1024 ** 2);
}
