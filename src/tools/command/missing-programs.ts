import type { ToolCallOptions } from "../tool.js";
import type { SandboxAccess } from "../tool-needs.js";
import type { ToolStartFailure } from "../tool-sandbox.js";

interface EndedCommand {
  argv: readonly string[];
  exitCode: number;
  startFailure?: ToolStartFailure | null | undefined;
  output: string;
}

/** The exit code of a shell that does not find a program. */
const NOT_FOUND = 127;
/** Output can contain any name, so the number of programs that are reported is limited. */
const MAX_REPORTED = 10;
/** Only the end of an output is searched, where a shell's error message is. */
const SEARCHED_CHARS = 4096;

const name = String.raw`[\w.+-]{1,64}`;
const complaints: readonly RegExp[] = [
  new RegExp(`(?:^|: )(${name}): (?:command )?not found$`, "m"),
  new RegExp(`: command not found: (${name})$`, "m"),
  new RegExp(`^(?:/usr/bin/)?env: [‘'"]?(${name})[’'"]?: No such file or directory$`, "m"),
];

export interface MissingProgramNeeds extends SandboxAccess {
  readonly missingPrograms: MissingPrograms;
}

export async function adviseOfMissingProgram(
  needs: MissingProgramNeeds,
  command: EndedCommand,
  call: ToolCallOptions,
): Promise<void> {
  if (command.exitCode !== NOT_FOUND) return;
  const { image } = await needs.sandbox();
  const text = needs.missingPrograms.advice(command, image);
  if (text !== null) call.onActivity?.({ kind: "advice", text });
}

/** The programs that the commands of a session did not find. Each is reported once. */
export class MissingPrograms {
  readonly #reported = new Set<string>();

  /** A note for the model and the user, or null. */
  advice(command: EndedCommand, image: string | undefined): string | null {
    const program = command.exitCode === NOT_FOUND ? missingProgram(command) : null;
    if (program === null || this.#reported.has(program) || this.#reported.size >= MAX_REPORTED) return null;
    this.#reported.add(program);
    const place = image === undefined ? "the sandbox's image" : `the sandbox's image ${image}`;
    return `${ADVICE_START}${program} was not found in ${place}. The user can choose another image with --container-image.`;
  }
}

/** Compaction recognises the advice by this beginning. */
export const ADVICE_START = "Warning: the program ";

function missingProgram({ argv: [program = ""], startFailure, output }: EndedCommand): string | null {
  if (startFailure) {
    const isBareName = new RegExp(`^${name}$`).test(program);
    return isBareName && startFailure.stage === "exec" ? program : null;
  }
  const end = output.slice(-SEARCHED_CHARS).replaceAll("\r", "");
  for (const complaint of complaints) {
    const found = complaint.exec(end)?.[1];
    if (found !== undefined) return found;
  }
  return null;
}
