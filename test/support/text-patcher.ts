import type { PatchFiles } from "../../src/tools/patch/patch-files.js";
import { createPatcher, type Patcher, ReadPatch } from "../../src/tools/patch/patcher.js";

type TextOptions = NonNullable<Parameters<Patcher["apply"]>[1]> & { cwd: string };

/** A patcher that reads the texts of patches itself. */
export function textPatcher(files: () => PatchFiles | Promise<PatchFiles>) {
  const patcher = createPatcher(files);
  return {
    applyPatch: (text: string, { cwd, ...options }: TextOptions) =>
      patcher.apply(ReadPatch.read(text, cwd), options),
    applyAnyPatch: (text: string, { cwd, ...options }: TextOptions) =>
      patcher.apply(ReadPatch.readAny(text, cwd), options),
  };
}
