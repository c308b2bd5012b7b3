/** The reverse of a table from names to numbers, to look up numbers that came from outside. */
export function namesByNumber<Name extends string>(
  group: Readonly<Record<Name, number>>,
): ReadonlyMap<number, Name> {
  return new Map((Object.keys(group) as Name[]).map((name) => [group[name], name]));
}
