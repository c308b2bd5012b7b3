import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCurrentProcess } from "../../../../../src/lib/file-lock.js";
import { ImageHolds, isHeld } from "../../../../../src/sandbox/images/dockerfile/built-image-store.js";
import { lockDirectory } from "../../../../../src/sandbox/images/lock.js";

const { owner, processes } = await readCurrentProcess();
const newTag = () => `brig-task:${randomBytes(16).toString("hex")}`;

describe("an image that is needed", () => {
  it("is held until the last who took it gives it back", async () => {
    const tag = newTag();
    const holds = new ImageHolds();
    expect(await isHeld(tag, processes)).toBe(false);
    const [first, second] = [await holds.take(tag), await holds.take(tag)];
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    expect(await isHeld(tag, processes)).toBe(true);
    second[Symbol.dispose]();
    expect(await isHeld(tag, processes)).toBe(false);
    using _again = await holds.take(tag);
    expect(await isHeld(tag, processes)).toBe(true);
  });

  it("is held by several at once, and by nobody who has died", async () => {
    const tag = newTag();
    const first = await new ImageHolds().take(tag);
    const second = await new ImageHolds().take(tag);
    const name = `.${tag.replace(":", "_")}.0123456789ab.lock`;
    writeFileSync(join(lockDirectory(), "task-images", name), JSON.stringify({ ...owner, startedAt: "1" }));
    first[Symbol.dispose]();
    expect(await isHeld(tag, processes)).toBe(true);
    second[Symbol.dispose]();
    expect(await isHeld(tag, processes)).toBe(false);
  });
});
