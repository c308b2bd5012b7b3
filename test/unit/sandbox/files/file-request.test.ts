import { describe, expect, it } from "vitest";
import {
  checkedPath,
  encodeFileRequest,
  type FileRequest,
  fileError,
  fileTypeOf,
  tooLarge,
} from "../../../../src/sandbox/files/file-request.js";
import { errnoName } from "../../../../src/sandbox/process/errno-names.js";
import type { ExitRecord } from "../../../../src/sandbox/process/exit-record.js";

const encode = (request: Partial<FileRequest>) =>
  encodeFileRequest({ operation: "read", path: "/p", ...request });

describe("a request for a file", () => {
  it("has every field where the runner reads it", () => {
    const bytes = encodeFileRequest({
      ...{ operation: "write", path: "/a/b", second: "ü", flags: 3, refuseSymlinks: true },
      ...{ mode: 0o1644, offsetBytes: 0x0102030405060708n, lengthBytes: 2 ** 40 + 5 },
    });
    expect([...bytes.subarray(0, 4)]).toEqual([2, 131, 0, 0]);
    expect(bytes.readUInt32LE(4)).toBe(0o1644);
    expect(bytes.readBigUInt64LE(8)).toBe(0x0102030405060708n);
    expect(bytes.readBigUInt64LE(16)).toBe(2n ** 40n + 5n);
    expect(bytes.subarray(24).toString("latin1")).toBe("\x04\0\0\0/a/b\x02\0\0\0\xc3\xbc");
  });

  it("has zeros and an empty second string for what is not given", () => {
    const bytes = encode({});
    expect([...bytes]).toEqual([1, ...Array(23).fill(0), 2, 0, 0, 0, 0x2f, 0x70, 0, 0, 0, 0]);
    expect(encode({ refuseSymlinks: false })).toEqual(bytes);
    expect(encode({ refuseSymlinks: true })[1]).toBe(128);
  });

  it.each(["report", "owners", "waits"] as const)("%s may have anything for a path", (operation) => {
    expect(encode({ operation, path: "" }).subarray(24)).toEqual(Buffer.alloc(8));
    expect(() => encode({ operation: "stat", path: "" })).toThrow("not an absolute path");
  });

  it.each([0, 1, Number.MAX_SAFE_INTEGER, 0n, 2n ** 63n - 1n])("takes %d bytes", (count) => {
    expect(encode({ offsetBytes: count }).readBigUInt64LE(8)).toBe(BigInt(count));
  });

  it.each([-1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1, -1n, 2n ** 63n])("refuses %d bytes", (count) => {
    const refusal = expect.objectContaining({
      code: "file.failed",
      message: expect.stringContaining("offsetBytes"),
    });
    expect(() => encode({ offsetBytes: count })).toThrow(refusal);
    if (typeof count === "number") expect(() => encode({ lengthBytes: count })).toThrow("lengthBytes");
  });

  it.each(["", "a", "./a", "/a\0b", Buffer.from("a")])("is for an absolute path only: %j", (path) => {
    const refusal = expect.objectContaining({
      code: "file.not-found",
      hint: expect.stringMatching(/absolute/),
    });
    expect(() => checkedPath(path)).toThrow(refusal);
  });

  it("has the bytes of a path as they are", () => {
    const path = Buffer.from([0x2f, 0xff, 0xfe]);
    expect(checkedPath(path)).toBe(path);
    expect(encode({ path }).subarray(28, 31)).toEqual(path);
  });
});

describe("the error of a file operation", () => {
  const numberOf = (name: string) => {
    for (let number = 1; number < 200; number++) if (errnoName(number) === name) return number;
    throw new Error(`no errno ${name}`);
  };
  const failed = (errno: number, kind = "file") => ({ kind, errno }) as ExitRecord;
  const request = { operation: "read", path: "/p" } as const;

  it.each([
    ["ENOENT", "file.not-found", "no such file or directory"],
    ["EACCES", "file.not-permitted", "permission denied"],
    ["EPERM", "file.not-permitted", "operation not permitted"],
    ["EROFS", "file.read-only", "read-only file system"],
    ["EISDIR", "file.is-directory", "is a directory"],
    ["ENOTDIR", "file.not-directory", "not a directory"],
    ["EEXIST", "file.exists", "file exists"],
    ["EFBIG", "file.too-large", "the file is too large"],
    ["ENOSPC", "file.failed", "ENOSPC"],
    ["ELOOP", "file.failed", "ELOOP"],
  ])("%s has the code %s", (errno, code, text) => {
    const error = fileError(request, failed(numberOf(errno)));
    expect(error).toMatchObject({ code, errno, message: `cannot read /p: ${text}` });
    expect(error.cause).toMatchObject({ code: errno, errno: -numberOf(errno) });
    expect(error.hint !== undefined).toBe(["EROFS", "EFBIG"].includes(errno));
  });

  it("is a symbolic link on the way only where these were refused", () => {
    const refused = { ...request, refuseSymlinks: true };
    expect(fileError(refused, failed(numberOf("ELOOP")))).toMatchObject({
      code: "file.symlink",
      errno: "ELOOP",
    });
    expect(fileError(refused, failed(numberOf("ENOENT")))).toMatchObject({ code: "file.not-found" });
  });

  it("names what is there instead of a regular file", () => {
    const error = fileError({ ...request, path: Buffer.from("/ü") }, failed(4096 + 4));
    expect(error).toMatchObject({
      code: "file.not-regular",
      message: expect.stringMatching(/^cannot read \/ü: .* fifo$/),
    });
    expect(fileError(request, failed(4096)).message).toMatch(/unknown$/);
    expect([0, 1, 2, 3, 99].map(fileTypeOf)).toEqual(["unknown", "file", "directory", "symlink", "unknown"]);
  });

  it("is of the whole when the operation was lost", () => {
    expect(fileError(request, failed(0, "lost"))).toMatchObject({ code: "file.failed", errno: "EIO" });
  });

  it("says how to read what is too large", () => {
    expect(tooLarge(Buffer.from("/p"))).toMatchObject({
      ...{ code: "file.too-large", message: "cannot read /p: the file is too large" },
      hint: expect.stringMatching(/offsetBytes/),
    });
  });
});
