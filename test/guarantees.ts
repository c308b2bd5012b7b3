/** Something the README promises, and that a test therefore has to prove. */
export interface Guarantee {
  /** `area.subject`, e.g. "contained.read-only". */
  id: string;
  /** The promise, as it stands in the README word for word. */
  sentence: string;
}

/** Every promise of the README. A test cites one with `promised(id, title)`. */
export const guarantees = [] as const satisfies Guarantee[];

export type GuaranteeId = (typeof guarantees)[number]["id"];

/** The title of a test that proves a promise: `it(promised("contained.read-only", "not a byte changes"), …)`. */
export function promised(id: GuaranteeId, title: string): string {
  return `${title} [${id}]`;
}

export interface Evidence {
  readme: string;
  /** The source of every test file. */
  tests: readonly string[];
}

/** What is wrong: a promise nobody tests, a promise the README does not make, an id given twice. */
export function findGaps(promises: readonly Guarantee[], { readme, tests }: Evidence): string[] {
  const text = inOneLine(readme);
  const ids = promises.map(({ id }) => id);
  const repeated = ids.filter((id, at) => ids.indexOf(id) !== at);
  return [
    ...repeated.map((id) => `${id}: the id is given twice`),
    ...promises
      .filter(({ id }) => !tests.some((source) => cites(source, id)))
      .map(({ id, sentence }) => `${id}: no test cites it (${sentence})`),
    ...promises
      .filter(({ sentence }) => !text.includes(inOneLine(sentence)))
      .map(({ id, sentence }) => `${id}: the README does not say: ${sentence}`),
  ];
}

function cites(source: string, id: string): boolean {
  return new RegExp(`\\bpromised\\(\\s*["']${id.replaceAll(".", "\\.")}["']`).test(source);
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
