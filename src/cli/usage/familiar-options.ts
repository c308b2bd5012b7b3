import type { Command } from "commander";

/** The counterpart in brig of an option of Docker or Codex. */
interface Familiar {
  /** The option of brig that `says` is about. The hint is given only for a command that has this option. */
  needs?: string;
  /** The hint for somebody who tries the option with brig. */
  says: string;
}

const meanings: readonly (Familiar & { flags: readonly string[] })[] = [
  {
    flags: ["--rm"],
    needs: "--keep",
    says: "leave it out: without --keep a sandbox is removed when it is no longer needed",
  },
  { flags: ["-w", "--workdir"], needs: "--cd", says: "for another directory: -C DIR" },
  {
    flags: ["-v", "--volume", "--mount"],
    needs: "--add-dir",
    says: "a sandbox has the current directory, or -C DIR; for another one: --add-dir DIR",
  },
  {
    flags: ["--image"],
    needs: "--container-image",
    says: "for another image: --container-image IMAGE",
  },
  {
    flags: ["--net"],
    needs: "--network",
    says: "for a network: --network full, or allowlist:HOST",
  },
  { flags: ["-p"], needs: "--publish", says: "to reach a port of the sandbox: --publish PORT" },
  { flags: ["--privileged"], needs: "--sandbox", says: "the widest mode is --sandbox danger-full-access" },
  {
    flags: ["--cap-add"],
    needs: "--policy",
    says: "what a sandbox may do is in a mode or in a policy file: --sandbox, --policy",
  },
  {
    flags: ["-u"],
    needs: "--user",
    says: "for another user: --user UID:GID",
  },
  {
    flags: ["-m"],
    needs: "--memory",
    says: "to limit the memory: --memory 512m",
  },
  {
    flags: ["--pids-limit"],
    needs: "--pids",
    says: "to limit processes and threads: --pids NUMBER",
  },
  {
    flags: ["--memory-swap", "--shm-size", "--tmpfs", "--ulimit"],
    needs: "--policy",
    says: "there is no swap; directories in memory and open files are in a policy file: --policy FILE",
  },
  {
    flags: ["--full-auto"],
    needs: "--ask-for-approval",
    says: "that is what brig run does without it: commands are not asked about, and run in a sandbox",
  },
  {
    flags: ["--yolo", "--dangerously-bypass-approvals-and-sandbox"],
    needs: "--sandbox",
    says: "brig runs everything in a container; the widest mode is --sandbox danger-full-access",
  },
  { flags: ["--skip-git-repo-check"], says: "brig needs no Git repository, so leave it out" },
];

export const familiarOptions: ReadonlyMap<string, Familiar> = new Map(
  meanings.flatMap(({ flags, ...meaning }) => flags.map((flag) => [flag, meaning] as const)),
);

/** The hint for an option that has another name in brig. Null if there is none. */
export function hintForOption(flag: string, command: Command): string | null {
  const known = familiarOptions.get(flag);
  if (known === undefined) return null;
  const { needs, says } = known;
  const isTrue = needs === undefined || command.options.some(({ long }) => long === needs);
  return isTrue ? says : null;
}
