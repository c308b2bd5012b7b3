/** Something SECURITY.md promises, and that a test therefore has to prove. */
export interface Guarantee {
  /** `area.subject`, e.g. "contained.read-only". */
  id: string;
  /** The promise, as it stands in SECURITY.md word for word. */
  sentence: string;
}

/** Every promise of SECURITY.md. A test cites one with `promised(id, title)`. */
export const guarantees = [
  {
    id: "contained.read-only",
    sentence: "In `read-only` mode, not one byte of the workspace can be changed.",
  },
  {
    id: "contained.protected",
    sentence:
      "In `workspace-write` mode, `.git`, `.codex`, `.agents` and `.brig` can be neither changed nor created.",
  },
  {
    id: "contained.host-git",
    sentence: "`git` on the host runs nothing that an agent added to your repositories.",
  },
  {
    id: "contained.workspace",
    sentence: "The workspace's path always leads to the workspace, whatever a command moves or creates.",
  },
  {
    id: "contained.configuration",
    sentence: "No command, in any mode, can change the configuration that brig reads at its next start.",
  },
  {
    id: "contained.network",
    sentence: "Without `--network full` there is no network interface except loopback.",
  },
  { id: "contained.system-calls", sentence: "A system call that is not on the allow-list is refused." },
  { id: "contained.proof", sentence: "Nothing runs in a container that is weaker than its policy." },
  {
    id: "contained.memory",
    sentence: "Memory that a command fills and leaves behind never keeps the next command from starting.",
  },
  { id: "contained.image", sentence: "Nothing that an image declares about itself weakens the sandbox." },
  {
    id: "contained.secrets",
    sentence: "Neither the session's token nor your environment is anywhere in the container.",
  },
  {
    id: "kept.kill",
    sentence: "A timeout or a cancel ends the whole process tree, whatever it does to escape.",
  },
  { id: "kept.output", sentence: "No byte of output is lost, and no exit code is wrong." },
  {
    id: "kept.stream",
    sentence:
      "If the connection to the container breaks, it is opened again: nothing is lost, and nothing runs twice.",
  },
  { id: "kept.files", sentence: "A file is written completely or not at all." },
  {
    id: "kept.receipt",
    sentence:
      "At the end of a session, brig lists the files it left that may run by themselves later, with hashes.",
  },
  {
    id: "kept.placeholders",
    sentence: "Empty directories of a killed session are removed at the next start, or by `brig gc`.",
  },
  {
    id: "kept.lease",
    sentence: "When the process that owns a sandbox dies, its container ends with the lease.",
  },
  {
    id: "kept.terminal",
    sentence: "Output of commands reaches your terminal without control sequences.",
  },
] as const satisfies Guarantee[];

export type GuaranteeId = (typeof guarantees)[number]["id"];

/** The title of a test that proves a promise: `it(promised("contained.read-only", "not a byte changes"), …)`. */
export function promised(id: GuaranteeId, title: string): string {
  return `${title} [${id}]`;
}

export interface Evidence {
  /** The text of SECURITY.md. */
  page: string;
  /** The source of every test file. */
  tests: readonly string[];
}

/** What is wrong: a promise nobody tests, a promise SECURITY.md does not make, an id given twice. */
export function findGaps(promises: readonly Guarantee[], { page, tests }: Evidence): string[] {
  const text = inOneLine(page);
  const ids = promises.map(({ id }) => id);
  const repeated = ids.filter((id, at) => ids.indexOf(id) !== at);
  return [
    ...repeated.map((id) => `${id}: the id is given twice`),
    ...promises
      .filter(({ id }) => !tests.some((source) => cites(source, id)))
      .map(({ id, sentence }) => `${id}: no test cites it (${sentence})`),
    ...promises
      .filter(({ sentence }) => !text.includes(inOneLine(sentence)))
      .map(({ id, sentence }) => `${id}: SECURITY.md does not say: ${sentence}`),
  ];
}

function cites(source: string, id: string): boolean {
  return new RegExp(`\\bpromised\\(\\s*["']${id.replaceAll(".", "\\.")}["']`).test(source);
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
