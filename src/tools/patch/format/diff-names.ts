/** The name in a `---` or `+++` line; null for `/dev/null`. A tab and a time may follow it. */
export function headerName(line: string): string | null {
  const rest = line.slice("--- ".length);
  const name = rest.startsWith('"') ? unquoteName(rest) : (rest.split("\t")[0] ?? "").trimEnd();
  return name === "/dev/null" ? null : name;
}

/** The names of `diff --git a/NAME b/NAME`. Names may contain spaces, so only equal names are certain. */
export function gitNames(rest: string): [oldName: string | null, newName: string | null] {
  const quoted = /^("(?:[^"\\]|\\.)*") (".*")$/.exec(rest);
  const half = (rest.length - 1) / 2;
  const [oldName, newName] = quoted
    ? [unquoteName(quoted[1] ?? ""), unquoteName(quoted[2] ?? "")]
    : [rest.slice(0, half), rest.slice(half + 1)];
  const [oldBare, newBare] = withoutPrefixes(oldName, newName, { isGit: true });
  return oldBare === newBare ? [oldBare, newBare] : [null, null];
}

/** Removes `a/` and `b/` if both names have them. Git also uses i(ndex), w(orktree), c(ommit), o(bject). */
export function withoutPrefixes(
  oldName: string | null,
  newName: string | null,
  { isGit }: { isGit: boolean },
): [oldName: string | null, newName: string | null] {
  const [oldPrefix, newPrefix] = isGit ? [/^[aciow12]\//, /^[bciow12]\//] : [/^a\//, /^b\//];
  const isPrefixed =
    (oldName === null || oldPrefix.test(oldName)) && (newName === null || newPrefix.test(newName));
  return isPrefixed ? [oldName?.slice(2) ?? null, newName?.slice(2) ?? null] : [oldName, newName];
}

const escapes: Readonly<Record<string, number | undefined>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
};

/** Undoes the quoting of git, which escapes bytes. Returns a name without quotes as it is. */
export function unquoteName(text: string): string {
  if (!text.startsWith('"')) return text;
  const pieces: Buffer[] = [];
  for (const { 0: piece } of text.slice(1).matchAll(/\\[0-7]{3}|\\.|[^"\\]+|"/g)) {
    if (piece === '"') break;
    pieces.push(unescaped(piece));
  }
  return Buffer.concat(pieces).toString("utf8");
}

function unescaped(piece: string): Buffer {
  if (!piece.startsWith("\\")) return Buffer.from(piece);
  const byte = piece.length === 4 ? Number.parseInt(piece.slice(1), 8) & 0xff : escapes[piece.slice(1)];
  return byte === undefined ? Buffer.from(piece.slice(1)) : Buffer.of(byte);
}
