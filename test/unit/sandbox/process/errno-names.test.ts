import { constants } from "node:os";
import { expect, it } from "vitest";
import { errnoName } from "../../../../src/sandbox/process/errno-names.js";

const linux: Readonly<Record<string, number>> = constants.errno;

it.skipIf(process.platform !== "linux")(
  "an errno has the name that Linux gives it, or its number [needs Linux]",
  () => {
    const known = Array.from({ length: 134 }, (_, errno) => errno).filter(
      (errno) => errnoName(errno) !== `errno ${errno}`,
    );
    expect(known).toHaveLength(45);
    expect(known.map((errno) => linux[errnoName(errno)])).toEqual(known);
    for (const errno of [0, 3, 4096]) expect(errnoName(errno)).toBe(`errno ${errno}`);
  },
);
