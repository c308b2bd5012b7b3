const units = ["KiB", "MiB", "GiB", "TiB"];

/** `812 B`, `1.5 KiB`, `24 MiB`: two or three digits, powers of 1024. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let size = bytes / 1024;
  let unit = 0;
  // From 999.5 on, three digits would be rounded to four.
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 9.95 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
};

/** Words for the texts that `parseBytes` accepts, to follow "must be" in a message. */
export const SIZE_WORDS = "a size such as 50GB or 512MiB";

/** Reads `50GB` (powers of 1000) or `1.5GiB` (powers of 1024). Null for anything else, a number without a unit included. */
export function parseBytes(text: string): number | null {
  const [, number = "", unit = ""] = /^(\d{1,12}(?:\.\d{1,6})?) ?([kmgt]i?b|b)$/i.exec(text.trim()) ?? [];
  const factor = UNIT_BYTES[unit.toLowerCase()];
  return factor === undefined ? null : Math.round(Number(number) * factor);
}
