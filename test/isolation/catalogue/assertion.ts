/** A test by its file below `test` and its title as the file spells it, where … stands for a value of a template. */
type Proof = readonly [file: string, title: string];

/** What has to be true of a sandbox, by an id that stays; and the tests that would fail if it were not. */
export type Assertion = readonly [
  id: string,
  sentence: string,
  first: Proof | "probed",
  ...others: readonly Proof[],
];

/** src/sandbox/attack/attempts has the attempt, which test/isolation/probes.test.ts makes in every mode. */
export const probed = "probed";
