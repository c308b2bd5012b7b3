import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync, statfsSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Only root may mount a file system. */
export const whyNoSmallDisk = process.getuid?.() === 0 ? null : "only root can mount a small disk";

/** A file system of its own that is soon full. */
export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static mount(mebibytes: number): SmallDisk {
    const path = mkdtempSync(join(tmpdir(), "brig-small-disk-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m,mode=0755`, "brig-test", path]);
    return new SmallDisk(path);
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }

  /** Leaves no more than this free. */
  async fill({ leavesBytes = 0 }: { leavesBytes?: number } = {}): Promise<void> {
    const piece = Buffer.alloc(1024 * 1024);
    const file = await open(this.#filler, "a");
    try {
      for (;;) {
        const wanted = Math.min(piece.length, this.freeBytes - leavesBytes);
        if (wanted <= 0) return;
        await file.write(piece, 0, wanted);
      }
    } finally {
      await file.close();
    }
  }

  async makeRoom(): Promise<void> {
    await rm(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    execFileSync("umount", ["-l", this.path]);
    rmdirSync(this.path);
  }

  get #filler(): string {
    return join(this.path, "filler");
  }
}
