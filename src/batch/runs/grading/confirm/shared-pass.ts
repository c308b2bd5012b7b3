import { join } from "node:path";
import type { Engine, Sandbox } from "../../../../sandbox/index.js";
import type { TaskStep } from "../../../tasks/task.js";
import type { TaskPlace } from "../../place/task-sandbox.js";
import type { Confirmation } from "../../results/attempt-result.js";
import { confirmPass, notConfirmed, type PassToConfirm, workRoots } from "./confirm-pass.js";
import { KeptWork } from "./kept-work.js";

/** Folder in the folder of the step, until its verification is over. */
const WORK_FOLDER = ".work";

interface WorkPlace {
  engine: Pick<Engine, "readArchive">;
  step: TaskStep;
  cwd: string;
  /** Folder of the step, on the host. */
  folder: string;
  signal: AbortSignal | undefined;
}

/** A pass that tests in the agent's container may give, and the work that it should rest on. */
export class SharedPass implements AsyncDisposable {
  #work: KeptWork | null = null;
  #whyNot = "the tests ended before the work could be kept";

  /** Call this before the tests run. A failure here is no reason not to run them. Error: the signal's reason. */
  async keepWork(sandbox: Sandbox, { engine, step, cwd, folder, signal }: WorkPlace): Promise<void> {
    try {
      const kind = (await sandbox.files.stat(cwd, { followSymlinks: false })).type;
      if (cwd === "/" || kind !== "directory") {
        this.#whyNot = `the working directory ${cwd === "/" ? "is the whole file system" : "is a link"}, so what lies outside of it is not known`;
        return;
      }
      const options = { roots: workRoots(step, cwd), folder: join(folder, WORK_FOLDER), signal };
      this.#work = await KeptWork.keep({ engine, containerId: sandbox.containerId }, options);
      if (this.#work === null) this.#whyNot = "the work is too large to be kept for a second grading";
    } catch (error) {
      signal?.throwIfAborted();
      this.#whyNot = `the work could not be kept: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  async confirm(place: TaskPlace, pass: Omit<PassToConfirm, "work">): Promise<Confirmation> {
    const work = this.#work;
    return work === null ? notConfirmed(this.#whyNot) : await confirmPass(place, { ...pass, work });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#work?.[Symbol.asyncDispose]();
  }
}
