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
