/**
 * Whether the whole text matches: `*` stands for any characters but a slash, `**` for any at all. Takes time in
 * proportion to both lengths, whatever a program puts into its URL.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  const tokens = pattern.match(/\*\*|[\s\S]/g) ?? [];
  const reach = (states: boolean[]) => {
    for (const [at, token] of tokens.entries())
      if (states[at] && token.startsWith("*")) states[at + 1] = true;
    return states;
  };
  let states = reach([true]);
  for (const character of text.split("")) {
    const next: boolean[] = [];
    for (const [at, token] of tokens.entries()) {
      if (!states[at]) continue;
      if (token === "**" || (token === "*" && character !== "/")) next[at] = true;
      if (token === character && token !== "*") next[at + 1] = true;
    }
    states = reach(next);
  }
  return states[tokens.length] === true;
}
