import { expect, it } from "vitest";
import type { StartFailure } from "../../../../src/sandbox/output/command-end.js";
import {
  MissingPrograms,
  sessionStartError,
  startError,
} from "../../../../src/tools/command/command-output.js";

type Stage = StartFailure["stage"];

const message = "what the sandbox says";

it.each<[Stage, string, number, string, string]>([
  ["exec", "ENOENT", 2, "NotFound", "No such file or directory"],
  // As a shell calls a program below a file.
  ["exec", "ENOTDIR", 2, "NotFound", "No such file or directory"],
  ["exec", "EACCES", 13, "PermissionDenied", "Permission denied"],
  ["exec", "ENOEXEC", 8, "Uncategorized", "Exec format error"],
  ["streams", "ENOMEM", 12, "OutOfMemory", "Out of memory"],
  ["cwd", "ENOTDIR", 20, "NotADirectory", "Not a directory"],
])("a start that failed at %s with %s is error %i of the system", (stage, errno, number, kind, text) => {
  const failure = { stage, errno, message };
  expect(startError(failure)).toBe(
    `execution error: Io(Os { code: ${number}, kind: ${kind}, message: "${text}" })\n${message}`,
  );
  expect(sessionStartError(["prog"], failure)).toBe(
    `exec_command failed for \`prog\`: CreateProcess { message: "${text} (os error ${number})" }\n${message}`,
  );
});

it.each<[Stage, string | undefined, string]>([
  ["fork", "EAGAIN", message],
  ["request", "E2BIG", message],
  ["request", undefined, message],
  ["streams", "EMFILE", message],
  ["exec", "errno 999", message],
  ["none", "ECANCELED", "prog: EACCES"],
  ["request", undefined, "prog: permission denied"],
])("a start that failed at %s with %s is told in the words %j alone", (stage, errno, words) => {
  const failure = { stage, errno, message: words };
  expect(startError(failure)).toBe(`execution error: ${words}`);
  expect(sessionStartError(["prog"], failure)).toBe(
    `exec_command failed for \`prog\`: CreateProcess { message: "${words}" }`,
  );
});

it.each<[Stage, boolean]>([
  ["exec", true],
  ["cwd", false],
])("a start that failed at %s is for want of the program: %s", (stage, isMissing) => {
  const startFailure = { stage, errno: "ENOENT", message: "prog: of the directory prog" };
  const ended = { argv: ["prog"], exitCode: 127, startFailure, output: "" };
  expect(new MissingPrograms().advice(ended, undefined) !== null).toBe(isMissing);
});
