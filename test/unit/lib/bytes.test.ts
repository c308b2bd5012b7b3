import { expect, it } from "vitest";
import { formatBytes } from "../../../src/lib/bytes.js";

it.each([
  [0, "0 B"],
  [1_023, "1023 B"],
  [1_024, "1.0 KiB"],
  [1_536, "1.5 KiB"],
  [10_230, "10 KiB"],
  [1_048_575, "1.0 MiB"],
  [301 * 1024 * 1024, "301 MiB"],
  [5 * 1024 ** 4, "5.0 TiB"],
  [5_000 * 1024 ** 4, "5000 TiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
