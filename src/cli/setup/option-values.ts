/** For an option that may be repeated: each value after those before it. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
