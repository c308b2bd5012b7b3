import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  PointChange,
  SessionRestorePoint,
  UndoneChanges,
} from "../../src/agent/session/restore-point.js";
import { MemorySandbox } from "./memory-sandbox.js";

type Files = ReadonlyMap<string, string>;

interface State {
  files: Files;
  /** The state before this one; null for the first. */
  before: State | null;
}

/** A sandbox for tests with a workspace of a few flat files, whose states it keeps in memory. */
export class PointSandbox extends MemorySandbox {
  readonly snapshotId = "tree-1";
  readonly workspace = mkdtempSync(join(tmpdir(), "brig-points-"));
  /** The last one is the present state, as far as it was kept. */
  readonly #points: State[] = [{ files: new Map(), before: null }];
  /** The state that the workspace has, an undo counted as the state that it restored. */
  #current: State = { files: new Map(), before: null };

  async restorePoint({
    signal,
  }: {
    signal?: AbortSignal | undefined;
  } = {}): Promise<SessionRestorePoint | null> {
    await Promise.resolve();
    signal?.throwIfAborted();
    const files = filesIn(this.workspace);
    const point = this.#point(differences(this.#current.files, files));
    if (point === null) return null;
    this.#current = { files, before: this.#current };
    this.#points.push(this.#current);
    return point;
  }

  async undo(): Promise<UndoneChanges | null> {
    await this.restorePoint();
    const { files: undoneFiles, before } = this.#current;
    if (before === null) return null;
    const number = this.#points.indexOf(this.#current);
    const undone = { ...this.#described(differences(before.files, undoneFiles)), number };
    const point = this.#described(differences(undoneFiles, before.files));
    for (const path of undoneFiles.keys()) if (!before.files.has(path)) rmSync(join(this.workspace, path));
    for (const [path, content] of before.files) writeFileSync(join(this.workspace, path), content);
    this.#current = before;
    this.#points.push({ files: before.files, before: before.before });
    return { undone, point, restores: Math.max(0, this.#points.indexOf(before)) };
  }

  override async close(): Promise<void> {
    await super.close();
    rmSync(this.workspace, { recursive: true, force: true });
  }

  #point(changes: PointChange[]): SessionRestorePoint | null {
    return changes.length === 0 ? null : this.#described(changes);
  }

  #described(changes: PointChange[]): SessionRestorePoint {
    return { snapshot: this.snapshotId, number: this.#points.length, count: changes.length, changes };
  }
}

function filesIn(directory: string): Files {
  return new Map(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}

function differences(before: Files, after: Files): PointChange[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return paths.flatMap((path): PointChange[] => {
    if (before.get(path) === after.get(path)) return [];
    return [{ path, change: !before.has(path) ? "added" : !after.has(path) ? "deleted" : "modified" }];
  });
}
