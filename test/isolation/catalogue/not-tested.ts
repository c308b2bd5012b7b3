const outOfScope = "no promise of brig: SECURITY.md says so";
const allowList = "every connection to the proxy is decided by itself, and there is no other way out (E8)";

/** Assertions without a test, and why. A test fails when this list grows. */
export const notTested: Readonly<Record<string, string>> = {
  A18: outOfScope,
  B7: "brig does not mount volumes for a workspace of the host's own files",
  C3: "whether brig opens files of a workspace on the host at all is a question for review; C1, C2 and C14 test where it does",
  C11: "brig has no compressed upload to an engine: Engine.putArchive takes a plain tar only",
  C13: outOfScope,
  D6: "brig never changes git's safe.directory; there is nothing to try",
  E17: allowList,
  E19: allowList,
  F9: outOfScope,
  G13: "a terminal has no order or separation to prove; test/docker/sandbox/pty.test.ts tests what it does have",
  G15: "brig does not ask the engine for an exit code: the runner reports it",
  G16: "brig starts nothing detached",
  G17: "brig starts no exec twice",
  H9: "speed, which no test asserts; brig kills and does not stop",
};
