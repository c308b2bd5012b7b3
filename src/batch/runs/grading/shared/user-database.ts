/**
 * Returns /etc/passwd or /etc/group as it is now, but with the image's numbers for every user or group of the image.
 * Entries that the agent has added stay.
 */
export function withNumbersOf(image: string, now: string): string {
  const original = new Map(entriesOf(image).map((fields) => [fields[0], fields]));
  const kept = entriesOf(now).map((fields) => {
    const own = original.get(fields[0]);
    original.delete(fields[0]);
    return own === undefined ? fields : withNumbers(fields, own);
  });
  return [...kept, ...original.values()].map((fields) => `${fields.join(":")}\n`).join("");
}

/**
 * The third field of a line is the number of the user or group. In passwd, the fourth is the number of the user's group.
 * Root gets the image's whole line, because the tests use root's home and shell.
 */
function withNumbers(fields: readonly string[], own: readonly string[]): string[] {
  const isRootUser = own.length > 4 && own[2] === "0";
  if (isRootUser) return [...own];
  const numbers = own.length > 4 ? [2, 3] : [2];
  return fields.map((field, index) => (numbers.includes(index) ? (own[index] ?? field) : field));
}

/** The first line of a name is the one that counts. */
function entriesOf(text: string): string[][] {
  const names = new Set<string>();
  return text
    .split("\n")
    .map((line) => line.split(":"))
    .filter(([name = ""]) => name !== "" && !names.has(name) && names.add(name));
}
