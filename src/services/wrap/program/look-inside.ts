import type { Sandbox } from "../../../sandbox/index.js";
import type { ProgramSearch } from "./host-program.js";

export type InsideView =
  | {
      kind: "ready";
      /** The agent's command, with the program's path in the sandbox. */
      argv: readonly string[];
      /** The home directory of commands. */
      home: string;
      /** The program's path on this machine; null if it is the image's own program. */
      mountedFrom: string | null;
    }
  /** `message` tells the user why there is no program. */
  | { kind: "missing"; message: string };

/** Prints the home directory, the program's path in the image, and whether the image has what the host's program needs. */
const LOOK = `printf '%s\\n' "$HOME"
command -v -- "$1" || echo
case "$2" in
  '') echo yes ;;
  /*) [ -e "$2" ] && echo yes || echo no ;;
  *) command -v -- "$2" >/dev/null && echo yes || echo no ;;
esac`;

/** Chooses the image's own program, or else the mounted one of this machine. */
export async function lookInside(
  sandbox: Sandbox,
  { argv, found, signal }: { argv: readonly string[]; found: ProgramSearch; signal: AbortSignal },
): Promise<InsideView> {
  const [program = "", ...rest] = argv;
  const needs = found.kind === "found" ? (found.program.needs ?? "") : "";
  const { stdout, exitCode } = await sandbox.exec(["/bin/sh", "-c", LOOK, "sh", program, needs], { signal });
  const [home = "", own = "", hasNeeds = ""] = stdout.split("\n");
  if (exitCode !== 0 || !home.startsWith("/"))
    return {
      kind: "missing",
      message: `the image ${sandbox.image} has no working /bin/sh, which brig wrap needs`,
    };
  if (own !== "") return { kind: "ready", argv: [own, ...rest], home, mountedFrom: null };
  if (found.kind === "found" && hasNeeds === "yes")
    return { kind: "ready", argv: [found.program.path, ...rest], home, mountedFrom: found.program.hostPath };
  return { kind: "missing", message: whyMissing(program, { found, image: sandbox.image, needs }) };
}

function whyMissing(
  program: string,
  { found, image, needs }: { found: ProgramSearch; image: string; needs: string },
): string {
  const start = `${program} was not found in the image ${image}`;
  const hint = "use --container-image with an image that has it";
  if (found.kind === "found")
    return `${start}, and that of this machine, ${found.program.hostPath}, needs ${needs}, which the image does not have either; ${hint}`;
  if (found.kind === "unusable")
    return `${start}, and that of this machine, ${found.hostPath}, ${found.reason}; ${hint}`;
  return `${start}, nor is it an agent's program on the PATH of this machine; ${hint}`;
}
