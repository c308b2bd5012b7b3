import type { Command } from "commander";

/** An option of Docker or Codex. */
interface Familiar {
  /** An option that the command must have for this to be true. */
  needs?: string;
  /** To somebody who tries it with brig. */
  says: string;
}

export const familiarOptions: Readonly<Record<string, Familiar>> = {
  "--rm": {
    needs: "--keep",
    says: "leave it out: without --keep a sandbox is removed when it is no longer needed",
  },
  "-e": { needs: "--env", says: "to set a variable: --env NAME=VALUE" },
  "-w": { needs: "--cd", says: "for another directory: -C DIR" },
  "--workdir": { needs: "--cd", says: "for another directory: -C DIR" },
  "-v": {
    needs: "--add-dir",
    says: "a sandbox has the current directory, or -C DIR; for another one: --add-dir DIR",
  },
  "--volume": {
    needs: "--add-dir",
    says: "a sandbox has the current directory, or -C DIR; for another one: --add-dir DIR",
  },
  "--mount": {
    needs: "--add-dir",
    says: "a sandbox has the current directory, or -C DIR; for another one: --add-dir DIR",
  },
  "--image": { needs: "--container-image", says: "for another image: --container-image IMAGE" },
  "--net": { needs: "--network", says: "for a network: --network full, or allowlist:HOST" },
  "-p": { needs: "--publish", says: "to reach a port of the sandbox: --publish PORT" },
  "--privileged": { needs: "--sandbox", says: "the widest mode is --sandbox danger-full-access" },
  "--cap-add": {
    needs: "--policy",
    says: "what a sandbox may do is in a mode or in a policy file: --sandbox, --policy",
  },
  "--user": { needs: "--policy", says: "whom the commands run as is in a policy file: --policy FILE" },
  "-u": { needs: "--policy", says: "whom the commands run as is in a policy file: --policy FILE" },
  "--memory": { needs: "--policy", says: "limits are in a policy file: --policy FILE" },
  "-m": { needs: "--policy", says: "limits are in a policy file: --policy FILE" },
  "--cpus": { needs: "--policy", says: "limits are in a policy file: --policy FILE" },
  "--pids-limit": { needs: "--policy", says: "limits are in a policy file: --policy FILE" },
  "--full-auto": {
    needs: "--ask-for-approval",
    says: "that is what brig run does without it: commands are not asked about, and run in a sandbox",
  },
  "--yolo": {
    needs: "--sandbox",
    says: "brig runs everything in a container; the widest mode is --sandbox danger-full-access",
  },
  "--dangerously-bypass-approvals-and-sandbox": {
    needs: "--sandbox",
    says: "brig runs everything in a container; the widest mode is --sandbox danger-full-access",
  },
  "--skip-git-repo-check": { says: "brig needs no Git repository, so leave it out" },
};

/** What to do instead of an option that brig calls otherwise. Null if there is nothing to say. */
export function hintForOption(flag: string, command: Command): string | null {
  if (!Object.hasOwn(familiarOptions, flag)) return null;
  const { needs, says } = familiarOptions[flag] as Familiar;
  const isTrue = needs === undefined || command.options.some(({ long }) => long === needs);
  return isTrue ? says : null;
}
