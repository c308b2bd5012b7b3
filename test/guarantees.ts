/** Something the README promises, and that a test therefore has to prove. */
export interface Guarantee {
  /** `area.subject`, e.g. "contained.read-only". */
  id: string;
  /** The promise, as it stands in the README word for word. */
  sentence: string;
}

/** Every promise of the README. A test cites one with `promised(id, title)`. */
export const guarantees = [
  { id: "contained.read-only", sentence: "In `read-only` not one byte of the workspace can be changed." },
  {
    id: "contained.protected",
    sentence:
      "In `workspace-write` `.git`, `.codex`, `.agents` and `.brig` stay as they are, present or absent.",
  },
  {
    id: "contained.host-git",
    sentence: "`git` on the host runs nothing that an agent put in its way.",
  },
  {
    id: "contained.workspace",
    sentence: "The workspace's path leads to the workspace, whatever a command moves or makes.",
  },
  {
    id: "contained.configuration",
    sentence: "No command, in no mode, can change the configuration that the next start obeys.",
  },
  { id: "contained.network", sentence: "Without `--network full` there is no interface but loopback." },
  { id: "contained.system-calls", sentence: "A system call outside the allow-list is refused." },
  { id: "contained.proof", sentence: "A container that is weaker than its policy runs nothing." },
  {
    id: "contained.memory",
    sentence: "What a command fills and leaves, in memory, never keeps the next one from starting.",
  },
  { id: "contained.image", sentence: "What an image says of itself has no say in the sandbox." },
  { id: "contained.secrets", sentence: "The session's token and your environment are nowhere inside." },
  {
    id: "kept.kill",
    sentence: "A timeout or a cancel ends the whole process tree, however it tried to get away.",
  },
  { id: "kept.output", sentence: "No byte of output is lost, and no exit code is wrong." },
  {
    id: "kept.stream",
    sentence: "A stream that breaks is opened again: nothing is lost, and nothing happens twice.",
  },
  { id: "kept.files", sentence: "A file is replaced whole or not at all." },
  {
    id: "kept.receipt",
    sentence: "What a session left that runs by itself later is named at its end, with hashes.",
  },
  {
    id: "kept.placeholders",
    sentence: "A killed session's empty directories are taken back at the next start, or by `brig gc`.",
  },
  {
    id: "kept.lease",
    sentence: "When the process that holds a sandbox dies, its container ends with the lease.",
  },
  {
    id: "kept.terminal",
    sentence: "What a command printed reaches your terminal without control sequences.",
  },
] as const satisfies Guarantee[];

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
