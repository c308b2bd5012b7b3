/** How a sandbox stood in the way of a command, as far as its output tells. */
export interface SandboxDenial {
  /** As Linux names it, e.g. `EROFS`; for a name that could not be resolved `EAI_AGAIN`, for a system call `SIGSYS`. */
  errno: string;
  /** The line that says so, as the command printed it; for a person, and untrusted. Empty where no line does. */
  evidence: string;
  /** The command, by its output or the way it ended, both of which it can choose; or the kernel, which answered brig itself. */
  toldBy: "command" | "kernel";
}

interface EndedCommand {
  exitCode: number;
  signal: string | null;
  timedOut: boolean;
  /** All that it printed, as far as it was kept. */
  output: string;
}

interface Sign {
  errno: string;
  words: RegExp;
}

/** What programs print of an errno, most telling first. */
const signs: readonly Sign[] = [
  { errno: "EROFS", words: /read-only file system|\berofs\b/i },
  { errno: "EPERM", words: /operation not permitted|\beperm\b/i },
  { errno: "EACCES", words: /permission denied|\beacces\b/i },
  { errno: "EPERM", words: /seccomp|landlock|sandbox|failed to write file/i },
];

/** What programs print where there is no network but loopback. */
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
 * Whether the sandbox made a command fail, judged by what it printed: a guess, which costs a needless question where it is wrong. The
 * network counts where the sandbox has none.
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
