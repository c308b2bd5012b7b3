import type { ToolCallOptions } from "../tool.js";
import type { SandboxAccess } from "../tool-needs.js";
import type { ToolStartFailure } from "../tool-sandbox.js";

/** What is known of a command that has ended. Its output is its own word. */
interface EndedCommand {
  argv: readonly string[];
  exitCode: number;
  startFailure?: ToolStartFailure | null | undefined;
  output: string;
}

/** As a shell reports a program that it does not find. */
const NOT_FOUND = 127;
/** A command can print any name: nobody is told of more. */
const MAX_TOLD = 10;
/** Of an output: what a shell says of a program stands at its end or close to it. */
const LOOKED_AT_CHARS = 4096;

const name = String.raw`[\w.+-]{1,64}`;
const complaints: readonly RegExp[] = [
  // bash, dash, busybox.
  new RegExp(`(?:^|: )(${name}): (?:command )?not found$`, "m"),
  // zsh.
  new RegExp(`: command not found: (${name})$`, "m"),
  new RegExp(`^(?:/usr/bin/)?env: [‘'"]?(${name})[’'"]?: No such file or directory$`, "m"),
];

export interface MissingProgramNeeds extends SandboxAccess {
  readonly missingPrograms: MissingPrograms;
}

/** Tells of a program that a command missed. */
export async function adviseOfMissing(
  needs: MissingProgramNeeds,
  command: EndedCommand,
  call: ToolCallOptions,
): Promise<void> {
  if (command.exitCode !== NOT_FOUND) return;
  const { image } = await needs.sandbox();
  const text = needs.missingPrograms.advice(command, image);
  if (text !== null) call.onActivity?.({ kind: "advice", text });
}

/** Programs that a session's commands missed, each told of once. */
export class MissingPrograms {
  readonly #told = new Set<string>();

  /** What to tell the model, and the person who reads along, else null. */
  advice(command: EndedCommand, image: string | undefined): string | null {
    const program = command.exitCode === NOT_FOUND ? missingProgram(command) : null;
    if (program === null || this.#told.has(program) || this.#told.size >= MAX_TOLD) return null;
    this.#told.add(program);
    const place = image === undefined ? "the sandbox's image" : `the sandbox's image ${image}`;
    return `${ADVICE_START}${program} was not found in ${place}. The user can choose another image with --container-image.`;
  }
}

/** How each advice begins. */
export const ADVICE_START = "Warning: the program ";

function missingProgram({ argv: [program = ""], startFailure, output }: EndedCommand): string | null {
  if (startFailure) {
    const isBareName = new RegExp(`^${name}$`).test(program);
    return isBareName && startFailure.stage === "exec" ? program : null;
  }
  const end = output.slice(-LOOKED_AT_CHARS).replaceAll("\r", "");
  for (const complaint of complaints) {
    const found = complaint.exec(end)?.[1];
    if (found !== undefined) return found;
  }
  return null;
}
