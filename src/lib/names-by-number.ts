/** The names of a group of numbers, to be looked up by a number that came from outside. */
export function namesByNumber<Name extends string>(
  group: Readonly<Record<Name, number>>,
): ReadonlyMap<number, Name> {
  return new Map((Object.keys(group) as Name[]).map((name) => [group[name], name]));
}
