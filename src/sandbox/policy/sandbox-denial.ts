/** The reason why a command failed because of the sandbox. */
export interface SandboxDenial {
  /** The errno, also `EAI_AGAIN` for a name that could not be resolved, and `SIGSYS` for a system call. */
  errno: string;
  /** The line of the command's output that shows it. For people, and not to be trusted. May be empty. */
  evidence: string;
  /** "command": a guess from its output or exit status. "kernel": brig's own system call failed. */
  toldBy: "command" | "kernel";
}

interface EndedCommand {
  exitCode: number;
  signal: string | null;
  timedOut: boolean;
  output: string;
}

interface Sign {
  errno: string;
  words: RegExp;
}

/** The words that programs print for an errno, the clearest first. */
const signs: readonly Sign[] = [
  { errno: "EROFS", words: /read-only file system|\berofs\b/i },
  { errno: "EPERM", words: /operation not permitted|\beperm\b/i },
  { errno: "EACCES", words: /permission denied|\beacces\b/i },
  { errno: "EPERM", words: /seccomp|landlock|sandbox|failed to write file/i },
];

/** The words that programs print when they have no network. */
const networkSigns: readonly Sign[] = [
  { errno: "ENETUNREACH", words: /network is (?:unreachable|down)|no route to host|\benetunreach\b/i },
  {
    errno: "EAI_AGAIN",
    words:
      /temporary failure in name resolution|temporary failure resolving|could not resolve (?:host|proxy)|couldn't resolve host|unable to resolve host|name or service not known|nodename nor servname|no address associated with hostname|name resolution|\b(?:eai_again|enotfound)\b|getaddrinfo|no such host|server misbehaving|failed to lookup address/i,
  },
];

const SIGSYS_EXIT_CODE = 128 + 31;
const MAX_EVIDENCE_CHARS = 300;

/**
 * Guesses from a command's output whether the sandbox made it fail. A wrong guess only costs a question.
 * Network errors count if the sandbox has no network.
 */
export function findDenial(
  { exitCode, signal, timedOut, output }: EndedCommand,
  { hasNetwork }: { hasNetwork: boolean },
): SandboxDenial | null {
  if (exitCode === 0 || timedOut) return null;
  const known = hasNetwork ? signs : [...signs, ...networkSigns];
  const sign = known.find(({ words }) => words.test(output));
  if (sign !== undefined)
    return { errno: sign.errno, evidence: lineOf(output, sign.words), toldBy: "command" };
  const isFiltered = signal === "SIGSYS" || exitCode === SIGSYS_EXIT_CODE;
  return isFiltered ? { errno: "SIGSYS", evidence: "", toldBy: "command" } : null;
}

function lineOf(output: string, words: RegExp): string {
  const line = output.split("\n").find((one) => words.test(one)) ?? "";
  return line.trim().slice(0, MAX_EVIDENCE_CHARS);
}
