import { Gate } from "../../../lib/time/gate.js";
import type { ContentPiece } from "../../files/extents.js";
import { writeContent, writeFile } from "../../files/file-writes.js";
import type { CommandContext } from "../../process/start-command.js";
import { type CommitStage, stagedPath } from "../../tree/commit-stage.js";

/** Files up to this size are read and written in one piece. */
export const SHORT_BYTES = 60 * 1024;
/** The number of files that are read or written at the same time. More do not make it faster. */
export const FILES_AT_ONCE = 8;

/** The content of a file: all of it, or its pieces without its holes. */
export type Content = Buffer | AsyncIterable<ContentPiece>;

/**
 * Writes contents to a commit's stage. The name of each is its index in the list. Errors: those of reading a
 * content and of writing it.
 */
export async function stageContents(
  context: CommandContext,
  {
    target,
    stage,
    contents,
    signal,
  }: {
    target: string;
    stage: CommitStage;
    contents: readonly (() => Promise<Content>)[];
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const gate = new Gate();
  const failed = new AbortController();
  const write = async (open: () => Promise<Content>, at: number) => {
    failed.signal.throwIfAborted();
    const path = stagedPath({ target, stage }, at);
    const content = await open();
    if (Buffer.isBuffer(content))
      await writeFile(context, { path, data: content, mode: 0o600, refuseSymlinks: true, signal });
    else await writeContent(context, { path, content, mode: 0o600, signal });
  };
  const written = contents.map(async (open, at) => {
    try {
      await gate.pass(() => write(open, at), { width: FILES_AT_ONCE, signal });
    } catch (error) {
      // After a failure, no further content is read.
      failed.abort(error);
      throw error;
    }
  });
  // The caller may remove the stage after a failure, so every write must have ended before.
  await Promise.allSettled(written);
  await Promise.all(written);
}
